"""What docs/errata.md says of the papers, shown: each counter-example, each corrected constant."""

import ast
import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import epsilot
from epsilot import theory
from epsilot.files.images import grid_cost, synthetic_pair
from epsilot.finite_sum import SeparableQuadratic, algorithm, minimize
from epsilot.problems.problem import make_problem
from epsilot.solvers.base import published_parameters
from sample_problems import random

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| ([A-Z]\d+) \| (.*) \|$", PAGE, re.MULTILINE))


def target(eps=0.1, side=6):
    A, B = synthetic_pair(side, 0)
    problem = make_problem(grid_cost((side, side)), A.ravel(), B.ravel())
    return problem, *published_parameters(problem, eps)


# -- the paper itself -------------------------------------------------------------------------


def test_e1_the_first_line_of_the_semi_dual_has_no_minimum(rng):
    C, p, q = random(5, 5)
    eta, lam = 0.2, rng.normal(size=5)

    def lse(lam):
        return np.log(np.exp((lam - C) / eta).sum(axis=1))

    def first(lam):
        return eta * lse(lam).sum() - q @ lam

    def second(lam):
        return eta * p @ lse(lam) - q @ lam

    assert first(lam - 100) == pytest.approx(first(lam) - 100 * 4)  # falls for ever
    assert second(lam - 100) == pytest.approx(second(lam))


@pytest.mark.parametrize("n_outer", [1, 8, 50])
def test_e3_the_weights_sum_to_s_times_s_plus_seven_over_four(n_outer):
    total = sum((s + 4) / 2 for s in range(n_outer))
    assert total == theory.weight_total(n_outer) != n_outer * (2 * n_outer + 3) / 4
    assert (total >= n_outer**2 / 2) == (n_outer <= 7)  # which the printed constant needs


def test_e4_the_proof_averages_another_sequence_than_the_algorithm():
    dual = SeparableQuadratic(np.array([[1.0, 2.0, -1.0]]), np.ones(1))
    # One outer loop of one step: v is the start, whatever is drawn, and y lies beyond it.
    x = minimize(dual, inner_loops=1, n_outer=1).x
    mu, L_bar = dual.gradient(np.zeros(1)), dual.smoothness("l2").mean()
    np.testing.assert_allclose(x, dual.primal(-mu / (9 * L_bar)), atol=1e-15)
    assert np.abs(x - dual.primal(np.zeros(1))).max() > 1e-3


def test_e6_rounding_does_not_commute_with_expectation():
    C, p, q = np.array([[0.0, 0, 1], [1, 0, 0]]), np.full(2, 1 / 2), np.full(3, 1 / 3)
    best = np.array([[1 / 3, 1 / 6, 0], [0, 1 / 6, 1 / 3]])  # of cost 0
    change = 0.1 * np.array([[1.0, -1, 0], [0, 1, -1]])  # whose rows sum to 0
    costs = [(C * epsilot.round_plan(X, p, q)).sum() for X in (best + change, best - change)]
    assert np.mean(costs) == pytest.approx(0.1)


def test_e7_a_mean_of_vectors_need_not_shrink_in_l1():
    units = [sign * e for e in np.eye(8) for sign in (1, -1)]
    squares = [np.abs(a + b).sum() ** 2 / 4 for a, b in itertools.product(units, units)]
    assert np.mean(squares) == pytest.approx(15 / 16)  # not 1/2, the single vectors having 1
    euclidean = [((a + b) ** 2).sum() / 4 for a, b in itertools.product(units, units)]
    assert np.mean(euclidean) == pytest.approx(1 / 2)


def test_e8_the_optimal_values_are_opposite():
    dual = SeparableQuadratic(np.array([[1.0, 2.0]]), np.ones(1))
    x, lam = dual.solution()
    assert dual.objective(x) == pytest.approx(-dual.value(lam)) != pytest.approx(0)


def test_e9_the_l2_rate_loses_its_root_of_n_with_the_initial_gap():
    loops = {}
    for n, is_kept in itertools.product((64, 4096), (False, True)):
        eps, root = 0.05, math.sqrt(n)
        eta = eps / (4 * math.log(n))
        loops[n, is_kept] = theory.outer_loops(
            eps / 16 / root,  # from l1 to l2
            smoothness=1 / eta,
            radius=root / 2,
            inner_loops=n,
            gamma=1.0,
            initial_gap=1 + 2 * eta * math.log(n) if is_kept else None,
        )
    grown = {kept: loops[4096, kept] / loops[64, kept] for kept in (False, True)}
    logarithm = math.sqrt(math.log(4096) / math.log(64))
    assert grown[False] == pytest.approx(8 * logarithm, rel=0.15)
    assert grown[True] == pytest.approx(logarithm, rel=0.15)


def test_e11_smoothing_is_measured_in_l1():
    problem, found, tolerance = target()
    moved = [x - y for x, y in ((problem.p, found.p), (problem.q, found.q))]
    assert sum(np.abs(d).sum() for d in moved) <= tolerance  # ε'/2, as the proof needs
    assert np.linalg.norm(moved[1]) < np.abs(moved[1]).sum() / 4  # l2 would claim less


def test_e12_the_split_of_the_proof_gives_224():
    n, R, tol = 50.0, 30.0, 0.01
    found = minimize_scalar(
        lambda d: 448 * n * R**2 / d + 28 * n * d / tol**2, bounds=(1e-3, 100), method="bounded"
    )
    assert found.fun == pytest.approx(224 * n * R / tol, rel=1e-6)
    assert found.x == pytest.approx(4 * R * tol, rel=1e-3)


def test_e13_the_norm_of_a_column_enters_squared():
    # f = x²/2 is 1-strongly convex, A = (2): φ = λ b + 2 λ², whose gradient is 4-Lipschitz.
    dual = SeparableQuadratic(np.array([[2.0]]), np.ones(1))
    change = dual.gradient(np.ones(1)) - dual.gradient(np.zeros(1))
    assert algorithm.dual_norm(change, "l2") == 4 == dual.smoothness("l2")[0]


def test_e14_mirror_descent_has_one_over_b_not_one_over_two_b():
    g, x, b = np.array([0.3, -0.2]), np.array([1.0, 2.0]), 0.1
    euclidean = epsilot.finite_sum.EUCLIDEAN

    def printed(u):
        return g @ u + ((u - x) ** 2).sum() / 2 / (2 * b)

    best = x - 2 * b * g  # the minimiser of what is printed moves twice as far as SGD
    assert all(printed(best) < printed(best + 1e-3 * d) for d in (*np.eye(2), *-np.eye(2)))
    np.testing.assert_allclose(euclidean.step(x, b * g), x - b * g)


def rho(a, b):
    return b - a + a * math.log(a / b)


def test_e15_a_variance_is_at_most_half_the_squared_l2_norm(rng):
    for _ in range(50):
        s = rng.dirichlet(np.full(6, rng.choice([0.1, 1.0, 10.0])))
        assert np.linalg.eigvalsh(np.diag(s) - np.outer(s, s)).max() <= 0.5 + 1e-12
    half = np.array([0.5, 0.5])
    assert np.linalg.eigvalsh(np.diag(half) - np.outer(half, half)).max() == pytest.approx(0.5)
    A, B = synthetic_pair(6, 0)
    loops = {
        smoothness: epsilot.solve(
            grid_cost((6, 6)), A.ravel(), B.ravel(), eps=0.1, method="pdasgd", stop="paper",
            smoothness=smoothness,
        ).n_iter
        for smoothness in ("paper", "sharp", "least")
    }  # fmt: skip
    assert loops["sharp"] == loops["least"]
    assert loops["paper"] / loops["least"] == pytest.approx(math.sqrt(2), rel=0.05)
    _, problem, _ = target()
    bounds = [
        theory.pdasmd_outer_loops(0.1, 1.0, problem.p, problem.q, norm="l2", smoothness=s)
        for s in ("paper", "least")
    ]
    assert bounds[0] / bounds[1] == pytest.approx(math.sqrt(2), rel=0.01)


def test_e16_a_small_mean_violation_stops_only_a_part_of_the_runs():
    """Violations of a stochastic method at one k: their mean is small, and some are not."""
    problem, goal, tolerance = target(eps=0.4, side=3)
    del problem
    K = np.exp(-goal.geometry.matrix() / goal.eta)
    n, runs = 9, 300
    rng = np.random.default_rng(0)
    u, v = np.ones((runs, n)), np.ones((runs, n))
    is_met = False
    for _ in range(4000):
        rows, cols = u * (v @ K.T), v * (u @ K)
        sums = np.concatenate([rows, cols], axis=1)
        masses = np.concatenate([goal.p, goal.q])
        violation = np.abs(sums - masses).sum(axis=1)
        if is_met := bool(violation.mean() <= tolerance):
            break
        rho = sums - masses + masses * np.log(masses / sums)
        ends = np.cumsum(np.maximum(rho, 0), axis=1)
        drawn = (ends < rng.random((runs, 1)) * ends[:, -1:]).sum(axis=1)
        for k, index in enumerate(drawn):
            if index < n:
                u[k, index] *= masses[index] / sums[k, index]
            else:
                v[k, index - n] *= masses[index] / sums[k, index]
    assert is_met
    assert 0.05 < (violation > tolerance).mean() < 0.95


def test_e17_the_step_of_the_listing_is_one_ninth(rng):
    v, g, L = rng.normal(size=4), rng.normal(size=4), 2.0

    def step_11(y):
        return 9 * L / 2 * ((y - v) ** 2).sum() + g @ y

    best = step_11(v - g / (9 * L))
    assert best < step_11(v - g / (3 * L))
    for _ in range(20):
        assert step_11(v - g / (9 * L) + 1e-3 * rng.normal(size=4)) >= best


def test_e18_the_two_duals_have_opposite_signs(rng):
    """Section 2.2's dual of entropic transport at λ is Section 2.3's at -λ."""
    C, p, q = random(3, 3)
    eta, z = 0.3, rng.normal(size=6) * 0.1

    def plan(z):
        return np.exp((z[:3, None] + z[3:] - C - eta) / eta)

    def general(z):  # <λ, b> - f(x) - <Aᵀλ, x> at ∇f(x) = -Aᵀλ
        X = plan(-z)
        f = (C * X).sum() + eta * (X * np.log(X)).sum()
        return z @ np.concatenate([p, q]) - f - (z[:3, None] * X + z[3:] * X).sum()

    def semi(z):  # (OT_dual)
        return eta * plan(z).sum() - z @ np.concatenate([p, q])

    assert general(z) == pytest.approx(semi(-z))
    h = 1e-6 * np.eye(6)
    slope = np.array([(semi(z + e) - semi(z - e)) / 2e-6 for e in h])
    X = plan(z)
    residual = np.concatenate([X.sum(axis=1) - p, X.sum(axis=0) - q])
    np.testing.assert_allclose(slope, residual, atol=1e-8)  # A x - b


def test_e19_the_printed_index_leaves_the_vector():
    n = 4
    printed = {i * n + j for i in range(1, n + 1) for j in range(1, n + 1)}
    assert (min(printed), max(printed)) == (n + 1, n * n + n)
    X = np.arange(n * n).reshape(n, n)
    stacked = X.ravel(order="F")  # Vec(X) = (X₁₁, ..., X_n1, X₁₂, ...)
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            assert stacked[(j - 1) * n + i - 1] == X[i - 1, j - 1]


def test_e20_no_mirror_map_of_linf_has_a_gamma_below_n(rng):
    """1-strongly convex maps: the mean divergence of the corners of the cube is n/2 or more."""
    n = 6
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=n)))
    A = rng.normal(size=(n, n))
    maps = {
        "euclidean": lambda x: (x**2).sum(-1) / 2,
        "cosh": lambda x: np.cosh(x).sum(-1),
        "more than needed": lambda x: ((x**2).sum(-1) + ((x @ A) ** 4).sum(-1)) / 2,
    }
    for name, w in maps.items():
        assert (w(corners) - w(np.zeros(n))).mean() >= n / 2 - 1e-12, name  # w'(0) has mean 0
        for k in range(n):  # the step of the proof: one more coordinate adds 1/2
            short, long = corners.copy(), corners.copy()
            short[:, k:], long[:, k + 1 :] = 0, 0
            assert (w(long) - w(short)).mean() >= 0.5 - 1e-12, name
    assert algorithm.EUCLIDEAN.gamma(n, "linf") == pytest.approx(n)


# -- the authors' public code -----------------------------------------------------------------


def test_c1_the_weight_of_the_code_is_biased(rng):
    """The mean over rows drawn with α of μ + w_j (g_j(v) - g_j(ṽ)), g_j with n α_j in it."""
    n = 5
    alpha = rng.dirichlet(np.ones(n))
    row = rng.normal(size=(2, n, n))  # at v and at the snapshot
    g = n * alpha[:, None] * row
    mu, wanted = g[1].mean(axis=0), g[0].mean(axis=0)

    def mean(weight):
        return mu + alpha @ (weight[:, None] * (g[0] - g[1]))

    np.testing.assert_allclose(mean(1 / (n * alpha)), wanted)
    bias = np.linalg.norm(mean(n * alpha) - wanted) / np.linalg.norm(wanted - mu)
    assert bias > 0.1
    alpha = np.full(n, 1 / n)
    g = n * alpha[:, None] * row
    mu, wanted = g[1].mean(axis=0), g[0].mean(axis=0)
    np.testing.assert_allclose(mean(n * alpha), wanted)  # unbiased where α is uniform


def test_c2_the_tolerance_of_the_code_grows_with_the_costs():
    A, B = synthetic_pair(4, 0)
    tolerances = []
    for size in (1.0, 9.0):
        problem = make_problem(size * grid_cost((4, 4)), A.ravel(), B.ravel())
        _, tolerance = published_parameters(problem, 0.1)
        cost_max = problem.geometry.bounds[1] * problem.unit
        assert cost_max == pytest.approx(size)
        tolerances.append(tolerance)
    code = [0.1 / 8 * size / 2 for size in (1.0, 9.0)]
    assert code[0] == pytest.approx(tolerances[0])
    assert code[1] / (0.1 / 8 / 9 / 2) == pytest.approx(81)


def test_c3_the_code_draws_by_the_absolute_violation():
    masses, sums = np.array([0.5, 0.01]), np.array([0.52, 0.02])
    rho = sums - masses + masses * np.log(masses / sums)
    code = np.abs(sums - masses) / np.abs(sums - masses).sum()
    assert code[0] == pytest.approx(2 / 3)
    assert (rho / rho.sum())[0] < 0.15  # the small mass, twice too large, is drawn first


@pytest.mark.parametrize(("halvings", "trials"), [(1, 2), (2, 3)])
def test_c4_halving_twice_takes_three_trials_a_step(halvings, trials):
    """A search that doubles an estimate until it reaches a constant, halved between steps."""
    estimate, made = 1.0, 0
    for _ in range(100):
        estimate /= 2**halvings
        made += 1
        while estimate < 1.0:
            estimate *= 2
            made += 1
    assert made == trials * 100


# -- other papers -----------------------------------------------------------------------------


def test_a1_the_pinsker_like_lemma_fails_far_from_the_masses():
    assert math.sqrt(7 * 1 * rho(1, 20)) < 20 - 1
    assert math.sqrt(7 * 1 * rho(1, 1.2)) > 1.2 - 1


def test_a2_a_mean_over_both_marginals_is_over_twice_as_many():
    h = np.full(12, 0.3)  # violations of 6 rows and 6 columns
    expected = (h / h.sum()) @ h  # drawn with probability h / sum h
    assert expected == pytest.approx(h.sum() / 12)
    assert expected < h.sum() / 6


def test_g1_scalings_from_running_sums_break_down():
    A, B = synthetic_pair(6, 0)
    C, p, q = grid_cost((6, 6)), A.ravel(), B.ravel()
    X = np.exp(-C * 4 * math.log(36) / 0.02)
    X /= X.sum()
    masses, sums = np.concatenate([p, q]), np.concatenate([X.sum(axis=1), X.sum(axis=0)])
    for _ in range(1000):
        h = sums - masses + masses * np.log(masses / np.maximum(sums, 1e-300))
        i = int(np.argmax(h))
        line, other = (X[i], sums[36:]) if i < 36 else (X[:, i - 36], sums[:36])
        other -= line
        line *= masses[i] / sums[i]
        other += line
        sums[i] = masses[i]
        if sums.min() <= 0:
            break
    fresh = np.concatenate([X.sum(axis=1), X.sum(axis=0)])
    assert sums.min() <= 0 < fresh.min()


def test_l3_the_radius_brings_a_logarithm_to_the_two_thirds():
    eps = 0.05
    sizes = np.array([1e6, 1e12, 1e24])
    logs = np.log(sizes)
    R = 4 * logs / eps + logs - np.log(eps / (64 * sizes))
    iterations = R ** (2 / 3)
    slope = np.diff(np.log(iterations)) / np.diff(np.log(logs))
    np.testing.assert_allclose(slope, 2 / 3, atol=0.01)


# -- the page ---------------------------------------------------------------------------------


def names_of(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("erratum", sorted(ROWS))
def test_every_erratum_names_tests_that_exist(erratum):
    found = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", ROWS[erratum])
    assert found or "(a name)" in ROWS[erratum]
    for path, name in found:
        assert name in names_of(path)


def test_the_page_has_the_errata_that_the_theory_refers_to():
    assert {e for s in theory.STATEMENTS for e in s.errata} <= set(ROWS)
    assert len(ROWS) == 32
