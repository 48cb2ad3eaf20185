"""The list of metrics is one: kernels, documentation and help name the same."""

from dataclasses import replace

import numpy as np
import pytest
from numba import njit
from scipy.spatial.distance import cdist

import epsilot
import epsilot.distributed
from epsilot.cli.options import Metric
from epsilot.files.images import grid_cost
from epsilot.geometry import Grid, PointCloud
from epsilot.geometry.tree_index import Tree
from epsilot.kernels import metrics as compiled
from epsilot.kernels import points as kernels
from epsilot.metrics import (
    GRID_METRICS,
    LOSS_METRICS,
    METRICS,
    PIXEL_METRICS,
    POINT_METRICS,
    metric_of,
)

DOCUMENTED = [
    (PointCloud, "POINT_METRICS", POINT_METRICS),
    (epsilot.solve_sample, "POINT_METRICS", POINT_METRICS),
    (epsilot.distributed.PointCloud, "POINT_METRICS", POINT_METRICS),
    (grid_cost, "PIXEL_METRICS", PIXEL_METRICS),
]


@pytest.mark.parametrize(("documented", "table", "names"), DOCUMENTED)
def test_docstrings_point_to_the_table(documented, table, names):
    assert f"``epsilot.metrics.{table}``" in documented.__doc__
    assert sum(f'"{name}"' in documented.__doc__ for name in names) < len(names)


def test_docstrings_list_the_metrics_of_grids():
    listed = ", ".join(f'"{name}"' for name in GRID_METRICS)
    assert f"metric : {{{listed}}}" in Grid.__doc__
    assert all(f'"{name}"' in epsilot.solve_grid.__doc__ for name in GRID_METRICS)


def test_help_names_the_metrics():
    (option,) = Metric.__metadata__
    for name in (*POINT_METRICS, *PIXEL_METRICS):
        assert name in option.help


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
    assert metric.cost(X[0], Y[0]) == pytest.approx(0.5 * ((X[0] - Y[0]) ** 2).sum()
                                                    if metric.degree == 0 else C[0, 0])  # fmt: skip


@pytest.mark.parametrize("name", METRICS)
def test_facts_of_a_metric_are_true(name):
    metric, rng = METRICS[name], np.random.default_rng(1)
    x, y, z = rng.normal(size=(3, 200, 3))

    def costs(points, others):
        return np.array([metric.cost(*pair) for pair in zip(points, others, strict=True)])

    if metric.is_convex:  # along a segment, both ends included
        between = costs(0.3 * x + 0.7 * z, y)
        assert (between <= 0.3 * costs(x, y) + 0.7 * costs(z, y) + 1e-12).all()
    if metric.square:
        np.testing.assert_allclose(costs(x, y), metric.square * ((x - y) ** 2).sum(axis=1))
    on_line = costs(x[:, :1], y[:, :1])
    if metric.is_distance:
        np.testing.assert_allclose(on_line, np.abs(x - y)[:, 0])
    farther = x + np.sign(x - y)
    assert (costs(farther, y) >= costs(x, y)).all()  # what bounds of boxes need


@pytest.mark.parametrize("name", METRICS)
def test_slopes_are_the_derivatives_of_costs(name):
    metric, rng = METRICS[name], np.random.default_rng(2)
    x, y = rng.normal(size=(2, 6, 3))
    if metric.tension is None and metric.slope is None:
        assert name in ("cosine", "chebyshev")  # by directions; not differentiable
        assert metric.has_slope == (name in LOSS_METRICS) == (name == "cosine")
        return
    costs = np.array([metric.cost(*pair) for pair in zip(x, y, strict=True)])
    for k in range(3):
        step = 1e-6 * np.eye(3)[k]
        ahead, behind = (
            np.array([metric.cost(*pair) for pair in zip(x + way * step, y, strict=True)])
            for way in (1, -1)
        )
        difference = x[:, k] - y[:, k]
        if metric.slope is not None:
            found = metric.slope(difference, lambda: costs)
        else:
            found = metric.tension(np.ones(6), lambda: costs) * difference
        np.testing.assert_allclose(found, (ahead - behind) / 2e-6, atol=1e-7)


@pytest.mark.parametrize("with_own_bound", [True, False])
@pytest.mark.parametrize("name", METRICS)
def test_bounds_of_nodes_are_below_all_values(name, with_own_bound):
    # The bound of a box serves every metric, also those that have one of their own.
    metric, rng = METRICS[name], np.random.default_rng(3)
    tree = Tree.of(rng.normal(size=(40, 2)))
    prices = rng.normal(size=40)
    priced = tree.priced(prices, metric.key, 0.0)
    row = metric if with_own_bound else replace(metric, bound=None)
    bound, first = (
        njit(compiled._bound(compiled.Form.of(row.key)._replace(metric=row))),
        1 << priced.depth,
    )
    for x in rng.normal(size=(20, 2)):
        values = np.array([metric.cost(x, y) for y in tree.points]) + prices
        for node in range(1, 2 * first):
            level = node.bit_length() - 1
            t = node - (1 << level)
            inside = values[(40 * t) >> level : (40 * (t + 1)) >> level]
            low = priced.nodes[node, -1]
            found, _ = bound(metric.key, low, abs(low), x, priced.nodes[node], priced.axes)
            assert found <= inside.min() + 1e-12


@pytest.mark.parametrize("exponent", [0.5, 1, 1.5, 2, 3])
@pytest.mark.parametrize("name", ["euclidean", "cityblock", "chebyshev"])
@pytest.mark.parametrize("has_boundary", [False, True])
def test_searches_find_the_least_of_powers_and_beside_a_boundary(name, exponent, has_boundary):
    rng = np.random.default_rng(5)
    X, Y = rng.random((30, 2)), rng.random((200, 2))
    row = METRICS[name].raised(exponent).scaled(3.0) if exponent != 1 else METRICS[name]
    if has_boundary:
        row = row.to_boundary()
        X[:2, 0] = Y[7:9, 0] = -1.0
    assert metric_of(row.key).has_boundary is has_boundary
    order = {"euclidean": 2, "cityblock": 1, "chebyshev": np.inf}[name]
    apart = np.linalg.norm(X[:, None] - Y, order, axis=2)
    x, y = X[:, None, 0], Y[:, 0]
    apart = np.where(np.minimum(x, y) < 0, np.maximum(np.maximum(x, y), 0), apart)
    costs = row.factor * apart**exponent
    tree, prices = Tree.of(Y), Y @ (0.5, -0.7) + 0.1 * rng.random(200)
    priced = tree.priced(prices[tree.order], row.key, 0.0)
    np.testing.assert_allclose(priced.ctransform(X), (costs + prices).min(axis=1), rtol=1e-13)
    block = np.empty((30, 200))
    kernels.cost_rows(X, np.ascontiguousarray(Y.T), row.key, 0.0, block, 0, 30)
    np.testing.assert_allclose(block, costs, rtol=1e-13)


def test_an_unknown_code_is_refused():
    X = np.random.default_rng(0).random((4, 2))
    tree = Tree.of(X)
    unknown = (0.0,) * 99, (), ()
    for call in (
        lambda: metric_of(unknown),
        lambda: kernels.cost_rows(
            X, np.ascontiguousarray(X.T), unknown, 0.0, np.empty((4, 4)), 0, 4
        ),
        lambda: tree.priced(np.zeros(4), unknown, 0.0).ctransform(tree.points),
    ):
        with pytest.raises(ValueError, match="no metric has the code 99"):
            call()


def test_codes_are_distinct():
    assert len({metric.code for metric in METRICS.values()}) == len(METRICS)
