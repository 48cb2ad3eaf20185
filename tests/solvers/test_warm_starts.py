"""A start from good potentials saves work."""

import pytest

import epsilot
from sample_problems import points, random

ACCELERATED = ["apdagd", "apdamd", "apdrcd", "apdgcd", "hybrid_primal_dual"]


@pytest.mark.parametrize("name", ACCELERATED)
def test_an_entropic_problem_is_solved_and_its_potentials_save_steps(name):
    M, a, b = random(8, 9, seed=5)
    run = {"M": M, "a": a, "b": b, "reg": 0.1, "tol": 1e-4, "method": name}
    cold = epsilot.solve(**run)
    assert cold.converged
    assert cold.value == pytest.approx(
        epsilot.solve(**{**run, "method": "sinkhorn", "tol": 1e-9}).value, abs=1e-4
    )
    warm = epsilot.solve(**run, potentials_init=cold.potentials)
    assert warm.n_iter <= max(1, cold.n_iter // 2)


@pytest.mark.parametrize("method", ["dual_extrapolation", "dijkstra_dfs", "box_newton"])
def test_exact_potentials_save_work(method):
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


SINKHORN = [
    *("sinkhorn", "greenkhorn", "stochastic_sinkhorn", "accelerated_sinkhorn", "aam"),
    "katyusha_sinkhorn",
]


@pytest.mark.parametrize("method", SINKHORN)
def test_an_entropic_solution_is_a_start_for_itself(method):
    M, a, b = random(20, 20, 1.0, seed=7)
    arguments = {"M": M, "a": a, "b": b, "reg": 0.05, "tol": 1e-5, "method": method}
    cold = epsilot.solve(**arguments)
    warm = epsilot.solve(**arguments, potentials_init=cold.potentials)
    assert cold.converged
    assert warm.converged
    assert warm.work.operations <= cold.work.operations
    assert warm.n_iter <= 2
