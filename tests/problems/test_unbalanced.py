"""Unbalanced transport, by references and by hand: total variation, Kullback-Leibler; refusals."""

import math
import warnings

import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import xlogy

import epsilot
from epsilot import InvalidProblem
from linear_programs import marginal_rows

METHODS = {"auto": 1e-9, "exact": 1e-9, "restricted_simplex": 1e-9, "sinkhorn": 0.02, "aam": 0.05}


def optimum(M, a, b, prices):
    """Return the value of the linear program: each marginal has a surplus and a deficit."""
    n, m = M.shape
    identity, size = np.eye(n + m), np.abs(M).max() or 1.0  # HiGHS is absolute
    paid = np.repeat([min(price / size, 1e9) for price in prices], [n, m])
    most = np.repeat([0.0 if price == math.inf else np.inf for price in prices], [n, m])
    limits = np.concatenate([np.full(n * m, np.inf), most, most])
    found = linprog(
        np.concatenate([M.ravel() / size, paid, paid]),
        A_eq=np.hstack([marginal_rows(n, m), -identity, identity]),
        b_eq=np.append(a, b),
        bounds=list(zip(np.zeros(limits.size), limits, strict=True)),
    )
    return size * found.fun


def check(result, M, a, b, prices):
    """Check the bracket, the plan and the potentials of a result against the problem."""
    X, (f, g) = result.plan, result.potentials
    size = (np.abs(M).max() + sum(x for x in prices if x < math.inf)) * (a.sum() + b.sum())
    assert X.min() >= 0
    paid = (X * M).sum()
    for price, missed in zip(prices, (X.sum(axis=1) - a, X.sum(axis=0) - b), strict=True):
        if price == math.inf:
            assert np.abs(missed).sum() <= 1e-12 * (a.sum() + b.sum())
        else:
            paid += price * np.abs(missed).sum()
    assert paid == pytest.approx(result.value, abs=1e-12 * size)
    assert (f[:, None] + g - M).max() <= 1e-12 * size
    assert min(f.min() + prices[0], g.min() + prices[1]) >= -1e-12 * size
    bound = np.minimum(f, prices[0]) @ a + np.minimum(g, prices[1]) @ b
    assert bound == pytest.approx(result.lower_bound, abs=1e-11 * size)
    wanted = optimum(M, a, b, prices)
    assert result.lower_bound - 1e-9 * size <= wanted <= result.value + 1e-9 * size
    return wanted, size


def problem(seed, n, m, scale, least, has_ties, ratio, is_empty, prices):
    """Return a cost with ties or none, weights of a ratio, and the prices of missed mass."""
    rng = np.random.default_rng(seed)
    M = rng.random((n, m)) - least
    if has_ties:
        M = np.round(4 * M) / 4
    a, b = rng.random(n), ratio * rng.random(m)
    if is_empty and n > 1:
        a[0] = 0.0
    return scale * M, a, b, tuple(scale * price for price in prices)


PRICES = st.sampled_from([0.15, 0.3, 1.0, 3.0, math.inf])
PROBLEMS = st.builds(
    problem,
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 9),
    m=st.integers(1, 9),
    scale=st.sampled_from([1e-3, 1, 1e4]),
    least=st.sampled_from([0.0, 0.1]),
    has_ties=st.booleans(),
    ratio=st.sampled_from([0.5, 1.0, 2.7]),
    is_empty=st.booleans(),
    prices=st.tuples(PRICES, PRICES).filter(lambda prices: min(prices) < math.inf),
)


@given(PROBLEMS, st.sampled_from(["auto", "restricted_simplex"]))
def test_the_value_is_that_of_the_linear_program(case, method):
    M, a, b, prices = case
    wish = {"rtol": 1e-9, "method": method, "on_limit": "ignore"}
    result = epsilot.solve(M, a, b, unbalanced=prices, unbalanced_type="tv", **wish)
    wanted, size = check(result, M, a, b, prices)
    assert result.value == pytest.approx(wanted, abs=1e-9 * size)


RNG = np.random.default_rng(0)
X, Y = RNG.random((14, 2)), RNG.random((11, 2)) + 0.4
GEOMETRIES = {
    "dense": epsilot.Dense(RNG.random((9, 7))),
    "squared cloud": epsilot.PointCloud(X, Y),
    "Euclidean cloud": epsilot.PointCloud(X, Y, "euclidean"),
    "l1 grid": epsilot.Grid((4, 3), (3, 5), "cityblock"),
    "squared grid": epsilot.Grid((4, 3), (3, 5), "sqeuclidean"),
}


@pytest.mark.parametrize("name", GEOMETRIES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("prices", [(0.2, 0.2), (0.1, 2.0), (math.inf, 0.5)])
def test_every_geometry_and_method_is_certified(name, method, prices):
    geometry = GEOMETRIES[name]
    if method == "exact" and not geometry.is_dense:
        pytest.skip("exact needs a stored cost")
    n, m = geometry.shape
    a, b = np.random.default_rng(1).random(n), 2 * np.random.default_rng(2).random(m)
    wish = {"rtol": METHODS[method], "method": method}
    result = epsilot.solve(geometry, a, b, unbalanced=prices, unbalanced_type="tv", **wish)
    check(result, geometry.block(0, n), a, b, prices)
    assert result.converged


@pytest.mark.parametrize("method", ["sinkhorn", "aam", "pdasmd", "greenkhorn", "auto"])
@pytest.mark.parametrize("seed", range(8))
def test_the_returned_plan_is_the_priced_one_with_negative_costs(method, seed):
    rng = np.random.default_rng(seed)
    M, a, b = rng.normal(size=(3, 4)), rng.random(3), rng.random(4)
    prices = (0.6 * -M.min(), 0.5 * -M.min())
    wish = {"rtol": 0.05, "method": method, "max_iter": 300, "on_limit": "ignore"}
    result = epsilot.solve(M, a, b, unbalanced=prices, unbalanced_type="tv", **wish)
    check(result, M, a, b, prices)
    check_representations(result)


def test_two_detours_on_one_arc_are_both_in_the_plan():
    M, a, b = np.array([[-1.1, 2.2, -2.1]]), np.ones(1), np.full(3, 1 / 3)
    wish = {"method": "sinkhorn", "rtol": 0.02, "max_iter": 3000}
    result = epsilot.solve(M, a, b, unbalanced=2.0, unbalanced_type="tv", **wish)
    check(result, M, a, b, (2.0, 2.0))
    check_representations(result)


def check_representations(result):
    """Check that a plan is the same as an array, as a sparse array and by its marginals."""
    X, plan = result.plan, result.plan_operator
    np.testing.assert_allclose(plan.tosparse().toarray(), X, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(plan.marginals()[0], X.sum(axis=1), rtol=1e-13)
    np.testing.assert_allclose(plan.marginals()[1], X.sum(axis=0), rtol=1e-13)


def test_two_infinite_prices_are_the_balanced_problem():
    rng = np.random.default_rng(6)
    M = rng.random((4, 5))
    free = epsilot.solve(M, unbalanced=math.inf, unbalanced_type="tv", rtol=1e-9)
    assert free.value == epsilot.solve(M, rtol=1e-9).value


def test_an_audit_knows_the_kind():
    rng = np.random.default_rng(6)
    M, a, b = rng.random((9, 7)), rng.random(9), rng.random(7)
    kind = {"unbalanced": 0.3, "unbalanced_type": "tv"}
    result = epsilot.solve(M, a, b, rtol=1e-9, **kind)
    found = epsilot.certify(M, a, b, plan=result.plan, **kind)
    assert found.upper == pytest.approx(result.value)
    assert found.gap <= 2e-4 * result.value
    nothing = epsilot.certify(M, a, b, plan=np.zeros((9, 7)), **kind)
    assert nothing.upper == pytest.approx(0.3 * (a.sum() + b.sum()))


# -- Kullback-Leibler ------------------------------------------------------------------------


def divergence(price, r, a):
    """Return λ KL(r | a), which is infinite where there is mass that a has not."""
    if price == math.inf:
        return 0.0 if np.abs(r - a).sum() <= 1e-12 * a.sum() else math.inf
    assert r[a == 0].sum() == 0
    return price * (xlogy(r, r / np.where(a > 0, a, 1.0)) - r + a).sum()


def gain(price, a, f):
    used, f = a > 0, np.where(a > 0, f, 0.0)
    return a @ f if price == math.inf else -price * (a[used] @ np.expm1(-f[used] / price))


def check_kl(result, M, a, b, prices, reg=0.0):
    """Check value, bound and feasibility of a result by their definitions."""
    X, (f, g) = result.plan, result.potentials
    assert X.min() >= 0
    upper = (X * M).sum() + divergence(prices[0], X.sum(axis=1), a)
    upper += divergence(prices[1], X.sum(axis=0), b) + reg * xlogy(X, X).sum()
    lower = gain(prices[0], a, f) + gain(prices[1], b, g)
    size = (np.abs(M).max() + sum(x for x in prices if x < math.inf)) * (a.sum() + b.sum())
    if reg:
        lower -= reg * np.exp((f[:, None] + g - M) / reg - 1).sum()
    else:
        assert (f[:, None] + g - M).max() <= 1e-12 * np.abs(M).max()
    assert upper == pytest.approx(result.value, abs=1e-11 * size)
    assert lower == pytest.approx(result.lower_bound, abs=1e-11 * size)
    assert result.lower_bound <= result.value + 1e-12 * size


PRICES = [(0.05, 0.05), (0.1, 2.0), (math.inf, 0.5), (5.0, math.inf)]


#: What is asked for, what then runs, the gap with an entropy, and options.
KL_METHODS = [
    ("auto", "unbalanced_sinkhorn", 1e-8, {}),
    ("unbalanced_pdasmd", "unbalanced_pdasmd", 1e-5, {}),
    ("unbalanced_pdasmd", "unbalanced_pdasmd", 1e-8, {"hybrid": "sinkhorn"}),
]


@pytest.mark.parametrize("name", GEOMETRIES)
@pytest.mark.parametrize("prices", PRICES)
@pytest.mark.parametrize("reg", [None, 0.05])
@pytest.mark.parametrize(("method", "runs", "tol", "options"), KL_METHODS)
def test_divergences_are_certified_on_every_geometry(name, prices, reg, method, runs, tol, options):
    geometry = GEOMETRIES[name]
    n, m = geometry.shape
    M, rng = geometry.block(0, n), np.random.default_rng(1)
    a, b = rng.random(n), 2 * rng.random(m)
    a[0] = b[1] = 0.0
    target = {"rtol": 0.01} if reg is None else {"reg": reg, "tol": tol}
    result = epsilot.solve(geometry, a, b, unbalanced=prices, method=method, **target, **options)
    check_kl(result, M, a, b, prices, reg or 0.0)
    assert result.converged
    assert result.method == runs


@pytest.mark.parametrize("method", ["unbalanced_sinkhorn", "unbalanced_pdasmd"])
@pytest.mark.parametrize(("scale", "mass"), [(1e-3, 1.0), (1e4, 1e-3), (1.0, 1e6), (1e-30, 1.0)])
def test_units_of_costs_and_masses_do_not_matter(scale, mass, method):
    rng = np.random.default_rng(6)
    M, a, b = rng.random((8, 9)) - 0.1, rng.random(8), rng.random(9)
    wish = {"rtol": 0.01, "method": method}
    usual = epsilot.solve(M, a, b, unbalanced=0.3, **wish)
    other = epsilot.solve(scale * M, mass * a, mass * b, unbalanced=0.3 * scale, **wish)
    assert other.value == pytest.approx(scale * mass * usual.value, rel=1e-9)
    assert other.n_iter == usual.n_iter


#: Costs and prices at the ends of what is sensible.
ODD = {
    "cheap": (np.random.default_rng(6).random((8, 9)), 1e-3),
    "cheap and far": (np.random.default_rng(6).random((8, 9)) + 0.7, 1e-3),
    "dear": (np.random.default_rng(6).random((8, 9)), 1e6),
    "all negative": (np.random.default_rng(6).random((8, 9)) - 2, 0.5),
    "all equal": (np.full((8, 9), 3.0), 0.5),
    "all zero": (np.zeros((8, 9)), 0.5),
    "a row": (np.random.default_rng(6).random((1, 9)), 0.5),
    "a column": (np.random.default_rng(6).random((8, 1)), 0.5),
}


@pytest.mark.parametrize("method", ["unbalanced_sinkhorn", "unbalanced_pdasmd"])
@pytest.mark.parametrize("name", ODD)
def test_odd_divergences_are_certified(name, method):
    M, price = ODD[name]
    a, b = np.random.default_rng(1).random(M.shape[0]), np.random.default_rng(2).random(M.shape[1])
    result = epsilot.solve(M, a, b, unbalanced=price, rtol=0.01, method=method)
    check_kl(result, M, a, b, (price, price))
    assert result.converged


def test_the_entropic_plan_is_that_of_pot():
    """POT takes reg ΣX off as well, so its costs are higher by reg."""
    rng = np.random.default_rng(6)
    M, a, b, reg = rng.random((8, 9)), rng.random(8), rng.random(9), 0.1
    ours = epsilot.solve(M, a, b, unbalanced=0.5, reg=reg, tol=1e-11).plan
    keywords = {"reg_type": "entropy", "numItermax": 10_000, "stopThr": 1e-15}
    with warnings.catch_warnings(action="ignore"):
        theirs = ot.unbalanced.sinkhorn_unbalanced(a, b, M + reg, reg, 0.5, **keywords)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_mass_falls_as_missing_it_becomes_cheap():
    rng = np.random.default_rng(6)
    M, a, b = rng.random((8, 9)), np.full(8, 0.125), np.full(9, 1 / 9)
    masses = [epsilot.solve(M, a, b, unbalanced=x, rtol=1e-3).plan.sum() for x in (0.05, 0.5, 50)]
    assert masses[0] < masses[1] < masses[2] == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize(("n", "penalty", "rtol"), [(4, 180.7, 7e-6), (30, 5.0, 1e-8)])
def test_ties_and_high_kl_penalties_are_certified_by_an_exact_plan_at_the_end(n, penalty, rtol):
    rng = np.random.default_rng(n)
    M = rng.integers(0, 4, (n, n)).astype(float)
    result = epsilot.solve(M, rng.random(n), rng.random(n), unbalanced=penalty, rtol=rtol)
    assert result.converged


TV = {"unbalanced_type": "tv"}


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"unbalanced": 0.0} | TV, "unbalanced is 0.0; it must be one positive number or two"),
        ({"unbalanced": -1.0} | TV, "unbalanced is -1.0; it must be"),
        ({"unbalanced": math.nan} | TV, "unbalanced is nan; it must be"),
        ({"unbalanced": (1.0, 2.0, 3.0)} | TV, r"unbalanced is \(1.0, 2.0, 3.0\); it must be"),
        ({"unbalanced": "1,x"} | TV, "unbalanced is '1,x'; it must be"),
        (TV, "unbalanced_type is 'tv' without unbalanced"),
        ({"unbalanced": 1.0, "unbalanced_type": "l2"}, "unbalanced_type is 'l2'; it must be"),
        ({"unbalanced": 1.0, "reg": 1e-30} | TV, "reg is 1e-30 for costs of size 1"),
        ({"unbalanced": 1.0, "method": "exact"}, "exact solves other problems; use unbalanced_"),
        ({"method": "unbalanced_sinkhorn"}, "solves other problems only"),
        ({"method": "unbalanced_sinkhorn", "reg": 0.1}, "does not solve"),
        ({"unbalanced": 1.0, "step_share": 0.0}, "step_share is 0.0; it must be"),
        ({"unbalanced": 1.0, "eps": 0.1, "stop": "paper"} | TV, "leave it out with unbalanced"),
    ],
)
def test_what_makes_no_sense_is_refused(keywords, words):
    with pytest.raises(InvalidProblem, match=words):
        epsilot.solve(np.ones((2, 3)), **keywords)


def test_mass_made_at_a_profit_is_refused():
    with pytest.raises(InvalidProblem, match="the optimum is -inf"):
        epsilot.solve(np.array([[-5.0]]), unbalanced=1.0, unbalanced_type="tv")
