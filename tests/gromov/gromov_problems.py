"""Clouds for the tests of Gromov-Wasserstein, and the objective by its definition."""

import numpy as np


def squared_distances(X):
    X = np.asarray(X, float).reshape(len(X), -1)
    return ((X[:, None] - X) ** 2).sum(-1)


def value(X, Y, P, M=None):
    """Return the objective of a coupling by its definition, a sum over pairs of pairs."""
    CX, CY = squared_distances(X), squared_distances(Y)
    i, j = np.nonzero(P)
    apart = CX[np.ix_(i, i)] - CY[np.ix_(j, j)]
    w = P[i, j]
    linear = 0.0 if M is None else (M * P).sum()
    return (apart**2 * np.outer(w, w)).sum() + linear


def turned(rng, X):
    """Return a permuted cloud in another orthogonal frame, somewhere else."""
    Q, _ = np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))
    return rng.permutation(X) @ Q + rng.normal(size=X.shape[1])


def noisy_copy(n, d=2, seed=0, noise=0.05):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(1, 0.6, d)
    return X, turned(rng, X + noise * rng.normal(size=X.shape))
