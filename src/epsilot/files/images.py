"""The synthetic images of the paper's experiments, and the cost of moving their pixels."""

from __future__ import annotations

import math

import numpy as np

from .. import memory, parallel
from .._types import Matrix
from ..arguments import check_count, is_integer, numeric, plain
from ..errors import InvalidProblem
from ..metrics import METRICS, PIXEL_METRICS
from ..wording import shown

FOREGROUND_AREA = 0.2


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
    side, seed = check_image(side, seed, 2)
    rng = np.random.default_rng(seed)
    return _square_on_noise(side, rng), _square_on_noise(side, rng)


def grid_cost(shape: tuple[int, int], metric: str = "cityblock") -> Matrix:
    """Return the distances between all pixels of an image, divided by the largest.

    Parameters
    ----------
    shape
        Height and width of the image.
    metric
        A name of ``epsilot.metrics.PIXEL_METRICS``: ``"cityblock"`` (the paper's) or another.

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
    from ..kernels.points import cost_rows

    n = height * width
    pixels = np.indices((height, width), dtype=np.float64).reshape(2, n)
    M = np.empty((n, n))
    X = np.ascontiguousarray(pixels.T)
    parallel.share(cost_rows, n, n * n, X, pixels, METRICS[metric].code, 0.0, M)
    M /= M.max() or 1.0
    return M


def check_image(side: object, seed: object, least: int) -> tuple[int, int]:
    """Return side and seed; reject sides below a least one, and images that memory cannot hold."""
    side = plain(side)
    if not (is_integer(side) and side >= least):
        raise InvalidProblem(
            f"the image side is {shown(side)}; at least {least} pixels are required (choose a "
            "larger side)"
        )
    memory.ask(4 * 8 * int(side) ** 2, f"two images of {side} x {side} pixels", "choose less")
    return int(side), check_count("seed", seed, 0)


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
