"""Katyusha Sinkhorn: its listing line by line, and what its proof says of every step."""

import numpy as np
import pytest

from epsilot.geometry import Dense, PointCloud
from epsilot.problems.duals import softmin_cols
from epsilot.problems.problem import Entropic
from epsilot.solvers import katyusha_sinkhorn
from epsilot.solvers.katyusha_sinkhorn import MAX_MIRROR_STEP, KatyushaSinkhorn

N, M, BATCH = 5, 7, 2


def drawn(seed, eta=0.1):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(N)), rng.dirichlet(np.ones(M))
    return Entropic(Dense(rng.random((N, M))), eta, p, q)


def started(problem, seed=0):
    solver, rng = KatyushaSinkhorn(batch_size=BATCH), np.random.default_rng(seed)
    return solver, solver.init(problem, rng)[0], rng


def softmax(problem, lam):
    """Return the rows' softmaxes, which times p are the plan."""
    weights = np.exp((lam - problem.geometry.block(0, N)) / problem.eta)
    return weights / weights.sum(axis=1, keepdims=True)


def phi(problem, lam):
    total = np.exp((lam - problem.geometry.block(0, N)) / problem.eta).sum(axis=1)
    return problem.eta * problem.p @ np.log(total) - problem.q @ lam


def listed(problem, points, scale, s, rng):
    """Return z, y and the snapshot after an outer loop, as docs/solvers has it."""
    z, y, snap = points
    eta, p, q, n_inner = problem.eta, problem.p, problem.q, -(-N // BATCH)
    columns, metric = p @ softmax(problem, snap), (q + 1 / M) / 2
    smoothness = max(2 * M / BATCH, 2 * (columns / metric).max())
    tau1, tau2 = 2 / (s + 4), 2 * M / (2 * BATCH * smoothness)
    alpha = scale * eta / (3 * tau1 * smoothness)
    rng.integers(n_inner)  # a choice that only averages of plans need
    uniform, found = rng.random((n_inner, BATCH)), []
    for places in uniform:
        v = tau1 * z + tau2 * snap + (1 - tau1 - tau2) * y
        rows = np.searchsorted(np.cumsum(p), places)
        sums = columns + (softmax(problem, v) - softmax(problem, snap))[rows].mean(axis=0)
        z = z - alpha * (sums - q) / metric
        y = v - eta * np.log(np.clip(sums / q, 0.5, 2))
        found.append(y)
    mean = np.mean(found, axis=0)
    if phi(problem, mean) > phi(problem, snap):
        z = y = mean = snap
    move = eta * np.log(q / (p @ softmax(problem, mean)))
    return z + move, y + move, mean + move


@pytest.mark.parametrize("seed", range(4))
def test_a_run_is_the_listing(seed):
    problem = drawn(seed)
    solver, state, rng = started(problem, seed)
    own, points = np.random.default_rng(seed), (np.zeros(M),) * 3
    for _ in range(6):
        scale, s = state.step_scale, state.n_outer
        solver.step(problem, state, rng)
        points = listed(problem, points, scale, s, own)
        for ours, theirs in zip((state.z, state.y, state.lam), points, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("longest", [1.0, MAX_MIRROR_STEP, 1e4])
def test_every_outer_loop_gains_as_much_as_a_sweep_of_sinkhorn(longest, monkeypatch):
    monkeypatch.setattr(katyusha_sinkhorn, "MAX_MIRROR_STEP", longest)
    problem = drawn(5, eta=0.02)
    solver, state, rng = started(problem)
    state.step_scale = longest
    restarts = 0
    for _ in range(30):
        before, columns, lam = state.value, state.columns, state.lam
        row = solver.potentials(problem, state)[0].copy()
        solver.step(problem, state, rng)
        if state.n_outer == 0:  # the samples led nowhere: this was a sweep of Sinkhorn
            restarts += 1
            np.testing.assert_allclose(state.lam, softmin_cols(problem, row), atol=1e-11)
            gain = problem.eta * problem.q @ np.log(problem.q / columns)
            assert state.value <= before - gain + 1e-12
        assert state.value <= before + 1e-12
        assert state.value == pytest.approx(phi(problem, state.lam), abs=1e-12)
        assert lam is not state.lam
    assert restarts > 0


def test_lazy_rows_are_those_of_the_stored_cost():
    rng = np.random.default_rng(0)
    lazy = PointCloud(rng.random((N, 2)), rng.random((M, 2)))
    p, q = rng.dirichlet(np.ones(N)), rng.dirichlet(np.ones(M))
    stored = Dense(lazy.block(0, N))
    found = []
    for geometry in (lazy, stored):
        problem = Entropic(geometry, 0.1, p, q)
        solver, state, own = started(problem)
        for _ in range(3):
            solver.step(problem, state, own)
        found.append(state.lam)
    np.testing.assert_allclose(*found, atol=1e-12)
