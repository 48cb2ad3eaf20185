"""The synthetic images of the paper's experiments, and the cost of moving their pixels."""

from __future__ import annotations

import math
from functools import cache
from importlib import resources

import numpy as np

from .. import memory
from .._types import Matrix
from ..arguments import check_count, is_integer, numeric, shown
from ..errors import InvalidProblem
from ..metrics import METRICS, PIXEL_METRICS

FOREGROUND_AREA = 0.2
#: Intensity added to every pixel of a digit whose brightest pixel is 1.
BACKGROUND = 0.01


def synthetic_pair(side: int, seed: int) -> tuple[Matrix, Matrix]:
    """Draw two images: a bright square on a dark background.

    Every background pixel is uniform on [0, 1]. A square that covers about a fifth of the image,
    anywhere inside the frame, is uniform on [0, 3]. Each image is then scaled to total mass 1.

    Parameters
    ----------
    side
        Pixels along each side, at least 2.
    seed
        Seed of the generator from which both images are drawn.

    Returns
    -------
    A, B
        Two (side, side) images.

    References
    ----------
    Altschuler, Weed and Rigollet (2017), section 5.

    Examples
    --------
    >>> A, B = synthetic_pair(8, seed=0)
    >>> A.shape, bool(abs(A.sum() - 1) < 1e-12)
    ((8, 8), True)
    """
    _check_picture(side, seed, 2)
    rng = np.random.default_rng(seed)
    return _square_on_noise(side, rng), _square_on_noise(side, rng)


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
        Square images to pick from, brightest pixel 1 (see :func:`epsilot.files.mnist.read_digits`);
        400 of MNIST's test set, which come with the package, by default.

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
    >>> A.shape, bool(A.min() > 0), bool(abs(A.sum() - 1) < 1e-12)
    ((14, 14), True, True)
    """
    _check_picture(side, seed, 1)
    digits = embedded_digits() if digits is None else _square_images(digits)
    first, second = np.random.default_rng(seed).choice(len(digits), 2, replace=False)
    return _downscaled(digits[first], side), _downscaled(digits[second], side)


def grid_cost(shape: tuple[int, int], metric: str = "cityblock") -> Matrix:
    """Return the distances between all pixels of an image, divided by the largest.

    Parameters
    ----------
    shape
        Height and width of the image.
    metric
        ``"cityblock"`` (the paper's), ``"euclidean"`` or ``"sqeuclidean"``.

    Returns
    -------
    M
        (n, n) array with n = height · width, pixels in row-major order. A single pixel gives 0.

    Examples
    --------
    >>> grid_cost((1, 3))
    array([[0. , 0.5, 1. ],
           [0.5, 0. , 0.5],
           [1. , 0.5, 0. ]])
    """
    if not isinstance(metric, str) or metric not in PIXEL_METRICS:
        raise InvalidProblem(
            f"the pixel metric is {shown(metric)}; required is one of "
            f"{', '.join(PIXEL_METRICS)} ({PIXEL_METRICS[0]} is the default)"
        )
    height, width = _image_shape(shape)
    memory.ask(2 * 8 * (height * width) ** 2, f"the cost of {height} x {width} pixels", "use Grid")
    down = _separations(height) ** METRICS[metric].power
    across = _separations(width) ** METRICS[metric].power
    M = (down[:, None, :, None] + across[None, :, None, :]).reshape(height * width, -1)
    if METRICS[metric].is_root:
        np.sqrt(M, out=M)
    M /= M.max() or 1.0
    return M


def _check_picture(side: object, seed: object, least: int) -> None:
    if not (is_integer(side) and side >= least):
        raise InvalidProblem(
            f"the image side is {shown(side)}; at least {least} pixels are required (choose a "
            "larger side)"
        )
    check_count("seed", seed, 0)
    memory.ask(4 * 8 * int(side) ** 2, f"two images of {side} x {side} pixels", "choose less")


def _square_images(digits: object) -> Matrix:
    images = numeric(digits, "digits")
    if images.ndim != 3 or len(images) < 2 or images.shape[1] != images.shape[2]:
        raise InvalidProblem(
            f"digits has shape {images.shape}; it must be (number, side, side), two square images "
            "at least"
        )
    return images


def _image_shape(shape: object) -> tuple[int, int]:
    cells = numeric(shape, "shape")
    if cells.shape != (2,) or not ((cells >= 1) & (cells % 1 == 0)).all():
        raise InvalidProblem(
            f"the image shape is {shown(shape)}; it must be a height and a width of at least one "
            "pixel"
        )
    return int(cells[0]), int(cells[1])


def _square_on_noise(side: int, rng: np.random.Generator) -> Matrix:
    """Draw one image of unit mass."""
    image: Matrix = rng.uniform(0.0, 1.0, (side, side))
    edge = round(side * math.sqrt(FOREGROUND_AREA))
    top, left = rng.integers(0, side - edge + 1, size=2)
    image[top : top + edge, left : left + edge] = rng.uniform(0.0, 3.0, (edge, edge))
    image /= image.sum()
    return image


def _separations(length: int) -> Matrix:
    """Return the distances between the pixels of one line."""
    position = np.arange(length, dtype=np.float64)
    return np.abs(position[:, None] - position[None, :])


@cache
def embedded_digits() -> Matrix:
    """Return the embedded digits, brightest pixel 1."""
    file = resources.files("epsilot") / "data" / "mnist-400.npz"
    with file.open("rb") as stream, np.load(stream) as arrays:
        images: Matrix = arrays["images"].astype(np.float64)
    images /= images.max(axis=(1, 2), keepdims=True)
    images.setflags(write=False)
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
