"""The finite-sum dual of unbalanced transport: its gradient, its best constant, and its box."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp, rel_entr

import epsilot
from epsilot.geometry import Dense
from epsilot.problems.kullback_leibler import EntropicKullbackLeibler, SemiDual
from epsilot.problems.problem import Penalised, Problem

N, M, ETA = 6, 8, 0.1
PRICES = [(0.3, 0.3), (0.1, 2.0), (2.0, 0.1), (5.0, 5.0), (math.inf, 0.4), (0.4, math.inf)]


def drawn(prices, *, is_referred=False, seed=0):
    """Return a dual with an entropy, or held to a plan exp(U ⊕ V - κ C)."""
    rng = np.random.default_rng(seed)
    p, q = rng.random(N), 2 * rng.random(M)
    problem = Penalised(Dense(rng.random((N, M))), ETA, p, q, *prices)
    if not is_referred:
        return SemiDual(problem, np.full(N, -1.0), np.zeros(M), 1 / ETA)
    return SemiDual(problem, rng.normal(size=N) - 4, rng.normal(size=M), 3 / ETA)


def rows(dual, g):
    """Return the log-normalisers at g, the masses of the rows and the plan, by definition."""
    exponents = (dual.column_scaling(g) - dual.problem.geometry.block(0, N)) * dual.sharpness
    lse = logsumexp(exponents, axis=1)
    masses = dual.row_masses(lse)
    return lse, masses, masses[:, None] * np.exp(exponents - lse[:, None])


def phi(dual, g):
    lse, masses, _ = rows(dual, g)
    return dual.value(g, lse, masses.sum())


def gradient(dual, g):
    return rows(dual, g)[2].sum(axis=0) - np.exp(dual.log_wanted(g))


def hessians(dual, g):
    """Return the Hessians of the rows' terms."""
    k = dual.problem.price_a + ETA
    for x in rows(dual, g)[2]:
        s = x / x.sum()
        yield x.sum() * ((np.diag(s) - np.outer(s, s)) / ETA + np.outer(s, s) / k)


def optimum(dual):
    """Return the optimal g, by Sinkhorn's sweeps and then by Newton's method."""
    g = np.zeros(M)
    for _ in range(100):
        g = g + dual.column_move(g, rows(dual, g)[2].sum(axis=0))
    for _ in range(6):
        H = sum(hessians(dual, g)) + np.diag(np.exp(dual.log_wanted(g))) / dual.problem.price_b
        g = g - np.linalg.solve(H, gradient(dual, g))
    return g


@pytest.mark.parametrize("is_referred", [False, True])
@pytest.mark.parametrize("prices", PRICES)
def test_the_gradient_is_that_of_finite_differences(prices, is_referred):
    dual, step = drawn(prices, is_referred=is_referred), 1e-5
    for seed in range(3):
        g = 0.3 * np.random.default_rng(seed).normal(size=M)
        found = [
            (phi(dual, g + step * e) - phi(dual, g - step * e)) / (2 * step) for e in np.eye(M)
        ]
        np.testing.assert_allclose(found, gradient(dual, g), atol=1e-7)


@pytest.mark.parametrize("prices", PRICES)
def test_phi_is_the_dual_of_the_objective(prices):
    """Any g with its best f bounds the optimum, and φ is that bound with its sign changed."""
    dual = drawn(prices)
    problem = dual.problem
    kind = EntropicKullbackLeibler(Problem(problem.geometry, problem.p, problem.q), *prices, ETA)
    g = np.random.default_rng(1).normal(size=M)
    f = dual.row_potential(rows(dual, g)[0])
    assert -phi(dual, g) == pytest.approx(kind.dual_value((f, g)), rel=1e-12)


@pytest.mark.parametrize("is_referred", [False, True])
@pytest.mark.parametrize("prices", PRICES)
def test_constants_and_columns_are_the_best(prices, is_referred):
    dual = drawn(prices, is_referred=is_referred)
    g = np.random.default_rng(1).normal(size=M)
    _, masses, X = rows(dual, g)
    t = dual.best_shift(g, masses.sum())
    others = [phi(dual, g - t - x) for x in np.linspace(-0.1, 0.1, 201)]
    assert np.argmin(others) == 100
    moved = g + dual.column_move(g, X.sum(axis=0))
    f = dual.row_potential(rows(dual, g)[0])
    exponents = dual.row_scaling(f)[:, None] + dual.column_scaling(moved)
    columns = np.exp((exponents - dual.problem.geometry.block(0, N)) * dual.sharpness).sum(axis=0)
    np.testing.assert_allclose(columns, np.exp(dual.log_wanted(moved)), rtol=1e-10)


@pytest.mark.parametrize("is_referred", [False, True])
@pytest.mark.parametrize("prices", PRICES)
@pytest.mark.parametrize("seed", range(3))
def test_the_box_holds_the_optimum_and_bounds_the_rows(prices, is_referred, seed):
    dual = drawn(prices, is_referred=is_referred, seed=seed)
    best, rng = optimum(dual), np.random.default_rng(seed)
    start = np.zeros(M)
    start -= dual.best_shift(start, rows(dual, start)[1].sum())
    box = dual.box(-phi(dual, start))
    assert np.abs(gradient(dual, best)).max() < 1e-9
    assert (box.low <= best + 1e-9).all()
    assert (best <= box.high + 1e-9).all()
    assert rows(dual, best)[1].sum() <= box.mass * (1 + 1e-12)
    most = dual.most_masses(box.high)
    low, high = np.maximum(box.low, best - 1), np.minimum(box.high, best + 1)
    for _ in range(20):
        g = low + rng.random(M) * (high - low)
        _, masses, _ = rows(dual, g)
        assert (masses <= most * (1 + 1e-12)).all()
        assert np.exp(dual.log_wanted(g)).max() <= box.mass * (1 + 1e-12) or prices[1] == math.inf
        for mass, H in zip(masses, hessians(dual, g), strict=True):
            assert np.linalg.eigvalsh(H).max() <= mass / ETA * (1 + 1e-12)


@pytest.mark.parametrize("prices", PRICES[:4])
def test_what_phi_lacks_bounds_the_distance_of_the_plans(prices):
    """φ(g) - φ* = λ_a KL(r* | r) + λ_b KL(c* | q e^(-g/λ_b)) + η KL(X* | X(g))."""
    dual = drawn(prices)
    best, g = optimum(dual), 0.3 * np.random.default_rng(1).normal(size=M)
    X, Y = rows(dual, best)[2], rows(dual, g)[2]

    def divergence(x, y):
        return (rel_entr(x, y) - x + y).sum()

    found = prices[0] * divergence(X.sum(axis=1), Y.sum(axis=1)) + ETA * divergence(X, Y)
    found += prices[1] * divergence(X.sum(axis=0), np.exp(dual.log_wanted(g)))
    assert found == pytest.approx(phi(dual, g) - phi(dual, best), abs=1e-9)


def test_the_optimum_is_that_of_unbalanced_sinkhorn():
    dual = drawn(PRICES[0])
    problem = dual.problem
    M_, wish = problem.geometry.block(0, N), {"reg": ETA, "tol": 1e-11, "unbalanced": PRICES[0]}
    result = epsilot.solve(M_, problem.p, problem.q, **wish)
    assert result.value == pytest.approx(-phi(dual, optimum(dual)), abs=2e-11)
