"""Kernels of the coordinate methods against their NumPy twins."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp, rel_entr

from epsilot.kernels import coordinate

SHAPES = [(7, 5), (5, 7), (1, 9), (9, 1), (33, 70)]


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
    n_rows, n_updates = coordinate.epoch(
        C,
        C.T.copy(),
        1 / eta,
        masses,
        1 / masses,
        np.log(masses),
        z,
        sums,
        h,
        errors,
        tops,
        np.inf,
        np.zeros(40),
        -1.0,
    )
    np.testing.assert_allclose(z, expected, atol=1e-10)
    if min(shape) > 1:  # else the first updates solve it, and the rest are ties
        assert n_rows == sum(k < n for k in chosen)
    assert n_updates == 40
