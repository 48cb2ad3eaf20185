"""AAM: what its theory says of every iteration, and its published stop."""

import math

import numpy as np
import pytest
from by_hand import gradient, log_plan, lse_dual, published, start
from scipy.special import logsumexp, rel_entr

import epsilot
from epsilot.geometry import Dense
from epsilot.problems.problem import Entropic
from epsilot.solvers import make_solver
from epsilot.solvers.aam import AAM
from sample_problems import random, solve_exactly


@pytest.mark.parametrize("search", ["line_search", "backtracking"])
def test_aam_satisfies_the_conditions_of_its_proof(search):
    problem = published(epsilon=0.05)
    solver, state, rng = start(make_solver("aam", {"search": search}), problem)
    C, eta = problem.geometry.block(0, problem.shape[0]), problem.eta
    independent = np.outer(problem.p, problem.q)
    for k in range(1, 121):
        x, w, phi, A = state.x, state.w, state.phi, state.weight_sum
        solver.step(problem, state, rng)
        a, y = state.weight_sum - A, state.z
        g, phi_y = gradient(problem, y), lse_dual(problem, y)
        norm = g @ g
        # w moved along the gradient, in units of η
        np.testing.assert_allclose(state.w, w - eta * a * g, atol=1e-9)
        predicted = phi_y - a**2 * norm / (2 * (A + a))
        if search == "line_search":
            assert phi_y <= phi + 1e-12  # S1
            assert g @ (w - y) / eta >= -1e-10  # S2
            assert state.phi == pytest.approx(predicted, abs=1e-11)
        else:
            assert state.phi <= predicted + 1e-11
            assert state.smoothness * a**2 == pytest.approx(A + a, rel=1e-9)
        assert state.phi == pytest.approx(lse_dual(problem, state.x), abs=1e-11)
        assert state.weight_sum >= k**2 / 16
        assert state.average.sum() == pytest.approx(1, abs=1e-12)
        assert -eta * state.phi <= (C * independent).sum() + eta * rel_entr(independent, 1).sum()
        assert x is not state.x


def test_aam_average_is_that_of_the_plans():
    problem = published(epsilon=0.05)
    solver, state, rng = start(make_solver("aam", {}), problem)
    average, total = np.zeros(problem.shape), 0.0
    for _ in range(30):
        before = state.weight_sum
        solver.step(problem, state, rng)
        a = state.weight_sum - before
        average += a * np.exp(log_plan(problem, state.z))
        total += a
    np.testing.assert_allclose(state.average, average / total, rtol=1e-9, atol=1e-15)


class Unaccelerated(AAM):
    """β = 0 always: alternating minimisation of the more violated block."""

    def _search(self, problem, state):
        return 0.0, self._oracle(problem, state.x), 1


def test_aam_without_momentum_is_sinkhorn():
    problem = published(epsilon=0.05)
    solver, state, rng = start(Unaccelerated(search="line_search", variant="dual"), problem)
    n, z = problem.shape[0], np.zeros(sum(problem.shape))
    g = gradient(problem, z)
    is_row = np.linalg.norm(g[:n]) >= np.linalg.norm(g[n:])
    for k in range(60):
        solver.step(problem, state, rng)
        log_X = log_plan(problem, z)
        if is_row == (k % 2 == 0):
            z[:n] += problem.eta * (problem.log_p - logsumexp(log_X, axis=1))
        else:
            z[n:] += problem.eta * (problem.log_q - logsumexp(log_X, axis=0))
    np.testing.assert_allclose(
        log_plan(problem, state.x), log_plan(problem, z), rtol=1e-13, atol=1e-11
    )


@pytest.mark.parametrize("search", ["line_search", "backtracking"])
def test_aam_rests_at_a_solved_dual(search):
    C, p, q = random(7, 5, 1.0)
    problem = Entropic(Dense(C[:, :1] + C[:1]), 0.1, p, q)  # separable: X = p qᵀ
    solver, _, rng = start(make_solver("aam", {"search": search}), problem)
    solution = C[:, 0] + 0.1 * np.log(p), C[0] + 0.1 * np.log(q)
    state, _ = solver.init(problem, rng, solution)
    for _ in range(60):
        solver.step(problem, state, rng)
    assert np.isfinite(state.w).all()
    assert state.smoothness <= 4
    assert state.violation < 1e-12
    assert state.average.sum() == pytest.approx(1, abs=1e-12)


def test_aam_survives_underflow_of_a_whole_row():
    C, p, q = random(9, 9, 5.0)
    M = C[:, :1] + C[:1]
    result = epsilot.solve(M, p, q, eps=5e-3, method="aam", stop="paper", on_limit="raise")
    assert result.gap <= 5e-3


def test_published_stop_of_aam_is_proved_by_the_certificate():
    M, a, b = random(15, 15, 1.0, seed=9)
    result = epsilot.solve(M, a, b, eps=0.05, method="aam", stop="paper")
    assert result.value - solve_exactly(M, a, b) <= 0.05
    assert result.n_iter % 10 == 1
    assert math.isclose(result.reg, 2 * 0.05 / (3 * math.log(15 * 15)))
