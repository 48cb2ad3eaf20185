"""Costs and weights that may surprise a method tuned on clouds and images."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from epsilot._types import Matrix, Vector

from .instances import Instance, clouds

#: Cost, weights of the sources and of the targets (None: equal).
Odd = tuple[Matrix, Vector | None, Vector | None]


def _heavy(n: int, rng: np.random.Generator) -> Vector:
    return rng.dirichlet(np.full(n, 0.05))


def _distances(X: Matrix, Y: Matrix, metric: str = "sqeuclidean") -> Matrix:
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(X, Y, metric))


def _clustered(n: int, rng: np.random.Generator) -> tuple[Matrix, Matrix]:
    """Return points around eight centres."""
    centres = rng.random((8, 2))
    X, Y = (centres[rng.integers(8, size=n)] + 0.01 * rng.normal(size=(n, 2)) for _ in range(2))
    return X, Y


def _with_outliers(n: int, rng: np.random.Generator) -> tuple[Matrix, Matrix]:
    """Return two clouds, some points of which are far away."""
    X, Y = clouds(n, rng)
    X[:5] *= 100
    Y[:3] *= -50
    return X, Y


#: name -> (n, generator, two uniform clouds) -> cost and weights
_ODD: dict[str, Callable[[int, np.random.Generator, Matrix, Matrix], Odd]] = {
    "heavy-tailed weights": lambda n, rng, X, Y: (
        _distances(X, Y, "euclidean"), _heavy(n, rng), _heavy(n, rng)
    ),
    "heavy-tailed to equal weights": lambda n, rng, X, Y: (_distances(X, Y), _heavy(n, rng), None),
    "root of the distance": lambda n, rng, X, Y: (
        np.sqrt(_distances(X, Y, "euclidean")), None, None
    ),
    "fourth power": lambda n, rng, X, Y: (_distances(X, Y, "euclidean") ** 4, None, None),
    "clusters": lambda n, rng, X, Y: (_distances(*_clustered(n, rng)), None, None),
    "outliers": lambda n, rng, X, Y: (_distances(*_with_outliers(n, rng)), None, None),
    "1-d": lambda n, rng, X, Y: (_distances(X[:, :1], Y[:, :1], "euclidean"), None, None),
    "lognormal": lambda n, rng, X, Y: (
        np.exp(2 * rng.normal(size=(n, n))), rng.dirichlet(np.ones(n)), None
    ),
    "0.5 % zeros, else ones": lambda n, rng, X, Y: (
        (rng.random((n, n)) < 0.995).astype(float), rng.dirichlet(np.ones(n)), None
    ),
    "integers 0 to 4": lambda n, rng, X, Y: (
        rng.integers(0, 5, (n, n)).astype(float), rng.dirichlet(np.ones(n)), None
    ),
    "n / 8 sources": lambda n, rng, X, Y: (_distances(X[: n // 8], Y), None, None),
    "n / 8 targets": lambda n, rng, X, Y: (_distances(X, Y[: n // 8], "euclidean"), None, None),
    "far apart": lambda n, rng, X, Y: (_distances(X, Y + 10), None, None),
    "products": lambda n, rng, X, Y: (
        np.outer(X[:, 0], Y[:, 0]), rng.dirichlet(np.ones(n)), None
    ),
}  # fmt: skip


def _built(name: str, n: int, seed: int) -> Instance:
    rng = np.random.default_rng(seed)
    M, a, b = _ODD[name](n, rng, *clouds(n, rng))
    equal = (np.full(k, 1 / k) for k in M.shape)
    a, b = (e if w is None else w for w, e in zip((a, b), equal, strict=True))
    return M, a, b


#: name -> (n, seed) -> instance
ODD_COSTS: dict[str, Callable[[int, int], Instance]] = {
    name: partial(_built, name) for name in _ODD
}
