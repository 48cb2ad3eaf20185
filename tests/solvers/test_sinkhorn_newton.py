"""Sinkhorn's algorithm with Newton steps: when it changes, and what it then reaches."""

import itertools

import numpy as np
import pytest

import epsilot
from epsilot.geometry import Dense
from epsilot.problems.problem import Entropic
from epsilot.solvers import make_solver
from epsilot.solvers.sinkhorn_newton import newton_step, swept


def near_a_permutation(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    Y = rng.permutation(X) + 0.01 * rng.normal(size=(n, 2))
    return ((X[:, None] - Y) ** 2).sum(axis=2)


def epochs(M, eta, count):
    n, m = M.shape
    problem = Entropic(Dense(M), eta, np.full(n, 1 / n), np.full(m, 1 / m))
    solver, rng = make_solver("sinkhorn_newton", {}), np.random.default_rng(0)
    state, _ = solver.init(problem, rng)
    for _ in range(count):
        solver.step(problem, state, rng)
    return problem, state


@pytest.mark.parametrize(
    ("n", "reg", "most"), [(30, 2e-3, 60), (40, 7e-4, 60), (60, 2e-4, 80), (30, 1e-4, 120)]
)
def test_problems_near_a_permutation_take_few_epochs(n, reg, most):
    M = near_a_permutation(n)
    size = M.max()
    result = epsilot.solve(M, reg=reg * size, tol=1e-8 * size, max_iter=most)
    assert result.method == "sinkhorn_newton"
    assert result.converged


@pytest.mark.parametrize(("reg", "is_newton"), [(0.1, False), (0.02, False), (1e-4, True)])
def test_the_rate_decides_whether_newton_steps_begin(reg, is_newton):
    M = near_a_permutation(40)
    _, state = epochs(M, reg * M.max(), 40)
    assert state.is_newton == is_newton


def test_until_then_the_steps_are_those_of_sinkhorn(rng):
    M = rng.random((20, 25))
    results = [
        epsilot.solve(M, reg=0.05, tol=1e-9, method=method)
        for method in ("sinkhorn", "sinkhorn_newton")
    ]
    assert results[0].value == results[1].value
    assert results[0].n_iter == results[1].n_iter


def test_newton_steps_converge_quadratically_and_never_raise_the_semi_dual(rng):
    M = rng.random((12, 15))
    problem, _ = epochs(M, 0.02, 0)
    g, errors = np.zeros(15), []
    for _ in range(12):
        _, g, error = swept(problem, g)
        errors.append(error)
        g = newton_step(problem, g)
    fast = [(e, after) for e, after in itertools.pairwise(errors) if 1e-6 < e < 1e-2]
    assert fast
    assert all(after < 50 * e**2 for e, after in fast)
    assert min(errors) < 1e-12


def test_blocks_that_hardly_touch_are_solved():
    """The Hessian is singular up to round-off: mass moves between the blocks by long steps."""
    noise = 0.01 * np.random.default_rng(1).random((20, 20))
    M = np.kron(1 - np.eye(2), np.ones((10, 10))) + noise
    a, b = np.full(20, 1 / 20), np.r_[np.full(10, 0.06), np.full(10, 0.04)]
    result = epsilot.solve(M, a, b, reg=0.01, tol=1e-9)
    assert result.converged
