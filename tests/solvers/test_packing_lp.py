"""packing_lp: the O(1) step against the dense recursion, the constants, and the ladder."""

import math

import numpy as np
import pytest

from epsilot.kernels.packing import coordinate_steps
from epsilot.problems.balanced import Transport
from epsilot.problems.problem import Additive, make_problem
from epsilot.solvers.packing_lp import LADDER, PackingLP
from sample_problems import points, random


def additive(instance, share):
    problem = make_problem(*instance)
    return problem, Additive(problem.geometry, share * problem.cost_max, problem.p, problem.q)


def dense_recursion(W, p, q, rung, entries):
    """x = ω z + (1 - ω) y in matrices, as the method is published, one entry at a time."""
    b = np.minimum(p[:, None], q)
    z = np.zeros_like(W)
    y = (1 - rung.epsilon / 2) * b / rung.n_entries * (W > 0)
    A = 1 / rung.L
    for k in entries:
        i, j = divmod(k, q.size)
        if W[i, j] <= 0:
            continue
        A /= 1 - rung.omega
        x = rung.omega * z + (1 - rung.omega) * y
        r, c = x.sum(axis=1) / p, x.sum(axis=0) / q
        push = np.exp((r[i] - 1) / rung.mu) / p[i] + np.exp((c[j] - 1) / rung.mu) / q[j]
        xi = min(rung.a / W[i, j] * push - 1, 1)
        new = min(max(z[i, j] - A * xi * b[i, j], 0), b[i, j])
        y = x
        y[i, j] += (new - z[i, j]) / (A * rung.L)
        z[i, j] = new
    return z, y


@pytest.mark.parametrize("constants", ["practical", "safe", "published"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5)])
def test_lazy_steps_equal_the_dense_recursion(shape, constants, rng):
    problem, goal = additive(random(*shape), 0.1)
    solver = PackingLP(constants=constants)
    state, _ = solver.init(goal, rng)
    rung = solver.rung(goal, 0)
    C, p, q = problem.geometry.block(0, shape[0]), problem.p.copy(), problem.q.copy()
    entries = rng.integers(0, C.size, 1000)
    n_steps = coordinate_steps(
        C,
        problem.cost_max,
        p,
        q,
        rung.a,
        1 / rung.mu,
        rung.L,
        rung.omega,
        state.Z,
        state.D,
        state.z_r,
        state.z_c,
        state.d_r,
        state.d_c,
        state.scalars,
        entries,
    )
    W = 1 - C / problem.cost_max
    z, y = dense_recursion(W, p, q, rung, entries)
    assert z.max() > 0
    assert n_steps == (W.ravel()[entries] > 0).sum()
    np.testing.assert_allclose(state.Z, z, atol=1e-10)
    np.testing.assert_allclose(state.Z + state.scalars[1] * state.D, y, atol=1e-10)
    np.testing.assert_allclose(state.z_r, z.sum(axis=1), atol=1e-10)
    np.testing.assert_allclose(state.d_c, state.D.sum(axis=0), rtol=1e-8)


def test_constants_by_hand():
    problem, goal = additive(random(6, 9), 0.04)
    p, q, N = problem.p, problem.q, 6 * 9 - 1  # one entry has the largest cost
    a = max(p.max(), q.max())
    mu = 0.04 / (2 * max(1, math.log(15 * a)))
    ladder = [PackingLP(constants="practical").rung(goal, k) for k in range(5)]
    for rung, (factor, share) in zip(ladder, LADDER["practical"], strict=False):
        assert (rung.a, rung.n_entries) == (a, N)
        assert rung.mu == pytest.approx(share * mu)
        assert rung.L * rung.mu == pytest.approx(factor)
        assert rung.omega == pytest.approx(1 / (3 * N * rung.L))
        assert rung.n_steps == math.ceil(3 * N * rung.L * math.log(1 / 0.04))
    W = 1 - problem.geometry.block(0, 6) / problem.cost_max
    last = PackingLP(constants="published").rung(goal, 0)
    assert last == ladder[-1]
    assert last.a == pytest.approx((W * np.minimum(p[:, None], q)).max())
    assert last.mu == pytest.approx(0.01 / (4 * math.log(N * 15 / 0.01)))
    assert last.L * last.mu == pytest.approx(4)


@pytest.mark.parametrize("constants", ["practical", "safe", "published"])
def test_the_ladder_is_climbed_and_ends(constants, rng):
    problem, goal = additive(random(2, 2), 0.5)
    solver = PackingLP(constants=constants)
    state, _ = solver.init(goal, rng)
    visited = []
    while not state.is_done:
        rung, before = state.rung, state.n_steps
        solver.step(goal, state, rng)
        assert before < solver.rung(goal, rung).n_steps
        visited.append(rung)
    assert sorted(set(visited)) == list(range(len(LADDER[constants]) + 1))
    found = Transport(problem).evaluate(*solver.candidates(goal, state)[0])
    assert found.upper - found.lower <= goal.epsilon


@pytest.mark.parametrize("share", [0.2, 0.05])
def test_safe_constants_are_certified_a_priori(share, rng):
    problem, goal = additive(points(), share)
    solver = PackingLP(constants="safe")
    state, _ = solver.init(goal, rng)
    while state.rung == 0:
        pairs = solver.candidates(goal, state)
        Y = pairs[0][0].X
        solver.step(goal, state, rng)
    for core, row in pairs:
        found = Transport(problem).evaluate(core, row)
        assert found.upper - found.lower <= goal.epsilon
    assert (Y.sum(axis=1) <= problem.p * (1 + share)).all()
    assert (Y.sum(axis=0) <= problem.q * (1 + share)).all()
    W = 1 - problem.geometry.block(0, 24) / problem.cost_max
    assert (Y[W == 0] == 0).all()
