"""The least columns of rows are those of a sorted matrix, with a threshold that is one."""

import numpy as np
import pytest

from epsilot.geometry import Dense, Grid, PointCloud

RNG = np.random.default_rng(2)
X, Y = RNG.random((40, 3)), RNG.random((130, 3))
WHOLE = RNG.integers(0, 3, (2, 60, 2)).astype(float)

GEOMETRIES = {
    "dense": Dense(RNG.normal(size=(30, 120))),
    "ties": Dense(RNG.integers(0, 3, (30, 120)).astype(float)),
    "one column": Dense(RNG.random((6, 1))),
    "cloud": PointCloud(X, Y),
    "cosine": PointCloud(X, Y, "cosine"),
    "many axes": PointCloud(RNG.random((20, 30)), RNG.random((50, 30)), "euclidean"),
    "a function": PointCloud(X, Y, lambda x, Y: np.cbrt(np.abs(Y - x).sum(axis=1))),
    "cloud, ties": PointCloud(*WHOLE, "cityblock"),
    "grid": Grid((5, 4), (6, 7), "sqeuclidean"),
}
PRICES = {
    "none": lambda m, rng: np.zeros(m),
    "some": lambda m, rng: rng.normal(size=m),
    "whole": lambda m, rng: rng.integers(-2, 3, m).astype(float),
    "dear": lambda m, rng: np.where(np.arange(m) % 2 == 0, rng.random(m), np.inf),
}


@pytest.mark.parametrize("prices", PRICES)
@pytest.mark.parametrize("name", GEOMETRIES)
@pytest.mark.parametrize("k", [1, 5, 12, 1000])
def test_least_columns_are_those_of_a_sorted_row(name, prices, k, rng):
    geometry = GEOMETRIES[name]
    n, m = geometry.shape
    k = min(k, m)
    rows, asked = np.arange(n)[::2], PRICES[prices](m, rng)
    C = geometry.block(0, n)[rows]
    values = np.sort(C + asked, axis=1)
    cols, costs, thresholds = geometry.k_least(rows, asked, k)
    np.testing.assert_array_equal(np.take_along_axis(C, cols, 1), costs)
    is_for_sale = values[:, :k] < np.inf
    found = costs + asked[cols]
    np.testing.assert_array_equal(found[is_for_sale], values[:, :k][is_for_sale])
    assert (thresholds <= (values[:, k] if k < m else np.inf)).all()
    assert (thresholds >= values[:, k - 1]).all()
    if is_for_sale.all():
        assert all(len(set(row)) == k for row in cols.tolist())
