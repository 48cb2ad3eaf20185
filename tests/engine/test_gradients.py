"""Slopes of the optimal value: the ε-subgradient inequalities on random problems."""

import math

import numpy as np
import pytest

import epsilot

N_PROBLEMS = 1000


def drawn(rng, size, sharpness=0.4):
    """Return weights, some of them about zero and one of them zero."""
    w = rng.dirichlet(np.full(size, sharpness))
    w[rng.integers(size)] = 0.0 if size > 2 else w[0]
    return w / w.sum()


def problems(rng):
    shapes = rng.integers(2, 13, (N_PROBLEMS, 2))
    M = [rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4) for shape in shapes]
    a, b = ([drawn(rng, size) for size in shapes[:, side]] for side in (0, 1))
    return M, a, b


@pytest.fixture(scope="module")
def solved():
    rng = np.random.default_rng(0)
    M, a, b = problems(rng)
    return M, a, b, epsilot.solve_batch(M, a, b, plans=True, potentials=True), rng


def test_potentials_are_subgradients_in_the_weights(solved):
    M, a, b, batch, rng = solved
    a_new, b_new = ([drawn(rng, w.size) for w in side] for side in (a, b))
    for weights in ((a_new, b), (a, b_new), (a_new, b_new)):
        moved = epsilot.solve_batch(M, *weights)
        for k, (f, g) in enumerate(batch.potentials):
            slope = f @ (weights[0][k] - a[k]) + g @ (weights[1][k] - b[k])
            round_off = 1e-13 * np.abs(M[k]).max()
            assert moved.value[k] >= batch.value[k] + slope - batch.gap[k] - round_off


def test_plans_are_supergradients_in_the_cost(solved):
    M, a, b, batch, rng = solved
    M_new = [C + rng.normal(size=C.shape) * np.abs(C).max() for C in M]
    moved = epsilot.solve_batch(M_new, a, b)
    for k, plan in enumerate(batch.plans):
        slope = plan.multiply(M_new[k] - M[k]).sum()
        round_off = 1e-13 * np.abs(M_new[k]).max()
        assert moved.lower_bound[k] <= batch.value[k] + slope + round_off


#: keywords of a solve, whether its gap is that of rounding
SOLVES = [
    ({"method": "exact"}, True),
    ({"method": "sinkhorn", "eps": 0.1}, False),
    ({"method": "apdagd", "eps": 0.2}, False),
    ({"reg": 0.1}, True),
    ({"reg": 0.1, "tol": 0.05}, False),
]


@pytest.mark.parametrize(("keywords", "is_tight"), SOLVES, ids=str)
def test_gradients_of_a_result_hold_to_its_gap(keywords, is_tight, rng):
    M, (a, a_new) = rng.random((9, 7)), rng.dirichlet(np.ones(9), 2)
    b, b_new = rng.dirichlet(np.ones(7), 2)
    result = epsilot.solve(M, a, b, **keywords)
    assert (result.gap < 1e-5) == is_tight
    da, db, dM = result.gradients()
    assert abs(da.sum()) + abs(db.sum()) < 1e-12
    assert dM is result.plan_operator
    again = {"reg": 0.1} if "reg" in keywords else {"method": "exact"}
    slope = da @ (a_new - a) + db @ (b_new - b)
    moved = epsilot.solve(M, a_new, b_new, **again)
    assert moved.value >= result.value + slope - result.gap - 1e-12
    M_new = rng.random((9, 7))
    moved = epsilot.solve(M_new, a, b, **again)
    assert moved.lower_bound <= result.value + (result.plan * (M_new - M)).sum() + 1e-12


TV = {"unbalanced": 0.3, "unbalanced_type": "tv"}
#: name: keywords of a kind whose weights need no equal totals
FREE = {
    "partial": {"mass": 0.4, "rtol": 1e-9},
    "TV": TV | {"rtol": 1e-9},
    "KL": {"unbalanced": 0.3, "rtol": 1e-6},
    "KL with two penalties": {"unbalanced": (0.3, 2.0), "rtol": 1e-6},
    "KL with an exact side": {"unbalanced": (math.inf, 0.3), "rtol": 1e-6},
    "entropic partial": {"mass": 0.4, "reg": 0.1},
    "entropic TV": TV | {"reg": 0.1},
    "entropic KL": {"unbalanced": 0.3, "reg": 0.1},
}


@pytest.mark.parametrize("kind", FREE)
def test_slopes_in_free_weights_and_costs_bound_the_optimum(kind, rng):
    M, (a, a_new) = 7.0 * rng.random((6, 5)), rng.random((2, 6)) + 0.2
    b, b_new = rng.random((2, 5)) + 0.2
    result = epsilot.solve(M, a, b, **FREE[kind])
    da, db, dM = result.gradients()
    moved = epsilot.solve(M, a_new, b_new, **FREE[kind]).value
    assert moved >= result.value + da @ (a_new - a) + db @ (b_new - b) - result.gap - 1e-12
    M_new = M + 0.1 * rng.random(M.shape)
    moved = epsilot.solve(M_new, a, b, **FREE[kind]).lower_bound
    assert moved <= result.value + (dM.toarray() * (M_new - M)).sum() + 1e-12


@pytest.mark.parametrize("kind", ["entropic partial", "entropic TV", "entropic KL"])
def test_weights_of_zero_have_finite_slopes(kind):
    result = epsilot.solve(np.eye(3), [0.5, 0.5, 0.0], [0.2, 0.3, 0.5], **FREE[kind])
    da, db, _ = result.gradients()
    assert np.isfinite(da).all()
    assert np.isfinite(db).all()


def test_empty_places_of_an_entropic_problem_have_finite_slopes():
    result = epsilot.solve(np.eye(3), [0.5, 0.5, 0.0], [0.2, 0.3, 0.5], reg=0.1)
    da, _, _ = result.gradients()
    assert da[2] == 0
    assert np.isfinite(da).all()
