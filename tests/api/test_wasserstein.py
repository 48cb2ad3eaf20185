"""Wasserstein distances equal SciPy's and POT's, with intervals that hold for the roots."""

import pickle
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import ot
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.stats import wasserstein_distance

import epsilot
from epsilot.api.wasserstein import _root
from epsilot.errors import InvalidProblem


def weights(rng, n):
    a = rng.random(n)
    return a / a.sum()


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("p", [1, 1.5, 2, 3, 5.5])
def test_values_on_a_line(rng, p, is_weighted):
    x, y = np.round(rng.normal(size=40), 1), rng.normal(size=55)
    a, b = (weights(rng, 40), weights(rng, 55)) if is_weighted else (None, None)
    distance = epsilot.wasserstein_1d(x, y, a, b, p=p)
    assert distance == pytest.approx(ot.wasserstein_1d(x, y, a, b, p=p) ** (1 / p), rel=1e-10)
    if p == 1:
        assert distance == pytest.approx(wasserstein_distance(x, y, a, b), rel=1e-10)
    assert distance.result.method == "monotone"
    assert 0 <= distance.gap <= 1e-9 * distance
    assert distance.lower <= distance.upper == float(distance)


@pytest.mark.parametrize("p", [1.0, 1.3, 2.0, 4.0])
def test_long_lines_are_sorted_in_no_more_than_linear_memory(rng, p):
    x, y = rng.normal(size=20_000), 2 * rng.normal(size=20_000)
    distance = epsilot.wasserstein_1d(x, y, p=p)
    assert distance == pytest.approx(np.mean(np.abs(np.sort(x) - np.sort(y)) ** p) ** (1 / p))
    assert distance.gap <= 1e-9 * distance


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "chebyshev", "canberra"])
@pytest.mark.parametrize("p", [1, 2, 2.5])
def test_points(rng, metric, p):
    X, Y = rng.random((2, 40, 3))
    cost = cdist(X, Y, metric) ** p
    best = cost[linear_sum_assignment(cost)].mean() ** (1 / p)
    distance = epsilot.wasserstein(X, Y, p=p, metric=metric, rtol=1e-9)
    assert distance == pytest.approx(best, rel=1e-12)
    assert distance.lower <= best * (1 + 1e-14)
    assert (distance.p, distance.metric) == (p, metric)


@pytest.mark.parametrize("rtol", [0.2, 0.01])
def test_rtol_is_that_of_the_root(rng, rtol):
    X, Y = rng.random((2, 300, 2))
    distance = epsilot.wasserstein(X, Y, p=4, rtol=rtol, method="sinkhorn")
    assert 1e-6 < distance.gap <= rtol * distance.lower * (1 + 1e-12)
    assert distance.result.gap > rtol * distance.result.lower_bound / 10


@pytest.mark.parametrize(
    "metric", ["euclidean", "cityblock", "sqeuclidean", "chebyshev", "canberra"]
)
@pytest.mark.parametrize("p", [1, 2])
def test_grids(rng, metric, p):
    A, B = (weights(rng, 30).reshape(5, 6) for _ in range(2))
    spacing = (0.5, 2.0)
    cells = np.indices((5, 6)).reshape(2, -1).T * spacing
    found = epsilot.wasserstein_grid(A, B, p=p, metric=metric, spacing=spacing, rtol=1e-9)
    best = ot.emd2(A.ravel(), B.ravel(), cdist(cells, cells, metric) ** p) ** (1 / p)
    assert found == pytest.approx(best, rel=1e-9)
    call = found.result.problem.geometry.call()
    assert call.function == "solve_grid"


def test_grids_on_a_line(rng):
    a, b = weights(rng, 30), weights(rng, 30)
    found = epsilot.wasserstein_grid(a, b)
    assert found.result.method in ("grid_flow", "monotone")
    assert found == pytest.approx(wasserstein_distance(range(30), range(30), a, b), rel=1e-12)


def test_a_distance_is_a_number(rng):
    distance = epsilot.wasserstein(rng.random((4, 2)), rng.random((4, 2)))
    assert distance * 2 == 2 * float(distance)
    assert str(distance) == str(float(distance))
    assert f"{distance:.3f}" == f"{float(distance):.3f}"
    assert "W_2" in repr(distance)
    assert "euclidean" in repr(distance)
    again = pickle.loads(pickle.dumps(distance))
    assert (again, again.lower, again.p) == (distance, distance.lower, distance.p)


def test_equal_measures_are_at_distance_0(rng):
    X = rng.random((9, 2))
    distance = epsilot.wasserstein(X, X[::-1])
    assert (distance, distance.lower) == (0, 0)


@pytest.mark.parametrize("p", [2, 3, 7, 64, 1.7, 100.0])
def test_roots_are_rounded_outward(rng, p):
    for value in rng.lognormal(sigma=20, size=50):
        low, high = (_root(value, p, is_upper=is_upper) for is_upper in (False, True))
        units = 22 + 2.1 * abs(np.log(value)) / p
        assert low <= high <= low + units * np.spacing(high)
        if p == int(p) <= 64:
            assert Fraction(low) ** int(p) <= Fraction(value) <= Fraction(high) ** int(p)
            assert high - low <= np.spacing(high)
        else:
            assert low < value ** (1 / p) < high
    assert _root(3.0**4, 4, is_upper=False) == _root(3.0**4, 4, is_upper=True) == 3.0
    assert _root(-1e-17, p, is_upper=False) == 0.0


REJECTED = {
    "p below 1": ({"p": 0.5}, "p is 0.5; the order"),
    "p of infinity": ({"p": np.inf}, "p is inf"),
    "p of text": ({"p": "two"}, "p is 'two'"),
    "entropy": ({"reg": 0.1}, "reg was given"),
    "an absolute gap": ({"eps": 0.1}, "pass rtol"),
    "a part of the mass": ({"mass": 0.5}, "moves all mass"),
}


@pytest.mark.parametrize(("keywords", "message"), REJECTED.values(), ids=list(REJECTED))
def test_what_makes_no_distance_is_rejected(keywords, message):
    with pytest.raises(InvalidProblem, match=message):
        epsilot.wasserstein([[0.0]], [[1.0]], **keywords)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_values_on_a_circle(rng, p):
    x, y = rng.uniform(-30, 60, (2, 40))
    apart = np.abs(np.subtract.outer(x, y)) % 24
    cost = np.minimum(apart, 24 - apart) ** p
    best = cost[linear_sum_assignment(cost)].mean() ** (1 / p)
    distance = epsilot.wasserstein_1d(x, y, p=p, period=24)
    assert distance == pytest.approx(best, rel=1e-12)
    assert distance.gap <= 1e-12 * distance
    assert "circle of length 24" in repr(distance)
    assert f"W{p} = " in repr(distance.result)
    a, b = weights(rng, 40), weights(rng, 40)
    if p == 1:
        found = epsilot.wasserstein_1d(x, y, a, b, period=24) / 24
        on_circle = ot.wasserstein_circle(x / 24 % 1, y / 24 % 1, a, b, p=1)
        assert found == pytest.approx(np.ravel(on_circle)[0], rel=1e-9)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [({"period": 0}, "period is 0"), ({"metric": "cityblock"}, "metric was given")],
)
def test_what_makes_no_line_and_no_circle_is_rejected(keywords, message):
    with pytest.raises(InvalidProblem, match=message):
        epsilot.wasserstein_1d([0.0], [1.0], **keywords)


def test_values_must_be_vectors(rng):
    with pytest.raises(InvalidProblem, match=r"x has shape \(3, 2\)"):
        epsilot.wasserstein_1d(rng.random((3, 2)), rng.random(3))


@pytest.mark.parametrize("n", [30, 300])
def test_concave_costs_on_a_line_are_solved_exactly(rng, n):
    x, y = rng.normal(size=(2, n))
    cost = np.abs(np.subtract.outer(x, y)) ** 0.5
    result = epsilot.solve_sample(x, y, metric="euclidean", p=0.5, rtol=1e-9)
    assert result.method != "monotone"
    assert result.value == pytest.approx(cost[linear_sum_assignment(cost)].mean(), rel=1e-11)
    assert result.gap <= 1e-9 * result.value


@pytest.mark.parametrize("p", [2.1950868579147316, 1.3, 65.5, 100])
@pytest.mark.parametrize("value", [1e-300, 1e-44, 3.7, 1.3e44, 1e300])
def test_roots_of_any_order_and_size_are_rounded_outward(p, value):
    """The rounding of 1/p changes the last units of roots of very large and very small numbers."""
    with localcontext() as context:
        context.prec = 50
        exact = (Decimal(value).ln() / Decimal(p)).exp()
    lower, upper = (_root(value, p, is_upper=x) for x in (False, True))
    assert Decimal(lower) < exact < Decimal(upper)
    assert upper / lower - 1 < 1e-12
