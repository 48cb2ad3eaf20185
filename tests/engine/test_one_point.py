"""Sides with a single point are settled before an exact method runs."""

import numpy as np
import pytest

import epsilot

RNG = np.random.default_rng(0)
X, WEIGHTS = RNG.normal(size=(40, 2)), 10.0 ** RNG.uniform(-12, 0, 40)
POINT = np.array([[0.5, -2.0]])
M = ((X - POINT) ** 2).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("method", ["auto", "exact", "small_simplex", "restricted_simplex"])
@pytest.mark.parametrize("is_turned", [False, True])
def test_the_only_plan_of_a_stored_cost_is_returned_with_its_proof(method, is_turned):
    cost, a, b = (M.T, [1.0], WEIGHTS) if is_turned else (M, WEIGHTS, [1.0])
    result = epsilot.solve(cost, a, b, method=method, rtol=1e-9, normalize=True)
    assert result.converged
    assert result.n_iter == 1
    assert result.gap <= 1e-14 * result.value
    plan = result.plan.T if is_turned else result.plan
    assert plan[:, 0] == pytest.approx(WEIGHTS / WEIGHTS.sum(), rel=1e-14, abs=0)
    if method != "auto":
        assert result.method == method


@pytest.mark.parametrize("method", ["auto", "auction", "restricted_simplex"])
def test_points_without_mass_do_not_count(method):
    b = np.array([0.0, 2.0, 0.0])
    Y = np.vstack([X[:1], POINT, X[1:2]])
    result = epsilot.solve_sample(
        X, Y, WEIGHTS / WEIGHTS.sum() * 2, b, method=method, rtol=1e-9, lazy=True
    )
    assert result.converged
    assert result.n_iter == 1
    assert result.value == pytest.approx(2 * (M[:, 0] * WEIGHTS).sum() / WEIGHTS.sum(), rel=1e-12)


def test_options_of_the_method_are_shown():
    result = epsilot.solve(M, WEIGHTS, [1.0], method="exact", max_pivots=7, normalize=True)
    assert result.options == {"max_pivots": 7}


@pytest.mark.parametrize(
    ("wish", "unit"),
    [({"method": "sinkhorn"}, "gibbs"), ({"stop": "paper", "method": "exact"}, "pivot")],
)
def test_other_methods_and_published_procedures_run_as_asked(wish, unit):
    result = epsilot.solve(M, WEIGHTS, [1.0], eps=0.01, normalize=True, **wish)
    assert result.converged
    assert unit in result.work.units
