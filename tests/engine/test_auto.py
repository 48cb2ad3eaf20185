"""Which method auto stands for, and why."""

import json

import numpy as np
import pytest

import epsilot
from epsilot import solvers
from epsilot.engine.goal import Goal
from epsilot.engine.request import Request
from epsilot.engine.run_plan import choose, make_run_plan
from epsilot.geometry import Dense, Grid, PointCloud
from epsilot.problems.balanced import objective_of
from epsilot.problems.problem import make_problem
from epsilot.solvers.cost_models import Offer, cost_model
from epsilot.solvers.exact import Exact


def test_auto_reports_its_choice(rng):
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
    assert choose(objective_of(make_problem(np.eye(4)), reg=0.1)).method == "sinkhorn_newton"
    assert choose(objective_of(lazy, reg=0.1)).method == "sinkhorn"


@pytest.mark.parametrize(
    ("metric", "n", "d", "apart", "method"),
    [
        ("euclidean", 6000, 2, 0, "auction"),
        ("cityblock", 6000, 2, 0, "auction"),
        ("cityblock", 12_000, 2, 0, "auction"),
        ("euclidean", 1000, 2, 5, "restricted_simplex"),
        ("euclidean", 20_000, 2, 5, "auction"),
        ("sqeuclidean", 20_000, 2, 5, "auction"),
        ("sqeuclidean", 20_000, 4, 0, "auction"),
        ("sqeuclidean", 5000, 8, 0, "restricted_simplex"),
        ("sqeuclidean", 50_000, 50, 0, "restricted_simplex"),
    ],
)
def test_the_shape_of_clouds_decides(metric, n, d, apart, method):
    """Distances between distant clouds hardly differ along a ray, nor in many dimensions."""
    X, Y = np.random.default_rng(0).random((2, n, d))
    Y[:, 0] += apart
    assert choose(objective_of(make_problem(PointCloud(X, Y, metric)))).method == method


@pytest.mark.parametrize(
    ("n", "d", "apart", "rtol", "method"),
    [
        (2000, 2, 5, 1e-2, "restricted_simplex"),
        (2000, 2, 5, 1e-3, "restricted_simplex"),
        (2000, 2, 2, 1e-3, "auction"),
        (2000, 2, 5, 1e-4, "auction"),
        (2000, 2, 20, 1e-4, "restricted_simplex"),
        (2000, 2, 20, 1e-9, "auction"),
        (2000, 3, 5, 1e-9, "restricted_simplex"),
        (20_000, 2, 5, 1e-2, "auction"),
        (20_000, 2, 5, 1e-9, "auction"),
        (20_000, 3, 5, 1e-9, "auction"),
    ],
)
def test_the_goal_decides_between_distant_clouds(n, d, apart, rtol, method):
    """Coarse plans have a gap that falls with the distance; finer ones take longer."""
    X, Y = np.random.default_rng(0).random((2, n, d))
    Y[:, 0] += apart
    cost = PointCloud(X, Y, "euclidean")
    objective = objective_of(make_problem(cost))
    choice = choose(objective, rtol)
    assert choice.method == method
    reached = make_run_plan(objective, Goal(eps=rtol * objective.scale), Request()).choice
    assert reached == choice


@pytest.mark.parametrize(("rtol", "method"), [(1e-2, "auction"), (1e-3, "restricted_simplex")])
def test_coarse_plans_of_cityblock_distances_do_not_improve_with_the_distance(rtol, method):
    X, Y = np.random.default_rng(0).random((2, 3000, 2))
    Y[:, 0] += 5
    objective = objective_of(make_problem(PointCloud(X, Y, "cityblock")))
    assert choose(objective, rtol).method == method


@pytest.mark.parametrize(
    ("top", "method"),
    [(2, "exact"), (5, "exact"), (100, "restricted_simplex"), (None, "restricted_simplex")],
)
def test_few_distinct_costs_are_left_to_the_simplex_on_all_arcs(rng, top, method):
    M = rng.random((600, 600)) if top is None else rng.integers(0, top, (600, 600)).astype(float)
    assert choose(objective_of(make_problem(M))).method == method


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


def stored(n, m):
    return Dense(np.zeros((n, m)))


def cloud(n, m, d, metric="sqeuclidean"):
    points = np.random.default_rng(0).random((n + m, d))
    return PointCloud(points[:n], points[n:], metric)


def squares(*shape):
    return Grid(shape, metric="sqeuclidean")


#: Geometries, what "auto" chooses for them, and the seconds that it predicts, as recorded.
CHOICES = [
    (stored(1, 1), "small_simplex", "0.000104"),
    (stored(1, 9), "small_simplex", "0.000104"),
    (stored(2, 3), "small_simplex", "0.000104"),
    (stored(8, 8), "small_simplex", "0.000104"),
    (stored(64, 64), "small_simplex", "0.000123"),
    (stored(253, 255), "small_simplex", "0.000418"),
    (stored(256, 256), "small_simplex", "0.000423"),
    (stored(500, 8), "small_simplex", "0.000418"),
    (stored(504, 9), "exact", "0.00143"),
    (stored(8, 500), "small_simplex", "0.000418"),
    (stored(9, 505), "exact", "0.00144"),
    (stored(257, 256), "restricted_simplex", "0.00171"),
    (stored(256, 257), "restricted_simplex", "0.00171"),
    (stored(300, 300), "restricted_simplex", "0.00205"),
    (stored(300, 2000), "restricted_simplex", "0.0104"),
    (stored(600, 5), "restricted_simplex", "0.00129"),
    (stored(2000, 300), "restricted_simplex", "0.0104"),
    (stored(2000, 20), "restricted_simplex", "0.0047"),
    (stored(800, 900), "restricted_simplex", "0.00986"),
    (stored(2500, 2500), "restricted_simplex", "0.0702"),
    (cloud(6, 6, 1, "sqeuclidean"), "monotone", "4.05e-05"),
    (cloud(300, 300, 1, "sqeuclidean"), "monotone", "0.000391"),
    (cloud(5000, 5000, 1, "sqeuclidean"), "monotone", "0.00789"),
    (cloud(6, 6, 1, "euclidean"), "monotone", "4.05e-05"),
    (cloud(300, 300, 1, "euclidean"), "monotone", "0.000391"),
    (cloud(5000, 5000, 1, "euclidean"), "monotone", "0.00789"),
    (cloud(6, 6, 1, "cityblock"), "monotone", "4.05e-05"),
    (cloud(300, 300, 1, "cityblock"), "monotone", "0.000391"),
    (cloud(5000, 5000, 1, "cityblock"), "monotone", "0.00789"),
    (cloud(6, 6, 2, "sqeuclidean"), "restricted_simplex", "0.000659"),
    (cloud(300, 300, 2, "sqeuclidean"), "restricted_simplex", "0.00253"),
    (cloud(5000, 5000, 2, "sqeuclidean"), "auction", "0.142"),
    (cloud(6, 6, 2, "euclidean"), "restricted_simplex", "0.000659"),
    (cloud(300, 300, 2, "euclidean"), "restricted_simplex", "0.00253"),
    (cloud(5000, 5000, 2, "euclidean"), "auction", "0.258"),
    (cloud(6, 6, 2, "cityblock"), "restricted_simplex", "0.000659"),
    (cloud(300, 300, 2, "cityblock"), "restricted_simplex", "0.00253"),
    (cloud(5000, 5000, 2, "cityblock"), "auction", "0.258"),
    (cloud(300, 300, 3, "sqeuclidean"), "restricted_simplex", "0.00253"),
    (cloud(5000, 5000, 3, "sqeuclidean"), "auction", "0.202"),
    (cloud(300, 300, 3, "euclidean"), "restricted_simplex", "0.00263"),
    (cloud(5000, 5000, 3, "euclidean"), "auction", "0.378"),
    (cloud(300, 300, 4, "sqeuclidean"), "restricted_simplex", "0.00253"),
    (cloud(5000, 5000, 4, "sqeuclidean"), "auction", "0.287"),
    (cloud(300, 300, 4, "euclidean"), "restricted_simplex", "0.00253"),
    (cloud(5000, 5000, 4, "euclidean"), "restricted_simplex", "0.395"),
    (cloud(6, 6, 10, "sqeuclidean"), "restricted_simplex", "0.000659"),
    (cloud(300, 300, 10, "sqeuclidean"), "restricted_simplex", "0.00253"),
    (cloud(5000, 5000, 10, "sqeuclidean"), "restricted_simplex", "0.395"),
    (cloud(6, 6, 10, "euclidean"), "restricted_simplex", "0.000659"),
    (cloud(300, 300, 10, "euclidean"), "restricted_simplex", "0.00253"),
    (cloud(5000, 5000, 10, "euclidean"), "restricted_simplex", "0.395"),
    (cloud(6, 6, 10, "cityblock"), "restricted_simplex", "0.000659"),
    (cloud(300, 300, 10, "cityblock"), "restricted_simplex", "0.00253"),
    (cloud(5000, 5000, 10, "cityblock"), "restricted_simplex", "0.395"),
    (cloud(40_000, 10, 2, "euclidean"), "restricted_simplex", "0.331"),
    (cloud(1000, 20_000, 2, "euclidean"), "auction", "0.258"),
    (cloud(12_000, 12_000, 2, "cityblock"), "auction", "0.804"),
    (cloud(12_000, 11_000, 2, "cityblock"), "auction", "0.76"),
    (cloud(50_000, 50_000, 10), "restricted_simplex", "36.6"),
    (cloud(50_000, 50_000, 2), "auction", "2.81"),
    (Grid(50), "monotone", "8.53e-05"),
    (Grid((5, 5)), "grid_flow", "0.000463"),
    (Grid((60, 60)), "grid_flow", "0.00297"),
    (Grid((9, 7, 4)), "grid_flow", "0.000497"),
    (Grid((1024, 1024)), "grid_flow", "22"),
    (squares(50), "monotone", "8.53e-05"),
    (squares(9, 7), "restricted_simplex", "0.000749"),
    (squares(32, 32), "restricted_simplex", "0.0137"),
    (squares(45, 45), "auction", "0.0448"),
    (squares(46, 46), "auction", "0.0474"),
    (squares(64, 64), "auction", "0.11"),
    (squares(512, 512), "auction", "24.2"),
    (squares(513, 512), "auction", "24.3"),
    (squares(12, 11, 9), "restricted_simplex", "0.0178"),
]


@pytest.mark.parametrize(("geometry", "method", "seconds"), CHOICES, ids=repr)
def test_auto_chooses_as_recorded(geometry, method, seconds):
    choice = choose(objective_of(make_problem(geometry)))
    assert (choice.method, f"{choice.seconds:.3g}") == (method, seconds)


def test_predictions_grow_with_the_problem():
    for name in ("exact", "restricted_simplex"):
        model = cost_model(name)
        assert model.seconds(5000, 5000) > 10 * model.seconds(500, 500)


class Toy(Exact):
    """A method that offers to solve stored costs of three rows."""

    @classmethod
    def offer(cls, problem):
        return Offer("three rows", 0.0, 8) if problem.shape[0] == 3 else None


@pytest.mark.parametrize(("auto", "method"), [("any", "toy"), (None, "small_simplex")])
def test_auto_chooses_a_registered_solver_that_no_file_of_the_library_names(auto, method, rng):
    M, other = rng.random((3, 5)), rng.random((4, 5))
    before = epsilot.solve(M)
    solvers.register("toy", Toy, auto)
    try:
        result = epsilot.solve(M)
        assert (result.method, result.value) == (method, before.value)
        assert epsilot.solve(other).method == "small_simplex"
        assert epsilot.solve(M, method="toy").method == "toy"
        assert "toy" in [row.name for row in epsilot.methods()]
    finally:
        solvers.unregister("toy")
    assert epsilot.solve(M).choice == before.choice
    with pytest.raises(epsilot.UnknownMethod, match="toy"):
        epsilot.solve(M, method="toy")


def test_a_fallback_is_asked_only_where_no_other_method_makes_an_offer(rng):
    solvers.register("toy", Toy, "fallback")
    try:
        assert epsilot.solve(rng.random((3, 5))).method == "small_simplex"
    finally:
        solvers.unregister("toy")
    with pytest.raises(epsilot.InvalidProblem, match="auto is 'tiny'"):
        solvers.register("toy", Toy, "tiny")


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
    incomplete = tmp_path / "incomplete.json"
    incomplete.write_text(json.dumps({"exact": {"overhead": 1.0}}))
    monkeypatch.setenv("EPSILOT_COST_MODELS", str(incomplete))
    with pytest.raises(epsilot.InvalidProblem, match="calibrate"):
        epsilot.solve(np.eye(3))


@pytest.mark.parametrize(
    ("geometry", "method"),
    [
        (cloud(5000, 5000, 2), "auction"),
        (cloud(5000, 4000, 3, "euclidean"), "auction"),
        (cloud(300, 300, 2), "restricted_simplex"),
        (cloud(5000, 5000, 10), "restricted_simplex"),
        (Grid((9, 7), metric="sqeuclidean"), "restricted_simplex"),
        (Grid((64, 64), metric="sqeuclidean"), "auction"),
        (Grid((512, 512), metric="sqeuclidean"), "auction"),
        (Grid((1024, 1024), metric="sqeuclidean"), "auction"),
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
