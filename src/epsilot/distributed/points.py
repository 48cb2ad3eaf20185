"""Point clouds whose row passes run on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import Matrix, Vector
from ..errors import InvalidProblem
from ..geometry import points as local
from ..geometry.coordinates import MAX_HULL_DIMENSION, check_metric, check_space
from ..geometry.points import Precision
from ..geometry.sweeps import FORMS
from ..geometry.tree_index import Embedding
from ..kernels import points as kernels
from ..metrics import METRICS, MetricLike
from . import rows
from .cluster import Cluster
from .readers import Points
from .searches import Searches
from .tiles import Tiles

if TYPE_CHECKING:
    from dask.array import Array as DaskArray
    from distributed import Client

#: Entries up to which a pass takes less time here than tasks take to be sent.
LOCAL_ENTRIES = 1 << 24


class PointCloud(local.PointCloud):
    """The cost between two clouds, computed by the workers of a Dask cluster.

    A geometry like any other: solvers, certificates and checkpoints are those of one process, and
    so are all bits of a result. State is in this process; workers hold points, which are read where
    they are used.

    Parameters
    ----------
    X_a, X_b : (n, d), (m, d) arrays
        NumPy, Dask or Zarr arrays, memory-mapped files, names of ``.npy`` and ``.zarr`` files, or
        :class:`epsilot.distributed.Parquet`. Files must be seen by all workers.
    metric : str
        A name of ``epsilot.metrics.POINT_METRICS``.
    client : distributed.Client, optional
        By default the one that Dask would use.
    single : bool
        As in :class:`epsilot.PointCloud`.

    Examples
    --------
    >>> from distributed import Client  # doctest: +SKIP
    >>> cloud = epsilot.distributed.PointCloud("x.npy", "y.npy", client=Client())  # doctest: +SKIP
    >>> epsilot.solve(cloud, rtol=0.01)  # doctest: +SKIP
    """

    def __new__(
        cls,
        X_a: Points,
        X_b: Points,
        metric: MetricLike = "sqeuclidean",
        client: Client | None = None,
        *,
        single: bool = False,
    ) -> PointCloud:
        """Make a cloud whose points stay away from this process, where it has no use for them."""
        if callable(metric):
            raise InvalidProblem(
                "metric is a function; on a cluster it must have a name (use epsilot.PointCloud in "
                "one process)."
            )
        check_metric(metric)
        cluster, is_direction = Cluster.of(client), METRICS[metric].degree == 0
        tiles = tuple(
            Tiles.of(X, name, cluster, is_direction) for X, name in ((X_a, "X_a"), (X_b, "X_b"))
        )
        check_space(*(side.shape for side in tiles))
        from .remote_cloud import RemoteCloud

        is_far = tiles[0].shape[1] > MAX_HULL_DIMENSION and not all(side.is_here for side in tiles)
        made: PointCloud = object.__new__(RemoteCloud if is_far else PointCloud)
        made._sides = tiles
        return made

    _sides: tuple[Tiles, ...]
    is_remote = True
    has_float32_points = False  # workers hold the points, and have passes of their own

    def __init__(
        self,
        X_a: Points,
        X_b: Points,
        metric: MetricLike = "sqeuclidean",
        client: Client | None = None,
        *,
        single: bool = False,
    ) -> None:
        X, Y = (side.here() for side in self._sides)
        super().__init__(X, Y, metric, single=single)

    @property
    def cluster(self) -> Cluster:
        """The workers."""
        return self._sides[0].cluster

    @property
    def embedding(self) -> Embedding | None:
        """The points, unless they have many coordinates; workers search trees of them."""
        here = super().embedding
        return None if here is None else here._replace(backend=Searches(self.cluster))

    def _copy(self, X: Matrix, Y: Matrix, shift: float, **how: Any) -> PointCloud:
        """Return a cloud of the same kind, with the workers' points if it has the same."""
        out = super()._copy(X, Y, shift, **how)
        assert isinstance(out, PointCloud)
        if X is self.X and Y is self.Y:
            out._sides = self._sides
        else:
            sides = ((X, "X_a"), (Y, "X_b"))
            out._sides = tuple(Tiles(self.cluster, Z, name, Z.shape) for Z, name in sides)
        return out

    def _share(
        self, kernel: Callable[..., None], swap: bool, *args: object, dtype: Precision = np.float64
    ) -> None:
        """Let workers compute the rows, unless they are few."""
        n, m = self.shape
        if n * m <= LOCAL_ENTRIES or kernel.__name__ not in FORMS:
            super()._share(kernel, swap, *args, dtype=dtype)
            return
        self._spread(kernel, swap, args, dtype)

    def _spread(
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
        rows.run(sources, targets, kernel, call, inputs, outs)  # type: ignore[arg-type]

    def _call(
        self, kernel: Callable[..., None], inputs: tuple[object, ...], dtype: Precision
    ) -> rows.Call:
        is_centred = dtype == np.float32 and self._named.degree > 0
        return rows.Call(
            kernel=kernel.__name__,
            dtype=dtype,
            metric=self._named.code,
            shift=self.shift,
            centre=self._centre if is_centred else None,
            numbers=[None if isinstance(x, np.ndarray) else x for x in inputs],
        )

    def apply_there(self, swap: bool, f: Vector, g: Vector, eta: float, v: Vector) -> DaskArray:
        """Return X v, or with ``swap`` Xᵀ v, as a Dask array whose pieces stay with the workers."""
        import dask.array

        sources, targets = self._sides[::-1] if swap else self._sides
        inputs = f, g, 1 / eta, v
        call = self._call(kernels.apply_rows, inputs, np.float64)
        pieces, ask = rows.asked(sources, targets, call, inputs)
        found = self.cluster.map(rows.only, ask())
        return dask.array.concatenate(
            [
                dask.array.from_delayed(piece, (hi - lo,), float)
                for (_, lo, hi), piece in zip(pieces, found, strict=True)
            ]
        )
