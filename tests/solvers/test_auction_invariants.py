"""What holds of an auction after every step: who holds what, at which price, and how well."""

import numpy as np
import pytest

from epsilot.geometry import Dense, PointCloud
from epsilot.geometry.tree_index import Embedding
from epsilot.kernels import auction as kernels
from epsilot.metrics import METRICS
from epsilot.solvers import auction as markets
from epsilot.solvers.auction import LevelState
from tuning import tune

N, M = 70, 55


def even(rng, n):
    return np.full(n, 1 / n)


def random(rng, n):
    return rng.dirichlet(np.ones(n))


def uneven(rng, n):
    mass = 10.0 ** rng.uniform(-9, 0, n)
    return mass / mass.sum()


def uniform(rng, n):
    return rng.random((n, 2))


def whole(rng, n):
    return rng.integers(0, 4, (n, 2)).astype(float)


def apart(rng, n):
    return rng.random((n, 2)) + 2.0 * (n == M)


#: metric (None: any costs), points, weights
CASES = {
    "squared, even": ("sqeuclidean", uniform, even),
    "squared": ("sqeuclidean", uniform, random),
    "squared, ties": ("sqeuclidean", whole, random),
    "Euclidean, apart": ("euclidean", apart, random),
    "l1, masses of nine decades": ("cityblock", uniform, uneven),
    "any costs": (None, uniform, random),
    "any costs, ties": (None, whole, uneven),
}


def opened(metric, points, weights):
    """Return a arrays before its first step, and the costs by numbers of rows and columns."""
    rng = np.random.default_rng(5)
    X, Y, p, q = points(rng, N), points(rng, M), weights(rng, N), weights(rng, M)
    C = PointCloud(X, Y, metric or "cityblock").block(0, N)
    if metric is None:
        return markets.AuctionLevels(Dense(C), p, q), C, p, q
    return markets.CloudAuctionLevels(Embedding(X, Y, METRICS[metric].key, 0.0), p, q), C, p, q


def check_market(state, C, weights, quotas):
    """Check who holds what, lists, prices and ε-complementary slackness over all columns."""
    found, n, m = state.arrays, *C.shape
    held = found.mass > 0
    i, j, mass = found.piece_row[held], found.piece_col[held], found.mass[held]
    np.testing.assert_array_equal(found.piece_cost[held], C[i, j])
    np.testing.assert_allclose(np.bincount(i, mass, n) + found.excess, weights, rtol=1e-7)
    sold = np.bincount(j, mass, m)
    np.testing.assert_allclose(sold + found.unsold, quotas, rtol=1e-7)
    values = C + found.prices
    listed = np.zeros((n, m), dtype=bool)
    np.put_along_axis(listed, found.cols.astype(int), True, axis=1)
    assert (np.where(listed, np.inf, values).min(axis=1) >= found.thresholds).all()
    np.testing.assert_array_equal(found.costs, np.take_along_axis(C, found.cols.astype(int), 1))
    slack = state.eps * (1 + 1e-9) + 1e-13 * C.max()
    assert (values[i, j] <= values.min(axis=1)[i] + slack).all()
    cheapest = np.full(m, np.inf)
    np.minimum.at(cheapest, j, found.limit[held])
    is_sold = (found.unsold == 0) & (sold > 0)
    np.testing.assert_array_equal(found.prices[is_sold], cheapest[is_sold])
    np.testing.assert_array_equal(found.prices[~is_sold], found.base[~is_sold])


def check_arcs(found, n, m):
    """Check that every piece and every listed pair is an arc, once, with all of its mass."""
    i, j, flow = kernels.arcs(*found.for_arcs)
    held = found.mass > 0
    rows, cols = found.piece_row[held].astype(int), found.piece_col[held].astype(int)
    sold = np.zeros((n, m))
    np.add.at(sold, (rows, cols), found.mass[held])
    arcs = np.zeros((n, m))
    arcs[i, j] = flow
    np.testing.assert_allclose(arcs, sold, rtol=1e-14)
    listed = set(zip(np.repeat(np.arange(n), found.cols.shape[1]), found.cols.ravel(), strict=True))
    wanted = listed | set(zip(rows, cols, strict=True))
    assert sorted(zip(i.tolist(), j.tolist(), strict=True)) == sorted(wanted)


@pytest.mark.parametrize("bids", [1, 40, 10**6])
@pytest.mark.parametrize("name", CASES)
def test_every_step_leaves_a_sound_market(name, bids, monkeypatch):
    tune(monkeypatch, markets, max_bids_per_step=bids)
    arrays, C, p, q = opened(*CASES[name])
    state, n_checked = LevelState(), 0
    while not state.is_over:
        arrays.step(state)
        costs, weights, quotas = C, p, q
        if state.is_flipped:
            costs, weights, quotas = C.T, q, p
        costs = np.ascontiguousarray(costs[state.rows][:, state.cols])
        if n_checked % max(1, 200 // bids) == 0 or state.is_over:
            check_market(state, costs, weights[state.rows], quotas[state.cols])
        if not state.is_selling:
            leasts = (costs + state.arrays.prices).min(axis=1)
            np.testing.assert_array_equal(state.leasts, leasts)
        n_checked += 1
    check_arcs(state.arrays, *costs.shape)
    assert state.arrays.excess.sum() <= 2e-3
    assert n_checked > 2
