"""Kernels of the coordinate and scaling methods against their NumPy twins."""

import math

import numpy as np
import pytest
from numba import njit
from scipy.special import logsumexp, rel_entr

from epsilot.kernels import coordinate, dense, scaling, vlog

SHAPES = [(7, 5), (5, 7), (1, 9), (9, 1), (33, 70)]


@njit
def each(x, out, is_rough):
    for i in range(x.size):
        out[i] = vlog.rough_log(x[i]) if is_rough else vlog.log(x[i])


def test_logarithm(rng):
    x = np.concatenate([np.exp(rng.uniform(-700, 700, 20_000)), np.linspace(0.5, 2, 20_001)])
    out = np.empty_like(x)
    each(x, out, False)
    np.testing.assert_allclose(out, np.log(x), rtol=5e-16, atol=1e-300)
    each(x, out, True)
    np.testing.assert_allclose(out, np.log(x), rtol=1e-10, atol=1e-300)
    special = np.array([0.0, np.inf, -1.0, np.nan, 1.0])
    out = np.empty_like(special)
    each(special, out, False)
    np.testing.assert_array_equal(out, [-np.inf, np.inf, np.nan, np.nan, 0.0])


def test_refresh(rng):
    masses, weights = rng.dirichlet(np.ones(200)), rng.random(200)
    for size in (1.0, 1e-3, 1e-6):
        sums = masses * (1 + size * rng.uniform(-0.9, 2, 200))
        expected, h = sums + 1e-4 * weights, np.empty(200)
        error = coordinate.refresh(masses, 1 / masses, sums, 1e-4, weights, h)
        np.testing.assert_allclose(sums, expected, rtol=1e-15)
        assert error == pytest.approx(np.abs(sums - masses).sum(), rel=1e-12)
        ratio = sums / masses - 1
        exact = [a * (x - math.log1p(x)) for a, x in zip(masses, ratio, strict=True)]
        np.testing.assert_allclose(h, exact, rtol=1e-8, atol=1e-16)
    sums[3], sums[7] = 0.0, -1e-18
    coordinate.refresh(masses, 1 / masses, sums, 0.0, weights, h)
    assert np.isinf(h[[3, 7]]).all()
    assert np.isfinite(np.delete(h, [3, 7])).all()


def greedy_by_hand(C, eta, masses, z, n_updates):
    """Return the potentials after greedy updates, all sums computed afresh."""
    n, chosen = C.shape[0], []
    z = z.copy()
    for _ in range(n_updates):
        X = np.exp((z[:n, None] + z[n:] - C) / eta)
        sums = np.concatenate([X.sum(axis=1), X.sum(axis=0)])
        k = int(np.argmax(rel_entr(masses, sums) + sums - masses))
        z[k] += eta * np.log(masses[k] / sums[k])
        chosen.append(k)
    return z, chosen


@pytest.mark.parametrize("shape", SHAPES)
def test_epoch(shape, rng):
    n, m = shape
    C, eta = rng.random(shape), 0.1
    masses = np.concatenate([rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))])
    z = np.zeros(n + m)
    z[:n] = eta * (np.log(masses[:n]) - logsumexp(-C / eta, axis=1))
    X = np.exp((z[:n, None] - C) / eta)
    sums, h = np.concatenate([X.sum(axis=1), X.sum(axis=0)]), np.empty(n + m)
    coordinate.refresh(masses, 1 / masses, sums, 0.0, masses, h)
    errors = np.abs(sums - masses)
    errors = np.array([errors[:n].sum(), errors[n:].sum()])
    tops = np.array([h[:n].max(), h[n:].max()])
    expected, chosen = greedy_by_hand(C, eta, masses, z, 40)
    n_rows = coordinate.epoch(
        C, C.T.copy(), 1 / eta, masses, 1 / masses, np.log(masses), z, sums, h, errors, tops,
        np.inf, np.zeros(40),
    )  # fmt: skip
    np.testing.assert_allclose(z, expected, atol=1e-10)
    if min(shape) > 1:  # else the first updates solve it, and the rest are ties
        assert n_rows == sum(k < n for k in chosen)


@pytest.mark.parametrize("shape", SHAPES)
def test_scaling_kernels(shape, rng):
    n, m = shape
    C, f, g, eta = rng.random(shape), rng.normal(size=n), rng.normal(size=m), 0.3
    K, W, average = np.empty(shape), np.empty(shape), rng.random(shape)
    top, lse, out = np.empty(n), np.empty(n), np.empty(m)
    dense.gibbs(C, f, g, 1 / eta, K, 0, n)
    np.testing.assert_allclose(K, np.exp((f[:, None] + g - C) / eta), rtol=1e-13)
    scaling.weigh_rows(C, g, 1 / eta, W, top, lse, 0, n)
    np.testing.assert_allclose(lse, logsumexp((g - C) / eta, axis=1), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(top, (g - C).max(axis=1))
    np.testing.assert_allclose(W, np.exp((g - C - top[:, None]) / eta), rtol=1e-13)
    scaling.rmatvec(K, f, out, 0, m)
    np.testing.assert_allclose(out, K.T @ f, rtol=1e-9, atol=1e-9 * np.abs(K).max())
    expected = 0.7 * average + f[:, None] * W
    scaling.blend(average, 0.7, f, W, 0, n)
    np.testing.assert_allclose(average, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("omega", [1.0, 1.7])
@pytest.mark.parametrize("n_chunks", [1, 3])
def test_sweep(omega, n_chunks, rng):
    K, v = rng.random((8, 6)) + 0.1, rng.random(6)
    p, u = rng.dirichlet(np.ones(8)), 0.2 * rng.random(8)
    t = p / (K @ v) / u
    limit = np.median(t)
    expected = np.where(t <= limit, u * t**omega, u * t)
    errors, parts = np.empty(n_chunks), np.empty((n_chunks, 6))
    scaling.sweep(K, v, p, u, omega, limit, errors, parts, 0, n_chunks)
    np.testing.assert_allclose(u, expected, rtol=1e-13)
    np.testing.assert_allclose(parts.sum(axis=0), K.T @ u, rtol=1e-13)
    assert errors.sum() == pytest.approx(np.abs(u * (K @ v) - p).sum(), rel=1e-10, abs=1e-15)
