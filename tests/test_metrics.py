"""The list of metrics is one: kernels, documentation and help name the same."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import epsilot
from epsilot.cli.options import Metric
from epsilot.files.images import grid_cost
from epsilot.geometry import Grid, PointCloud
from epsilot.metrics import GRID_METRICS, METRICS, PIXEL_METRICS, POINT_METRICS

DOCUMENTED = [
    (PointCloud, POINT_METRICS),
    (epsilot.solve_sample, POINT_METRICS),
    (Grid, GRID_METRICS),
    (epsilot.solve_grid, GRID_METRICS),
]


@pytest.mark.parametrize(("documented", "names"), DOCUMENTED)
def test_docstrings_list_the_metrics(documented, names):
    listed = ", ".join(f'"{name}"' for name in names)
    assert f"metric : {{{listed}}}" in documented.__doc__


def test_help_and_pixels_name_the_metrics():
    (option,) = Metric.__metadata__
    for name in (*POINT_METRICS, *PIXEL_METRICS):
        assert name in option.help
    for name in PIXEL_METRICS:
        assert f'"{name}"' in grid_cost.__doc__


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_is_what_its_record_says(name):
    X, Y = np.random.default_rng(0).random((2, 5, 3))
    metric, C = METRICS[name], PointCloud(X, Y, name).block(0, 5)
    np.testing.assert_allclose(C, cdist(X, Y, name), rtol=1e-13)
    np.testing.assert_allclose(PointCloud(4 * X, 4 * Y, name).block(0, 5), C * 4**metric.degree)
    terms = np.abs(X[:, None] - Y) ** metric.power
    if metric.is_separable:
        np.testing.assert_allclose(C, terms.sum(axis=2))
    if metric.is_root:
        np.testing.assert_allclose(C, np.sqrt(terms.sum(axis=2)))
