"""Kernels of the scaling methods against their NumPy twins."""

import numpy as np
import pytest
from scipy.special import logsumexp

from epsilot.kernels import dense

SHAPES = [(7, 5), (5, 7), (1, 9), (9, 1), (33, 70)]


@pytest.mark.parametrize("shape", SHAPES)
def test_scaling_kernels(shape, rng):
    n, m = shape
    C, f, g, eta = rng.random(shape), rng.normal(size=n), rng.normal(size=m), 0.3
    K, W, average = np.empty(shape), np.empty(shape), rng.random(shape)
    top, lse, out = np.empty(n), np.empty(n), np.empty(m)
    dense.gibbs(C, f, g, 1 / eta, K, 0, n)
    np.testing.assert_allclose(K, np.exp((f[:, None] + g - C) / eta), rtol=1e-13)
    dense.weigh_rows(C, g, 1 / eta, W, top, lse, 0, n)
    np.testing.assert_allclose(lse, logsumexp((g - C) / eta, axis=1), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(top, (g - C).max(axis=1))
    np.testing.assert_allclose(W, np.exp((g - C - top[:, None]) / eta), rtol=1e-13)
    dense.rmatvec(K, f, out, 0, m)
    np.testing.assert_allclose(out, K.T @ f, rtol=1e-9, atol=1e-9 * np.abs(K).max())
    expected = 0.7 * average + f[:, None] * W
    dense.blend(average, 0.7, f, W, 0, n)
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
    dense.scaling_sweep(K, v, p, u, omega, limit, errors, parts, 0, n_chunks)
    np.testing.assert_allclose(u, expected, rtol=1e-13)
    np.testing.assert_allclose(parts.sum(axis=0), K.T @ u, rtol=1e-13)
    assert errors.sum() == pytest.approx(np.abs(u * (K @ v) - p).sum(), rel=1e-10, abs=1e-15)
