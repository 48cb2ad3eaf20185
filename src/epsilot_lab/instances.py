"""The data of studies: families of dense costs with weights, by size and seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from math import isqrt
from typing import Literal

import numpy as np

from epsilot._types import Matrix, Vector
from epsilot.files.images import grid_cost, synthetic_pair
from epsilot.files.mnist import read_digits

from .digits import mnist_pair

DIGIT_SIDE = 28

#: Cost, weights of the sources, weights of the targets.
Instance = tuple[Matrix, Vector, Vector]


# -- images ----------------------------------------------------------------------------------


def images(side: int, seed: int, data: str = "synthetic") -> Instance:
    """Return the l1 cost of pixels over its maximum, and two images as weights.

    Parameters
    ----------
    side, seed
        Pixels along each side, and which pair.
    data
        "synthetic", "mnist" or the path of a file of digits.
    """
    if data == "synthetic":
        A, B = synthetic_pair(side, seed)
    else:
        A, B = mnist_pair(side, seed, None if data == "mnist" else digits(data))
    return grid_cost((side, side)), A.ravel(), B.ravel()


@cache
def digits(path: str) -> Matrix:
    """Return the digits of a file."""
    return read_digits(path)


# -- points and random costs -----------------------------------------------------------------

Law = Literal["uniform", "normal", "spread"]


def clouds(
    n: int, rng: np.random.Generator, d: int = 2, law: Law = "uniform"
) -> tuple[Matrix, Matrix]:
    """Draw two clouds of n points.

    "uniform" in the unit cube, both; "normal" about two centres, a unit apart along each axis; or
    "spread", one uniform and one normal within it.
    """
    if law == "uniform":
        return rng.random((n, d)), rng.random((n, d))
    if law == "normal":
        return rng.normal(size=(n, d)), rng.normal(size=(n, d)) + 1
    return rng.random((n, d)), 0.6 + 0.2 * rng.normal(size=(n, d))


def squared(X: Matrix, Y: Matrix) -> Matrix:
    """Return squared Euclidean distances."""
    return np.asarray(((X[:, None] - Y[None]) ** 2).sum(axis=2))


def weights(n: int, rng: np.random.Generator, concentration: float = 1.0) -> tuple[Vector, Vector]:
    """Draw weights of sources and targets from a Dirichlet law; small values make some tiny."""
    a, b = rng.dirichlet(np.full(n, concentration), size=2)
    return a, b


def points(n: int, seed: int, law: Law = "uniform", concentration: float = 1.0) -> Instance:
    """Return squared distances of clouds in the plane, and random weights."""
    rng = np.random.default_rng(seed)
    M = squared(*clouds(n, rng, 2, law))
    return M, *weights(n, rng, concentration)


def random(n: int, seed: int, concentration: float = 1.0) -> Instance:
    """Return independent costs, uniform on [0, 1], and random weights."""
    rng = np.random.default_rng(seed)
    M = rng.random((n, n))
    return M, *weights(n, rng, concentration)


# -- the families of the benchmark -----------------------------------------------------------


@dataclass(frozen=True)
class Family:
    """Instances of one kind; images have the largest square number of pixels up to the size."""

    name: str
    label: str
    build: Callable[[int, int], Instance]
    is_image: bool = False
    largest: int | None = None  # size beyond which there are none

    def n_points(self, size: int) -> int:
        """Return the number of sources, which is that of targets."""
        return _side(size, self.largest) ** 2 if self.is_image else size

    def has(self, size: int) -> bool:
        """Tell whether there are instances of a size."""
        return self.largest is None or size <= self.largest


def _side(size: int, largest: int | None) -> int:
    return min(isqrt(size), DIGIT_SIDE) if largest else isqrt(size)


def _images(size: int, seed: int) -> Instance:
    return images(_side(size, None), seed)


def _digits(size: int, seed: int) -> Instance:
    return images(_side(size, size), seed, "mnist")


def _points(size: int, seed: int, dimension: int, metric: str) -> Instance:
    """Return two clouds, uniform in the unit cube, of points with equal weights."""
    from scipy.spatial.distance import cdist

    equal = np.full(size, 1 / size)
    X, Y = clouds(size, np.random.default_rng(seed), dimension)
    return cdist(X, Y, metric), equal, equal.copy()


def _random(size: int, seed: int) -> Instance:
    """Return independent costs, uniform on [0, 1], and weights drawn likewise."""
    rng = np.random.default_rng(seed)
    M, a, b = rng.random((size, size)), rng.random(size), rng.random(size)
    return M, a / a.sum(), b / b.sum()


#: MNIST's digits have 784 pixels, so there are none beyond the size 1024.
FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("images", "paper's images, l1", _images, is_image=True),
        Family("mnist", "MNIST pairs, l1", _digits, is_image=True, largest=1024),
        Family(
            "points2-squared",
            "2-d points, squared Euclidean",
            partial(_points, dimension=2, metric="sqeuclidean"),
        ),
        Family(
            "points2", "2-d points, Euclidean", partial(_points, dimension=2, metric="euclidean")
        ),
        Family(
            "points10-squared",
            "10-d points, squared Euclidean",
            partial(_points, dimension=10, metric="sqeuclidean"),
        ),
        Family(
            "points10",
            "10-d points, Euclidean",
            partial(_points, dimension=10, metric="euclidean"),
        ),
        Family("random", "uniform random costs", _random),
    )
}
