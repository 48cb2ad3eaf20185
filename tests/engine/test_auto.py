"""Which method auto stands for, and why."""

import json

import numpy as np
import pytest

import epsilot
from epsilot.engine.auto import choose, predict
from epsilot.geometry import Grid, PointCloud
from epsilot.problems.balanced import objective_of
from epsilot.problems.problem import make_problem


def test_auto_says_what_it_chose(rng):
    small, large = epsilot.solve(rng.random((8, 9))), epsilot.solve(rng.random((800, 900)))
    assert small.method == "small_simplex"
    assert large.method == "restricted_simplex"
    assert small.choice.startswith("small_simplex: a compiled simplex on all arcs is fastest")
    assert "predicted" in large.choice
    assert epsilot.solve(np.eye(3), method="exact").choice is None


def test_auto_suits_the_geometry():
    grid = make_problem(Grid((5, 5)))
    lazy = make_problem(PointCloud(np.eye(6, 2), np.eye(5, 2)))
    line = make_problem(PointCloud(np.arange(6.0), np.arange(5.0)))
    squares = make_problem(Grid((5, 5), None, "sqeuclidean"))
    assert choose(objective_of(grid)).method == "grid_flow"
    assert choose(objective_of(squares)).method == "restricted_simplex"
    assert choose(objective_of(lazy)).method == "restricted_simplex"
    assert choose(objective_of(line)).method == "monotone"
    assert choose(objective_of(make_problem(np.eye(4)), reg=0.1)).method == "sinkhorn"


@pytest.mark.parametrize(
    ("metric", "n", "method"),
    [
        ("euclidean", 6000, "auction"),
        ("cityblock", 6000, "restricted_simplex"),
        ("cityblock", 12_000, "auction"),
    ],
)
def test_ties_of_l1_distances_are_left_to_a_simplex(metric, n, method):
    X = np.random.default_rng(0).random((n, 2))
    assert choose(objective_of(make_problem(PointCloud(X, X, metric)))).method == method


@pytest.mark.parametrize(
    ("shape", "method"),
    [
        ((1, 1), "small_simplex"),
        ((256, 256), "small_simplex"),
        ((253, 255), "small_simplex"),
        ((500, 8), "small_simplex"),
        ((504, 9), "exact"),
        ((257, 256), "restricted_simplex"),
        ((256, 257), "restricted_simplex"),
    ],
)
def test_small_costs_have_a_simplex_of_their_own(shape, method):
    assert choose(objective_of(make_problem(np.zeros(shape)))).method == method


def test_predictions_grow_with_the_problem():
    for method in ("exact", "restricted_simplex"):
        small, large = (predict(method, n, n, is_dense=True) for n in (500, 5000))
        assert large[0] > 10 * small[0]
        assert large[1] > 10 * small[1]


def test_cost_models_can_be_replaced(tmp_path, monkeypatch):
    models = {
        "exact": {"overhead": 1e9, "dense": 0.0, "scale": 0.0, "power": 1.0, "bytes": 8},
        "restricted_simplex": {
            "overhead": 0,
            "dense": 0,
            "lazy": 0,
            "scale": 0,
            "power": 1,
        },
    }
    path = tmp_path / "models.json"
    path.write_text(json.dumps(models))
    monkeypatch.setenv("EPSILOT_COST_MODELS", str(path))
    assert choose(objective_of(make_problem(np.eye(300)))).method == "restricted_simplex"
    assert choose(objective_of(make_problem(Grid((5, 5))))).method == "restricted_simplex"
    assert choose(objective_of(make_problem(Grid((60, 60))))).method == "grid_flow"
    monkeypatch.setenv("EPSILOT_COST_MODELS", str(tmp_path / "none.json"))
    with pytest.raises(epsilot.InvalidProblem, match="calibrate"):
        epsilot.solve(np.eye(3))


@pytest.mark.parametrize(
    ("geometry", "method"),
    [
        (PointCloud(np.eye(5000, 2), np.eye(5000, 2)), "auction"),
        (PointCloud(np.eye(5000, 3), np.eye(4000, 3), "euclidean"), "auction"),
        (PointCloud(np.eye(300, 2), np.eye(300, 2)), "restricted_simplex"),
        (PointCloud(np.eye(5000, 10), np.eye(5000, 10)), "restricted_simplex"),
        (Grid((9, 7), metric="sqeuclidean"), "restricted_simplex"),
        (Grid((64, 64), metric="sqeuclidean"), "auction"),
        (Grid((512, 512), metric="sqeuclidean"), "auction"),
        (Grid((1024, 1024), metric="sqeuclidean"), "sinkhorn"),
    ],
    ids=repr,
)
def test_points_and_images_are_auctioned_where_that_is_quick(geometry, method):
    choice = choose(objective_of(make_problem(geometry)))
    assert choice.method == method
    assert choice.reason


def test_empty_cells_are_not_auctioned():
    A = np.zeros((32, 32))
    A[:4, :5] = 1.0
    grid = Grid(A.shape, metric="sqeuclidean")
    few, all_ = (make_problem(grid, x.ravel(), x.ravel()) for x in (A, np.ones_like(A)))
    assert choose(objective_of(few)).method == "auction"
    assert choose(objective_of(all_)).method == "restricted_simplex"
