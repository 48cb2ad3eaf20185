"""A cloud of points on the workers, in tiles of rows that a task makes and can make again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import Index, Matrix, Vector
from ..geometry import sweeps
from ..geometry.coordinates import directions
from .cluster import Cluster
from .readers import Points, Reader, checked, is_dask, reader_of, rows_of, table_shape

if TYPE_CHECKING:
    from distributed import Future
else:
    Future = Any


class Tile:
    """Some points on a worker, in the layouts that kernels take, each made once."""

    def __init__(self, points: Matrix) -> None:
        self.points = points
        self._made: dict[tuple[object, ...], Matrix] = {}

    def __reduce__(self) -> tuple[type[Tile], tuple[Matrix]]:
        return Tile, (self.points,)

    def layout(self, dtype: type[np.floating], centre: Vector | None, is_across: bool) -> Matrix:
        """Return the points as rows, or across: a row for each coordinate."""
        key = dtype, is_across, None if centre is None else centre.tobytes()
        if key not in self._made:
            X = self.points if centre is None else self.points - centre
            self._made[key] = np.require(X.T if is_across else X, dtype, ("C", "A", "W"))
        return self._made[key]


@dataclass(frozen=True, eq=False)
class Tiles:
    """One side of a problem: where its points come from, and what is done to them."""

    cluster: Cluster
    source: Points  # an array of this process, a reader, or a Dask array
    name: str
    shape: tuple[int, int]
    is_direction: bool = False
    exponent: int = 0  # coordinates are multiplied by this power of two

    @classmethod
    def of(cls, X: Points, name: str, cluster: Cluster, is_direction: bool = False) -> Tiles:
        """Return the tiles of any kind of input."""
        source = X if is_dask(X) else reader_of(X, name)
        source = checked(X, name, 0) if source is None else source
        return cls(cluster, source, name, table_shape(source.shape, name), is_direction)

    @property
    def is_here(self) -> bool:
        """Whether the caller's array is in this process."""
        return isinstance(self.source, np.ndarray)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Bounds of the tiles."""
        return list(sweeps.spans(self.shape[0], sweeps.MAX_TILE_COLUMNS))

    def future(self, k: int) -> Future:
        """Return a tile; the task that makes it reads what it is made of."""
        return self.cluster.once(self, k, lambda: self._ask(*self.spans[k]))

    def _ask(self, lo: int, hi: int) -> Future:
        cluster, how = self.cluster, (self.name, lo, self.is_direction, self.exponent)
        if isinstance(self.source, np.ndarray):
            return cluster.submit(made, cluster.send(self.source[lo:hi]), *how)
        if is_dask(self.source):
            return cluster.submit(made, cluster.client.compute(rows_of(self.source, lo, hi)), *how)
        return cluster.submit(read, self.source, hi, *how)

    def scaled(self, exponent: int) -> Tiles:
        """Return the tiles of points that are moved apart or together."""
        return replace(self, exponent=self.exponent + exponent)

    # -- what this process may ask ---------------------------------------------------------

    def here(self) -> Matrix:
        """Return all points as they were given, read by this process."""
        if isinstance(self.source, np.ndarray):
            return self.source
        return np.concatenate([self.raw(lo, hi) for lo, hi in self.spans])

    def raw(self, lo: int, hi: int) -> Matrix:
        """Return some points as they were given, read by this process."""
        source = self.source
        if not is_dask(source):
            return checked(source.read(lo, hi), self.name, lo)
        piece = rows_of(source, lo, hi)
        found = self.cluster.gather(lambda: [self.cluster.client.compute(piece)])
        return checked(found[0], self.name, lo)

    def piece(self, k: int) -> Matrix:
        """Return the points of a tile, as workers have them."""
        found: Matrix = self._each(points_of, [k])[0]
        return found

    def extent(self) -> tuple[Vector, Vector]:
        """Return the smallest and the largest coordinates."""
        lows, highs = zip(*self._each(extent_of, range(len(self.spans))), strict=True)
        return np.min(lows, axis=0), np.max(highs, axis=0)

    def take(self, index: Index) -> Matrix:
        """Return some points."""
        out = np.empty((index.size, self.shape[1]))
        inside = [np.flatnonzero((index >= lo) & (index < hi)) for lo, hi in self.spans]
        asked = [k for k, own in enumerate(inside) if own.size]
        given = [index[inside[k]] - self.spans[k][0] for k in asked]
        for k, found in zip(asked, self._each(taken, asked, given), strict=True):
            out[inside[k]] = found
        return out

    def _each(self, function: Any, places: Any, *given: Any) -> list[Any]:
        """Return what a function says of some tiles."""
        places = list(places)
        return self.cluster.gather(
            lambda: self.cluster.map(function, [self.future(k) for k in places], *given)
        )


@dataclass(frozen=True, eq=False)
class Chosen(Tiles):
    """Some of the points of other tiles, by their rising numbers: ``source`` is those tiles."""

    index: Index = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def among(cls, tiles: Tiles, index: Index) -> Chosen:
        """Return the tiles of some points."""
        shape = index.size, tiles.shape[1]
        return cls(tiles.cluster, tiles, tiles.name, shape, index=index)

    def _ask(self, lo: int, hi: int) -> Future:
        tiles, index = self.source, self.index[lo:hi]
        inside = [index[(index >= a) & (index < b)] - a for a, b in tiles.spans]
        asked = [k for k, own in enumerate(inside) if own.size]
        parts = [tiles.future(k) for k in asked]
        return self.cluster.submit(chosen, parts, [inside[k] for k in asked])

    def scaled(self, exponent: int) -> Tiles:
        """Return the tiles of points that are moved apart or together."""
        return replace(self, source=self.source.scaled(exponent))


# -- what workers do ---------------------------------------------------------------------------


def made(rows: Matrix, name: str, first: int, is_direction: bool, exponent: int) -> Tile:
    """Return a tile of the rows of a cloud from a place on."""
    X = checked(rows, name, first)
    X = directions(X, name) if is_direction else X
    return Tile(np.ldexp(X, exponent) if exponent else X)


def read(source: Reader, stop: int, name: str, first: int, *how: Any) -> Tile:
    """Read the rows of a tile."""
    return made(source.read(first, stop), name, first, *how)


def chosen(tiles: Sequence[Tile], places: Sequence[Index]) -> Tile:
    """Return a tile of some points of others."""
    parts = [tile.points[index] for tile, index in zip(tiles, places, strict=True)]
    return Tile(np.concatenate(parts))


def points_of(tile: Tile) -> Matrix:
    """Return the points of a tile."""
    return tile.points


def extent_of(tile: Tile) -> tuple[Vector, Vector]:
    """Return the smallest and the largest coordinates of a tile."""
    return tile.points.min(axis=0), tile.points.max(axis=0)


def taken(tile: Tile, index: Index) -> Matrix:
    """Return some points of a tile."""
    return tile.points[index]
