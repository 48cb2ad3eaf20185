"""Digits from MNIST files, and the synthetic images of the paper."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from functools import cache
from importlib import resources

import numpy as np

from .. import memory, parallel
from .._types import Array, Matrix
from ..arguments import check_count, is_integer, numeric, plain
from ..errors import InvalidProblem
from ..metrics import METRICS, PIXEL_METRICS
from ..wording import first_line, named, shown
from .arrays import read_array
from .paths import StrPath, check_unpacked, existing


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
    >>> A.shape, A.sum().round(12).item()
    ((8, 8), 1.0)
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
    parallel.share(cost_rows, n, n * n, X, pixels, METRICS[metric].key, 0.0, M)
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
    # The foreground covers a fifth of the image.
    edge = round(side * math.sqrt(0.2))
    top, left = rng.integers(0, side - edge + 1, size=2)
    image[top : top + edge, left : left + edge] = rng.uniform(0.0, 3.0, (edge, edge))
    image /= image.sum()
    return image


#: Third byte of an IDX file -> type of its numbers; the fourth is the number of axes.
_IDX_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
_GZIP_MAGIC = b"\x1f\x8b"


@cache
def embedded_digits() -> Matrix:
    """Return the 400 digits of MNIST's test set that ship with the package, brightest pixel 1."""
    file = resources.files("epsilot") / "data" / "mnist-400.npz"
    with file.open("rb") as stream, np.load(stream) as arrays:
        images: Matrix = arrays["images"].astype(np.float64)
    images /= images.max(axis=(1, 2), keepdims=True)
    images.setflags(write=False)
    return images


def read_digits(path: StrPath) -> Matrix:
    """Return the square images of a file, each scaled so that its brightest pixel is 1.

    Parameters
    ----------
    path
        An IDX file of MNIST's format, compressed by gzip or not, a ``.npy`` array or the array
        ``images`` of a ``.npz`` archive.

    Returns
    -------
    digits
        (k, side, side) array, k >= 2. Images without any ink are left out.

    References
    ----------
    LeCun, Bottou, Bengio and Haffner (1998).
    """
    suffix = existing(path).suffix.lower()
    if suffix in (".npy", ".npz"):
        array = read_array(path, "images" if suffix == ".npz" else None)
    else:
        array = read_idx(path)
    if array.ndim != 3 or array.shape[1] != array.shape[2]:
        raise InvalidProblem(
            f"{named(path)} holds an array of shape {array.shape}; square images are required, of "
            "shape (number, side, side) (MNIST's file of images, not that of labels)"
        )
    images: Matrix = array[array.max(axis=(1, 2), initial=0) > 0].astype(np.float64)
    if len(images) < 2 or not np.isfinite(images).all() or images.min() < 0:
        raise InvalidProblem(
            f"{named(path)} holds {len(images)} usable images; at least two are required, of "
            "finite nonnegative pixels that are not all zero (check what was saved)"
        )
    images /= images.max(axis=(1, 2), keepdims=True)
    return images


def read_idx(path: StrPath) -> Array:
    """Return the array of an IDX file, compressed by gzip or not."""
    path = existing(path)
    with path.open("rb") as raw:
        is_packed = raw.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
    try:
        with gzip.open(path) if is_packed else path.open("rb") as file:
            zero, kind, n_axes = struct.unpack(">HBB", file.read(4))
            if zero != 0:
                raise ValueError("the first two bytes are not zero")
            shape = struct.unpack(f">{n_axes}I", file.read(4 * n_axes))
            dtype = np.dtype(_IDX_TYPES[kind])
            size = math.prod(shape) * dtype.itemsize
            check_unpacked(path, size)
            content = file.read(size + 1)  # not more than the header says
        values = np.frombuffer(content, dtype=dtype)
        return values.reshape(shape).astype(dtype.newbyteorder("="))
    except (OSError, EOFError, KeyError, ValueError, struct.error, zlib.error) as error:
        if isinstance(error, InvalidProblem):
            raise
        raise InvalidProblem(
            f"{named(path)} is not a complete IDX file ({first_line(error)}); a file like MNIST's "
            "t10k-images-idx3-ubyte.gz is required (download it again)"
        ) from error
