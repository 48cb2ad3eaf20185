"""dijkstra_dfs: the invariants of its proofs after every phase, and the array listing beside it."""

import math

import numpy as np
import pytest

import epsilot
from epsilot.kernels import dijkstra as kernels
from epsilot.kernels.dijkstra import push_phases
from epsilot.problems.balanced import Transport
from epsilot.problems.problem import Additive, make_problem
from epsilot.solvers import dijkstra_dfs
from epsilot.solvers.dijkstra_dfs import DijkstraDFS
from sample_problems import (
    clusters,
    equal_masses,
    images,
    points,
    random,
)

INSTANCES = {
    "images": lambda: images(6),
    "random": lambda: random(20, 20),
    "wide": lambda: random(7, 60, 0.3, seed=1),
    "tall": lambda: random(60, 7, 0.3, seed=2),
    "points": points,
    "clusters": clusters,
    "equal": equal_masses,
}
RUNS = [(name, share) for name in INSTANCES for share in (0.2, 0.02)]


def additive(name: str, share: float):
    problem = make_problem(*INSTANCES[name]())
    epsilon = share * problem.cost_max
    return problem, Additive(problem.geometry, epsilon, problem.p, problem.q)


def flow(state):
    F = np.zeros(state.c.shape, np.int64)
    used = state.amount > 0
    np.add.at(F, (state.source[used], state.sink[used]), state.amount[used])
    return F


def assert_one_optimal(state, F):
    """Assert y + v <= c + 1 everywhere and y + v >= c on the flow."""
    total = state.y[:, None].astype(np.int64) + state.v
    assert (total <= state.c + 1).all()
    assert (total >= state.c)[F > 0].all()


def assert_conserved(state, F, supply, demand):
    np.testing.assert_array_equal(F.sum(axis=1) + state.supply, supply)
    np.testing.assert_array_equal(F.sum(axis=0) + state.demand, demand)
    assert min(state.supply.min(), state.demand.min(), F.min()) >= 0


@pytest.mark.parametrize("constants", ["practical", "published"])
@pytest.mark.parametrize(("name", "share"), RUNS)
def test_search_invariants_after_every_phase(name, share, constants, rng):
    problem, goal = additive(name, share)
    solver = DijkstraDFS(constants=constants)
    state, _ = solver.init(goal, rng)
    supply, demand = state.supply.copy(), state.demand.copy()
    assert demand.sum() >= supply.sum()
    assert (supply <= state.theta * problem.p).all()
    assert (demand >= state.theta * problem.q).all()
    while not state.is_done:
        solver.step(goal, state, rng)
        F = flow(state)
        assert_one_optimal(state, F)
        assert_conserved(state, F, supply, demand)
        assert state.y.min() >= 0
        assert state.v.max() <= 0
        assert (state.v[state.demand > 0] == 0).all()
        assert (state.y[state.supply > 0] == state.y.max()).all()
        assert state.n_phases <= math.floor(problem.cost_max / state.unit) + 1


@pytest.mark.parametrize(("name", "share"), RUNS)
def test_push_relabel_invariants_after_every_phase(name, share, rng):
    _, goal = additive(name, share)
    solver = DijkstraDFS(variant="push_relabel", constants="practical")
    s, _ = solver.init(goal, rng)
    supply, demand = s.supply.copy(), s.demand.copy()
    counts = np.zeros(3, np.int64)
    while s.supply.sum() > s.allowed:
        y, v = s.y.copy(), s.v.copy()
        n_phases = push_phases(*s.network, s.loose, s.allowed, 0, counts)
        if n_phases < 0:
            dijkstra_dfs._enlarge(s)
        F = flow(s)
        assert_one_optimal(s, F)
        assert_conserved(s, F, supply, demand)
        assert ((s.y - y >= 0) & (s.y - y <= 1)).all()
        assert ((v - s.v >= 0) & (v - s.v <= 1)).all()
        assert (s.v[s.demand > 0] == 0).all()
        tight = s.y[:, None].astype(np.int64) + s.v == s.c
        np.testing.assert_array_equal(s.loose, np.where(s.demand == 0, (F * tight).sum(axis=0), 0))


@pytest.mark.parametrize("is_warm", [False, True])
@pytest.mark.parametrize("constants", ["practical", "published"])
@pytest.mark.parametrize("variant", ["search", "push_relabel"])
@pytest.mark.parametrize(("name", "share"), RUNS)
def test_certified_a_priori(name, share, variant, constants, is_warm, rng):
    problem, goal = additive(name, share)
    solver = DijkstraDFS(variant=variant, constants=constants)
    start = rng.normal(size=problem.shape[0]), problem.cost_max * rng.random(problem.shape[1])
    state, _ = solver.init(goal, rng, start if is_warm else None)
    assert (state.y[:, None] + state.v <= state.c + 1).all()
    while not state.is_done:
        solver.step(goal, state, rng)
    assert_one_optimal(state, flow(state))
    found = Transport(problem).evaluate(*solver.candidates(goal, state)[0])
    assert found.upper - found.lower <= goal.epsilon


def array_search(c, y, v, supply, demand, F):
    """Step (1) and (2) of the listing: settle the node of least distance, one at a time."""
    n, m = c.shape
    level = np.where(np.concatenate([supply, np.zeros(m)]) > 0, 0.0, np.inf)
    unsettled = np.ones(n + m, bool)
    while True:
        node = np.flatnonzero(unsettled)[np.argmin(level[unsettled])]
        unsettled[node] = False
        if node < n:
            level[n:] = np.minimum(level[n:], level[node] + c[node] + 1 - y[node] - v)
        else:
            j = node - n
            if demand[j] > 0:
                break
            back = level[node] + y + v[j] - c[:, j]
            level[:n] = np.where(F[:, j] > 0, np.minimum(level[:n], back), level[:n])
    rise = np.maximum(level[node] - level, 0)
    return level[node], y + rise[:n], v - rise[n:]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("name", INSTANCES)
def test_search_equals_the_array_listing(name, dtype, rng, monkeypatch):
    monkeypatch.setattr(dijkstra_dfs, "MAX_INT32_COST", 1 << 27 if dtype is np.int32 else 0)
    _, goal = additive(name, 0.02)
    s, _ = DijkstraDFS(constants="practical").init(goal, rng)
    assert s.c.dtype == dtype
    counts = np.zeros(3, np.int64)
    while s.supply.sum() > 0:
        expected = array_search(s.c, s.y, s.v, s.supply, s.demand, flow(s))
        row_at, col_at = np.empty(s.y.size, np.int64), np.empty(s.v.size, np.int64)
        distance = kernels.start_phase(
            s.c,
            s.y,
            s.v,
            s.supply,
            s.demand,
            s.head,
            s.follow,
            s.source,
            s.amount,
            row_at,
            col_at,
            counts,
        )
        for mine, other in zip((distance, s.y, s.v), expected, strict=True):
            np.testing.assert_array_equal(mine, other)
        kernels.route(*s.network, row_at, col_at, 0, counts)


def entries(state):
    """Yield every entry of every list, the unused ones too."""
    for k in state.head:
        while k >= 0:
            yield k
            k = state.follow[k]


@pytest.mark.parametrize("variant", ["search", "push_relabel"])
def test_lists_of_flow_grow_without_a_trace(variant, rng):
    _, goal = additive("wide", 0.02)
    solver = DijkstraDFS(variant=variant, constants="practical")
    states = [solver.init(goal, rng)[0] for _ in range(2)]
    small = states[1]
    small.follow = dijkstra_dfs._chain(0, 2)
    small.source, small.sink, small.amount = (np.zeros(2, np.int64) for _ in range(3))
    for state in states:
        while not state.is_done:
            solver.step(goal, state, rng)
    assert small.amount.size > 2
    assert sorted(entries(small)) == list(range(small.amount.size))
    assert states[0].n_phases == small.n_phases
    np.testing.assert_array_equal(flow(states[0]), flow(small))


@pytest.mark.parametrize("size", [1, 15, 16, 63, 64, 65, 200])
def test_find_equals_a_scan(size, rng):
    row = rng.integers(0, 6, size).astype(np.int32)
    v = -rng.integers(0, 6, size).astype(np.int32)
    for wanted in range(12):
        for start in range(size + 1):
            hits = np.flatnonzero((row - v == wanted) & (np.arange(size) >= start))
            expected = hits[0] if hits.size else size
            assert kernels.find(row, v, np.int32(wanted), start) == expected


def test_a_better_start_saves_phases(rng):
    _, goal = additive("points", 0.005)
    solver = DijkstraDFS(constants="practical")
    n_phases = []
    start = None
    for _ in range(2):
        state, _ = solver.init(goal, rng, start)
        while not state.is_done:
            solver.step(goal, state, rng)
        n_phases.append(state.n_phases)
        start = solver.potentials(goal, state)
    assert n_phases[1] < n_phases[0] / 2


@pytest.mark.parametrize("rtol", [0.3, 1e-3, 1e-6])
def test_dijkstra_refines_to_any_tolerance(rtol):
    M, a, b = points()
    result = epsilot.solve(M, a, b, rtol=rtol, method="dijkstra_dfs", on_limit="raise")
    assert result.gap <= rtol * result.lower_bound
