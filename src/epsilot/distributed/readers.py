"""Where points come from: each kind of input is read where it is used, some rows at a time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from .._types import Array
from ..arguments import is_of_dask
from ..errors import InvalidProblem
from ..geometry.coordinates import as_points
from ..wording import first_line, named, shown

if TYPE_CHECKING:
    import zarr
    from dask.array import Array as DaskArray

#: Points as a caller gives them: an array of any kind, or the name of a file.
Points: TypeAlias = Any


class Reader(Protocol):
    """Rows of numbers that any process can read; what is written of it is sent to workers."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows, and numbers of a row."""

    def read(self, start: int, stop: int) -> Array:
        """Return some rows."""


@dataclass(frozen=True)
class Npy:
    """An array file that is mapped, never read as a whole."""

    path: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int
    is_fortran: bool

    def read(self, start: int, stop: int) -> Array:
        """Return some rows."""
        mapped = np.memmap(
            self.path, self.dtype, "r", self.offset, self.shape, "F" if self.is_fortran else "C"
        )
        return np.array(mapped[start:stop])


@dataclass(frozen=True)
class Zarr:
    """An array of a Zarr store."""

    array: zarr.Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows, and numbers of a row."""
        return tuple(self.array.shape)

    def read(self, start: int, stop: int) -> Array:
        """Return some rows."""
        return np.asarray(self.array[start:stop])


@dataclass(frozen=True)
class Parquet:
    """Points whose coordinates are columns of a Parquet file, or of a folder of such files.

    Parameters
    ----------
    path : str or path
        The file or folder; all workers must see it.
    columns : sequence of str
        The coordinates, in their order.

    Examples
    --------
    >>> Parquet("cells.parquet", ["x", "y"])  # doctest: +SKIP
    """

    path: str | os.PathLike[str]
    columns: Sequence[str]

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows, and numbers of a row."""
        data = self._dataset()
        missing = [name for name in self.columns if name not in data.schema.names]
        if missing or not self.columns or isinstance(self.columns, str):
            raise InvalidProblem(
                f"columns is {shown(self.columns)}; it must be a list of columns of "
                f"{named(self.path)}, which has {shown(', '.join(data.schema.names))}."
            )
        return data.count_rows(), len(self.columns)

    def _dataset(self) -> Any:
        try:
            from pyarrow import dataset
        except ImportError:
            raise InvalidProblem(
                'Parquet needs pyarrow (pip install "epsilot[distributed]").'
            ) from None
        try:
            return dataset.dataset(os.fspath(self.path), format="parquet")
        except OSError as error:
            raise InvalidProblem(
                f"{named(self.path)} cannot be read as Parquet ({first_line(error)})."
            ) from None

    def read(self, start: int, stop: int) -> Array:
        """Return some rows, of the batches that hold them."""
        parts, at = [np.zeros((0, len(self.columns)))], 0
        for fragment in self._dataset().get_fragments():
            for group in fragment.split_by_row_group():
                n = sum(rows.num_rows for rows in group.row_groups)
                lo, hi = max(start - at, 0), min(stop - at, n)
                if lo < hi:
                    table = group.to_table(columns=list(self.columns)).slice(lo, hi - lo)
                    parts.append(np.stack([np.asarray(table[c]) for c in self.columns], axis=1))
                at += n
        return np.concatenate(parts)


def is_dask(X: Points) -> bool:
    """Tell whether an array is Dask's."""
    return is_of_dask(X) and hasattr(X, "dtype")


def reader_of(X: Points, name: str) -> Reader | None:
    """Return the reader of an input that workers can read for themselves, or None."""
    if isinstance(X, Parquet):
        return X
    if isinstance(X, (str, os.PathLike)):
        return _file(Path(X), name)
    if isinstance(X, np.memmap) and not isinstance(X.base, np.ndarray) and X.filename is not None:
        return _mapped(X)
    return Zarr(X) if type(X).__module__.partition(".")[0] == "zarr" else None


def _file(path: Path, name: str) -> Reader:
    """Return the reader of a named file."""
    try:
        if path.suffix == ".npy":
            return _mapped(np.load(path, mmap_mode="r"))
        if path.suffix == ".zarr":
            import zarr

            return Zarr(zarr.open_array(str(path), mode="r"))
    except (OSError, ValueError, ImportError, KeyError, TypeError) as error:
        raise InvalidProblem(
            f"{name} is {named(path)}, which cannot be read ({first_line(error)})."
        ) from None
    raise InvalidProblem(
        f"{name} is {named(path)}; a file of points must be .npy or .zarr (or use "
        "epsilot.distributed.Parquet(path, columns))."
    )


def _mapped(X: np.memmap[Any, Any]) -> Npy:
    path, is_fortran = os.path.abspath(str(X.filename)), not X.flags.c_contiguous
    return Npy(path, tuple(X.shape), X.dtype, X.offset, is_fortran)


def rows_of(X: DaskArray, start: int, stop: int) -> DaskArray:
    """Return some rows of a Dask array in one piece."""
    return X[start:stop].rechunk(-1)


def table_shape(shape: Sequence[int], name: str) -> tuple[int, int]:
    """Return the shape of a cloud, or say what is wrong with it."""
    if len(shape) == 1 and shape[0] >= 1:
        return int(shape[0]), 1
    if len(shape) != 2 or min(shape) < 1:
        raise InvalidProblem(
            f"{name} has shape {tuple(shape)}; it must be (n, d): n >= 1 points of d >= 1 numbers."
        )
    return int(shape[0]), int(shape[1])


def checked(rows: Array, name: str, first: int) -> Array:
    """Return rows of a cloud from a place on as finite float64 coordinates."""
    return as_points(rows, name if first == 0 else f"{name}[{first}:]")
