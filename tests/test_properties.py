"""What holds for every problem, not only for the rows of the table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import epsilot
from sample_problems import solve_exactly

SIZES = st.integers(1, 7)


@st.composite
def weights(draw, size):
    """Draw masses of total 1, among them zeros and masses of very different size."""
    exponents = draw(arrays(float, size, elements=st.floats(-9, 0)))
    is_empty = draw(arrays(bool, size))
    mass = np.where(is_empty, 0.0, 10.0**exponents)
    mass[draw(st.integers(0, size - 1))] = 1.0
    return mass / mass.sum()


@st.composite
def instances(draw):
    n, m = draw(SIZES), draw(SIZES)
    elements = st.integers(-1000, 1000).map(lambda k: k / 1000)
    scale = draw(st.sampled_from([1.0, 1e-6, 1e6]))
    M = scale * draw(arrays(float, (n, m), elements=elements))
    return M, draw(weights(n)), draw(weights(m))


@st.composite
def claims(draw):
    """Draw a problem with a plan and potentials that have nothing to do with it."""
    M, a, b = draw(instances())
    n, m = M.shape
    plan = draw(arrays(float, (n, m), elements=st.floats(0, 2, allow_subnormal=False)))
    far = st.floats(-1e3, 1e3, allow_subnormal=False)
    f, g = draw(arrays(float, n, elements=far)), draw(arrays(float, m, elements=far))
    return M, a, b, plan, (f, g)


@given(claims())
def test_certificate_brackets_the_optimum_whatever_is_claimed(claim):
    M, a, b, plan, potentials = claim
    exact = solve_exactly(M, a, b)
    round_off = 1e-9 * (np.abs(M).max() + 1e-3 * np.abs(potentials[0]).max())
    for parts in [{"plan": plan}, {"potentials": potentials}]:
        certificate = epsilot.certify(M, a, b, **parts)
        assert certificate.lower <= exact + round_off
        assert exact - round_off <= certificate.upper
    both = epsilot.certify(M, a, b, plan=plan, potentials=potentials)
    assert both.lower <= exact + round_off
    assert exact - round_off <= both.upper
    assert both.gap == both.upper - both.lower


@given(claims())
def test_rounding_is_feasible_and_moves_little(claim):
    _, a, b, X, _ = claim
    rounded = epsilot.round_plan(X, a, b)
    violation = np.abs(X.sum(axis=1) - a).sum() + np.abs(X.sum(axis=0) - b).sum()
    assert rounded.min() >= 0
    assert np.abs(rounded.sum(axis=1) - a).sum() <= 1e-12
    assert np.abs(rounded.sum(axis=0) - b).sum() <= 1e-12
    assert np.abs(rounded - X).sum() <= 2 * violation + 1e-12


@given(instances())
def test_rounding_keeps_a_feasible_plan(instance):
    _, a, b = instance
    X = np.outer(a, b)
    np.testing.assert_allclose(epsilot.round_plan(X, a, b), X, rtol=0, atol=1e-15)


@given(instances(), st.sampled_from(["sinkhorn", "exact"]))
def test_solve_brackets_the_optimum(instance, method):
    M, a, b = instance
    eps = 0.1 * float(np.ptp(M)) + 1e-9 * float(np.abs(M).max()) or 1e-9
    result = epsilot.solve(M, a, b, eps=eps, method=method)
    exact, round_off = solve_exactly(M, a, b), 1e-9 * np.abs(M).max()
    assert result.gap <= eps
    assert result.lower_bound - round_off <= exact <= result.value + round_off
    assert np.abs(result.plan.sum(axis=1) - a).sum() <= 1e-12
    assert np.abs(result.plan.sum(axis=0) - b).sum() <= 1e-12


@given(instances(), st.sampled_from([2.0**-20, 0.5, 2.0**20]))
def test_result_follows_the_scale_of_the_cost(instance, t):
    M, a, b = instance
    eps = 0.1 * float(np.ptp(M)) + 1e-9 * float(np.abs(M).max()) or 1e-9
    plain = epsilot.solve(M, a, b, eps=eps, method="sinkhorn")
    scaled = epsilot.solve(t * M, a, b, eps=t * eps, method="sinkhorn")
    assert scaled.n_iter == plain.n_iter
    np.testing.assert_allclose(scaled.plan, plain.plan, rtol=0, atol=1e-9)
    assert scaled.value == pytest.approx(t * plain.value, rel=1e-9, abs=1e-9 * t * eps)


@st.composite
def permuted(draw):
    M, a, b = draw(instances())
    rows, cols = (draw(st.permutations(range(x.size))) for x in (a, b))
    return M, a, b, rows, cols


@given(permuted())
def test_result_follows_permutations(case):
    M, a, b, rows, cols = case
    eps = 0.1 * float(np.ptp(M)) + 1e-9 * float(np.abs(M).max()) or 1e-9
    plain = epsilot.solve(M, a, b, eps=eps, method="sinkhorn")
    moved = epsilot.solve(M[np.ix_(rows, cols)], a[rows], b[cols], eps=eps, method="sinkhorn")
    np.testing.assert_allclose(moved.plan, plain.plan[np.ix_(rows, cols)], rtol=0, atol=1e-9)
