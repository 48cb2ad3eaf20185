"""Bounds of crude potentials are the best their formulas allow, and false potentials prove none."""

import math

import numpy as np
import pytest

from epsilot.errors import CertificateError
from epsilot.problems.kinds import UserProblem
from epsilot.problems.partial import Partial
from epsilot.problems.unbalanced import Unbalanced

SEEDS = range(4)
PRICES = [(0.3, 0.3), (0.1, 2.0), (2.0, 0.1), (math.inf, 0.4), (0.4, math.inf)]
CONSTANTS = np.linspace(-3, 3, 6001)


def drawn(seed):
    """Return costs, masses, and a row potential as crude as noise."""
    rng = np.random.default_rng(seed)
    return rng.random((6, 8)), rng.random(6), 2 * rng.random(8), rng.normal(size=6)


def objective(kind, M, a, b):
    return kind.objective(kind.problem(UserProblem(M, a, b)), None)


def partial(seed):
    M, a, b, f = drawn(seed)
    kind = objective(Partial(0.6 * a.sum()), M, a, b)
    return kind, kind.problem.geometry.block(0, 6), f  # costs begin at 0


def missed(seed, prices, divergence):
    M, a, b, f = drawn(seed)
    return objective(Unbalanced(*prices, divergence), M, a, b), M, f


def partial_bound(kind, M, f, g, µ):
    """Return the dual value of (f, g, µ), or -inf if they are not feasible."""
    if (M - f[:, None] - g - µ).min() < -1e-12:
        return -math.inf
    return kind.problem.p @ f + kind.problem.q @ g + kind.share * µ


@pytest.mark.parametrize("seed", SEEDS)
def test_partial_potentials_have_the_best_price_of_mass(seed):
    kind, M, crude = partial(seed)
    (f, g), bound = kind.dual(crude)
    assert max(f.max(), g.max()) <= 0
    assert kind.dual_value((f, g)) == pytest.approx(bound, rel=1e-12)
    assert max(partial_bound(kind, M, f, g, µ) for µ in CONSTANTS) <= bound + 1e-12
    h = (M - g).min(axis=1)  # with g as it is, no other µ with its best f proves more
    others = [partial_bound(kind, M, np.minimum(h - µ, 0), g, µ) for µ in CONSTANTS]
    assert bound - 2e-3 <= max(others) <= bound + 1e-12


@pytest.mark.parametrize("side", [0, 1])
def test_positive_partial_potentials_prove_nothing(side):
    kind, _, crude = partial(0)
    potentials = kind.dual(crude)[0]
    potentials[side][2] = 1e-9
    with pytest.raises(CertificateError, match="a potential is positive"):
        kind.dual_value(potentials)


@pytest.mark.parametrize("prices", PRICES)
@pytest.mark.parametrize("height", [0.0, 0.5, 5.0, -5.0])
def test_total_variation_makes_any_potentials_feasible(prices, height):
    kind, M, crude = missed(1, prices, "tv")
    (f, g), bound = kind.dual(crude + height)
    assert (f[:, None] + g - M).max() <= 1e-14
    assert min(f.min() + prices[0], g.min() + prices[1]) >= 0
    assert kind.dual_value((f, g)) == bound
    counted = np.minimum(f, prices[0]), np.minimum(g, prices[1])
    assert bound == pytest.approx(kind.problem.p @ counted[0] + kind.problem.q @ counted[1])


@pytest.mark.parametrize("side", [0, 1])
def test_a_potential_above_the_price_counts_as_the_price(side):
    M, a, b, _ = drawn(0)
    kind = objective(Unbalanced(0.3, 0.3, "tv"), M + 5.0, a, b)  # costs bound no potential
    f, g = potentials = np.full(6, -0.1), np.full(8, -0.1)
    low = kind.dual_value(potentials)
    potentials[side][3] = 0.9
    gain = (0.3 + 0.1) * weights(kind)[side][3]
    assert kind.dual_value((f, g)) == pytest.approx(low + gain, rel=1e-12)


def weights(kind):
    return kind.problem.p, kind.problem.q


@pytest.mark.parametrize(
    ("side", "change", "words"),
    [(0, 9.0, "exceed the costs"), (1, 9.0, "exceed the costs"), (0, -9.0, "below minus the"),
     (1, -9.0, "below minus the")],
)  # fmt: skip
def test_other_total_variation_potentials_prove_nothing(side, change, words):
    kind, _, crude = missed(0, (0.3, 0.3), "tv")
    potentials = kind.dual(crude)[0]
    potentials[side][2] += change
    with pytest.raises(CertificateError, match=words):
        kind.dual_value(potentials)


def gained(price, weights, f):
    return weights @ f if price == math.inf else price * (weights @ (1 - np.exp(-f / price)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("prices", PRICES)
def test_the_constant_between_divergence_potentials_is_the_best(seed, prices):
    kind, M, crude = missed(seed, prices, "kl")
    (f, g), bound = kind.dual(crude)
    assert (f[:, None] + g - M).max() <= 1e-14
    assert kind.dual_value((f, g)) == bound
    p, q = weights(kind)
    others = [gained(prices[0], p, f + t) + gained(prices[1], q, g - t) for t in CONSTANTS]
    assert max(others) == pytest.approx(bound, rel=1e-12)
    assert abs(CONSTANTS[np.argmax(others)]) < 1e-9


def test_divergence_potentials_above_the_costs_prove_nothing():
    kind, _, crude = missed(0, (0.3, 0.3), "kl")
    f, g = kind.dual(crude)[0]
    f[2] += 9.0
    with pytest.raises(CertificateError, match="exceed the costs"):
        kind.dual_value((f, g))
