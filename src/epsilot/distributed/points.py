"""Point clouds whose passes run on the workers of a Dask cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import parallel
from .._types import FloatArray, Index, Matrix, Vector
from ..errors import InvalidProblem
from ..geometry import Geometry
from ..geometry import points as local
from ..geometry.base import Places
from ..geometry.coordinates import as_metric, check_range, check_space
from ..geometry.points import Precision
from ..geometry.sweeps import FORMS, Block, row_blocks
from ..geometry.tree_index import Embedding
from ..geometry.tuning import TUNING as GEOMETRY_TUNING
from ..kernels import points as kernels
from ..metrics import METRICS, MetricKey, MetricLike, compiled_metric
from . import passes
from .cluster import TUNING, Cluster
from .passes import ClusterSearch, KernelCall
from .tiles import Points, SubsetTiles, Tile, Tiles

if TYPE_CHECKING:
    from dask.array import Array as DaskArray
    from distributed import Client, Future


def PointCloud(
    X_a: Points,
    X_b: Points,
    metric: MetricLike = "sqeuclidean",
    client: Client | None = None,
    *,
    p: float = 1.0,
    metric_params: Mapping[str, Any] | None = None,
    single: bool = False,
) -> ClusterCloud:
    """Return the cost between two clouds, computed by the workers of a Dask cluster.

    The result is a geometry like any other: solvers, certificates and checkpoints are those of one
    process, with the same bits. The state of a run is in this process. Workers read the points that
    they need. This process also holds them if it builds trees of them, in few dimensions, or if the
    caller passes arrays; otherwise they are on the workers only.

    Parameters
    ----------
    X_a, X_b : (n, d), (m, d) arrays
        NumPy, Dask or Zarr arrays, memory-mapped files, names of ``.npy`` and ``.zarr`` files, or
        :class:`epsilot.distributed.Parquet`. All workers must be able to read the files.
    metric : str
        A name of ``epsilot.metrics.POINT_METRICS`` with compiled kernels.
    client : distributed.Client, optional
        By default Dask's default client.
    p, metric_params, single
        As in :class:`epsilot.PointCloud`.

    Examples
    --------
    >>> from distributed import Client  # doctest: +SKIP
    >>> cloud = epsilot.distributed.PointCloud("x.npy", "y.npy", client=Client())  # doctest: +SKIP
    >>> epsilot.solve(cloud, rtol=0.01)  # doctest: +SKIP
    """
    metric = as_metric(metric, p, metric_params)
    row = compiled_metric(metric)
    if row is None:
        raise InvalidProblem(
            f"metric is {'a function' if callable(metric) else metric}; on a cluster it must be "
            f"one of {', '.join(METRICS)} (use epsilot.PointCloud in one process)."
        )
    cluster, is_direction = Cluster.of(client), row.degree == 0
    sides = tuple(
        Tiles.of(X, name, cluster, is_direction) for X, name in ((X_a, "X_a"), (X_b, "X_b"))
    )
    check_space(*(side.shape for side in sides))
    is_remote = sides[0].shape[1] > GEOMETRY_TUNING.max_hull_dimension and not all(
        side.is_local for side in sides
    )
    return (RemoteCloud if is_remote else ClusterCloud)(sides, metric, single)


class ClusterCloud(local.KernelCloud):
    """A cloud whose points this process holds, and workers too.

    Parameters
    ----------
    sides : pair of Tiles
        Sources and targets.
    metric : str
        A name of ``epsilot.metrics.POINT_METRICS``.
    single : bool
        As in :class:`epsilot.PointCloud`.
    """

    _sides: tuple[Tiles, ...]
    is_remote = True
    has_float32_points = False  # workers hold the points, and have passes of their own

    def __new__(cls, *_: Any, **__: Any) -> Any:
        """Return a cloud whose sides are not checked yet."""
        return object.__new__(cls)

    def __init__(self, sides: tuple[Tiles, ...], metric: MetricLike, single: bool) -> None:
        self._sides = sides
        X, Y = (side.all_points() for side in sides)
        self._check_and_set(X, Y, metric, single)

    @property
    def cluster(self) -> Cluster:
        """Workers that hold the points."""
        return self._sides[0].cluster

    @property
    def embedding(self) -> Embedding | None:
        """The points, unless they have many coordinates; workers search trees of them."""
        known = super().embedding
        return None if known is None else known._replace(backend=ClusterSearch(self.cluster))

    def _copy(self, X: Matrix, Y: Matrix, shift: float, **how: Any) -> ClusterCloud:
        """Return a cloud of the same class, with the same tiles if it has the same points."""
        out = super()._copy(X, Y, shift, **how)
        assert isinstance(out, ClusterCloud)
        if X is self.X and Y is self.Y:
            out._sides = self._sides
        else:
            sides = ((X, "X_a"), (Y, "X_b"))
            out._sides = tuple(Tiles(self.cluster, Z, name, Z.shape) for Z, name in sides)
        return out

    def _share(
        self, kernel: Callable[..., None], swap: bool, *args: object, dtype: Precision = np.float64
    ) -> None:
        """Compute a pass on the workers, or here if it is small."""
        n, m = self.shape
        if n * m <= TUNING.max_local_entries or kernel.__name__ not in FORMS:
            super()._share(kernel, swap, *args, dtype=dtype)
            return
        self._share_on_workers(kernel, swap, args, dtype)

    def _share_on_workers(
        self,
        kernel: Callable[..., None],
        swap: bool,
        args: tuple[object, ...],
        dtype: Precision,
    ) -> None:
        sources, targets = self._sides[::-1] if swap else self._sides
        n_out = FORMS[kernel.__name__].n_out
        inputs, outs = args[:-n_out], args[-n_out:]
        call = self._call(kernel, inputs, dtype)
        passes.run(sources, targets, kernel, call, inputs, outs)  # type: ignore[arg-type]

    def _call(
        self, kernel: Callable[..., None], inputs: tuple[object, ...], dtype: Precision
    ) -> KernelCall:
        is_centred = dtype == np.float32 and self._named.degree > 0
        return KernelCall(
            kernel=kernel.__name__,
            dtype=dtype,
            metric=self.key,
            shift=self.shift,
            centre=self._centre if is_centred else None,
            numbers=[None if isinstance(x, np.ndarray) else x for x in inputs],
        )

    def apply_there(self, swap: bool, f: Vector, g: Vector, eta: float, v: Vector) -> DaskArray:
        """Return X v, or with ``swap`` Xᵀ v, as a Dask array whose chunks stay on the workers."""
        import dask.array

        sources, targets = self._sides[::-1] if swap else self._sides
        inputs = f, g, 1 / eta, v
        call = self._call(kernels.apply_rows, inputs, np.float64)
        pieces, submit = passes.row_tasks(sources, targets, call, inputs)
        found = self.cluster.map(passes.only, submit())
        return dask.array.concatenate(
            [
                dask.array.from_delayed(piece, (hi - lo,), float)
                for (_, lo, hi), piece in zip(pieces, found, strict=True)
            ]
        )


class RemoteCloud(ClusterCloud):
    """A cloud whose points are on the workers only; ``X`` and ``Y`` have no rows.

    For points of more dimensions than trees and convex hulls are used in, from a source that
    workers can read. The parameters are those of :class:`ClusterCloud`.
    """

    can_coarsen = False
    has_rows = False

    def __init__(self, sides: tuple[Tiles, ...], metric: MetricLike, single: bool) -> None:
        row = compiled_metric(metric)
        assert row is not None
        self._set(sides, metric, row.key, single, 0.0)
        low, high = self._extent
        if self._named.degree > 0:
            with np.errstate(over="ignore"):
                reach = float((high - low).max())
            check_range(reach, self._named.power, self.X.shape[1], f"{metric}: the points")

    def _set(
        self,
        sides: tuple[Tiles, ...],
        metric: MetricLike,
        key: MetricKey,
        single: bool,
        shift: float,
    ) -> None:
        none = np.zeros((0, sides[0].shape[1]))
        self._sides, self.X, self.Y = sides, none, none
        self.metric, self.key, self.single, self.shift = metric, key, single, shift
        self.shape, self.dimension = (sides[0].shape[0], sides[1].shape[0]), none.shape[1]

    def _like(
        self, shift: float, sides: tuple[Tiles, ...] | None = None, single: bool | None = None
    ) -> RemoteCloud:
        out: RemoteCloud = object.__new__(RemoteCloud)
        is_single = self.single if single is None else single
        sides = self._sides if sides is None else sides
        out._set(sides, self.metric, self.key, is_single, shift)
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
        """Smallest and largest cost; for very large clouds, bounds on them."""
        n, m = self.shape
        if n * m > GEOMETRY_TUNING.max_compared_entries:
            low, high = self._extent
            corners = self._between(low[None], high[None]).shifted(self.shift)
            return self.shift, float(corners.block(0, 1)[0, 0])
        out, zeros = np.empty(n), np.zeros(m)
        self._share(kernels.ctransform_rows, False, zeros, 1.0, out)
        least = float(out.min())
        self._share(kernels.ctransform_rows, False, zeros, -1.0, out)
        return least, float((-out).max())

    @property
    def embedding(self) -> Embedding | None:
        """None: this process has no points to build trees of."""
        return None

    @property
    def places(self) -> Places | None:
        """None: this process has no points to draw."""
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
        """Return the geometry of 2**power C, by scaling the points."""
        degree = self._named.degree
        if degree == 0 or power % degree:
            return None
        sides = tuple(side.scaled(int(power // degree)) for side in self._sides)
        return self._like(float(np.ldexp(self.shift, power)), sides)

    def restricted(self, rows: Index, cols: Index) -> RemoteCloud:
        """Return the geometry of a subset of the points."""
        pairs = zip(self._sides, (rows, cols), strict=True)
        return self._like(self.shift, tuple(SubsetTiles.among(*pair) for pair in pairs))

    def miniature(self) -> Geometry:
        """Return a tiny local cloud that compiles the same kernels."""
        pair = np.stack(self._extent)
        return self._between(pair, pair, self.single)

    def digest(self) -> str:
        """Return the hash that the cloud has in one process, computed tile by tile."""
        h = hashlib.sha256(f"{self.digested_metric} {self.shift!r} {self.shape}".encode())
        for side in self._sides:
            for k in range(len(side.spans)):
                h.update(np.ascontiguousarray(side.piece(k)).data)
        return h.hexdigest()[:16]

    def _share(
        self, kernel: Callable[..., None], swap: bool, *args: object, dtype: Precision = np.float64
    ) -> None:
        self._share_on_workers(kernel, swap, args, dtype)

    # -- single rows and entries -------------------------------------------------------------

    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of C."""
        return self.gathered(np.arange(start, stop))

    def gathered(self, rows: Index) -> Matrix:
        """Return rows of C by index."""
        found = self._costs_of(self._sides[0].take(rows), np.float64)
        return np.asarray(found, np.float64)

    def single_blocks(self, unit: float) -> Iterator[Block]:
        """Yield blocks of C / unit, computed in float32."""
        centre = self._centre if self._named.degree > 0 else 0.0
        for rows in row_blocks(*self.shape, 2 * GEOMETRY_TUNING.block_entries):
            X = self._sides[0].take(np.arange(rows.start, rows.stop)) - centre
            C = self._costs_of(X.astype(np.float32), np.float32)
            C *= np.float32(1 / unit)
            yield rows.start, rows.stop, C

    def _costs_of(self, X: FloatArray, dtype: Precision) -> FloatArray:
        """Return the costs between given points and all targets, computed on the workers."""
        targets, cluster = self._sides[1], self.cluster
        is_centred = dtype == np.float32 and self._named.degree > 0
        centre = self._centre if is_centred else None
        code, shift = self.key, self.shift
        n = len(targets.spans)
        same = [[x] * n for x in (X, dtype, centre, code, shift)]

        def submit() -> list[Future]:
            return cluster.map(costs, [targets.future(k) for k in range(n)], *same)

        return np.concatenate(cluster.gather(submit), axis=1)

    def entries(self, rows: Index, cols: Index) -> Vector:
        """Compute the costs of single pairs, after fetching their points."""
        X, Y = self._sides[0].take(rows), np.ascontiguousarray(self._sides[1].take(cols).T)
        out, places = np.empty(rows.size), np.arange(rows.size)
        args = X, Y, self.key, self.shift, places, places, out
        parallel.share(
            kernels.pair_costs, rows.size, rows.size * GEOMETRY_TUNING.entries_per_pair, *args
        )
        return out


def costs(
    targets: Tile,
    X: FloatArray,
    dtype: Precision,
    centre: Vector | None,
    metric: MetricKey,
    shift: float,
) -> FloatArray:
    """Return the costs between points and the targets of a tile, on a worker."""
    Y = targets.layout(dtype, centre, True)
    X = np.require(X, dtype, ("C", "A", "W"))
    out = np.empty((len(X), Y.shape[1]), dtype)
    with parallel.limit(1):
        kernels.cost_rows(X, Y, metric, dtype(shift), out, 0, len(X))
    return out
