"""What runs of the accelerated family promise: counts, gaps, statuses, both stop modes."""

import numpy as np
import pytest

import epsilot
from epsilot.errors import InvalidProblem
from epsilot.files.images import grid_cost, synthetic_pair
from epsilot.geometry import PointCloud
from epsilot.run import driver
from epsilot.run.result import Status
from epsilot.solvers import make_solver
from epsilot.solvers.apdgcd import APDGCD
from problems import points, random, solve_exactly, trace

FAMILY = ["apdagd", "apdamd", "apdrcd", "apdgcd", "hybrid_primal_dual"]


def images(side, seed):
    A, B = synthetic_pair(side, seed)
    return grid_cost((side, side)), A.ravel(), B.ravel()


# n = 36, ε = 0.2: iterations and operations of the specification, mean of three instances.
PUBLISHED = [
    ("apdagd", {}, 136, 6.5e6),
    ("apdamd", {}, 145, 6.9e6),
    ("apdrcd", {}, 6.1e4, 3.4e7),
    ("hybrid_primal_dual", {"form": "accelerated"}, 416, 6.2e6),
    ("hybrid_primal_dual", {}, 95, 3.3e6),
]


@pytest.mark.parametrize(("name", "options", "iterations", "operations"), PUBLISHED)
def test_published_runs_cost_what_the_specification_measured(name, options, iterations, operations):
    runs = []
    for seed in range(3):
        M, a, b = images(6, seed)
        result = epsilot.solve(M, a, b, eps=0.2, method=name, stop="paper", **options)
        assert result.status is Status.PUBLISHED_STOP
        assert result.value - solve_exactly(M, a, b) <= result.gap <= 0.2
        runs.append((result.n_iter, result.work.operations))
    steps = 72 if name == "apdrcd" else 1
    found = np.mean(runs, axis=0) * [steps, 1]
    np.testing.assert_allclose(found, [iterations, operations], rtol=0.15)


@pytest.mark.parametrize("stop", ["paper", "certificate"])
@pytest.mark.parametrize("eps", [0.2, 0.05])
@pytest.mark.parametrize("name", FAMILY)
def test_gap_is_within_eps_on_images(name, eps, stop):
    side = 4 if name == "apdgcd" else 6
    M, a, b = images(side, 0)
    result = epsilot.solve(M, a, b, eps=eps, method=name, stop=stop)
    assert result.gap <= eps
    assert result.lower_bound - 1e-12 <= solve_exactly(M, a, b) <= result.value + 1e-12


def test_duality_rule_stops_earlier_and_keeps_eps():
    M, a, b = images(6, 0)
    run = {"M": M, "a": a, "b": b, "eps": 0.05, "method": "apdagd", "stop": "paper"}
    early, late = epsilot.solve(**run, rule="duality"), epsilot.solve(**run)
    assert early.status is Status.PUBLISHED_STOP
    assert early.gap <= 0.05
    assert early.n_iter < late.n_iter / 2


@pytest.mark.parametrize("shape", [(9, 9), (6, 11)])
def test_plain_form_stops_at_its_a_priori_count(shape):
    n, m = shape
    M, a, b = random(n, m, seed=4)
    M = M - M.min()
    result = epsilot.solve(
        M, a, b, eps=0.05, method="hybrid_primal_dual", form="plain", stop="paper"
    )
    assert result.n_iter == np.ceil(M.max() * np.sqrt((n + m) * np.log(n * m)) / 0.05)
    assert result.status is Status.PUBLISHED_STOP
    assert result.gap <= 0.05
    assert result.reg == 0


@pytest.mark.parametrize("name", FAMILY)
def test_scale_of_the_cost_leaves_the_count(name):
    M, a, b = images(4, 1)
    counts = [
        epsilot.solve(t * M, a, b, eps=0.1 * t, method=name, stop="paper").n_iter for t in (1, 1e6)
    ]
    assert counts[1] == pytest.approx(counts[0], rel=0.02)


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("stop", ["paper", "certificate"])
def test_zero_masses_in_both_modes(name, stop):
    M, a, b = random(8, 9, seed=5)
    a[::3], b[1::3] = 0.0, 0.0
    result = epsilot.solve(M, a / a.sum(), b / b.sum(), eps=0.1, method=name, stop=stop)
    assert result.gap <= 0.1


@pytest.mark.parametrize("name", FAMILY)
def test_entropic_problem_and_warm_start(name):
    M, a, b = random(8, 9, seed=5)
    run = {"M": M, "a": a, "b": b, "reg": 0.1, "tol": 1e-4, "method": name}
    cold = epsilot.solve(**run)
    assert cold.converged
    assert cold.value == pytest.approx(
        epsilot.solve(**{**run, "method": "sinkhorn", "tol": 1e-9}).value, abs=1e-4
    )
    warm = epsilot.solve(**run, potentials_init=cold.potentials)
    assert warm.n_iter <= max(1, cold.n_iter // 2)


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("stop", ["paper", "certificate"])
def test_resumed_run_has_the_same_trace(name, stop, tmp_path):
    M, a, b = images(4, 2)
    run = {"M": M, "a": a, "b": b, "eps": 0.01, "method": name, "stop": stop, "on_limit": "ignore"}
    whole = epsilot.solve(**run, max_iter=60)
    half = epsilot.solve(**run, max_iter=23, checkpoint=str(tmp_path / "run.npz"))
    rest = epsilot.solve(**run, max_iter=60, resume=str(tmp_path / "run.npz"))
    assert half.n_iter == min(23, whole.n_iter)
    assert rest.n_iter == whole.n_iter
    assert rest.value == whole.value
    assert trace(rest)[-1] == trace(whole)[-1]


@pytest.mark.parametrize("name", ["apdagd", "apdamd", "hybrid_primal_dual"])
def test_lazy_costs(name, rng):
    _, a, b = points()
    cloud = PointCloud(rng.normal(size=(24, 3)), rng.normal(size=(20, 3)), "sqeuclidean")
    eps = 0.05 * cloud.bounds[1]
    lazy = epsilot.solve(cloud, a, b, eps=eps, method=name)
    assert lazy.gap <= eps
    assert lazy.options["average"] is False
    dense = epsilot.solve(cloud.block(0, 24), a, b, eps=eps, method=name, stop="paper")
    paper = epsilot.solve(cloud, a, b, eps=eps, method=name, stop="paper")
    assert paper.value == pytest.approx(dense.value, rel=1e-6)


# Never hang -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", ["paper", "certificate"])
def test_a_run_that_does_not_move_ends_as_stalled(stop, monkeypatch):
    monkeypatch.setattr(driver, "STALL_EPOCHS", 200)
    M, a, b = images(4, 0)
    result = epsilot.solve(
        M, a, b, eps=0.01, method="apdrcd", smoothness=1e12, stop=stop, on_limit="ignore"
    )
    assert result.status is Status.STALLED
    assert not result.converged
    assert 0.01 < result.gap < np.inf
    assert np.abs(result.plan.sum(axis=1) - a).sum() <= 1e-12


@pytest.mark.parametrize("stop", ["paper", "certificate"])
def test_greedy_run_has_a_limit_of_its_own(stop, monkeypatch):
    assert APDGCD.patience < make_solver("sinkhorn", {}).patience
    monkeypatch.setattr(APDGCD, "patience", 30)
    M, a, b = images(6, 0)
    with pytest.warns(epsilot.ConvergenceWarning, match="max_iter"):
        result = epsilot.solve(M, a, b, eps=1e-3, method="apdgcd", stop=stop)
    assert result.status is Status.MAX_ITER
    assert result.n_iter == 30
    assert result.gap < 0.2
    assert np.abs(result.plan.sum(axis=1) - a).sum() <= 1e-12


@pytest.mark.parametrize("name", ["apdrcd", "apdgcd"])
def test_a_diverging_run_returns_its_best(name):
    M, a, b = images(4, 0)
    result = epsilot.solve(M, a, b, eps=1e-3, method=name, smoothness=1e-6, on_limit="ignore")
    assert result.status is Status.NOT_FINITE
    assert result.gap <= 1
    assert np.abs(result.plan.sum(axis=1) - a).sum() <= 1e-12


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("hybrid_primal_dual", {"form": "fast"}),
        ("apdamd", {"rule": "none"}),
        ("apdgcd", {"smoothness": 0.0}),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(name, options):
    with pytest.raises(InvalidProblem, match=r"must be"):
        make_solver(name, options)
