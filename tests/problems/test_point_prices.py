"""One marginal penalty per point: references by linear programs and by definitions; refusals."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import epsilot
from epsilot import InvalidProblem
from epsilot.problems.prices import balancing_constant
from linear_programs import marginal_rows

TV = {"unbalanced_type": "tv"}


def optimum(M, a, b, prices):
    """Return the value of the linear program: each marginal has a surplus and a deficit."""
    n, m = M.shape
    paid, identity = np.concatenate(prices), np.eye(n + m)
    most = np.where(np.isinf(paid), 0.0, np.inf)
    paid = np.where(np.isinf(paid), 0.0, paid)
    limits = np.concatenate([np.full(n * m, np.inf), most, most])
    found = linprog(
        np.concatenate([M.ravel(), paid, paid]),
        A_eq=np.hstack([marginal_rows(n, m), -identity, identity]),
        b_eq=np.append(a, b),
        bounds=list(zip(np.zeros(limits.size), limits, strict=True)),
    )
    return found.fun if found.status == 0 else None


def problem(seed, n, m, least, has_ties, ratio, is_empty, spread, kept):
    """Return costs, weights, and prices of which a share keeps the mass of its points."""
    rng = np.random.default_rng(seed)
    M = rng.random((n, m)) - least
    M = np.round(4 * M) / 4 if has_ties else M
    a, b = rng.random(n), ratio * rng.random(m)
    if is_empty and n > 1:
        a[0] = 0.0
    prices = [0.06 + 10 ** rng.uniform(-spread, 0.7, size) for size in (n, m)]
    for price in prices:
        price[rng.random(price.size) < kept] = math.inf
    return M, a, b, prices


PROBLEMS = st.builds(
    problem,
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 8),
    m=st.integers(1, 8),
    least=st.sampled_from([0.0, 0.1]),
    has_ties=st.booleans(),
    ratio=st.sampled_from([0.5, 1.0, 2.7]),
    is_empty=st.booleans(),
    spread=st.sampled_from([0.5, 12.0]),
    kept=st.sampled_from([0.0, 0.0, 0.4]),
)


def solved(M, a, b, prices, **keywords):
    """Return the result, or None where exact masses allow no plan."""
    try:
        return epsilot.solve(M, a, b, unbalanced=tuple(prices), **keywords)
    except InvalidProblem as error:
        if "no plan has these marginals" in str(error) or "totals must be" in str(error):
            return None
        raise


@given(PROBLEMS, st.sampled_from(["auto", "restricted_simplex"]))
def test_total_variation_is_that_of_the_linear_program(case, method):
    M, a, b, prices = case
    result = solved(M, a, b, prices, rtol=1e-9, method=method, **TV)
    wanted = optimum(M, a, b, prices)
    if result is None or wanted is None:
        assert result is None
        assert wanted is None
        return
    size = (np.abs(M).max() + 6) * (a.sum() + b.sum())
    assert result.converged
    assert result.gap >= 0
    assert result.value == pytest.approx(wanted, abs=1e-7 * size)
    X, (f, g) = result.plan, result.potentials
    paid = (X * M).sum()
    for price, missed in zip(prices, (X.sum(axis=1) - a, X.sum(axis=0) - b), strict=True):
        assert np.abs(missed[np.isinf(price)]).sum() <= 1e-12 * size
        free = np.isfinite(price)
        paid += price[free] @ np.abs(missed)[free]
    assert paid == pytest.approx(result.value, abs=1e-12 * size)
    assert (f[:, None] + g - M).max() <= 1e-12
    assert min((f + prices[0]).min(), (g + prices[1]).min()) >= -1e-12


def penalty(reached, wanted, price):
    """Return Σ λ KL(reached | wanted) over the points whose mass is not exact."""
    used = np.isfinite(price) & (wanted > 0)
    r, w, x = reached[used], wanted[used], price[used]
    return (x * (r * np.log(np.where(r > 0, r / w, 1.0)) - r + w)).sum()


def gain(potential, weights, price):
    """Return Σ λ p (1 - exp(-f / λ)), which is <p, f> where mass is exact."""
    used = weights > 0
    f, w, x = potential[used], weights[used], price[used]
    exact = np.isinf(x)
    free = np.where(exact, 1.0, x)
    return (w * np.where(exact, f, -free * np.expm1(np.where(exact, 0.0, -f / free)))).sum()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kept", [0.0, 0.4])
@pytest.mark.parametrize("reg", [None, 0.1])
def test_divergence_bounds_are_those_of_the_definition(seed, kept, reg):
    M, a, b, prices = problem(seed, 5, 6, 0.0, False, 2.0, seed % 2 == 0, 0.5, kept)
    accuracy = {"rtol": 1e-2} if reg is None else {"reg": reg}
    result = solved(M, a, b, prices, **accuracy)
    if result is None:
        return
    X, (f, g) = result.plan, result.potentials
    r, c = X.sum(axis=1), X.sum(axis=0)
    value = (X * M).sum() + penalty(r, a, prices[0]) + penalty(c, b, prices[1])
    bound = gain(f, a, prices[0]) + gain(g, b, prices[1])
    used = np.ix_(a > 0, b > 0)
    if reg is None:
        assert (f[:, None] + g - M)[used].max() <= 1e-12
    else:
        value += reg * (X[X > 0] * np.log(X[X > 0])).sum()
        bound -= reg * np.exp((f[:, None] + g - M)[used] / reg - 1).sum()
    assert value == pytest.approx(result.value, rel=1e-11)
    assert bound == pytest.approx(result.lower_bound, rel=1e-11)
    assert result.converged
    assert result.gap >= 0
    for price, missed in zip(prices, (r - a, c - b), strict=True):
        assert np.abs(missed[np.isinf(price)]).sum() <= 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_entropic_total_variation_bounds_are_those_of_the_definition(seed):
    M, a, b, prices = problem(seed, 5, 6, 0.0, False, 2.0, False, 0.5, 0.0)
    result = epsilot.solve(M, a, b, unbalanced=tuple(prices), reg=0.1, **TV)
    X, (f, g) = result.plan, result.potentials
    missed = np.abs(X.sum(axis=1) - a), np.abs(X.sum(axis=0) - b)
    value = (X * M).sum() + prices[0] @ missed[0] + prices[1] @ missed[1]
    assert value + 0.1 * (X * np.log(X)).sum() == pytest.approx(result.value, rel=1e-11)
    bound = f @ a + g @ b - 0.1 * np.exp((f[:, None] + g - M) / 0.1 - 1).sum()
    assert bound == pytest.approx(result.lower_bound, rel=1e-11)
    assert result.converged


RNG = np.random.default_rng(5)
X, Y = RNG.random((40, 2)), RNG.random((30, 2)) + 0.3
LAM_X, LAM_Y = RNG.random(40) + 0.01, RNG.random(30) + 0.01
COST = ((X[:, None] - Y) ** 2).sum(axis=2)


@pytest.mark.parametrize("divergence", ["tv", "kl"])
def test_every_entry_point_takes_arrays(divergence):
    kind = {"unbalanced": (LAM_X, LAM_Y), "unbalanced_type": divergence, "rtol": 1e-2}
    wanted = epsilot.solve(COST, **kind)
    cloud = epsilot.solve_sample(X, Y, lazy=True, **kind)
    assert cloud.value == pytest.approx(wanted.value, rel=2e-2)
    batch = epsilot.solve_batch(np.stack([COST, 2 * COST]), **kind)
    assert batch.value[0] == wanted.value
    a, b = np.full((2, 40), 1 / 40), np.full((1, 30), 1 / 30)
    pairs = epsilot.pairwise(a, COST, b, **kind)
    assert pairs.value[1] == pytest.approx(wanted.value, rel=2e-2)
    audit = {name: kind[name] for name in ("unbalanced", "unbalanced_type")}
    found = epsilot.certify(COST, plan=wanted.plan, potentials=wanted.potentials, **audit)
    assert found.lower <= wanted.value * (1 + 1e-12)
    assert found.upper >= wanted.lower_bound * (1 - 1e-12)
    assert found.gap <= 2 * wanted.gap + 1e-12
    grids = np.random.default_rng(1).random((3, 4)), np.random.default_rng(2).random((3, 4))
    prices = {"unbalanced": (LAM_X[:12], 0.3), "unbalanced_type": divergence}
    assert epsilot.solve_grid(*grids, metric="sqeuclidean", **prices).converged


def test_equal_entries_are_one_number_and_arrays_change_the_value():
    kind = {"rtol": 1e-6, **TV}
    one = epsilot.solve(COST, unbalanced=(0.2, 0.4), **kind)
    same = epsilot.solve(COST, unbalanced=(np.full(40, 0.2), np.full(30, 0.4)), **kind)
    assert (one.value, one.lower_bound) == (same.value, same.lower_bound)
    mixed = epsilot.solve(COST, unbalanced=(0.2, np.linspace(0.01, 0.4, 30)), **kind)
    assert mixed.value < one.lower_bound


BAD = {
    "negative": ((-LAM_X, 1.0), "unbalanced holds -.* for point 0"),
    "NaN": ((np.where(LAM_X < 0.5, np.nan, LAM_X), 1.0), "unbalanced holds nan for point"),
    "zero": ((0.0 * LAM_X, 1.0), "unbalanced holds 0 for point 0"),
    "too short": ((LAM_X[:3], 1.0), "holds 3 numbers for the 40 sources"),
    "swapped": ((LAM_Y, LAM_X), "holds 30 numbers for the 40 sources"),
    "one array": (LAM_X, "must be one positive number or two"),
    "a matrix": ((COST, 1.0), "must be one positive number or two"),
    "text": ((["x"], 1.0), "unbalanced"),
    "three": ((1.0, 1.0, 1.0), "must be one positive number or two"),
    "none": ((None, 1.0), "must be one positive number or two"),
    "no plan": ((np.append(np.full(39, math.inf), 1.0), math.inf), "no plan has these marginals"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("divergence", ["tv", "kl"])
def test_bad_prices_are_refused_in_one_sentence(name, divergence):
    prices, words = BAD[name]
    a, b = np.full(40, 2.0), np.full(30, 1.0)
    with pytest.raises(InvalidProblem, match=words) as caught:
        epsilot.solve(COST, a, b, unbalanced=prices, unbalanced_type=divergence)
    assert str(caught.value).count("\n") == 0


def test_other_methods_and_divergences_are_refused():
    with pytest.raises(InvalidProblem, match="one penalty per side"):
        epsilot.solve(COST, unbalanced=(LAM_X, 1.0), method="unbalanced_pdasmd")
    with pytest.raises(InvalidProblem, match="without H2 both penalties must be equal"):
        epsilot.pairwise(np.eye(3), 1 - np.eye(3), unbalanced=([1.0, 2.0, 3.0], 1.0))
    equal = np.array([0.1, 0.2, 0.3])
    found = epsilot.pairwise(np.eye(3), 1 - np.eye(3), unbalanced=(equal, equal), **TV)
    assert found.value[0] == pytest.approx(0.3)


def test_a_run_with_other_prices_is_not_continued(tmp_path):
    saved = tmp_path / "run.npz"
    kind = {"unbalanced_type": "kl", "rtol": 1e-2}
    epsilot.solve(
        COST, unbalanced=(LAM_X, 1.0), checkpoint=saved, max_iter=2, on_limit="ignore", **kind
    )
    done = epsilot.solve(COST, unbalanced=(LAM_X, 1.0), resume=saved, **kind)
    assert done.converged
    with pytest.raises(InvalidProblem, match=r"resume|saved|another"):
        epsilot.solve(COST, unbalanced=(2 * LAM_X, 1.0), resume=saved, **kind)


@pytest.mark.parametrize("seed", range(6))
def test_the_balancing_constant_solves_its_equation(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=5, scale=20), rng.normal(size=7, scale=20)
    fall, rise = rng.random(5) * 10.0 ** rng.integers(-3, 3, 5), rng.random(7)
    fall[seed % 5] = 0.0  # that point keeps its mass
    t = balancing_constant(x, fall, y, rise)
    sums = [np.logaddexp.reduce(z) for z in (x - t * fall, y + t * rise)]
    assert sums[0] == pytest.approx(sums[1], abs=1e-9)


def test_gradients_are_those_of_the_penalties():
    kind = {"unbalanced": (LAM_X, LAM_Y), "reg": 0.1, "tol": 1e-9}
    a, b = np.random.default_rng(3).random(40) + 0.1, np.random.default_rng(4).random(30) + 0.1
    da, _, _ = epsilot.solve(COST, a, b, **kind).gradients()
    step = np.eye(40)[7] * 1e-3
    ends = [epsilot.solve(COST, a + sign * step, b, **kind).value for sign in (1, -1)]
    assert (ends[0] - ends[1]) / 2e-3 == pytest.approx(da[7], rel=1e-4)


def test_exact_points_without_any_other_mass_need_no_constant():
    assert balancing_constant(np.zeros(2), np.zeros(2), np.zeros(1), np.zeros(1)) == 0.0
    prices = np.array([0.1, math.inf]), np.array([math.inf])
    result = epsilot.solve([[2.0], [1.0]], [0.0, 0.8], [0.8], reg=5.0, unbalanced=prices)
    assert result.converged
    np.testing.assert_allclose(result.plan, [[0.0], [0.8]])


@pytest.mark.parametrize("seed", [1, 5, 15, 22])
@pytest.mark.parametrize("reg", [1e3, 1e6])
def test_exact_points_keep_their_mass_beside_far_larger_ones(seed, reg):
    """An entropy makes the mass of points without an exact marginal grow, and its round-off."""
    rng = np.random.default_rng(seed)
    M = rng.integers(0, 4, (8, 7)) - 2.0
    prices = 10 ** rng.uniform(-0.7, 2, 8), 10 ** rng.uniform(-0.7, 1, 7)
    for price in prices:
        price[::3] = math.inf
    a, b = (1e-200 * rng.dirichlet(np.ones(n)) for n in (8, 7))
    result = epsilot.solve(M, a, b, unbalanced=prices, reg=reg, max_iter=30, on_limit="ignore")
    np.testing.assert_allclose(result.plan.sum(axis=1)[::3], a[::3], rtol=1e-12)
    np.testing.assert_allclose(result.plan.sum(axis=0)[::3], b[::3], rtol=1e-12)


def test_exact_points_that_float64_cannot_keep_beside_the_best_mass_get_a_crude_plan():
    M = 5 * np.array([[0.2, 0.9, 0.1], [0.5, 0.3, 0.8], [0.7, 0.6, 0.4]])
    prices = np.array([0.24, math.inf, math.inf]), np.array([math.inf, math.inf, 1e5])
    w = np.full(3, 1.3e-258)
    result = epsilot.solve(
        M, w, w, unbalanced=prices, reg=586.0, max_iter=30, on_limit="ignore", **TV
    )
    np.testing.assert_allclose(result.plan.sum(axis=1)[1:], w[1:], rtol=1e-12)
    np.testing.assert_allclose(result.plan.sum(axis=0)[:2], w[:2], rtol=1e-12)
