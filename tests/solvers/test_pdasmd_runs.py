"""PDASMD to the end: ε-solutions, stops, work, threads, precision, resumption."""

import copy
import dataclasses
import subprocess
import sys

import numpy as np
import pytest

import epsilot
from epsilot.files.images import grid_cost, synthetic_pair
from epsilot.geometry import Dense
from epsilot.problems.problem import Entropic, make_problem
from epsilot.solvers import make_solver
from epsilot.solvers.pdasmd import PDASMD
from epsilot.theory import pdasmd_loop_operations
from epsilot_lab.instances import mnist_pair
from sample_problems import random, solve_exactly

IMAGES = {"synthetic": synthetic_pair, "mnist": mnist_pair}


@pytest.mark.parametrize("method", ["pdasmd", "pdasgd"])
@pytest.mark.parametrize("images", IMAGES)
@pytest.mark.parametrize(
    ("side", "seed", "stop", "eps"),
    [
        (6, 0, "paper", 0.2),
        (6, 1, "paper", 0.05),
        (6, 2, "paper", 0.02),
        (9, 0, "paper", 0.2),
        (6, 0, "certificate", 0.2),
        (6, 1, "certificate", 0.05),
        (10, 2, "certificate", 0.02),
        (20, 0, "certificate", 0.2),
        (20, 1, "certificate", 0.05),
        (20, 2, "certificate", 0.02),
    ],
)
def test_epsilon_solution(method, images, side, seed, stop, eps):
    A, B = IMAGES[images](side, seed)
    M, a, b = grid_cost((side, side)), A.ravel(), B.ravel()
    result = epsilot.solve(M, a, b, eps=eps, method=method, stop=stop, seed=seed)
    assert result.converged
    assert result.gap <= eps
    assert -1e-12 <= result.value - solve_exactly(M, a, b) <= eps


def test_published_stop_is_the_violation_of_the_average():
    M, a, b = random(12, 12, seed=3)
    result = epsilot.solve(M, a, b, eps=0.1, method="pdasmd", stop="paper")
    cost_max = float(np.ptp(M))
    assert result.status is epsilot.Status.PUBLISHED_STOP
    # ε'/2 against p', q', and at most ε'/4 more against p, q
    assert result.marginal_error <= 0.1 / (8 * cost_max) * 0.75
    assert result.reg == pytest.approx(0.1 / (4 * np.log(12)))
    before = epsilot.solve(
        M,
        a,
        b,
        eps=0.1,
        method="pdasmd",
        stop="paper",
        max_iter=result.n_iter - 1,
        on_limit="ignore",
    )
    assert before.status is not epsilot.Status.PUBLISHED_STOP


def test_sharp_smoothness_saves_the_square_root_of_five():
    A, B = synthetic_pair(6, 0)
    problem = grid_cost((6, 6)), A.ravel(), B.ravel()
    paper, sharp = (
        epsilot.solve(*problem, eps=0.2, method="pdasmd", stop="paper", smoothness=s).n_iter
        for s in ("paper", "sharp")
    )
    assert 2.1 <= paper / sharp <= 2.4


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": "l2"},
        {"batch_size": 3},
        {"inner_loops": 5},
        {"average": "none"},
        {"average": "snapshot"},
    ],
)
def test_work_is_the_closed_formula(options):
    M, a, b = random(8, 11, seed=1)
    result = epsilot.solve(
        M, a, b, eps=0.2, method="pdasmd", stop="paper", max_iter=4, on_limit="ignore", **options
    )
    assert result.n_iter == 4
    expected = 4 * pdasmd_loop_operations(8, 11, **options)
    assert result.work.operations == expected + 9 * 8 * 11 + 8  # the first snapshot


def test_certificate_saves_fifteen_times_the_operations():
    A, B = synthetic_pair(12, 0)
    problem = grid_cost((12, 12)), A.ravel(), B.ravel()
    paper, certified = (
        epsilot.solve(*problem, eps=0.05, method="pdasmd", stop=stop).work.operations
        for stop in ("paper", "certificate")
    )
    assert paper >= 15 * certified


@pytest.mark.parametrize("method", ["pdasmd", "pdasgd"])
@pytest.mark.parametrize("stop", ["paper", "certificate"])
@pytest.mark.parametrize("seed", [0, 1])
def test_skewed_marginals(method, stop, seed):
    M, a, b = random(40, 30, concentration=0.1, seed=seed)
    result = epsilot.solve(M, a, b, eps=0.1, method=method, stop=stop, max_iter=2000)
    assert result.converged
    assert abs(result.value - solve_exactly(M, a, b)) <= 0.1


def test_results_do_not_depend_on_threads():
    M, a, b = random(400, 400, seed=6)
    runs = [
        epsilot.solve(M, a, b, eps=0.05, method="pdasmd", batch_size=64, n_threads=k)
        for k in (1, 2, 3)
    ]
    for run in runs[1:]:
        assert run.history[-1].upper == runs[0].history[-1].upper
        np.testing.assert_array_equal(run.potentials[0], runs[0].potentials[0])


SIGNATURES = """
import numpy as np
import epsilot
from epsilot.kernels import pdasmd, pdasmd_batch
M = np.random.default_rng(0).random((9, 7))
for stop in ("paper", "certificate"):
    for B in (1, 2):
        options = {"method": "pdasmd", "max_iter": 4, "on_limit": "ignore", "batch_size": B}
        epsilot.solve(M, eps=1e-3, stop=stop, **options)
loops = pdasmd.inner_loop, pdasmd_batch.inner_loop
for kernel in (pdasmd.snapshot, pdasmd.move_and_average, *loops):
    print(*(signature[0].dtype for signature in kernel.signatures))
"""


def test_kernels_are_compiled_once_for_each_precision():
    """Rounding would else depend on which of several compatible versions is there first."""
    run = subprocess.run(
        [sys.executable, "-c", SIGNATURES], capture_output=True, text=True, check=True
    )
    precisions = [sorted(line.split()) for line in run.stdout.splitlines()]
    both = ["float32", "float64"]
    assert precisions == [both, ["float64"], both, both]


def test_warm_start_needs_less_work():
    A, B = synthetic_pair(10, 3)
    problem = grid_cost((10, 10)), A.ravel(), B.ravel()
    options = {"reg": 0.02, "tol": 1e-4, "method": "pdasmd"}
    cold = epsilot.solve(*problem, **options)
    warm = epsilot.solve(*problem, **options, potentials_init=cold.potentials)
    assert warm.converged
    assert warm.n_iter < cold.n_iter / 2


@pytest.mark.parametrize("precision", ["single", "double"])
def test_precision_does_not_limit_the_accuracy(precision):
    M, a, b = random(25, 20, seed=5)
    result = epsilot.solve(
        1e6 * M, a, b, reg=3e4, tol=0.1, method="pdasmd", precision=precision, max_iter=3000
    )
    assert result.converged


def test_lazy_rows_give_the_same_run_as_stored_ones():
    rng = np.random.default_rng(0)
    cloud = epsilot.PointCloud(rng.normal(size=(30, 2)), rng.normal(size=(40, 2)), "sqeuclidean")
    stored = np.array(cloud.block(0, 30))
    options = {"eps": 0.05 * stored.max(), "method": "pdasmd", "batch_size": 3}
    lazy = epsilot.solve(cloud, **options)
    dense = epsilot.solve(stored, **options, precision="double")
    assert lazy.converged
    assert lazy.n_iter == dense.n_iter
    np.testing.assert_allclose(lazy.potentials[1], dense.potentials[1], atol=1e-9)


# -- the hybrid with Sinkhorn ----------------------------------------------------------------


def epochs(n_epochs, **options):
    """Run some outer loops on a random problem; return it, and a copy of the state after each."""
    C, p, q = random(30, 25, seed=2)
    problem = Entropic(Dense(C), 0.02, p, q)
    solver = make_solver("pdasmd", options).resolved("certificate", make_problem(C, p, q))
    rng = np.random.default_rng(0)
    state, _ = solver.init(problem, rng)
    states = [copy.deepcopy(state)]
    for _ in range(n_epochs):
        solver.step(problem, state, rng)
        states.append(copy.deepcopy(state))
    return problem, states


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"precision": "double"},
        {"batch_size": 3},
        {"norm": "l2"},
        {"average": "sampled", "is_adaptive": False},
    ],
)
def test_hybrid_snapshot_is_an_exact_column_update(options):
    problem, plain = epochs(1, **options)
    _, hybrid = epochs(1, hybrid="sinkhorn", **options)
    before, after = plain[-1], hybrid[-1]
    columns = problem.q + before.mu
    move = problem.eta * np.log(problem.q / columns)
    for name in ("lam", "y", "z"):
        moved = getattr(before, name) + move
        np.testing.assert_allclose(getattr(after, name), moved, rtol=0, atol=1e-12)
    least = problem.eta * (problem.q * np.log(problem.q / columns)).sum()
    assert least > 0
    assert after.value <= before.value - least + 1e-8 * problem.eta
    t = (after.lam - problem.geometry.block(0, 30)) / problem.eta
    lse = np.logaddexp.reduce(t, axis=1)
    np.testing.assert_allclose(after.lse, lse, atol=1e-6)
    np.testing.assert_allclose(
        after.mu, problem.p @ np.exp(t - lse[:, None]) - problem.q, atol=1e-7
    )


@pytest.mark.parametrize("precision", ["single", "double"])
def test_hybrid_never_lets_the_dual_rise(precision):
    problem, states = epochs(40, hybrid="sinkhorn", precision=precision)
    values = np.array([state.value for state in states])
    slack = 2e-8 * problem.eta if precision == "single" else 1e-13
    assert (np.diff(values) <= slack).all()
    assert values[-1] < values[0]
    assert states[-1].violation < 1e-3


def test_hybrid_column_update_is_undone_where_it_would_not_help(monkeypatch):
    problem, states = epochs(2, hybrid="sinkhorn", precision="double")
    state, solver = states[-1], make_solver("pdasmd", {"hybrid": "sinkhorn", "average": "none"})
    before = copy.deepcopy(state)
    monkeypatch.setattr(PDASMD, "_slack", lambda *_: -np.inf)
    solver._update_columns(problem, state)
    for field in dataclasses.fields(state):
        np.testing.assert_array_equal(getattr(state, field.name), getattr(before, field.name))


def test_hybrid_counts_its_pass():
    M, a, b = random(8, 11, seed=1)
    options = {"eps": 0.2, "method": "pdasmd", "stop": "paper", "on_limit": "ignore"}
    plain, hybrid = (
        epsilot.solve(M, a, b, **options, max_iter=4, hybrid=kind).work.operations
        for kind in (None, "sinkhorn")
    )
    assert hybrid - plain == 4 * (9 * 8 * 11 + 8 + 7 * 11)


@pytest.mark.parametrize("method", ["pdasmd", "pdasgd"])
@pytest.mark.parametrize("seed", [0, 1])
def test_hybrid_is_certified_and_needs_fewer_epochs(method, seed):
    M, a, b = random(100, 80, seed=seed)
    eps = 0.005 * np.ptp(M)
    plain, hybrid = (
        epsilot.solve(M, a, b, eps=eps, method=method, hybrid=kind, seed=seed)
        for kind in (None, "sinkhorn")
    )
    assert hybrid.converged
    assert abs(hybrid.value - solve_exactly(M, a, b)) <= eps
    assert hybrid.n_iter < plain.n_iter


@pytest.mark.parametrize("stop", ["paper", "certificate"])
def test_hybrid_takes_skewed_marginals(stop):
    M, a, b = random(40, 30, concentration=0.1, seed=1)
    options = {"method": "pdasmd", "stop": stop, "hybrid": "sinkhorn", "max_iter": 2000}
    result = epsilot.solve(M, a, b, eps=0.1, **options)
    assert result.converged
    assert abs(result.value - solve_exactly(M, a, b)) <= 0.1
