"""The problems of the benchmark: families of dense costs with weights, by size and seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isqrt

import numpy as np

from ..._types import Matrix, Vector
from ...files.images import grid_cost, mnist_pair, synthetic_pair

DIGIT_SIDE = 28

Problem = tuple[Matrix, Vector, Vector]


@dataclass(frozen=True)
class Family:
    """Problems of one kind; images have the largest square number of pixels up to the size."""

    name: str
    label: str
    build: Callable[[int, int], Problem]
    is_image: bool = False
    largest: int | None = None  # size beyond which there are no problems

    def n_points(self, size: int) -> int:
        """Return the number of sources, which is that of targets."""
        return _side(size, self.largest) ** 2 if self.is_image else size

    def has(self, size: int) -> bool:
        """Tell whether there are problems of a size."""
        return self.largest is None or size <= self.largest


def _side(size: int, largest: int | None) -> int:
    return min(isqrt(size), DIGIT_SIDE) if largest else isqrt(size)


def _images(size: int, seed: int) -> Problem:
    side = _side(size, None)
    A, B = synthetic_pair(side, seed)
    return grid_cost((side, side)), A.ravel(), B.ravel()


def _digits(size: int, seed: int) -> Problem:
    side = _side(size, size)
    A, B = mnist_pair(side, seed)
    return grid_cost((side, side)), A.ravel(), B.ravel()


def _points(size: int, seed: int, dimension: int, metric: str) -> Problem:
    """Return two clouds, uniform in the unit cube, of points with equal weights."""
    from scipy.spatial.distance import cdist

    rng = np.random.default_rng(seed)
    weights = np.full(size, 1 / size)
    X, Y = rng.random((size, dimension)), rng.random((size, dimension))
    return cdist(X, Y, metric), weights, weights.copy()


def _random(size: int, seed: int) -> Problem:
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
            "points2-squared", "2-d points, squared Euclidean",
            partial(_points, dimension=2, metric="sqeuclidean"),
        ),
        Family(
            "points2", "2-d points, Euclidean", partial(_points, dimension=2, metric="euclidean")
        ),
        Family(
            "points10-squared", "10-d points, squared Euclidean",
            partial(_points, dimension=10, metric="sqeuclidean"),
        ),
        Family(
            "points10", "10-d points, Euclidean",
            partial(_points, dimension=10, metric="euclidean"),
        ),
        Family("random", "uniform random costs", _random),
    )
}  # fmt: skip
