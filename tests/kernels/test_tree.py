"""Searches through trees find what a pass over all columns finds, bit for bit."""

import numpy as np
import pytest

from epsilot.geometry import PointCloud, tree_index
from epsilot.geometry.tree_index import Tree, cells
from epsilot.metrics import METRICS
from tuning import tune

N, M = 700, 900


def uniform(rng, n, d):
    return rng.random((n, d))


def whole(rng, n, d):
    return rng.integers(0, 6, (n, d)).astype(float)


def far(rng, n, d):
    return 1e6 + rng.random((n, d))


def clustered(rng, n, d):
    return rng.integers(0, 4, (n, 1)) + 1e-9 * rng.normal(size=(n, d))


def collinear(rng, n, d):
    return rng.random((n, 1)) * np.arange(1.0, d + 1)


def duplicated(rng, n, d):
    return np.repeat(rng.random((-(-n // 50), d)), 50, axis=0)[:n]


POINTS = [uniform, whole, far, clustered, collinear, duplicated]

PRICES = {
    "none": lambda rng, Y: np.zeros(len(Y)),
    "smooth": lambda rng, Y: (Y - Y.mean(axis=0)).sum(axis=1) ** 2 + 0.3 * Y[:, 0],
    "noise": lambda rng, Y: rng.normal(size=len(Y)),
    "dear": lambda rng, Y: np.where(rng.random(len(Y)) < 0.5, np.inf, Y[:, -1]),
    "none for sale": lambda rng, Y: np.full(len(Y), np.inf),
}


@pytest.mark.parametrize("points", POINTS)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_searches_equal_passes(rng, points, metric, d):
    X, Y = points(rng, N, d), points(rng, M, d) + (0.25 if points is uniform else 0.0)
    if metric == "cosine":
        X, Y = X + 1.0, Y + 1.0
    cloud = PointCloud(X, Y, metric).shifted(-1e-3)
    X, Y, code, shift, *_ = cloud.embedding
    rows, cols = Tree.of(X), Tree.of(Y)
    C = cloud.block(0, N)[rows.order][:, cols.order]
    for kind in PRICES.values():
        prices = kind(rng, Y)[cols.order]
        priced = cols.priced(prices, code, shift)
        values = np.sort(C + prices, axis=1)
        np.testing.assert_array_equal(priced.ctransform(rows.points), values[:, 0])
        k = 7
        out = tree_index.LeastColumns.empty(N, k)
        priced.least_columns(rows.points, np.arange(N, dtype=np.int32), out)
        found, costs, leasts, thresholds = out
        np.testing.assert_array_equal(leasts, values[:, 0])
        np.testing.assert_array_equal(thresholds, values[:, k - 1])
        if prices.min() < np.inf:
            np.testing.assert_array_equal(costs + prices[found], values[:, :k])
            np.testing.assert_array_equal(costs, np.take_along_axis(C, found.astype(int), 1))


def test_bounds_out_of_date_stay_valid(rng):
    X, Y = rng.random((300, 2)), rng.random((400, 2))
    tree = Tree.of(Y)
    priced = tree.priced(np.zeros(400), METRICS["sqeuclidean"].key, 0.0)
    priced.prices[:] += rng.random(400)
    C = PointCloud(X, tree.points).block(0, 300)
    expected = (C + priced.prices).min(axis=1)
    np.testing.assert_array_equal(priced.ctransform(X), expected)
    priced.refresh()
    np.testing.assert_array_equal(priced.ctransform(X), expected)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 64, 1000])
def test_trees_of_any_size(rng, n):
    Y = rng.random((n, 2))
    tree = Tree.of(Y)
    assert sorted(tree.order) == list(range(n))
    np.testing.assert_array_equal(tree.points, Y[tree.order])
    found = tree.priced(np.zeros(n), METRICS["cityblock"].key, 0.0).ctransform(Y)
    np.testing.assert_array_equal(found, 0.0)


def test_cells_keep_mass_and_centre(rng):
    Y, q = rng.normal(size=(1000, 3)), rng.dirichlet(np.ones(1000))
    q[:200] = 0
    tree = Tree.of(Y)
    q = q[tree.order]
    centres, masses = cells(tree.points, q, 5)
    assert len(centres) == 32
    assert masses.sum() == pytest.approx(q.sum(), rel=1e-12)
    np.testing.assert_allclose(masses @ centres, q @ tree.points, atol=1e-12)
    assert cells(tree.points, q, 12)[0] is tree.points


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock"])
def test_large_clouds_search_and_small_ones_pass(rng, metric, monkeypatch):
    X, Y = rng.random((400, 3)), rng.random((500, 3))
    f, g = rng.random(400), rng.random(500)
    f[:7] = -np.inf
    passed = PointCloud(X, Y, metric)
    assert passed._index is None
    tune(monkeypatch, tree_index, min_searched_entries=1)
    searched = PointCloud(X, Y, metric)
    for share in (0, 10**6):  # of visits that a pass is quicker than
        tune(monkeypatch, tree_index, entries_per_visit=share)
        np.testing.assert_array_equal(searched.ctransform_rows(g), passed.ctransform_rows(g))
        np.testing.assert_array_equal(searched.ctransform_cols(f), passed.ctransform_cols(f))
    assert searched._index is not None
