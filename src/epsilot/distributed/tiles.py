"""Read points in tiles of rows on the workers, from files, Dask arrays or arrays of the client."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from .._types import Array, Index, Matrix, Vector
from ..arguments import is_of_dask
from ..errors import InvalidProblem, MissingExtra
from ..geometry import sweeps
from ..geometry.coordinates import as_points, directions
from ..geometry.tuning import TUNING as GEOMETRY_TUNING
from ..wording import first_line, named, shown
from .cluster import Cluster

if TYPE_CHECKING:
    import zarr
    from dask.array import Array as DaskArray
    from distributed import Future
else:
    Future = Any

#: Points as the caller passes them: an array of any type, or the name of a file.
Points: TypeAlias = Any


class Reader(Protocol):
    """A table that every process can read; its pickled form is sent to the workers."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows, and of columns."""

    def read(self, start: int, stop: int) -> Array:
        """Return rows ``start:stop``."""


@dataclass(frozen=True)
class Npy:
    """A ``.npy`` file, which is memory-mapped."""

    path: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int
    is_fortran: bool

    def read(self, start: int, stop: int) -> Array:
        """Return rows ``start:stop``."""
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
        """Number of rows, and of columns."""
        return tuple(self.array.shape)

    def read(self, start: int, stop: int) -> Array:
        """Return rows ``start:stop``."""
        return np.asarray(self.array[start:stop])


@dataclass(frozen=True)
class Parquet:
    """Points whose coordinates are columns of a Parquet file, or of a folder of Parquet files.

    Parameters
    ----------
    path : str or path
        File or folder, which all workers must be able to read.
    columns : sequence of str
        Names of the coordinates, in order.

    Examples
    --------
    >>> Parquet("cells.parquet", ["x", "y"])  # doctest: +SKIP
    """

    path: str | os.PathLike[str]
    columns: Sequence[str]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows, and of columns."""
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
            raise MissingExtra("reading Parquet files", "pyarrow", "distributed") from None
        try:
            return dataset.dataset(os.fspath(self.path), format="parquet")
        except OSError as error:
            raise InvalidProblem(
                f"{named(self.path)} cannot be read as Parquet ({first_line(error)})."
            ) from None

    def read(self, start: int, stop: int) -> Array:
        """Return rows ``start:stop``; only the row groups that hold them are read."""
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
    """Tell whether an array is a Dask array."""
    return is_of_dask(X) and hasattr(X, "dtype")


def reader_of(X: Points, name: str) -> Reader | None:
    """Return the reader of an input that workers can read themselves, or None."""
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
    """Return rows of a Dask array as one chunk."""
    return X[start:stop].rechunk(-1)


def table_shape(shape: Sequence[int], name: str) -> tuple[int, int]:
    """Return the shape (n, d) of a point cloud, or raise if it is not one."""
    if len(shape) == 1 and shape[0] >= 1:
        return int(shape[0]), 1
    if len(shape) != 2 or min(shape) < 1:
        raise InvalidProblem(
            f"{name} has shape {tuple(shape)}; it must be (n, d): n >= 1 points of d >= 1 numbers."
        )
    return int(shape[0]), int(shape[1])


def checked(rows: Array, name: str, first: int) -> Array:
    """Check rows of a cloud, numbered from ``first`` on, and convert them to float64."""
    return as_points(rows, name if first == 0 else f"{name}[{first}:]")


# -- tiles --------------------------------------------------------------------------------------


class Tile:
    """Points on a worker, with cached copies in the layouts of the kernels."""

    def __init__(self, points: Matrix) -> None:
        self.points = points
        self._made: dict[tuple[object, ...], Matrix] = {}

    def __reduce__(self) -> tuple[type[Tile], tuple[Matrix]]:
        return Tile, (self.points,)

    def layout(
        self, dtype: type[np.floating], centre: Vector | None, is_transposed: bool
    ) -> Matrix:
        """Return the points as rows or, transposed, with one row per coordinate."""
        key = dtype, is_transposed, None if centre is None else centre.tobytes()
        if key not in self._made:
            X = self.points if centre is None else self.points - centre
            self._made[key] = np.require(X.T if is_transposed else X, dtype, ("C", "A", "W"))
        return self._made[key]


@dataclass(frozen=True, eq=False)
class Tiles:
    """The points of one side of a problem: their source and how they are transformed."""

    cluster: Cluster
    source: Points  # an array of the client, a reader, or a Dask array
    name: str
    shape: tuple[int, int]
    is_direction: bool = False
    exponent: int = 0  # coordinates are multiplied by this power of two

    @classmethod
    def of(cls, X: Points, name: str, cluster: Cluster, is_direction: bool = False) -> Tiles:
        """Return the tiles of an input of any type."""
        source = X if is_dask(X) else reader_of(X, name)
        source = checked(X, name, 0) if source is None else source
        return cls(cluster, source, name, table_shape(source.shape, name), is_direction)

    @property
    def is_local(self) -> bool:
        """Tell whether the points are an array of this process."""
        return isinstance(self.source, np.ndarray)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """First and last row of each tile."""
        return list(sweeps.spans(self.shape[0], GEOMETRY_TUNING.max_tile_columns))

    def future(self, k: int) -> Future:
        """Return tile k as the future of a task that reads it."""
        return self.cluster.once(self, k, lambda: self._submit(*self.spans[k]))

    def _submit(self, lo: int, hi: int) -> Future:
        cluster, how = self.cluster, (self.name, lo, self.is_direction, self.exponent)
        if isinstance(self.source, np.ndarray):
            return cluster.submit(made, cluster.send(self.source[lo:hi]), *how)
        if is_dask(self.source):
            return cluster.submit(made, cluster.client.compute(rows_of(self.source, lo, hi)), *how)
        return cluster.submit(read, self.source, hi, *how)

    def scaled(self, exponent: int) -> Tiles:
        """Return the tiles of the points times 2**exponent."""
        return replace(self, exponent=self.exponent + exponent)

    # -- read points into this process -----------------------------------------------------

    def all_points(self) -> Matrix:
        """Read all points, before scaling, into this process."""
        if isinstance(self.source, np.ndarray):
            return self.source
        return np.concatenate([self.raw(lo, hi) for lo, hi in self.spans])

    def raw(self, lo: int, hi: int) -> Matrix:
        """Read rows ``lo:hi``, before scaling, into this process."""
        source = self.source
        if not is_dask(source):
            return checked(source.read(lo, hi), self.name, lo)
        piece = rows_of(source, lo, hi)
        found = self.cluster.gather(lambda: [self.cluster.client.compute(piece)])
        return checked(found[0], self.name, lo)

    def piece(self, k: int) -> Matrix:
        """Fetch the points of tile k from the workers."""
        found: Matrix = self._each(points_of, [k])[0]
        return found

    def extent(self) -> tuple[Vector, Vector]:
        """Return the smallest and the largest coordinates of all points."""
        lows, highs = zip(*self._each(extent_of, range(len(self.spans))), strict=True)
        return np.min(lows, axis=0), np.max(highs, axis=0)

    def take(self, index: Index) -> Matrix:
        """Fetch the points with the given indices from the workers."""
        out = np.empty((index.size, self.shape[1]))
        inside = [np.flatnonzero((index >= lo) & (index < hi)) for lo, hi in self.spans]
        used = [k for k, own in enumerate(inside) if own.size]
        given = [index[inside[k]] - self.spans[k][0] for k in used]
        for k, found in zip(used, self._each(taken, used, given), strict=True):
            out[inside[k]] = found
        return out

    def _each(self, function: Any, places: Any, *given: Any) -> list[Any]:
        """Return the results of a function on the tiles with the given numbers."""
        places = list(places)
        return self.cluster.gather(
            lambda: self.cluster.map(function, [self.future(k) for k in places], *given)
        )


@dataclass(frozen=True, eq=False)
class SubsetTiles(Tiles):
    """A subset of other tiles (``source``), given by increasing indices of points."""

    index: Index = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def among(cls, tiles: Tiles, index: Index) -> SubsetTiles:
        """Return the tiles of the points with the given indices."""
        shape = index.size, tiles.shape[1]
        return cls(tiles.cluster, tiles, tiles.name, shape, index=index)

    def _submit(self, lo: int, hi: int) -> Future:
        tiles, index = self.source, self.index[lo:hi]
        inside = [index[(index >= a) & (index < b)] - a for a, b in tiles.spans]
        used = [k for k, own in enumerate(inside) if own.size]
        parts = [tiles.future(k) for k in used]
        return self.cluster.submit(subset, parts, [inside[k] for k in used])

    def scaled(self, exponent: int) -> Tiles:
        """Return the tiles of the points times 2**exponent."""
        return replace(self, source=self.source.scaled(exponent))


# -- functions that run on workers ---------------------------------------------------------------


def made(rows: Matrix, name: str, first: int, is_direction: bool, exponent: int) -> Tile:
    """Make a tile of checked rows of a cloud, numbered from ``first`` on."""
    X = checked(rows, name, first)
    X = directions(X, name) if is_direction else X
    return Tile(np.ldexp(X, exponent) if exponent else X)


def read(source: Reader, stop: int, name: str, first: int, *how: Any) -> Tile:
    """Read a tile from its source."""
    return made(source.read(first, stop), name, first, *how)


def subset(tiles: Sequence[Tile], places: Sequence[Index]) -> Tile:
    """Make a tile of points of other tiles."""
    parts = [tile.points[index] for tile, index in zip(tiles, places, strict=True)]
    return Tile(np.concatenate(parts))


def points_of(tile: Tile) -> Matrix:
    """Return the points of a tile."""
    return tile.points


def extent_of(tile: Tile) -> tuple[Vector, Vector]:
    """Return the smallest and the largest coordinates of a tile."""
    return tile.points.min(axis=0), tile.points.max(axis=0)


def taken(tile: Tile, index: Index) -> Matrix:
    """Return the points of a tile with the given indices."""
    return tile.points[index]
