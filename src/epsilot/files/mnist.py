"""Read sets of handwritten digits: those that ship with the package, IDX files, or arrays."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from functools import cache
from importlib import resources

import numpy as np

from .._types import Array, Matrix
from ..errors import InvalidProblem
from ..wording import first_line, named
from . import StrPath, existing, read_array
from .paths import check_unpacked

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
            content = file.read(size + 1)  # not more than the header says, whatever was packed
        values = np.frombuffer(content, dtype=dtype)
        return values.reshape(shape).astype(dtype.newbyteorder("="))
    except (OSError, EOFError, KeyError, ValueError, struct.error, zlib.error) as error:
        if isinstance(error, InvalidProblem):
            raise
        raise InvalidProblem(
            f"{named(path)} is not a complete IDX file ({first_line(error)}); a file like MNIST's "
            "t10k-images-idx3-ubyte.gz is required (download it again)"
        ) from error
