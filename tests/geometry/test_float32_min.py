"""Minima that float32 finds and float64 decides are those of a pass in float64, bit for bit."""

import numpy as np
import pytest

from epsilot.geometry import PointCloud
from epsilot.geometry import points as points_module
from epsilot.metrics import METRICS
from tuning import tune

#: how points are drawn, by what float32 finds hard
SHAPES = {
    "uniform": lambda rng, n, d: rng.random((n, d)),
    "far from 0": lambda rng, n, d: 1e6 + rng.random((n, d)),
    "ties": lambda rng, n, d: rng.integers(1, 3, (n, d)).astype(float),
    "nearly ties": lambda rng, n, d: 1 + 1e-9 * rng.random((n, d)),
    "all scales": lambda rng, n, d: 10.0 ** rng.uniform(-9, 9, (n, d)),
    "out of its range": lambda rng, n, d: 1e30 * (1 + rng.random((n, d))),
}


@pytest.mark.parametrize("metric", [name for name, row in METRICS.items() if row.float32_error])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("d", [3, 20])
def test_bounds_leave_nothing_out(rng, metric, shape, d, monkeypatch):
    tune(monkeypatch, points_module, min_float32_columns=1)
    X, Y = SHAPES[shape](rng, 40, d), SHAPES[shape](rng, 700, d)
    cloud = PointCloud(X, Y, metric).shifted(0.25)
    C = cloud.block(0, 40)
    size = float(np.ptp(C)) or 1.0
    for f, g in (
        (rng.normal(size=40) * size, rng.normal(size=700) * size),
        (np.zeros(40), np.zeros(700)),
        (C.min(axis=1), np.where(rng.random(700) < 0.5, -np.inf, 1e3 * size * rng.random(700))),
    ):
        np.testing.assert_array_equal(cloud.ctransform_rows(g), (C - g).min(axis=1))
        np.testing.assert_array_equal(cloud.ctransform_cols(f), (C.T - f).min(axis=1))
        check_lists(cloud, C, -g, rng.permutation(40)[:25], 12)


def check_lists(cloud, C, prices, rows, k):
    """Compare the k least columns of some rows with all of them."""
    cols, costs, thresholds = cloud.k_least(rows, prices, k)
    values = C[rows] + prices
    found = np.take_along_axis(values, cols, axis=1)
    np.testing.assert_array_equal(found, np.sort(values, axis=1)[:, :k])
    np.testing.assert_array_equal(costs, np.take_along_axis(C[rows], cols, axis=1))
    np.testing.assert_array_equal(thresholds, found[:, -1])
    assert all(np.unique(row).size == k for row in cols)
