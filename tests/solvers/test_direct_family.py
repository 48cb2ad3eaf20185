"""What the direct methods and box_newton share: accuracy in every mode, warm starts, resuming."""

import numpy as np
import pytest

import epsilot
from epsilot.errors import InvalidProblem
from epsilot.run.driver import Goal, Run
from epsilot.run.schedules import Refinement
from epsilot.solvers.base import Pace, Signal
from epsilot.transport.problem import make_problem
from problems import equal_masses, images, points, random, solve_exactly, trace, zero_masses

DIRECT = ["dual_extrapolation", "dijkstra_dfs", "packing_lp"]
FAMILY = [*DIRECT, "box_newton"]
SETTINGS = [
    ("dual_extrapolation", {"constants": "sharp"}),
    ("dual_extrapolation", {"constants": "published"}),
    ("dual_extrapolation", {"average": False}),
    ("dijkstra_dfs", {"variant": "push_relabel"}),
    ("dijkstra_dfs", {"constants": "published"}),
    ("dijkstra_dfs", {"variant": "push_relabel", "constants": "published"}),
    ("packing_lp", {"constants": "safe"}),
    ("packing_lp", {"constants": "published"}),
    ("box_newton", {"constants": "published"}),
]


def skewed():
    M, a, b = random(20, 15, seed=11)
    a, b = a.copy(), b.copy()
    a[:5], b[:3] = 1e-12, 1e-9
    return 37 * M + 2, a / a.sum(), b / b.sum()


INSTANCES = {
    "images": lambda: images(5),
    "points": points,
    "skewed": skewed,
    "zero masses": zero_masses,
}


@pytest.mark.parametrize(("method", "options"), SETTINGS, ids=str)
@pytest.mark.parametrize("name", INSTANCES)
def test_every_setting_is_certified(name, method, options):
    M, a, b = INSTANCES[name]()
    eps = 0.2 * float(np.ptp(M))
    result = epsilot.solve(M, a, b, eps=eps, method=method, on_limit="raise", **options)
    assert result.gap <= eps
    exact, round_off = solve_exactly(M, a, b), 1e-9 * np.abs(M).max()
    assert result.lower_bound - round_off <= exact <= result.value + round_off
    assert np.abs(result.plan.sum(axis=1) - a).sum() <= 1e-12
    assert np.abs(result.plan.sum(axis=0) - b).sum() <= 1e-12


@pytest.mark.parametrize(
    ("method", "options"),
    [*((method, {}) for method in FAMILY), ("dijkstra_dfs", {"variant": "push_relabel"})],
    ids=str,
)
@pytest.mark.parametrize("name", ["skewed", "zero masses"])
def test_the_published_rule_reaches_eps(name, method, options):
    M, a, b = INSTANCES[name]()
    eps = 0.9 * float(np.ptp(M))
    result = epsilot.solve(M, a, b, eps=eps, method=method, stop="paper", **options)
    assert result.status is epsilot.Status.PUBLISHED_STOP
    assert result.options["constants"] == "published"
    assert result.value - solve_exactly(M, a, b) <= eps


@pytest.mark.parametrize("method", FAMILY)
@pytest.mark.parametrize("name", INSTANCES)
def test_relative_tolerance(name, method):
    M, a, b = INSTANCES[name]()
    result = epsilot.solve(M, a, b, rtol=0.1, method=method, on_limit="raise")
    assert result.gap <= 0.1 * result.lower_bound
    assert result.gap > 0 or method != "packing_lp"


@pytest.mark.parametrize("rtol", [0.3, 1e-3, 1e-6])
def test_dijkstra_refines_to_any_tolerance(rtol):
    M, a, b = points()
    result = epsilot.solve(M, a, b, rtol=rtol, method="dijkstra_dfs", on_limit="raise")
    assert result.gap <= rtol * result.lower_bound


@pytest.mark.parametrize("method", ["dual_extrapolation", "dijkstra_dfs"])
def test_an_optimum_of_zero_is_no_trap(method):
    M, a, b = equal_masses()
    result = epsilot.solve(M, a, b, rtol=0.5, method=method, max_iter=600, on_limit="ignore")
    assert result.gap <= 1e-4 * M.max()


def test_refinement_falls_only_when_a_stage_is_over():
    problem = make_problem(*points())
    schedule = Refinement(problem, Goal(rtol=0.1), Pace(start=0.0, factor=4.0))
    first = schedule.first()
    independent = problem.p @ problem.geometry.block(0, 24) @ problem.q
    assert 0 < first.epsilon <= 0.25 * independent
    run = Run(upper=2.0, lower=2.0 - 2 * first.epsilon)
    busy, finished = Signal(), Signal(is_finished=True)
    assert schedule.after(first, busy, run) is None
    assert schedule.after(first, finished, run).epsilon == max(first.epsilon / 4, 0.1 * run.lower)
    run = Run(upper=1e-3, lower=1e-3 - first.epsilon / 2)
    assert schedule.after(first, busy, run).epsilon == first.epsilon / 8
    assert schedule.at(first.epsilon) == first
    absolute = Refinement(problem, Goal(eps=0.3), Pace(start=0.0))
    assert absolute.first().epsilon == 0.3
    assert absolute.after(absolute.first(), finished, Run(upper=1.0, lower=0.5)) is None


@pytest.mark.parametrize("method", FAMILY)
@pytest.mark.parametrize("goal", [{"eps": 0.01}, {"rtol": 0.05}], ids=str)
def test_resumed_run_has_the_same_trace(method, goal, tmp_path):
    M, a, b = images(5)
    if method == "packing_lp":
        goal = {name: 10 * value for name, value in goal.items()}
    whole = epsilot.solve(M, a, b, method=method, **goal)
    path = tmp_path / "run.npz"
    half = max(1, whole.n_iter // 2)
    epsilot.solve(M, a, b, method=method, max_iter=half, checkpoint=path, on_limit="ignore", **goal)
    resumed = epsilot.solve(M, a, b, method=method, resume=path, **goal)
    assert trace(resumed) == trace(whole)
    np.testing.assert_array_equal(resumed.plan, whole.plan)


@pytest.mark.parametrize("method", ["dual_extrapolation", "dijkstra_dfs", "box_newton"])
def test_a_warm_start_saves_work(method):
    M, a, b = points()
    eps = 0.002 * M.max()
    options = {"stop": "paper"} if method == "dijkstra_dfs" else {}
    cold = epsilot.solve(M, a, b, eps=eps, method=method, **options)
    exact = epsilot.exact(M, a, b)
    warm = epsilot.solve(
        M, a, b, eps=eps, method=method, potentials_init=exact.potentials, **options
    )
    assert warm.gap <= eps
    assert warm.work.operations < cold.work.operations


@pytest.mark.parametrize(
    ("method", "options", "word"),
    [
        ("dual_extrapolation", {"constants": "best"}, "sharp"),
        ("dijkstra_dfs", {"constants": "sharp"}, "practical"),
        ("dijkstra_dfs", {"variant": "bfs"}, "push_relabel"),
        ("packing_lp", {"constants": "sharp"}, "safe"),
        ("box_newton", {"constants": "safe"}, "published"),
    ],
)
def test_bad_options_are_named(method, options, word):
    with pytest.raises(InvalidProblem, match=word):
        epsilot.solve(np.eye(2), eps=0.1, method=method, **options)


def test_rounding_costs_at_most_half_the_violation(rng):
    worst = 0.0
    for _ in range(300):
        n, m = rng.integers(1, 6, 2)
        X = rng.dirichlet(np.full(n * m, 0.3)).reshape(n, m)
        # Costs at random, or those for which every move of mass costs most.
        C = rng.random((n, m)) if rng.random() < 0.5 else np.where(X.mean() < X, 0.0, 1.0)
        p, q = rng.dirichlet(np.full(n, 0.5)), rng.dirichlet(np.full(m, 0.5))
        violation = np.abs(X.sum(axis=1) - p).sum() + np.abs(X.sum(axis=0) - q).sum()
        rise = np.sum(C * (epsilot.round_plan(X, p, q) - X))
        assert rise <= 0.5 * np.ptp(C) * violation + 1e-12
        worst = max(worst, rise / (np.ptp(C) * violation) if np.ptp(C) * violation > 0 else 0.0)
    assert worst > 0.4


def test_the_half_is_attained():
    # All mass is at a free entry of a column without demand; it must move at the full price.
    C, X = np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]])
    rounded = epsilot.round_plan(X, np.ones(1), np.array([0.0, 1.0]))
    violation = 0.0 + 2.0
    assert np.sum(C * rounded) - np.sum(C * X) == 0.5 * violation


def test_methods_table_has_the_rows_of_table_1():
    rows = {entry.name: entry for entry in epsilot.methods()}
    table = {name: (rows[name].year, rows[name].solves_entropic) for name in FAMILY}
    assert table == {
        "packing_lp": (2018, False),
        "box_newton": (2018, True),
        "dual_extrapolation": (2019, False),
        "dijkstra_dfs": (2019, False),
    }
