"""Unbalanced Sinkhorn: each half of a sweep is an exact maximum, constants included."""

import math

import numpy as np
import pytest

import epsilot
from epsilot.geometry import Dense
from epsilot.problems.kullback_leibler import EntropicKullbackLeibler, penalised_softmin
from epsilot.problems.problem import Problem
from epsilot.solvers.unbalanced_sinkhorn import UnbalancedSinkhorn

ETA = 0.1
PRICES = [(0.3, 0.3), (0.1, 2.0), (2.0, 0.1), (math.inf, 0.4), (0.4, math.inf)]


@pytest.mark.parametrize("prices", PRICES)
def test_a_sweep_ends_at_the_best_columns_and_constant(prices):
    rng = np.random.default_rng(0)
    problem = Problem(Dense(rng.random((5, 7))), rng.random(5), 2 * rng.random(7))
    kind = EntropicKullbackLeibler(problem, *prices, ETA)
    target, solver = kind.fixed_target(problem), UnbalancedSinkhorn()
    state, _ = solver.init(target, rng)
    solver.step(target, state, rng)

    def best_columns(f):
        lse = problem.geometry.lse_cols(f, ETA) - 1
        return f, penalised_softmin(target.log_q, lse, ETA, prices[1])

    reached = kind.dual_value((state.f, state.g))
    shifts = np.linspace(-1, 1, 2001)
    others = [kind.dual_value(best_columns(state.f + t)) for t in shifts]
    assert max(others) == pytest.approx(reached, rel=1e-12)
    assert abs(shifts[np.argmax(others)]) < 1e-9


def test_negative_costs_of_many_decades_are_certified_in_a_few_sweeps():
    M = -np.array([[5e4, 7e-3], [3e3, 1e-4], [3e2, 2.7e6], [5e-2, 2e5], [2e-12, 1e-4]])
    result = epsilot.solve(
        M, np.full(5, 0.6), [0.1, 0.9], unbalanced=(1.7e6, math.inf), eps=3600.0, max_iter=100
    )
    assert result.converged


@pytest.mark.parametrize("price", [1.0, 2.8e8])
def test_outliers_among_the_costs_do_not_make_all_steps_short(price):
    rng = np.random.default_rng(0)
    M = rng.random((5, 7))
    M[rng.random(M.shape) < 0.2] *= 1e6
    keywords = {"unbalanced": price, "rtol": 1e-4, "max_iter": 10_000}
    assert epsilot.solve(M, **keywords).converged
