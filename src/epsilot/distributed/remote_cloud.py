"""Clouds whose points this process never holds: they are only with the workers.

For points of more coordinates than trees and hulls serve, given by something that workers can read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .. import parallel
from .._types import FloatArray, Index, Matrix, Vector
from ..geometry import Geometry
from ..geometry import points as local
from ..geometry.base import Places
from ..geometry.coordinates import check_range
from ..geometry.points import MAX_COMPARED_ENTRIES, Precision
from ..geometry.sweeps import BLOCK_ENTRIES, Block, row_blocks
from ..geometry.tree_index import ENTRIES_PER_PAIR, Embedding
from ..kernels import points as kernels
from ..metrics import METRICS, MetricLike
from .points import PointCloud
from .readers import Points
from .tiles import Chosen, Tile, Tiles

if TYPE_CHECKING:
    from distributed import Client, Future


class RemoteCloud(PointCloud):
    """A cloud of which this process knows the sizes; ``X`` and ``Y`` have no rows here."""

    can_coarsen = False
    has_rows = False

    def __init__(
        self,
        X_a: Points,
        X_b: Points,
        metric: MetricLike = "sqeuclidean",
        client: Client | None = None,
        *,
        single: bool = False,
    ) -> None:
        self._set(self._sides, str(metric), single, 0.0)
        low, high = self._extent
        if self._named.degree > 0:
            with np.errstate(over="ignore"):
                reach = float((high - low).max())
            check_range(reach, self._named.power, self.X.shape[1], f"{metric}: the points")

    def _set(self, sides: tuple[Tiles, ...], metric: str, single: bool, shift: float) -> None:
        none = np.zeros((0, sides[0].shape[1]))
        self._sides, self.X, self.Y = sides, none, none
        self.metric, self.single, self.shift = metric, single, shift
        self.shape, self.dimension = (sides[0].shape[0], sides[1].shape[0]), none.shape[1]

    def _like(
        self, shift: float, sides: tuple[Tiles, ...] | None = None, single: bool | None = None
    ) -> RemoteCloud:
        out: RemoteCloud = object.__new__(RemoteCloud)
        metric, is_single = str(self.metric), self.single if single is None else single
        out._set(self._sides if sides is None else sides, metric, is_single, shift)
        return out

    @cached_property
    def _extent(self) -> tuple[Vector, Vector]:
        """Smallest and largest coordinates of both clouds."""
        (low, high), (lower, higher) = (side.extent() for side in self._sides)
        return np.minimum(low, lower), np.maximum(high, higher)

    @cached_property
    def _centre(self) -> Vector:
        low, high = self._extent
        return np.asarray(0.5 * low + 0.5 * high)

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest cost; for very large clouds, bounds of them."""
        n, m = self.shape
        if n * m > MAX_COMPARED_ENTRIES:
            low, high = self._extent
            corners = local.PointCloud(low[None], high[None], self.metric).shifted(self.shift)
            return self.shift, float(corners.block(0, 1)[0, 0])
        out, zeros = np.empty(n), np.zeros(m)
        self._share(kernels.ctransform_rows, False, zeros, 1.0, out)
        least = float(out.min())
        self._share(kernels.ctransform_rows, False, zeros, -1.0, out)
        return least, float((-out).max())

    @property
    def embedding(self) -> Embedding | None:
        """None: there are no points here to make trees of."""
        return None

    @property
    def places(self) -> Places | None:
        """None: there are no points here to draw."""
        return None

    @cached_property
    def exact(self) -> Geometry:
        """The same cloud without float32."""
        return self._moved(0.0, single=False) if self.single else self

    def shifted(self, delta: float) -> RemoteCloud:
        """Return the geometry of C + delta."""
        return self._moved(delta)

    def _moved(self, delta: float, single: bool | None = None) -> RemoteCloud:
        out = self._like(self.shift + delta, single=single)
        out._extent = self._extent
        if "bounds" in self.__dict__:
            out.bounds = self.bounds[0] + delta, self.bounds[1] + delta
        return out

    def rescaled(self, power: int) -> RemoteCloud | None:
        """Return the geometry of 2**power C, by moving the points apart or together."""
        degree = METRICS[str(self.metric)].degree
        if degree == 0 or power % degree:
            return None
        sides = tuple(side.scaled(power // degree) for side in self._sides)
        return self._like(float(np.ldexp(self.shift, power)), sides)

    def restricted(self, rows: Index, cols: Index) -> RemoteCloud:
        """Return the geometry of some of the points."""
        pairs = zip(self._sides, (rows, cols), strict=True)
        return self._like(self.shift, tuple(Chosen.among(*pair) for pair in pairs))

    def miniature(self) -> Geometry:
        """Return a tiny cloud of this process, on which the same kernels compile."""
        pair = np.stack(self._extent)
        return local.PointCloud(pair, pair, self.metric, single=self.single)

    def digest(self) -> str:
        """Return the hash that the cloud has in one process, a tile at a time."""
        h = hashlib.sha256(f"{self.metric!s} {self.shift!r} {self.shape}".encode())
        for side in self._sides:
            for k in range(len(side.spans)):
                h.update(np.ascontiguousarray(side.piece(k)).data)
        return h.hexdigest()[:16]

    def _share(
        self, kernel: Callable[..., None], swap: bool, *args: object, dtype: Precision = np.float64
    ) -> None:
        self._spread(kernel, swap, args, dtype)

    # -- single rows and entries -------------------------------------------------------------

    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of C."""
        return self.gathered(np.arange(start, stop))

    def gathered(self, rows: Index) -> Matrix:
        """Return some rows of C."""
        found = self._costs_of(self._sides[0].take(rows), np.float64)
        return np.asarray(found, np.float64)

    def single_blocks(self, unit: float) -> Iterator[Block]:
        """Yield blocks of C / unit, computed in float32."""
        centre = self._centre if self._named.degree > 0 else 0.0
        for rows in row_blocks(*self.shape, 2 * BLOCK_ENTRIES):
            X = self._sides[0].take(np.arange(rows.start, rows.stop)) - centre
            C = self._costs_of(X.astype(np.float32), np.float32)
            C *= np.float32(1 / unit)
            yield rows.start, rows.stop, C

    def _costs_of(self, X: FloatArray, dtype: Precision) -> FloatArray:
        """Return the costs of points that were fetched, from workers that have the targets."""
        targets, cluster = self._sides[1], self.cluster
        is_centred = dtype == np.float32 and self._named.degree > 0
        centre = self._centre if is_centred else None
        code, shift = self._named.code, self.shift
        n = len(targets.spans)
        same = [[x] * n for x in (X, dtype, centre, code, shift)]

        def ask() -> list[Future]:
            return cluster.map(costs, [targets.future(k) for k in range(n)], *same)

        return np.concatenate(cluster.gather(ask), axis=1)

    def entries(self, rows: Index, cols: Index) -> Vector:
        """Compute the costs of single pairs, whose points are fetched."""
        X, Y = self._sides[0].take(rows), np.ascontiguousarray(self._sides[1].take(cols).T)
        out, places = np.empty(rows.size), np.arange(rows.size)
        args = X, Y, self._named.code, self.shift, places, places, out
        parallel.share(kernels.pair_costs, rows.size, rows.size * ENTRIES_PER_PAIR, *args)
        return out


def costs(
    targets: Tile,
    X: FloatArray,
    dtype: Precision,
    centre: Vector | None,
    metric: int,
    shift: float,
) -> FloatArray:
    """Return the costs of some points and the targets of a tile."""
    Y = targets.layout(dtype, centre, True)
    X = np.require(X, dtype, ("C", "A", "W"))
    out = np.empty((len(X), Y.shape[1]), dtype)
    with parallel.limit(1):
        kernels.cost_rows(X, Y, metric, dtype(shift), out, 0, len(X))
    return out
