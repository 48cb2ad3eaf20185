"""Prices far above and far below the costs: sound bounds, or one sentence that refuses them."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.optimize import linprog

import epsilot
from epsilot import InvalidProblem
from epsilot.kernels.small import solve_one
from linear_programs import marginal_rows

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


def exact_dual(M, a, b, price):
    """Return the KL dual of the balanced problem's potentials, by another solver, in 60 digits.

    It is a lower bound whatever the potentials are; far above the costs it is the optimum, to the
    accuracy of the other solver.
    """
    n, m = M.shape
    rows = marginal_rows(n, m)
    found = linprog(M.ravel(), A_eq=rows, b_eq=np.append(a, b * (a.sum() / b.sum())))
    with localcontext() as context:
        context.prec = 60
        costs = [[Decimal(float(x)) for x in row] for row in M]
        weights = [[Decimal(float(x)) for x in w] for w in (a, b)]
        f = [Decimal(float(x)) for x in found.eqlin.marginals[:n]]
        g = [min(costs[i][j] - f[i] for i in range(n)) for j in range(m)]
        f = [min(costs[i][j] - g[j] for j in range(m)) for i in range(n)]
        of_f, of_g = (
            sum(w * (-x / price).exp() for w, x in zip(*side, strict=True))
            for side in zip(weights, (f, g), strict=True)
        )
        # The best constant between f and g makes both masses their geometric mean.
        return float(price * (sum(map(sum, weights)) - 2 * (of_f * of_g).sqrt()))


@pytest.mark.parametrize("price", [1e8, 1e12, 1e13])
@pytest.mark.parametrize("first_seed", range(0, 80, 20))
def test_no_value_of_a_large_divergence_price_is_below_the_optimum(price, first_seed):
    for seed in range(first_seed, first_seed + 20):
        M, a, b = drawn(seed)
        result = epsilot.solve(M, a, b, unbalanced=price)
        optimum = exact_dual(M, a, b, Decimal(price))
        value = exact_value(result, M, a, b, (price, price), kl)
        assert result.converged
        assert 0 <= result.gap <= 0.01 * result.value
        assert min(result.value, value) >= optimum - 1e-15
        assert result.lower_bound <= value
        assert result.value == pytest.approx(value, rel=1e-9)
        assert optimum >= 0.99 * value


@pytest.mark.parametrize("price", [1e8, 1e10, 1e12])
def test_no_bound_of_a_large_total_variation_price_is_wrong(price):
    for seed in range(60):
        M, a, b = drawn(seed)
        result = epsilot.solve(M, a, b, unbalanced=price, unbalanced_type="tv")
        assert result.converged
        # Totals that differ by their rounding count as equal.
        balanced = epsilot.exact(M, a, b * (a.sum() / b.sum()))
        assert result.lower_bound <= result.value
        assert result.lower_bound <= balanced.value
        assert result.value >= balanced.lower_bound


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


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("price", [1e15, 1e30, 1e290])
@pytest.mark.parametrize("sides", [(1, 1), (1, 3), (math.inf, 1), (1, math.inf)])
def test_any_total_variation_price_is_certified_where_mass_is_missed_anyway(seed, price, sides):
    M, a, b = drawn(seed)
    prices = (price * sides[0], price * sides[1])
    result = epsilot.solve(M, a, 3 * b, unbalanced=prices, unbalanced_type="tv")
    assert result.converged
    assert result.gap >= 0
    value = exact_value(result, M, a, 3 * b, prices, tv)
    assert result.value == pytest.approx(value, rel=1e-13)
    assert result.value == pytest.approx(2 * min(prices), rel=1e-9)


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
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.6])
    assert solve_one(C, p, q, arcs, flow, f, g) == 0


def test_prices_that_overflow_do_not_reach_the_compiled_simplex():
    M = np.array([[3e-100], [1e-100], [2e-100]])
    with pytest.raises(InvalidProblem, match="unbalanced is"):
        epsilot.solve(M, [0.2, 0.3, 0.5], [1.0], unbalanced=1.7e308, unbalanced_type="tv")


def test_free_transport_with_two_prices_is_certified_to_their_rounding():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        a, b = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(5))
        wish = {"unbalanced": (8.4, 0.0016), "unbalanced_type": "tv", "rtol": 1e-9}
        assert epsilot.solve(np.zeros((6, 5)), a, b, **wish).converged


#: What asks for each kind.
KINDS = {
    "balanced": {},
    "partial": {"mass": 0.5},
    "kl": {"unbalanced": 1.0},
    "tv": {"unbalanced": 1.0, "unbalanced_type": "tv"},
}


@pytest.mark.parametrize("reg", [1e8, 1e20])
@pytest.mark.parametrize("kind", KINDS)
def test_the_default_accuracy_is_accepted_for_any_regularisation(kind, reg):
    M = np.random.default_rng(0).random((5, 6))
    assert epsilot.solve(M, reg=reg, **KINDS[kind]).converged


@pytest.mark.parametrize("mass", [1e-280, 1e-150, 1e-60, 1e60, 1e107, 1e150])
@pytest.mark.parametrize("prices", [1.0, (0.01, math.inf)])
@pytest.mark.parametrize("divergence", ["kl", "tv"])
def test_the_default_accuracy_with_an_entropy_is_reached_for_any_mass(mass, prices, divergence):
    M, a, b = drawn(11)
    wish = {"unbalanced": prices, "unbalanced_type": divergence, "reg": 4.0}
    result = epsilot.solve(M, mass * a, mass * b, **wish)
    assert result.converged
    assert 0 <= result.gap <= 1e-6 * max(abs(result.value), 4 * mass)


@pytest.mark.parametrize("reg", [None, 1.1])
@pytest.mark.parametrize("divergence", ["kl", "tv"])
def test_a_side_that_vanishes_beside_the_other_is_refused(divergence, reg):
    M, a, b = np.ones((9, 14)), np.full(9, 5e-324), np.full(14, 1e13)
    with pytest.raises(InvalidProblem, match=r"a sums to 4\.45e-323 and b to 1\.4e\+14"):
        epsilot.solve(M, a, b, unbalanced=0.01, unbalanced_type=divergence, reg=reg)


def test_the_price_of_the_larger_side_is_reached_in_few_sweeps():
    M, a, b = drawn(12)
    wish = {"unbalanced": 6309.0, "unbalanced_type": "tv", "reg": 0.01}
    result = epsilot.solve(M, a, 3 * b, **wish)
    assert result.converged
    assert result.n_iter < 1000
    assert result.value == pytest.approx(2 * 6309.0, rel=1e-3)


def test_a_row_without_mass_does_not_keep_potentials_from_their_price():
    M = [[0.3, 20.6], [20.0, 24.8]]
    wish = {"unbalanced": 1.6e4, "unbalanced_type": "tv", "reg": 0.8}
    result = epsilot.solve(M, [0.0, 0.34], [0.78, 0.22], **wish)
    assert result.converged
    assert result.n_iter < 1000


@pytest.mark.parametrize("divergence", ["kl", "tv"])
def test_negative_costs_that_an_entropy_keeps_within_range_are_solved(divergence):
    wish = {"unbalanced": 1e-4, "unbalanced_type": divergence, "reg": 0.85}
    assert epsilot.solve(np.full((4, 5), -0.5), **wish).converged


@pytest.mark.parametrize("divergence", ["kl", "tv"])
def test_negative_costs_that_make_masses_overflow_are_refused(divergence):
    wish = {"unbalanced": 1e-8, "unbalanced_type": divergence, "reg": 4e-7}
    with pytest.raises(InvalidProblem, match="the optimal mass is beyond the range of float64"):
        epsilot.solve([[-6e-4], [6e-4]], **wish)


def test_negative_costs_whose_value_overflows_are_refused():
    with pytest.raises(InvalidProblem, match="the optimal mass is beyond the range of float64"):
        epsilot.solve([[-6e287, 6e287]], unbalanced=1.6e285)


@pytest.mark.parametrize("kind", KINDS)
def test_entropies_beyond_the_range_of_floats_are_refused(kind):
    weights = np.full(3, 2e299)
    wish = {**KINDS[kind], "reg": 1e11}
    if "mass" in wish:
        wish["mass"] = 5e299
    with pytest.raises(InvalidProblem, match=r"reg is 1e\+11 and the weights sum to .*e\+"):
        epsilot.solve(np.ones((3, 3)) - np.eye(3), weights, weights, **wish)


@pytest.mark.parametrize("divergence", ["kl", "tv"])
def test_prices_out_of_proportion_to_a_regularisation_of_free_transport_are_refused(divergence):
    wish = {"unbalanced": 1e223, "unbalanced_type": divergence, "reg": 0.01}
    with pytest.raises(InvalidProblem, match="within a factor of 1e\\+13 of each other"):
        epsilot.solve(np.zeros((3, 1)), [0.3, 0.3, 0.4], [0.36], **wish)


def test_a_plan_whose_exponents_have_no_digits_left_is_replaced():
    M = 1e-178 * np.random.default_rng(0).random((2, 6))
    b = [3.4, 1.7, 0.15, 4.2, 0.24, 3.8]
    wish = {"unbalanced": 1.7e-175, "reg": 2.3e-195, "on_limit": "ignore"}
    result = epsilot.solve(M, [2.2e52, 2.1e52], b, **wish, max_iter=20)
    assert math.isfinite(result.gap)
    assert result.gap >= 0


def test_a_regularisation_is_measured_by_negative_costs_too():
    M = -1e55 * np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    assert epsilot.solve(M, unbalanced=1e57, reg=6e54).converged


@pytest.mark.parametrize("divergence", ["kl", "tv"])
def test_potentials_whose_exponentials_overflow_prove_a_finite_bound(divergence):
    M = 500 * np.abs(np.subtract.outer(np.arange(2.0), np.arange(6.0)))
    a, b = [2e-9, 1.6e-9], [9.8e-10, 3.3e-10, 9.8e-10, 0.0, 6.6e-10, 6.6e-10]
    wish = {"unbalanced": 2e5, "unbalanced_type": divergence, "reg": 8e-14, "tol": 1e-4}
    result = epsilot.solve(M, a, b, **wish, max_iter=47, on_limit="ignore")
    assert math.isfinite(result.lower_bound)
    assert result.gap >= 0


def test_constants_far_above_the_potentials_leave_them_below_the_costs():
    M = [[90.1, 25.5, 15938.6], [150.1, 258.4, 153.6], [107.5, 142620.6, 46.8]]
    wish = {"method": "unbalanced_sinkhorn", "max_iter": 1, "on_limit": "ignore"}
    for seed in range(40):
        a, b = np.random.default_rng(seed).dirichlet(np.ones(3), 2)
        result = epsilot.solve(M, a, b, unbalanced=(2e11, 3.8e6), **wish)
        f, g = map(np.longdouble, result.potentials)
        assert (f[:, None] + g <= np.longdouble(M)).all()


def test_an_accuracy_beyond_all_numbers_is_accepted():
    M = 1e-110 * np.random.default_rng(0).random((4, 4))
    assert epsilot.solve(M, eps=1e275).converged
    assert epsilot.solve(M, unbalanced=1e-110, eps=1e275).converged


def test_an_accuracy_below_all_numbers_is_refused():
    with pytest.raises(InvalidProblem, match=r"eps is .* float64 arithmetic can certify about"):
        epsilot.solve(np.zeros((7, 3)), 1e12 * np.ones(7), mass=0.4, eps=1.6e-321)


def test_zero_costs_with_a_price_near_the_largest_float_are_solved():
    result = epsilot.solve(
        np.zeros((3, 1)),
        [0.0056033, 0.34400999, 0.65038671],
        [1.0],
        unbalanced=(2.5692420288252204e274, math.inf),
        unbalanced_type="tv",
        rtol=5.18e281,
        method="hybrid_primal_dual",
        max_iter=4,
        on_limit="ignore",
    )
    assert -math.inf < result.lower_bound <= 0 <= result.value < math.inf  # the optimum is 0


def test_foreign_potentials_of_any_size_have_a_bound_beside_a_tiny_price():
    M = [[0.015174766, -0.0279091949], [0.0872816346, -0.0337544825], [-0.015174766, 963.920296]]
    a, b = [0.329896469, 2.84873175e-11, 8.44090376e-05], [0.16499044, 0.16499044]
    potentials = [5.5e80, -7.0e80, 1.6e80], [-2.3e79, -2.0e80]
    kind = {"unbalanced": (1.8105782361141394e-09, 0.9676441137720111), "unbalanced_type": "kl"}
    found = epsilot.certify(M, a, b, potentials=potentials, **kind)
    best = epsilot.solve(M, a, b, on_limit="ignore", **kind)
    assert found.lower <= best.value


def test_plans_beyond_the_range_of_float64_are_replaced():
    # Found by the campaign: the value of the first plan was not a number.
    M = np.array([[0.48524558], [0.50506255], [0.56284043], [0.47252546], [0.66581657]])
    a = [4.46627266e186, 1.28164314e185, 1.23795832e186, 4.41550849e185, 2.22379592e186]
    found = epsilot.solve(
        M, a, [8.49774206e186], reg=2.885548761255013e-14, on_limit="ignore",
        unbalanced=(0.0002322148185393855, 133.59087414885457),
    )  # fmt: skip
    assert -math.inf < found.lower_bound <= found.value < math.inf
