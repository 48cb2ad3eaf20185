"""APDRCD and APDGCD: the listings, the proof, epochs, runs that stall or diverge."""

from dataclasses import replace

import accelerated_listings as listings
import numpy as np
import pytest
from accelerated_listings import SHAPES, small, states
from by_hand import synthetic

import epsilot
from epsilot.engine import driver
from epsilot.kernels import coordinate as kernels
from epsilot.problems.work import Status
from epsilot.solvers import make_solver
from epsilot.solvers.apdrcd import APDGCD, steps_per_epoch
from tuning import tune


@pytest.mark.parametrize("shape", SHAPES)
def test_apdrcd_follows_its_listing(shape):
    problem = small(*shape)
    theirs = listings.coordinates(problem, np.random.default_rng(0), 40)
    for (_, _, state), (lam, X) in zip(states(problem, "apdrcd", 40), theirs, strict=True):
        np.testing.assert_allclose(state.lam, lam, rtol=0, atol=1e-10)
        np.testing.assert_allclose(state.X, X, rtol=0, atol=1e-10)
        np.testing.assert_allclose(state.average, listings.marginals(X), rtol=0, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("is_greedy", [False, True])
def test_coordinate_steps_decrease_the_dual(is_greedy, seed):
    problem = small(12, 9, eta=0.05, seed=seed)
    C, eta, b, n = listings.parts(problem)
    rng = np.random.default_rng(seed)
    lam = np.repeat([-eta, 0.0], [n, b.size - n])
    z, theta, L = lam.copy(), 1.0, 4 / eta
    X, average = np.zeros_like(C), np.zeros(b.size)
    for _ in range(400):
        y = (1 - theta) * lam + theta * z
        value, gradient, _ = listings.exp_dual(problem, y)
        scratch = np.empty(b.size)
        if is_greedy:
            i = int(np.argmax(np.abs(gradient)))
            args = theta, 1.0, 1, lam, z, X, average, scratch
            theta, _ = kernels.greedy_coordinates(C, b, 1 / eta, 1 / L, *args)
        else:
            i = int(rng.integers(b.size))
            args = theta, rng.random(), np.array([i]), lam, z, scratch
            theta, _ = kernels.random_coordinates(C, b, 1 / eta, 1 / L, *args)
        np.testing.assert_allclose(np.delete(lam, i), np.delete(y, i), rtol=1e-14)
        decrease = value - listings.exp_dual(problem, lam)[0]
        assert decrease >= gradient[i] ** 2 / (2 * L) - 1e-13


@pytest.mark.parametrize("name", ["apdrcd", "apdgcd"])
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_an_average_that_overflowed_shows_in_the_potentials(name, value):
    problem, solver = small(), make_solver(name, {})
    state, _ = solver.init(problem, np.random.default_rng(0))
    assert np.isfinite(solver.potentials(problem, state)).all()
    state.average[3] = value
    assert np.isnan(solver.potentials(problem, state)).all()


@pytest.mark.parametrize("stop", ["paper", "certificate"])
def test_a_run_that_does_not_move_ends_as_stalled(stop, monkeypatch):
    tune(monkeypatch, driver, stall_epochs=200)
    M, a, b = synthetic(4, 0)
    result = epsilot.solve(
        M, a, b, eps=0.01, method="apdrcd", smoothness=1e12, stop=stop, on_limit="ignore"
    )
    assert result.status is Status.STALLED
    assert not result.converged
    assert 0.01 < result.gap < np.inf
    assert np.abs(result.plan.sum(axis=1) - a).sum() <= 1e-12


@pytest.mark.parametrize("name", ["apdrcd", "apdgcd"])
def test_a_diverging_run_returns_its_best(name):
    M, a, b = synthetic(4, 0)
    result = epsilot.solve(M, a, b, eps=1e-3, method=name, smoothness=1e-6, on_limit="ignore")
    assert result.status is Status.NOT_FINITE
    assert result.gap <= 1
    assert np.abs(result.plan.sum(axis=1) - a).sum() <= 1e-12


@pytest.mark.parametrize("shape", SHAPES)
def test_apdgcd_follows_its_listing(shape, monkeypatch):
    monkeypatch.setattr("epsilot.solvers.apdrcd._EPOCH_ENTRIES", 1)
    problem = small(*shape)
    theirs = listings.coordinates(problem, None, 300, lambda g: np.argmax(np.abs(g)))
    for (_, _, state), (lam, X) in zip(states(problem, "apdgcd", 300), theirs, strict=True):
        np.testing.assert_allclose(state.lam, lam, rtol=0, atol=1e-10)
        np.testing.assert_allclose(state.X, X, rtol=0, atol=1e-10)
        np.testing.assert_allclose(state.average, listings.marginals(X), rtol=0, atol=1e-10)


def test_epoch_of_the_greedy_method_is_about_one_pass_over_a_large_cost():
    assert steps_per_epoch(1000, 1000) == 1
    assert steps_per_epoch(36, 36) == 202
    problem = replace(small(), eta=0.1)
    solver = APDGCD()
    rng = np.random.default_rng(0)
    state, _ = solver.init(problem, rng)
    work = solver.step(problem, state, rng)
    assert work.operations == steps_per_epoch(5, 5) * (9 * 25 + 12 * 5)


@pytest.mark.parametrize("stop", ["paper", "certificate"])
def test_greedy_run_has_a_limit_of_its_own(stop, monkeypatch):
    assert APDGCD.patience < make_solver("sinkhorn", {}).patience
    monkeypatch.setattr(APDGCD, "patience", 30)
    M, a, b = synthetic(6, 0)
    with pytest.warns(epsilot.ConvergenceWarning, match="max_iter"):
        result = epsilot.solve(M, a, b, eps=1e-3, method="apdgcd", stop=stop)
    assert result.status is Status.MAX_ITER
    assert result.n_iter == 30
    assert result.gap < 0.2
    assert np.abs(result.plan.sum(axis=1) - a).sum() <= 1e-12
