"""Make the problems of all studies: dense costs with weights, by size and seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from math import isqrt, sqrt
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from epsilot._types import Array, Matrix, Vector
from epsilot.arguments import numeric
from epsilot.errors import InvalidProblem
from epsilot.files.images import (
    check_image,
    embedded_digits,
    grid_cost,
    read_digits,
    read_idx,
    synthetic_pair,
)

# -- MNIST digits ------------------------------------------------------------------------------

#: Intensity added to every pixel of a digit whose brightest pixel is 1.
BACKGROUND = 0.01


def mnist_pair(side: int, seed: int, digits: Matrix | None = None) -> tuple[Matrix, Matrix]:
    """Pick two handwritten digits and scale them to a size.

    Pixels are averaged by area, a small background is added so that no mass is zero, and each
    image is scaled to total mass 1.

    Parameters
    ----------
    side
        Pixels along each side; the originals have 28.
    seed
        Seed of the generator that picks two different digits.
    digits
        Square images to pick from, brightest pixel 1 (see
        :func:`epsilot.files.images.read_digits`); 400 of MNIST's test set, which come with the
        package, by default.

    Returns
    -------
    A, B
        Two (side, side) images.

    References
    ----------
    LeCun, Bottou, Bengio and Haffner (1998).

    Examples
    --------
    >>> A, B = mnist_pair(14, seed=0)
    >>> A.shape, A.sum().round(12).item()
    ((14, 14), 1.0)
    """
    side, seed = check_image(side, seed, 1)
    digits = embedded_digits() if digits is None else _square_images(digits)
    first, second = np.random.default_rng(seed).choice(len(digits), 2, replace=False)
    return _downscaled(digits[first], side), _downscaled(digits[second], side)


def _square_images(digits: object) -> Matrix:
    images = numeric(digits, "digits")
    if images.ndim != 3 or len(images) < 2 or images.shape[1] != images.shape[2]:
        raise InvalidProblem(
            f"digits has shape {images.shape}; it must be (number, side, side), two square images "
            "at least"
        )
    return images


def _downscaled(image: Matrix, side: int) -> Matrix:
    """Average an image by area onto side × side pixels, with a background and unit mass."""
    old = image.shape[0]
    edges = np.arange(side + 1) * (old / side)
    cells = np.arange(old)
    # share of old pixel j that lies in new pixel i
    overlap = np.minimum(edges[1:, None], cells + 1) - np.maximum(edges[:-1, None], cells)
    share = np.maximum(overlap, 0.0) * (side / old)
    scaled: Matrix = share @ image @ share.T + BACKGROUND
    scaled /= scaled.sum()
    return scaled


# -- images ------------------------------------------------------------------------------------

DIGIT_SIDE = 28

#: Cost, weights of the sources, weights of the targets.
Instance = tuple[Matrix, Vector, Vector]


def images(side: int, seed: int, data: str = "synthetic") -> Instance:
    """Return the l1 cost of pixels over its maximum, and two images as weights.

    Parameters
    ----------
    side, seed
        Pixels along each side, and which pair.
    data
        "synthetic", "mnist" or the path of a file of digits; with "authors-" before it, the images
        of the authors' notebook.
    """
    kind, is_authors, rest = data.rpartition(AUTHORS)
    if is_authors and not kind:
        A, B = (
            authors_synthetic(side, seed)
            if rest == "synthetic"
            else authors_digits(side, seed, embedded_digits() if rest == "mnist" else pixels(rest))
        )
    elif data == "synthetic":
        A, B = synthetic_pair(side, seed)
    else:
        A, B = mnist_pair(side, seed, None if data == "mnist" else digits(data))
    return grid_cost((side, side)), A.ravel(), B.ravel()


# -- images of the authors' notebook ------------------------------------------------------------

#: Before the name of a data set: made as in the authors' public code (YilingXie27/PDASMD).
AUTHORS = "authors-"
#: Pairs of images of the notebook; its generator draws the seeds of that many at once.
AUTHORS_PAIRS = 5
#: Pixels of a digit are raised to this share of its largest.
AUTHORS_BACKGROUND = 0.15


def authors_seeds(pair: int, seed: int, ends: tuple[int, int, int]) -> tuple[int, int]:
    """Draw two numbers for a pair, the first below ``ends[1]`` and the second from there on.

    The first five pairs are those of the notebook; more pairs come from the same generator.
    """
    draws = np.random.RandomState(seed)
    start, middle, stop = ends
    first, second = np.empty(0, dtype=int), np.empty(0, dtype=int)
    while first.size <= pair:
        first = np.append(first, draws.choice(range(start, middle), AUTHORS_PAIRS))
        second = np.append(second, draws.choice(range(middle, stop), AUTHORS_PAIRS))
    return int(first[pair]), int(second[pair])


def authors_synthetic(side: int, pair: int) -> tuple[Matrix, Matrix]:
    """Return a pair of synthetic images of the authors' notebook, to the bit.

    The side of the square is rounded down and never touches the last row or column.
    """
    seeds = authors_seeds(pair, 1010, (0, 100 * AUTHORS_PAIRS, 200 * AUTHORS_PAIRS))
    first, second = (_authors_image(side, seed) for seed in seeds)
    return first, second


def _authors_image(side: int, seed: int) -> Matrix:
    draws = np.random.RandomState(seed)
    image = draws.uniform(0, 1, (side, side))
    width = int(side * np.sqrt(0.2))
    i, j = draws.choice(side - width), draws.choice(side - width)
    image[i : i + width, j : j + width] = 3 * draws.uniform(0, 1, (width, width))
    return np.asarray(image / image.sum())


def authors_digits(side: int, pair: int, digits: NDArray[Any]) -> tuple[Matrix, Matrix]:
    """Return a pair of digits by the recipe of the authors' notebook.

    Pillow resizes them, and pixels are raised to 0.15 of the largest. With the bytes of the 60,000
    digits of MNIST's training set the images are the notebook's; one of each pair comes from
    either half.
    """
    from PIL import Image

    seeds = authors_seeds(pair, 1001, (0, len(digits) // 2, len(digits)))
    found = []
    for index in seeds:
        own = digits[index] if digits.dtype == np.uint8 else np.rint(255 * digits[index])
        picture = Image.fromarray(own.astype(np.uint8))
        image = np.array(picture.resize((side, side)), dtype=np.float64)
        image = np.maximum(image, AUTHORS_BACKGROUND * image.max())
        found.append(image / image.sum())
    return found[0], found[1]


@cache
def digits(path: str) -> Matrix:
    """Return the digits of a file, the brightest pixel of each scaled to 1."""
    return read_digits(path)


@cache
def pixels(path: str) -> NDArray[Any]:
    """Return the digits of a file as they are: bytes, if it is one of MNIST's."""
    return digits(path) if Path(path).suffix.lower() in (".npy", ".npz") else read_idx(path)


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


def points(n: int, seed: int, law: Law = "uniform") -> Instance:
    """Return squared distances of clouds in the plane, and random weights."""
    rng = np.random.default_rng(seed)
    M = squared(*clouds(n, rng, 2, law))
    return M, *weights(n, rng)


def random(n: int, seed: int) -> Instance:
    """Return independent costs, uniform on [0, 1], and random weights."""
    rng = np.random.default_rng(seed)
    M = rng.random((n, n))
    return M, *weights(n, rng)


# -- the families of the benchmark -----------------------------------------------------------


@dataclass(frozen=True)
class ProblemFamily:
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
FAMILIES: dict[str, ProblemFamily] = {
    family.name: family
    for family in (
        ProblemFamily("images", "paper's images, l1", _images, is_image=True),
        ProblemFamily("mnist", "MNIST pairs, l1", _digits, is_image=True, largest=1024),
        ProblemFamily(
            "points2-squared",
            "2-d points, squared Euclidean",
            partial(_points, dimension=2, metric="sqeuclidean"),
        ),
        ProblemFamily(
            "points2", "2-d points, Euclidean", partial(_points, dimension=2, metric="euclidean")
        ),
        ProblemFamily(
            "points10-squared",
            "10-d points, squared Euclidean",
            partial(_points, dimension=10, metric="sqeuclidean"),
        ),
        ProblemFamily(
            "points10",
            "10-d points, Euclidean",
            partial(_points, dimension=10, metric="euclidean"),
        ),
        ProblemFamily("random", "uniform random costs", _random),
    )
}


# -- unusual costs -----------------------------------------------------------------------------

#: Cost, weights of the sources and of the targets (None: equal).
Odd = tuple[Matrix, Vector | None, Vector | None]


def _distances(X: Matrix, Y: Matrix) -> Matrix:
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(X, Y, "sqeuclidean"))


def _with_outliers(n: int, rng: np.random.Generator) -> tuple[Matrix, Matrix]:
    """Return two clouds, some points of which are far away."""
    X, Y = clouds(n, rng)
    X[:5] *= 100
    Y[:3] *= -50
    return X, Y


#: name -> (n, generator, two uniform clouds) -> cost and weights
_ODD: dict[str, Callable[[int, np.random.Generator, Matrix, Matrix], Odd]] = {
    "outliers": lambda n, rng, X, Y: (_distances(*_with_outliers(n, rng)), None, None),
    "lognormal": lambda n, rng, X, Y: (
        np.exp(2 * rng.normal(size=(n, n))), rng.dirichlet(np.ones(n)), None
    ),
    "0.5 % zeros, else ones": lambda n, rng, X, Y: (
        (rng.random((n, n)) < 0.995).astype(float), rng.dirichlet(np.ones(n)), None
    ),
    "n / 8 sources": lambda n, rng, X, Y: (_distances(X[: n // 8], Y), None, None),
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


# -- clouds of many shapes -----------------------------------------------------------------------

Rng: TypeAlias = np.random.Generator

SHAPES: dict[str, Callable[[Rng, int, int, int], tuple[Array, Array]]] = {
    "uniform": lambda rng, n, m, d: _both(lambda k: rng.random((k, d)), n, m),
    "Gaussians": lambda rng, n, m, d: (rng.normal(size=(n, d)), rng.normal(size=(m, d)) + 1),
    "clusters": lambda rng, n, m, d: _clusters(rng, n, m, d),
    "apart": lambda rng, n, m, d: _moved(rng, n, m, d, 5.0),
    "near": lambda rng, n, m, d: _moved(rng, n, m, d, 1.2),
    "circle to Gaussian": lambda rng, n, m, d: (_circle(rng, n), 0.3 * rng.normal(size=(m, 2))),
    "collinear": lambda rng, n, m, d: _both(
        lambda k: rng.random((k, 1)) * np.arange(1, d + 1), n, m
    ),
    "duplicates": lambda rng, n, m, d: _both(lambda k: _duplicated(rng, k, d), n, m),
    "ties": lambda rng, n, m, d: _both(lambda k: 1.0 * rng.integers(0, 12, (k, d)), n, m),
    "decaying": lambda rng, n, m, d: _both(
        lambda k: rng.normal(size=(k, d)) / np.arange(1, d + 1), n, m
    ),
    "mixture": lambda rng, n, m, d: _mixture(rng, n, m, d),
}
WEIGHTS: dict[str, Callable[[Rng, int], Array | None]] = {
    "equal": lambda rng, n: None,
    "random": lambda rng, n: unit(rng.random(n) + 0.01),
    "heavy": lambda rng, n: unit(rng.pareto(1.2, n) + 1e-3),
}


def unit(x: Array) -> Array:
    """Return nonnegative numbers divided by their sum."""
    return np.asarray(x / x.sum())


def _both(draw: Callable[[int], Array], n: int, m: int) -> tuple[Array, Array]:
    return draw(n), draw(m)


def _moved(rng: Rng, n: int, m: int, d: int, by: float) -> tuple[Array, Array]:
    """Return uniform clouds, the second one moved along the first axis."""
    return rng.random((n, d)), rng.random((m, d)) + by * (np.arange(d) < 1)


def _duplicated(rng: Rng, k: int, d: int) -> Array:
    return rng.random((k // 20 + 1, d))[rng.integers(0, k // 20 + 1, k)]


def _clusters(rng: Rng, n: int, m: int, d: int) -> tuple[Array, Array]:
    centres = rng.random((20, d))
    X, Y = (centres[rng.integers(20, size=k)] + 0.02 * rng.normal(size=(k, d)) for k in (n, m))
    return X, Y


def _mixture(rng: Rng, n: int, m: int, d: int) -> tuple[Array, Array]:
    """Return mixtures of eight Gaussians with correlated features."""
    centres, mixing = 2 * rng.normal(size=(8, d)), rng.normal(size=(d, d)) / sqrt(d)
    X, Y = (centres[rng.integers(8, size=k)] + rng.normal(size=(k, d)) @ mixing for k in (n, m))
    return X, Y


def _circle(rng: Rng, n: int) -> Array:
    angle = 2 * np.pi * rng.random(n)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.01 * rng.normal(size=(n, 2))
