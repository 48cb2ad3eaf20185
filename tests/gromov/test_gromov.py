"""Global optima of small clouds by enumeration, unusual clouds, units, refusals."""

import math

import numpy as np
import pytest
from gromov_problems import noisy_copy, turned, value

import epsilot
from epsilot import memory
from epsilot.gromov import triangulation
from epsilot.gromov.problem import centred, make_gromov_problem, principal
from epsilot_lab.studies.gromov import best_permutation, best_vertex

METHODS = ("triangulation", "boxes")


def small(seed):
    """Return clouds of 4 to 7 points in one or two dimensions, some with ties."""
    rng = np.random.default_rng(seed)
    n = 7 if seed % 25 == 0 else int(rng.integers(2, 6))
    dx, dy = rng.integers(1, 3, size=2)
    X, Y = rng.normal(size=(n, dx)), rng.normal(size=(n, dy))
    if seed % 3 == 0:
        X, Y = np.round(X), np.round(Y)
    if seed % 7 == 0:
        Y = 0.01 * Y + 3
    M = rng.random((n, n)) if seed % 2 else None
    return X, Y, M


@pytest.mark.parametrize("block", range(8))
def test_optima_of_permutations(block):
    for seed in range(25 * block, 25 * block + 25):
        X, Y, M = small(seed)
        optimum = best_permutation(X, Y, M)
        result = epsilot.solve_gromov(X, Y, M=M, rtol=1e-3, method=METHODS[seed % 2])
        size = abs(optimum) + result.problem.scale * result.problem.unit
        assert result.converged
        assert result.lower_bound <= optimum + 1e-12 * size
        assert optimum - 1e-12 * size <= result.value
        assert result.value <= optimum * (1 + 1.1e-3) + 2e-9 * size
        assert result.value == pytest.approx(value(X, Y, result.plan, M), abs=1e-12 * size)


@pytest.mark.parametrize("seed", range(12))
def test_optima_of_weighted_clouds(seed):
    rng = np.random.default_rng(seed)
    n, m = (3, 3) if seed % 3 else (3, 4)
    X, Y = rng.normal(size=(n, 2)), rng.normal(size=(m, 1 + seed % 2))
    a, b = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    M = rng.random((n, m)) if seed % 2 else None
    optimum = best_vertex(X, Y, a, b, M)
    result = epsilot.solve_gromov(X, Y, a, b, M=M, rtol=1e-4)
    assert result.lower_bound <= optimum + 1e-11
    assert result.value == pytest.approx(optimum, rel=1.1e-4)
    np.testing.assert_allclose(result.plan.sum(axis=1), a, atol=1e-14)
    np.testing.assert_allclose(result.plan.sum(axis=0), b, atol=1e-14)


UNUSUAL = {
    "one point": lambda rng: (rng.normal(size=(1, 2)), rng.normal(size=(6, 2))),
    "one place": lambda rng: (np.ones((4, 2)), rng.normal(size=(6, 3))),
    "no extent": lambda rng: (np.ones((4, 2)), np.zeros((4, 2))),
    "thin": lambda rng: (rng.normal(size=(20, 2)) * [1, 1e-9], rng.normal(size=(20, 2))),
    "flat": lambda rng: (rng.normal(size=(20, 1)) * np.ones(3), rng.normal(size=(20, 2))),
    "far": lambda rng: (rng.normal(size=(20, 2)) + 1e4, rng.normal(size=(18, 2)) - 1e4),
    "duplicates": lambda rng: (
        np.repeat(rng.normal(size=(5, 2)), 4, axis=0),
        rng.normal(size=(20, 2)),
    ),
    "line and space": lambda rng: (rng.normal(size=30), rng.normal(size=(25, 3))),
    "tiny": lambda rng: (1e-40 * rng.normal(size=(9, 2)), 1e-40 * rng.normal(size=(9, 2))),
    "huge": lambda rng: (1e50 * rng.normal(size=(9, 2)), 1e50 * rng.normal(size=(9, 2))),
    "a grid": lambda rng: (
        np.argwhere(np.ones((5, 5))),
        turned(rng, np.argwhere(np.ones((5, 5)))),
    ),
    "heavy tails": lambda rng: (rng.standard_cauchy((25, 2)), rng.normal(size=(25, 2))),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_clouds(name, method):
    X, Y = UNUSUAL[name](np.random.default_rng(3))
    result = epsilot.solve_gromov(X, Y, method=method, rtol=0.05)
    assert result.converged
    assert 0 <= result.lower_bound <= result.value
    result.verify()
    size = max(result.problem.scale * result.problem.unit, 1e-300)
    assert result.value / size == pytest.approx(value(X, Y, result.plan) / size, abs=1e-11)


def test_the_triangulation_grows():
    X, Y = np.random.default_rng(1).random((2, 30, 2))
    result = epsilot.solve_gromov(X, Y[:25], rtol=1e-5)
    assert result.converged
    assert result.cover.pieces > triangulation.FIRST_POINTS


def test_a_large_cloud_of_unequal_masses():
    rng = np.random.default_rng(0)
    X, Y = noisy_copy(300)
    result = epsilot.solve_gromov(X, Y[:290], rng.dirichlet(np.full(300, 50)), rtol=0.1)
    assert result.converged
    result.verify()


def test_empty_points_get_nothing():
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(6, 2)), rng.normal(size=(6, 2))
    a, b = np.array([1, 0, 1, 1, 0, 1.0]), np.array([1, 1, 1, 0, 1, 0.0])
    result = epsilot.solve_gromov(X, Y, a, b, rtol=1e-4)
    assert result.plan[1].sum() == result.plan[:, 3].sum() == 0
    alone = epsilot.solve_gromov(X[a > 0], Y[b > 0], rtol=1e-4)
    assert result.value == pytest.approx(16 * alone.value)  # masses of total 4


@pytest.mark.parametrize("scale", [1e-3, 1.0, 2e4])
def test_units(scale):
    X, Y = noisy_copy(20)
    M = np.random.default_rng(0).random((20, 20))
    a = np.full(20, 3 / 20)
    plain = epsilot.solve_gromov(X, Y, M=M, rtol=1e-6)
    scaled = epsilot.solve_gromov(scale * X, scale * Y, a, a, M=3 * scale**4 * M, rtol=1e-6)
    assert scaled.value / (9 * scale**4) == pytest.approx(plain.value, rel=2e-6)
    np.testing.assert_allclose(scaled.cross_moment, 3 * scale**2 * plain.cross_moment, rtol=1e-6)


def test_alpha_is_that_of_fused_gromov_wasserstein():
    X, Y = noisy_copy(15)
    M = np.random.default_rng(0).random((15, 15))
    result = epsilot.solve_gromov(X, Y, M=M, alpha=0.3, rtol=1e-6)
    by_hand = 0.7 * (M * result.plan).sum() + 0.3 * value(X, Y, result.plan)
    assert result.value == pytest.approx(by_hand)
    twin = epsilot.solve_gromov(X, Y, M=7 / 3 * M, rtol=1e-6)
    assert result.value == pytest.approx(0.3 * twin.value, rel=2e-6)


def test_the_cross_moment_is_that_of_the_coupling():
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(12, 3)) + 4, rng.normal(size=(10, 2))
    result = epsilot.solve_gromov(X, Y, rtol=0.3)
    by_hand = (X - X.mean(0)).T @ result.plan @ (Y - Y.mean(0))
    np.testing.assert_allclose(result.cross_moment, by_hand, atol=1e-12)


def test_principal_axes_are_orthogonal_and_sorted():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(40))
    X = centred(rng.normal(size=(40, 4)) @ np.diag([1, 1e-6, 30, 0]) @ rng.normal(size=(4, 4)), p)
    turned, axes = principal(X, p)
    assert turned.shape == (40, 3)
    np.testing.assert_allclose(axes.T @ axes, np.eye(3), atol=1e-14)
    covariance = turned.T @ (p[:, None] * turned)
    deviations = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(covariance / np.outer(deviations, deviations), np.eye(3), atol=1e-7)
    assert (np.diff(deviations) < 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_an_isometric_copy_has_the_optimum_zero(method):
    X, Y = noisy_copy(30, noise=0.0)
    result = epsilot.solve_gromov(X, Y, method=method)
    assert result.converged
    assert result.lower_bound == 0
    assert 0 <= result.value <= 1e-12


X6, Y6 = np.arange(12.0).reshape(6, 2) ** 1.5, np.arange(18.0).reshape(6, 3) ** 1.2
REFUSED = {
    "X has shape": lambda: epsilot.solve_gromov(np.zeros((2, 2, 2)), Y6),
    "X[1] has a coordinate that is not finite": lambda: epsilot.solve_gromov([0, math.nan], Y6),
    "a has shape": lambda: epsilot.solve_gromov(X6, Y6, a=np.ones(5)),
    "a[0] is -1": lambda: epsilot.solve_gromov(X6, Y6, a=[-1, 1, 1, 1, 1, 1]),
    "the totals must be equal": lambda: epsilot.solve_gromov(X6, Y6, np.ones(6), np.full(6, 2.0)),
    "M has shape": lambda: epsilot.solve_gromov(X6, Y6, M=np.ones((6, 5))),
    "M[0, 0] is inf": lambda: epsilot.solve_gromov(X6, Y6, M=np.full((6, 6), np.inf)),
    "alpha is 2": lambda: epsilot.solve_gromov(X6, Y6, M=np.ones((6, 6)), alpha=2.0),
    "alpha weighs": lambda: epsilot.solve_gromov(X6, Y6, alpha=0.5),
    "metric is 'euclidean'": lambda: epsilot.solve_gromov(X6, Y6, metric="euclidean"),
    "method 'simplex' does not": lambda: epsilot.solve_gromov(X6, Y6, method="simplex"),
    "it holds products up to 6": lambda: epsilot.solve_gromov(
        *np.random.default_rng(0).random((2, 5, 3)), method="triangulation"
    ),
    "a search in 144": lambda: epsilot.solve_gromov(*np.random.default_rng(0).random((2, 20, 12))),
    "70 coordinates per point": lambda: epsilot.solve_gromov(np.ones((3, 70)), Y6),
    "its fourth power": lambda: epsilot.solve_gromov(1e80 * X6, Y6),
    "atol is -1": lambda: epsilot.solve_gromov(X6, Y6, atol=-1.0),
    "max_ot is 0": lambda: epsilot.solve_gromov(X6, Y6, max_ot=0),
    "starts is -1": lambda: epsilot.solve_gromov(X6, Y6, starts=-1),
    "rtol is 0": lambda: epsilot.solve_gromov(X6, Y6, rtol=0.0),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refusals_are_one_sentence(text):
    with pytest.raises(ValueError, match=r".") as caught:
        REFUSED[text]()
    message = str(caught.value)
    assert text in message
    assert message.endswith(".")
    assert "\n" not in message


def test_a_matrix_that_does_not_fit_is_refused(monkeypatch):
    X, Y = np.random.default_rng(0).random((2, 400, 2))
    monkeypatch.setattr(memory, "available", lambda: 1 << 21)
    with pytest.raises(epsilot.InvalidProblem, match="400 x 399 points with unequal masses needs"):
        epsilot.solve_gromov(X, Y[1:], M=np.zeros((400, 399)))
    monkeypatch.setattr(memory, "available", lambda: 1 << 24)  # without M nothing of that size
    for other in (Y, Y[1:]):
        assert epsilot.solve_gromov(X, other, max_ot=5, on_limit="ignore").n_ot >= 5


def test_the_digest_tells_problems_apart():
    problems = [
        make_gromov_problem(X6, Y6, None, None, None, None),
        make_gromov_problem(X6, 2 * Y6, None, None, None, None),
        make_gromov_problem(X6, Y6, None, None, np.ones((6, 6)), None),
    ]
    assert len({problem.digest() for problem in problems}) == 3
