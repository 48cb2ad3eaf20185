"""What a simplex leaves of a coarse level, and the plans of a basis before its first optimum."""

import numpy as np
import ot
import pytest

from epsilot.geometry import PointCloud
from epsilot.kernels import network
from epsilot.problems.balanced import Transport
from epsilot.problems.problem import Additive, make_problem
from epsilot.solvers import arc_simplex
from epsilot.solvers import auction as markets
from epsilot.solvers.auction import Auction, _basic_plan, _levels
from tuning import tune


def uniform(rng, n):
    return rng.random((n, 2))


def clustered(rng, n):
    return rng.integers(0, 4, (n, 2)) + 1e-3 * rng.normal(size=(n, 2))


def whole(rng, n):
    return rng.integers(0, 12, (n, 2)).astype(float)


def even(rng, n):
    return np.full(n, 1 / n)


def uneven(rng, n):
    masses = 10.0 ** rng.uniform(-6, 0, n)
    return masses / masses.sum()


#: metric, points, weights, numbers of rows and columns
CASES = {
    "squared": ("sqeuclidean", uniform, uneven, (900, 800)),
    "squared, even": ("sqeuclidean", uniform, even, (1000, 1000)),
    "squared, clusters": ("sqeuclidean", clustered, uneven, (600, 1500)),
    "Euclidean": ("euclidean", uniform, even, (700, 700)),
    "l1, ties": ("cityblock", whole, uneven, (800, 500)),
}


@pytest.fixture(params=CASES)
def target(request, rng, monkeypatch):
    metric, points, weights, (n, m) = CASES[request.param]
    tune(monkeypatch, markets, max_coarsest_cells=16)
    tune(monkeypatch, arc_simplex, pivots_per_step=20)
    cloud = PointCloud(points(rng, n), points(rng, m), metric)
    return Additive(cloud, 0.0, weights(rng, n), weights(rng, m))


def level_costs(arrays, state, metric):
    X, Y = arrays._points(state)
    return PointCloud(X.copy(), Y.copy(), metric).block(0, len(X))


def test_a_coarse_level_ends_with_prices_that_are_optimal_to_its_eps(target, rng, monkeypatch):
    solver, arrays = Auction(), _levels(target)
    state, _ = solver.init(target, rng)
    n_levels, step = 0, markets.AuctionLevels.step
    metric = target.geometry.metric

    def stepped(self, state):
        nonlocal n_levels
        if state.is_over:  # about to open a finer level
            n_levels += 1
            C, (p, q) = level_costs(arrays, state, metric), arrays.masses(state)
            np.testing.assert_array_equal(state.leasts, (C + state.prices).min(axis=1))
            exact = ot.emd2(p / p.sum(), q / q.sum(), C)
            dual = p @ state.leasts - q @ state.prices
            assert exact - 1.01 * state.eps <= dual <= exact + 1e-12 * C.max()
        return step(self, state)

    monkeypatch.setattr(markets.AuctionLevels, "step", stepped)
    while not (state.is_over and arrays.is_finest(state)):
        solver.step(target, state, rng)
    assert n_levels == len(arrays.depths(state)) - 1 >= 2


def test_the_gap_of_the_points_is_proved_at_every_coarse_level(target, rng, monkeypatch):
    solver, arrays = Auction(), _levels(target)
    state, _ = solver.init(target, rng)
    objective = Transport(make_problem(target.geometry, target.p, target.q))
    gaps = []
    found = markets.CloudAuctionLevels.gap_of_points

    def observed(self, state, flow):
        state.certified_gap = np.inf  # so that the gap is computed, and a certificate asked for
        gaps.append(found(self, state, flow))
        return gaps[-1]

    monkeypatch.setattr(markets.CloudAuctionLevels, "gap_of_points", observed)
    while not (state.is_over and arrays.is_finest(state)):
        solver.step(target, state, rng)
        if state.is_promising and not arrays.is_finest(state):
            assert solver.signal(target, state).wants_certificate
            assert not solver.signal(target, state).is_finished
            (candidate,) = solver.candidates(target, state)
            bounds = objective.evaluate(*candidate)
            proved = markets.relative_gap(bounds.upper, bounds.lower)
            assert proved <= gaps[-1] * (1 + 1e-9)
            assert gaps[-1] <= 2 * proved or proved > 1
    assert len(gaps) == len(arrays.depths(state)) - 1 >= 2
    assert gaps[-1] < gaps[0]


def test_every_basis_has_a_feasible_plan(target, rng):
    solver, arrays = Auction(), _levels(target)
    state, _ = solver.init(target, rng)
    bigs, missing = [], []
    while not (arrays.is_finest(state) and state.round > 0):
        solver.step(target, state, rng)
        if not (state.level and arrays.is_finest(state) and state.is_open):
            continue
        bigs.append(state.big)
        missing.append(network.shortage(state.tree, 0.0))
        plan = _basic_plan(state)
        r, c = plan.marginals()
        assert plan.flow.min() >= 0
        assert np.abs(r - state.weights).sum() + np.abs(c - state.quotas).sum() <= 1e-12
    assert bigs == sorted(bigs)
    assert bigs[0] < arc_simplex.TUNING.artificial_price
    assert missing[0] > 1e-6
    assert network.shortage(state.tree, 0.0) <= 1e-15
