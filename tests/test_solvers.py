"""What every registered method owes on every problem of the table."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import epsilot
from sample_problems import PROBLEMS, Row, exact_value, trace

METHODS = sorted({entry.name for entry in epsilot.methods() if entry.costs == "any"} | {"auto"})
EXACT_TO = 1e-12  # l1 distance of a plan from its marginals, total mass 1


def run(method: str, row: Row) -> epsilot.Result:
    return epsilot.solve(row.M, row.a, row.b, eps=row.eps, method=method, on_limit="raise")


first_run = cache(run)


pytestmark = [
    pytest.mark.parametrize("row", PROBLEMS, ids=lambda row: row.name),
    pytest.mark.parametrize("method", METHODS),
]


def test_gap_is_certified(method, row):
    result = first_run(method, row)
    assert result.converged
    assert result.gap <= row.eps
    assert result.gap == result.value - result.lower_bound
    assert result.value == result.value_linear


def test_plan_is_feasible(method, row):
    plan = first_run(method, row).plan
    assert plan.shape == row.M.shape
    assert plan.min() >= 0
    assert np.abs(plan.sum(axis=1) - row.a).sum() <= EXACT_TO
    assert np.abs(plan.sum(axis=0) - row.b).sum() <= EXACT_TO


def test_bounds_bracket_the_exact_value(method, row):
    result = first_run(method, row)
    assert result.lower_bound <= exact_value(row) + row.round_off
    assert result.value >= exact_value(row) - row.round_off
    assert abs(result.value - exact_value(row)) <= result.gap + row.round_off


def test_value_is_that_of_the_plan(method, row):
    result = first_run(method, row)
    assert result.value == pytest.approx((row.M * result.plan).sum(), abs=row.round_off)


def test_potentials_are_dual_feasible(method, row):
    result = first_run(method, row)
    f, g = result.potentials
    assert (f[:, None] + g[None] - row.M).max() <= row.round_off
    assert f @ row.a + g @ row.b == pytest.approx(result.lower_bound, abs=row.round_off)


def test_same_seed_gives_same_trace_and_leaves_inputs_alone(method, row):
    copy = replace(row, M=row.M.copy(), a=row.a.copy(), b=row.b.copy())
    first, second = first_run(method, row), run(method, copy)
    assert trace(first) == trace(second)
    assert first.work.operations == second.work.operations > 0
    np.testing.assert_allclose(first.plan, second.plan, rtol=1e-13)
    for name in ("M", "a", "b"):
        np.testing.assert_array_equal(getattr(copy, name), getattr(row, name))


def test_history_is_consistent(method, row):
    result = first_run(method, row)
    upper = np.array([record.upper for record in result.history])
    lower = np.array([record.lower for record in result.history])
    gap = [record.gap for record in result.history]
    np.testing.assert_allclose(gap, upper - lower, rtol=0, atol=row.round_off)
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper) <= 0).all()
    assert (np.diff([record.n_iter for record in result.history]) > 0).all()
    assert (np.diff([record.operations for record in result.history]) >= 0).all()
    last = result.history[-1]
    assert (last.upper, last.lower) == (result.value, result.lower_bound)
    assert (last.n_iter, last.operations) == (result.n_iter, result.work.operations)
