"""Prices far above and far below the costs: sound bounds, or one sentence that refuses them."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

import epsilot
from epsilot import InvalidProblem
from epsilot.kernels.small import solve_one

LARGE_PRICES = [1e8, 1e10, 1e12]


def drawn(seed):
    """Return costs of size 1, and weights of equal totals up to rounding."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 5, 2)
    a, b = rng.random(n) + 0.01, rng.random(m) + 0.01
    M = rng.random((n, m))
    M[0, 0] = 1.0
    return M, a / a.sum(), b / b.sum()


def exact_value(result, M, a, b, prices, divergence):
    """Return the objective of the returned plan, computed in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        X = [[Decimal(float(x)) for x in row] for row in result.plan]
        value = sum(
            Decimal(float(c)) * x
            for C, row in zip(M, X, strict=True)
            for c, x in zip(C, row, strict=True)
        )
        sums = [sum(row) for row in X], [sum(column) for column in zip(*X, strict=True)]
        for price, reached, wanted in zip(prices, sums, (a, b), strict=True):
            if price < math.inf:
                pairs = [(r, Decimal(float(w))) for r, w in zip(reached, wanted, strict=True)]
                value += Decimal(price) * sum(divergence(r, w) for r, w in pairs)
        return float(value)


def kl(r, w):
    return (r * (r / w).ln() if r else 0) - r + w


def tv(r, w):
    return abs(r - w)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("price", LARGE_PRICES)
@pytest.mark.parametrize("sides", ["both", "rows kept", "columns kept"])
@pytest.mark.parametrize(("divergence", "paid", "rounding"), [("kl", kl, 0.0), ("tv", tv, 2e-15)])
def test_large_prices_are_certified_with_a_true_value(
    seed, price, sides, divergence, paid, rounding
):
    M, a, b = drawn(seed)
    kept = {
        "both": (price, price),
        "rows kept": (math.inf, price),
        "columns kept": (price, math.inf),
    }
    prices = kept[sides]
    result = epsilot.solve(M, a, b, unbalanced=prices, unbalanced_type=divergence)
    assert result.converged
    assert result.gap >= 0
    value = exact_value(result, M, a, b, prices, paid)
    assert result.value == pytest.approx(value, rel=1e-9, abs=rounding * price)


def test_a_large_divergence_price_does_not_lower_the_value():
    M, b = (
        np.array([[0.6558146760571075, 0.013585861678019673]]),
        [0.23540720146270294, 0.764592798537297],
    )
    result = epsilot.solve(M, [1.0], b, unbalanced=1e12)
    assert 0 <= result.gap <= 0.01 * result.value
    assert result.value >= 0.16477114


#: Prices that are refused for costs of size 1.
REFUSED = [1e-320, 1e-300, 1e-20, 1e15, 1e300, 1.7e308, (0.0061, 9.3e13)]


@pytest.mark.parametrize("price", REFUSED)
@pytest.mark.parametrize("reg", [None, 0.1])
@pytest.mark.parametrize("divergence", ["kl", "tv"])
def test_prices_out_of_proportion_are_refused_in_a_sentence(price, reg, divergence):
    with pytest.raises(InvalidProblem, match=r"unbalanced is .*math\.inf keeps a side"):
        epsilot.solve(1.0 - np.eye(3), unbalanced=price, unbalanced_type=divergence, reg=reg)


@pytest.mark.parametrize("price", [1e-6, 1e-12, 1e3])
@pytest.mark.parametrize("divergence", ["kl", "tv"])
def test_small_prices_have_finite_bounds(price, divergence):
    M, a, b = drawn(3)
    result = epsilot.solve(M, a, 2 * b, unbalanced=price, unbalanced_type=divergence)
    assert result.converged
    assert 0 <= result.gap < math.inf


def test_masses_that_negative_costs_make_overflow_are_refused():
    with pytest.raises(InvalidProblem, match="the optimal mass is beyond the range of float64"):
        epsilot.solve([[-1.0, 0.5]], unbalanced=1e-3)


@pytest.mark.parametrize("price", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("divergence", ["kl", "tv"])
@pytest.mark.parametrize("totals", [1.0, 2.0])
def test_free_transport_is_certified(price, divergence, totals):
    rng = np.random.default_rng(0)
    a, b = rng.random(3), rng.random(4)
    a, b = a / a.sum(), totals * b / b.sum()
    result = epsilot.solve(np.zeros((3, 4)), a, b, unbalanced=price, unbalanced_type=divergence)
    assert result.converged
    assert result.gap >= 0


@pytest.mark.parametrize("mass", [1e-8, 1e-12, 1e-20])
def test_the_default_accuracy_of_a_tiny_mass_is_accepted(mass):
    M = np.random.default_rng(0).random((4, 4))
    assert epsilot.solve(M, mass=mass, reg=0.1).converged


@pytest.mark.parametrize("cost", [1e308, math.inf, math.nan, -1.0])
def test_the_compiled_simplex_leaves_unusable_costs_alone(cost):
    C = np.array([[0.0, cost], [3.0, 1.0], [2.0, cost]])
    arcs, flow, f, g = np.empty((2, 5), np.int64), np.empty(5), np.empty(3), np.empty(2)
    assert solve_one(C, np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.6]), arcs, flow, f, g) == 0


def test_prices_that_overflow_do_not_reach_the_compiled_simplex():
    M = np.array([[3e-100], [1e-100], [2e-100]])
    with pytest.raises(InvalidProblem, match="unbalanced is"):
        epsilot.solve(M, [0.2, 0.3, 0.5], [1.0], unbalanced=1.7e308, unbalanced_type="tv")
