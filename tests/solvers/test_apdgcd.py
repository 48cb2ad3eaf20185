"""APDGCD: the listing, its epochs, and a limit of its own."""

from dataclasses import replace

import accelerated_listings as listings
import numpy as np
import pytest
from accelerated_listings import SHAPES, small, states
from by_hand import synthetic

import epsilot
from epsilot.engine.result import Status
from epsilot.solvers import make_solver
from epsilot.solvers.apdrcd import APDGCD, steps_per_epoch


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
