"""Unbalanced PDASMD: its listing line by line, its box, its work, and the answers of others."""

import math

import numpy as np
import pytest

import epsilot
from epsilot.geometry import Dense, PointCloud
from epsilot.kernels.unbalanced_pdasmd import inner_loop
from epsilot.problems.problem import Penalised
from epsilot.solvers import unbalanced_pdasmd
from epsilot.solvers.unbalanced_pdasmd import TUNING, UnbalancedPDASMD
from sample_problems import trace
from tuning import tune

N, M, BATCH = 5, 7, 2
PRICES = [(0.3, 0.3), (0.1, 2.0), (math.inf, 0.4), (0.4, math.inf)]


def drawn(prices, seed=0, eta=0.1, geometry=None):
    rng = np.random.default_rng(seed)
    geometry = Dense(rng.random((N, M))) if geometry is None else geometry
    return Penalised(geometry, eta, rng.random(N), 2 * rng.random(M), *prices)


def started(problem, seed=0, **options):
    solver, rng = UnbalancedPDASMD(batch_size=BATCH, **options), np.random.default_rng(seed)
    return solver, solver.init(problem, rng)[0], rng


class Listing:
    """The iteration of docs/solvers with an entropy, as it is printed there."""

    def __init__(self, problem):
        self.problem, self.C = problem, problem.geometry.block(0, N)
        self.a, self.b = problem.price_a, problem.price_b

    def rows(self, g):
        """Return the rows A_i s_i of the plan."""
        eta = self.problem.eta
        total = np.exp((g - self.C) / eta - 1).sum(axis=1)
        k = self.a + eta
        own = 1.0 if self.a == math.inf else self.a / k
        masses = self.problem.p**own * total ** (eta / k)
        return masses[:, None] * np.exp((g - self.C) / eta - 1) / total[:, None]

    def wanted(self, g):
        return self.problem.q * np.exp(-g / self.b)

    def loop(self, z, y, snap, s, constants, law, box, rng):
        """Return z, y and the mean of the y after an outer loop."""
        smoothness, tau2, alpha = constants
        n_inner, chances = -(-N // BATCH), law / law.sum()
        tau1, at_snap = 2 / (s + 4), self.rows(snap)
        rng.integers(n_inner)  # a choice that only averages of plans need
        found = []
        for places in rng.random((n_inner, BATCH)):
            v = tau1 * z + tau2 * snap + (1 - tau1 - tau2) * y
            drawn_rows = np.searchsorted(np.cumsum(chances), places)
            change = (self.rows(v) - at_snap) / chances[:, None]
            slope = at_snap.sum(axis=0) + change[drawn_rows].mean(axis=0) - self.wanted(v)
            z = np.clip(z - alpha / tau1 * slope, *box)
            y = np.clip(v - slope / (3 * smoothness), *box)
            found.append(y)
        return z, y, np.mean(found, axis=0)

    def shifted(self, g, box):
        """Return g moved by the best constant that the box allows."""
        slope = 1 / (self.a + self.problem.eta) + 1 / self.b
        t = np.log(self.rows(g).sum() / self.wanted(g).sum()) / slope
        return g - min(max(t, (g - box[1]).max()), (g - box[0]).min())


@pytest.mark.parametrize("is_adaptive", [True, False])
@pytest.mark.parametrize("prices", PRICES)
def test_outer_loops_are_the_listing(prices, is_adaptive):
    problem = drawn(prices)
    listing, eta = Listing(problem), problem.eta
    solver, state, rng = started(problem, 3, is_adaptive=is_adaptive)
    own = np.random.default_rng(3)
    for _ in range(6):
        X, wanted = listing.rows(state.lam), listing.wanted(state.lam)
        if is_adaptive:
            law = X.sum(axis=1)
            smoothness = 2 * (X.sum(axis=0) / eta + wanted / prices[1]).max()
        else:
            law = state.most
            smoothness = law.sum() / eta + state.mass / prices[1]
        smoothness = max(smoothness, law.sum() / eta / BATCH)
        tau2 = law.sum() / eta / (2 * BATCH * smoothness)
        constants = smoothness, tau2, state.step_scale / (3 * smoothness)
        points, box = (state.z, state.y, state.lam), (state.low, state.high)
        z, y, mean = listing.loop(*points, state.n_outer, constants, law, box, own)
        before = state.value
        solver.step(problem, state, rng)
        if is_adaptive and state.n_outer == 0:  # φ rose, and the snapshot stayed
            assert state.value == before
            continue
        for ours, theirs in zip((state.z, state.y), (z, y), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(state.lam, listing.shifted(mean, box), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("hybrid", [None, "sinkhorn"])
@pytest.mark.parametrize("longest", [1.0, TUNING.max_mirror_step, 1e4])
@pytest.mark.parametrize("prices", PRICES)
def test_phi_never_rises_and_nothing_leaves_the_box(prices, longest, hybrid, monkeypatch):
    tune(monkeypatch, unbalanced_pdasmd, max_mirror_step=longest)
    problem = drawn(prices, 5, eta=0.02)
    solver, state, rng = started(problem, hybrid=hybrid)
    first = state.violation
    for _ in range(30):
        before = state.value
        solver.step(problem, state, rng)
        assert state.value <= before + 1e-12
        for x in (state.lam, state.y, state.z):
            assert (state.low - 1e-12 <= x).all()
            assert (x <= state.high + 1e-12).all()
    assert state.violation < 0.5 * first


def test_a_kept_row_side_is_the_form_of_the_paper():
    """With λ_a = ∞ rows have the masses p, and the law and the constants are the paper's."""
    problem = drawn((math.inf, 0.4))
    solver, state, rng = started(problem, is_adaptive=False)
    solver.step(problem, state, rng)
    np.testing.assert_allclose(state.masses, problem.p, rtol=1e-14)
    np.testing.assert_array_equal(state.most, problem.p)
    assert (state.high == math.inf).all()


def test_rows_that_underflow_from_the_snapshot_are_computed_anew():
    """A step after which no entry of E is left of a row equals its definition."""
    inv_eta, share = 1e3, 0.25
    C = np.zeros((N, M))
    C[:, 1:] = 1.0
    C.setflags(write=False)
    v = np.where(np.arange(M) == 0, -1.0, 0.9)  # the one column that counted is left for others
    lse = np.log(np.exp(-inv_eta * C).sum(axis=1))
    free, nothing = (np.full(M, -np.inf), np.full(M, np.inf)), np.full(M, -np.inf)
    one, y_sum, columns = np.zeros((1, 1), dtype=np.int64), np.zeros(M), np.zeros(M)
    inner_loop(
        C, one, one, np.zeros(M), lse, np.ones(N), columns, nothing, *free, inv_eta, inv_eta,
        share, 0.0, 1.0, 0.0, 0.0, 1.0, v.copy(), v.copy(), y_sum, np.empty((4, M)),
    )  # fmt: skip
    exponents = inv_eta * (v - C[0])
    there = np.exp(exponents - exponents.max())
    growth = np.exp(share * (exponents.max() + np.log(there.sum()) - lse[0]))
    wanted = growth * there / there.sum() - np.exp(-inv_eta * C[0] - lse[0])
    np.testing.assert_allclose(v - y_sum, wanted, rtol=1e-9, atol=1e-15)


#: Options; gaps with and without an entropy, as shares of the largest cost and of the value.
ACCURACIES = [
    ({}, 1e-7, 1e-3),
    ({"hybrid": "sinkhorn"}, 1e-9, 1e-3),
    ({"batch_size": 1}, 1e-7, 1e-3),
    ({"is_adaptive": False, "batch_size": 1}, 1e-4, 0.05),
]


@pytest.mark.parametrize(("options", "tol", "rtol"), ACCURACIES)
@pytest.mark.parametrize("prices", PRICES)
def test_values_are_those_of_unbalanced_sinkhorn(prices, options, tol, rtol):
    rng = np.random.default_rng(4)
    C, a, b = rng.random((12, 9)), rng.random(12), 2 * rng.random(9)
    a[3] = b[0] = 0.0
    for goal in ({"reg": 0.05, "tol": tol}, {"rtol": rtol}):
        wish = {"unbalanced": prices, **goal}
        usual = epsilot.solve(C, a, b, **wish)
        found = epsilot.solve(C, a, b, method="unbalanced_pdasmd", **wish, **options)
        assert found.converged
        assert abs(found.value - usual.value) <= max(found.gap, usual.gap)


def test_an_accuracy_of_a_millionth_is_reached():
    rng = np.random.default_rng(4)
    C, a, b = rng.random((12, 9)), rng.random(12), 2 * rng.random(9)
    wish = {"unbalanced": 0.5, "rtol": 1e-6}
    usual = epsilot.solve(C, a, b, **wish)
    found = epsilot.solve(C, a, b, method="unbalanced_pdasmd", **wish)
    assert found.value == pytest.approx(usual.value, rel=2e-6)


def test_seeds_decide_the_run_and_nothing_else():
    rng = np.random.default_rng(4)
    C, a, b = rng.random((40, 30)), rng.random(40), 2 * rng.random(30)
    wish = {"unbalanced": 0.5, "rtol": 0.01, "method": "unbalanced_pdasmd"}
    runs = [epsilot.solve(C, a, b, seed=seed, **wish) for seed in (1, 1, 2)]
    assert trace(runs[0]) == trace(runs[1])
    np.testing.assert_array_equal(runs[0].plan, runs[1].plan)
    assert runs[2].value != runs[0].value
    assert abs(runs[2].value - runs[0].value) <= runs[0].gap + runs[2].gap


def test_lazy_rows_are_those_of_the_stored_cost():
    rng = np.random.default_rng(0)
    lazy = PointCloud(rng.random((N, 2)), rng.random((M, 2)))
    found = []
    for geometry in (lazy, Dense(lazy.block(0, N))):
        problem = drawn((0.3, 0.5), geometry=geometry)
        solver, state, own = started(problem)
        for _ in range(3):
            solver.step(problem, state, own)
        found.append(state.lam)
    np.testing.assert_allclose(*found, atol=1e-12)


def test_work_follows_its_formula():
    problem = drawn((0.3, 0.3))
    n_inner = -(-N // BATCH)
    n_rows = n_inner * BATCH
    passed = 12 * N + 16 * M
    inner = n_rows * (M + 6) + 20 * n_inner * M
    for hybrid, n_passes, columns in ((None, 1, 0), ("sinkhorn", 2, 18 * M)):
        solver, state, rng = started(problem, hybrid=hybrid)
        assert solver.step(problem, state, rng).units == {
            "softmax": n_rows * M + n_passes * N * M,
            "inner": n_passes * N * M,
            "vector": inner + n_passes * passed + columns,
        }
