"""NumPy's files, whose headers are believed only after their sizes are compared."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from .. import memory
from .._types import Array
from ..errors import InvalidProblem
from ..wording import first_line, named, shown
from .paths import StrPath, check_unpacked, existing

_NPY_MAGIC = b"\x93NUMPY"
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_DAMAGE = (ValueError, EOFError, OSError, MemoryError, zipfile.BadZipFile, NotImplementedError)


def archive_names(path: StrPath) -> list[str]:
    """Return the names of the arrays in a ``.npz`` file."""
    with _opened(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def read_archive(
    path: StrPath, names: Iterable[str] | None = None, limit: int | None = None
) -> dict[str, Array]:
    """Return arrays of a ``.npz`` file that epsilot or anybody wrote.

    Nothing is unpacked before it is known that every array is as large as its header says, that
    none holds Python objects, and that all of them fit.

    Parameters
    ----------
    path
        The archive.
    names
        Arrays to read; all by default.
    limit
        Bytes that they may take together; the memory that is available by default.

    Raises
    ------
    InvalidProblem
        When the file is missing, damaged, too large, or its sizes contradict each other.
    """
    with _opened(path) as archive:
        members = {name.removesuffix(".npy"): name for name in archive.namelist()}
        if len(members) != len(archive.namelist()):
            raise _damaged(named(path), "two arrays have the same name")
        wanted = list(members) if names is None else list(names)
        for name in wanted:
            if name not in members:
                raise _damaged(named(path), f"the array {shown(name)} is missing")
        total = sum(_checked_member(archive, path, members[name]) for name in wanted)
        if limit is not None and total > limit:
            raise InvalidProblem(
                f"{named(path)} unpacks to {memory.size_text(total)}; at most "
                f"{memory.size_text(limit)} are expected here (is it the right file?)"
            )
        check_unpacked(path, total)
        return {name: _read_member(archive, path, members[name]) for name in wanted}


def read_npy(path: Path) -> Array:
    """Return the array of a ``.npy`` file."""
    with path.open("rb") as file:
        if file.read(len(_NPY_MAGIC)) != _NPY_MAGIC:
            raise InvalidProblem(
                f"{named(path)} is not in NumPy's format; a .npy file is required "
                "(save it with numpy.save, or give text the ending .csv)"
            )
        file.seek(0)
        n_bytes = _promised(file, named(path))
        if n_bytes > path.stat().st_size - file.tell():
            raise _damaged(named(path), "its header promises more than the file holds")
        memory.ask(n_bytes, named(path), "use a smaller file")
        file.seek(0)
        return _array(file, named(path))


@contextmanager
def _opened(path: StrPath) -> Iterator[zipfile.ZipFile]:
    path = existing(path)
    try:
        archive = zipfile.ZipFile(path)
    except _DAMAGE:
        raise InvalidProblem(
            f"{named(path)} is not a NumPy archive; a .npz file is required (save it with "
            "numpy.savez)"
        ) from None
    with archive:
        yield archive


def _checked_member(archive: zipfile.ZipFile, path: StrPath, member: str) -> int:
    """Return the bytes of an array whose header agrees with what the archive says of it."""
    name, size = (
        f"{named(path)}:{named(member.removesuffix('.npy'))}",
        archive.getinfo(member).file_size,
    )
    try:
        file = archive.open(member)
    except (*_DAMAGE, RuntimeError) as error:  # RuntimeError: it is encrypted
        raise _damaged(name, first_line(error)) from error
    with file:
        n_bytes = _promised(file, name)
        if file.tell() + n_bytes != size:
            raise _damaged(
                name, f"it unpacks to {size:,} bytes and its header promises {n_bytes:,} of numbers"
            )
    return n_bytes


def _promised(file: IO[bytes], name: str) -> int:
    """Return the bytes of numbers that a header promises, and leave the file behind it."""
    try:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"version {version} of the format is unknown")
        shape, _, dtype = _HEADERS[version](file)
    except _DAMAGE as error:
        if "magic string" in str(error):
            raise InvalidProblem(
                f"{name} is not in NumPy's format; an array is required "
                "(save the archive with numpy.savez)"
            ) from error
        raise _damaged(name, first_line(error)) from error
    if dtype.hasobject:
        raise InvalidProblem(
            f"{name} holds Python objects; an array of numbers is required "
            "(convert it with array.astype(float) before saving)"
        )
    if any(length < 0 for length in shape):
        raise _damaged(name, f"its shape is {shape}")
    return math.prod(shape) * dtype.itemsize


def _read_member(archive: zipfile.ZipFile, path: StrPath, member: str) -> Array:
    with archive.open(member) as file:
        return _array(file, f"{named(path)}:{named(member.removesuffix('.npy'))}")


def _array(file: IO[bytes], name: str) -> Array:
    try:
        array: Array = np.lib.format.read_array(file, allow_pickle=False)
    except _DAMAGE as error:
        raise _damaged(name, first_line(error)) from error
    return array


def _damaged(name: str, reason: str) -> InvalidProblem:
    return InvalidProblem(
        f"{name} is damaged ({reason}); a complete array is required (save it again)"
    )
