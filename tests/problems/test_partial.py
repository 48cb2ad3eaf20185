"""Partial transport: every method and geometry against a linear program, and what is refused."""

import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import epsilot
from epsilot import InvalidProblem
from epsilot.problems.partial import quantile
from linear_programs import marginal_rows

#: What carries any cost; "auto" chooses among simplexes.
METHODS = {"auto": 1e-9, "exact": 1e-9, "restricted_simplex": 1e-9, "sinkhorn": 0.02, "aam": 0.05}


def optimum(M, a, b, mass):
    """Return the value of the linear program, solved with costs of size 1: HiGHS is absolute."""
    size = np.abs(M).max() or 1.0
    found = linprog(
        M.ravel() / size,
        A_ub=marginal_rows(*M.shape),
        b_ub=np.append(a, b),
        A_eq=np.ones((1, M.size)),
        b_eq=[mass],
    )
    return size * found.fun


def check(result, M, a, b, mass):
    """Check the bracket, the plan and the potentials of a result against the problem."""
    X, (f, g) = result.plan, result.potentials
    size, total = np.abs(M).max() * mass, 1e-12 * max(a.sum(), b.sum())
    assert X.min() >= 0
    assert (X.sum(axis=1) - a).max() <= total
    assert (X.sum(axis=0) - b).max() <= total
    assert X.sum() == pytest.approx(mass, rel=1e-12)
    assert (X * M).sum() == pytest.approx(result.value, abs=1e-12 * size)
    assert max(f.max(), g.max()) <= 0
    mu = (M - f[:, None] - g).min()
    assert f @ a + g @ b + mass * mu == pytest.approx(result.lower_bound, abs=1e-11 * size)
    wanted = optimum(M, a, b, mass)
    assert result.lower_bound - 1e-9 * size <= wanted <= result.value + 1e-9 * size
    return wanted


def problem(seed, n, m, scale, has_ties, ratio, is_empty, share):
    """Return a cost with ties or none, weights of a ratio, and a share of the mass."""
    rng = np.random.default_rng(seed)
    M = scale * rng.normal(size=(n, m))
    if has_ties:
        M = np.round(M / np.abs(M).max() * 2) + 0.0
    a, b = rng.random(n), ratio * rng.random(m)
    if is_empty and n > 1:
        a[0] = 0.0
    return M, a, b, share * min(a.sum(), b.sum())


PROBLEMS = st.builds(
    problem,
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 9),
    m=st.integers(1, 9),
    scale=st.sampled_from([1e-3, 1.0, 1e4]),
    has_ties=st.booleans(),
    ratio=st.sampled_from([0.5, 1.0, 2.7]),
    is_empty=st.booleans(),
    share=st.sampled_from([0.01, 0.5, 0.99, 1.0]),
)


@given(PROBLEMS, st.sampled_from(["auto", "restricted_simplex"]))
def test_the_value_is_that_of_the_linear_program(case, method):
    M, a, b, mass = case
    result = epsilot.solve(M, a, b, mass=mass, rtol=1e-9, method=method)
    wanted = check(result, M, a, b, mass)
    assert result.converged
    assert result.value == pytest.approx(wanted, rel=1e-8, abs=1e-8 * np.abs(M).max() * mass)


RNG = np.random.default_rng(0)
X, Y = RNG.random((14, 2)), RNG.random((11, 2)) + 0.4
A, B = RNG.random((4, 3)), RNG.random((3, 5))
RANDOM, P, Q = RNG.random((9, 7)), RNG.random(9), RNG.random(7)
GEOMETRIES = {
    "dense": (epsilot.Dense(RANDOM), P, Q),
    "squared cloud": (epsilot.PointCloud(X, Y), RNG.random(14), RNG.random(11)),
    "Euclidean cloud": (epsilot.PointCloud(X, Y, "euclidean"), RNG.random(14), RNG.random(11)),
    "l1 grid": (epsilot.Grid((4, 3), (3, 5), "cityblock"), A.ravel(), B.ravel()),
    "squared grid": (epsilot.Grid((4, 3), (3, 5), "sqeuclidean"), A.ravel(), B.ravel()),
}


@pytest.mark.parametrize("name", GEOMETRIES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("share", [0.8, 1.0])
def test_every_geometry_and_method_is_certified(name, method, share):
    geometry, a, b = GEOMETRIES[name]
    if method == "exact" and not geometry.is_dense:
        pytest.skip("exact needs a stored cost")
    mass, rtol = share * min(a.sum(), b.sum()), METHODS[method]
    result = epsilot.solve(geometry, a, b, mass=mass, rtol=rtol, method=method)
    check(result, geometry.block(0, geometry.shape[0]), a, b, mass)
    assert result.converged


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mass", [1e-3, 1e-9, 1e-20, 1e-100, 1e-240])
@pytest.mark.parametrize("has_small_weights", [False, True])
def test_a_mass_far_below_the_weights_is_solved_to_its_own_accuracy(
    method, mass, has_small_weights
):
    rng = np.random.default_rng(5)
    M, a, b = rng.random((5, 6)), rng.random(5), rng.random(6)
    if has_small_weights:
        a[:3] *= mass
        b[:4] *= mass
    rtol = max(METHODS[method], 1e-9)
    result = epsilot.solve(M, a, b, mass=mass, rtol=rtol, method=method, on_limit="raise")
    assert 0 <= result.gap <= rtol * result.value
    wanted = mass * optimum(M, np.minimum(a / mass, 1), np.minimum(b / mass, 1), 1.0)
    assert result.lower_bound <= wanted * (1 + 1e-9)
    assert wanted <= result.value * (1 + 1e-9)
    assert result.plan.sum() == pytest.approx(mass, rel=1e-12)
    assert (result.plan.sum(axis=1) <= a + 1e-12 * mass).all()
    assert (result.plan * M).sum() == pytest.approx(result.value, rel=1e-12)
    f, g = result.potentials
    mu = (M - f[:, None] - g).min()
    assert f @ a + g @ b + mass * mu == pytest.approx(result.lower_bound, rel=1e-11)
    assert result.mass_price == pytest.approx(mu, rel=1e-9)


@pytest.mark.parametrize("method", [*METHODS, "hybrid_primal_dual", "pdasmd", "apdrcd"])
@pytest.mark.parametrize("cost", [0.0, 1.0])
def test_any_plan_meets_an_eps_far_above_the_costs(method, cost):
    mass = 3e-20
    result = epsilot.solve([[cost]], [8e-20], [8e-20], mass=mass, eps=1e215, method=method)
    assert result.converged
    assert result.value == pytest.approx(cost * mass)


def test_the_entropic_problem_of_a_tiny_mass_is_solved_to_its_own_accuracy():
    M = np.random.default_rng(0).random((4, 4))
    for mass in (1e-3, 1e-12, 1e-20, 1e-100):
        result = epsilot.solve(M, mass=mass, reg=0.1)
        assert result.converged
        assert result.target == pytest.approx(1e-6 * M.max() * mass)
        # Weights far above the mass bind nowhere: the optimum is a Gibbs measure.
        wanted = 0.1 * mass * (np.log(mass) - np.log(np.exp(-M / 0.1).sum()))
        assert result.value == pytest.approx(wanted, abs=1.1 * result.target)


def test_equal_totals_moved_whole_are_the_balanced_problem():
    a, b = P / P.sum(), Q / Q.sum()
    partial = epsilot.solve(RANDOM, a, b, mass=1.0, rtol=1e-9)
    assert partial.value == pytest.approx(epsilot.exact(RANDOM, a, b).value, rel=1e-9)


def test_all_negative_costs_do_not_move_more():
    """POT's penalty, twice the largest cost, is a reward here, and twice the mass is moved."""
    M, half = np.array([[-1.0, -2.0], [-3.0, -1.0]]), np.full(2, 0.5)
    assert epsilot.solve(M, half, half, mass=0.5).value == pytest.approx(-1.5)
    theirs = ot.partial.partial_wasserstein(half, half, M, m=0.5)
    assert theirs.sum() == pytest.approx(1.0)  # what we are not to do


def test_an_audit_knows_the_kind():
    a, b = np.full(9, 1.0), np.full(7, 1.0)
    result = epsilot.solve(RANDOM, a, b, mass=3.0, rtol=1e-9)
    found = epsilot.certify(RANDOM, a, b, plan=result.plan, mass=3.0)
    assert found.is_feasible
    assert found.upper == pytest.approx(result.value)
    assert found.gap <= 2e-4 * result.value
    worse = epsilot.certify(RANDOM, a, b, plan=result.plan * 2, mass=3.0)
    assert not worse.is_feasible


def test_a_run_resumes_to_the_same_bits(tmp_path):
    file = str(tmp_path / "run.npz")
    wish = {"mass": 2.0, "rtol": 1e-3, "method": "sinkhorn"}
    whole = epsilot.solve(RANDOM, P, Q, **wish)
    epsilot.solve(RANDOM, P, Q, **wish, max_iter=8, checkpoint=file, on_limit="ignore")
    again = epsilot.solve(RANDOM, P, Q, **wish, resume=file)
    assert (again.value, again.lower_bound) == (whole.value, whole.lower_bound)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"mass": 0.0}, "mass is 0.0; it must be a positive finite number"),
        ({"mass": -1.0}, "mass is -1.0; it must be"),
        ({"mass": np.nan}, "mass is nan; it must be"),
        ({"mass": "much"}, "mass is 'much'; it must be"),
        ({"mass": 5e-324}, "mass is 4.94e-324; it must be at least 1e-304"),
        ({"mass": 1e-300}, "float64 takes shares down to 1e-250"),
        ({"mass": 1e-300, "reg": 0.1}, "float64 takes shares down to 1e-250"),
        ({"mass": 1.5}, r"mass is 1.5, a sums to 1 and b to 1; no more can be moved"),
        ({"mass": 0.5, "reg": 0.0}, "reg is 0"),
        ({"mass": 0.5, "eps": 0.1, "stop": "paper"}, "leave it out with mass"),
        ({"mass": 0.5, "unbalanced": 1.0}, "mass and unbalanced were given"),
        ({"mass": 0.5, "method": "grid_flow"}, "grid_flow cannot solve"),
    ],
)
def test_what_makes_no_sense_is_refused(keywords, words):
    with pytest.raises(InvalidProblem, match=words):
        epsilot.solve(RANDOM, **keywords)


def test_a_quantile_is_the_best_price_of_mass():
    rng = np.random.default_rng(5)
    values, weights = rng.normal(size=30), rng.random(30)
    for share in rng.random(20) * weights.sum():
        best = quantile(values, weights, share)

        def bound(µ, share=share):
            return weights @ np.minimum(values - µ, 0) + share * µ

        assert max(map(bound, values)) == pytest.approx(bound(best))
