"""Averaged plans and moments equal NumPy's, and what they are steps of."""

import accelerated_listings as listings
import numpy as np
import pytest
from accelerated_listings import small, states

import numpy_kernels as reference
from epsilot.geometry import Dense
from epsilot.solvers.entropic_dual import mix, moments


@pytest.mark.parametrize("scale", [0.1, 1.0, 40.0])
@pytest.mark.parametrize("is_misleading", [False, True])
def test_moments_and_average_equal_numpy(rng, scale, is_misleading):
    C = rng.uniform(0, 1, (300, 280))  # enough for two threads
    f, g, eta = scale * rng.normal(size=300), scale * rng.normal(size=280), 0.01
    if is_misleading:
        f[7] = f.max() + 1.0
        C[7] = 1e3  # the row of largest f holds none of the mass
    log_r, log_c, log_mass = reference.log_marginals(C, f, g, eta)
    X = reference.gibbs(C, f - eta * log_mass, g, eta)
    AX, cost, found = moments(Dense(C), f, g, eta)
    np.testing.assert_allclose(AX, np.exp(np.concatenate([log_r, log_c]) - log_mass), atol=1e-12)
    assert (cost, found) == pytest.approx(((C * X).sum(), log_mass), rel=1e-11)
    average = rng.uniform(0, 1, C.shape)
    expected = 0.75 * average + 0.25 * X
    mix(Dense(C), average, f - eta * log_mass, g, eta, 0.25)
    np.testing.assert_allclose(average, expected, rtol=1e-11)


@pytest.mark.parametrize(
    ("name", "dual", "weight"),
    [("apdagd", "zeta", "beta"), ("apdamd", "zeta", "beta"), ("hybrid_primal_dual", "w", "weight")],
)
def test_marginals_of_the_average_are_the_dual_step(name, dual, weight):
    problem = small(9, 7, eta=0.02)
    _, _, b, _ = listings.parts(problem)
    for _, _, state in states(problem, name, 60, average=True):
        residual = listings.marginals(state.X) - b
        expected = -getattr(state, dual) / getattr(state, weight)
        np.testing.assert_allclose(residual, expected, rtol=0, atol=1e-11)
        assert state.mean_violation == pytest.approx(np.abs(residual).sum(), abs=1e-11)
        assert state.X.sum() == pytest.approx(1, abs=1e-11)
