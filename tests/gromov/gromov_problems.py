"""Clouds for the tests of Gromov-Wasserstein, and the optimum by enumeration."""

from itertools import combinations, permutations

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


def best_permutation(X, Y, M=None):
    """Return the optimum for uniform weights: the objective is concave but for M."""
    n = len(X)
    sigma = np.array(list(permutations(range(n))))
    CX, CY = squared_distances(X), squared_distances(Y)
    values = np.zeros(len(sigma))
    for i in range(n):
        for k in range(n):
            values += (CX[i, k] - CY[sigma[:, i], sigma[:, k]]) ** 2
    values /= n * n
    if M is not None:
        values += M[np.arange(n), sigma].mean(axis=1)
    return values.min()


def best_vertex(X, Y, a, b, M=None):
    """Return the optimum over the vertices of all couplings: the bases of the equations."""
    n, m = len(a), len(b)
    A = np.zeros((n + m, n * m))
    for i in range(n):
        for j in range(m):
            A[i, i * m + j] = A[n + j, i * m + j] = 1
    right = np.concatenate([a, b])
    best = np.inf
    for basis in map(list, combinations(range(n * m), n + m - 1)):
        found, _, rank, _ = np.linalg.lstsq(A[:, basis], right, rcond=None)
        if rank == n + m - 1 and found.min() >= -1e-12:
            P = np.zeros(n * m)
            P[basis] = np.maximum(found, 0)
            best = min(best, value(X, Y, P.reshape(n, m), M))
    return best


def turned(rng, X):
    """Return a permuted cloud in another orthogonal frame, somewhere else."""
    Q, _ = np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))
    return rng.permutation(X) @ Q + rng.normal(size=X.shape[1])


def noisy_copy(n, d=2, seed=0, noise=0.05):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(1, 0.6, d)
    return X, turned(rng, X + noise * rng.normal(size=X.shape))
