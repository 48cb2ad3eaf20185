"""Choose whether the cost between two point clouds is stored or computed in every pass."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from .. import memory
from .._types import Index, Matrix, Vector
from ..arguments import check_flag
from ..metrics import METRICS, MetricLike
from .base import Geometry, Lattice, Places, PublicCall
from .coordinates import MAX_HULL_DIMENSION, as_points, reach
from .dense import Dense
from .points import PointCloud
from .tree_index import Embedding

#: Most entries of a stored cost: beyond, computing it again is faster than reading it.
MAX_STORED_ENTRIES = 1 << 24
#: Largest binary exponent of distances whose sums of squares float64 holds safely.
MAX_SAFE_EXPONENT = 450


def cloud_geometry(
    X_a: ArrayLike, X_b: ArrayLike, metric: MetricLike = "sqeuclidean", lazy: bool | None = None
) -> Geometry:
    """Return the cost between two clouds: stored when small, computed on the fly when large."""
    check_flag("lazy", lazy)
    X, Y = as_points(X_a, "X_a"), as_points(X_b, "X_b")
    n, m = len(X), len(Y)
    is_stored = (callable(metric) or n * m <= MAX_STORED_ENTRIES) if lazy is None else not lazy
    if not is_stored:
        return PointCloud.of_points(X, Y, metric, single=True)
    remedy = "use a metric that has a name" if callable(metric) else "use lazy=True"
    memory.ask(
        2 * 8 * n * m, f"a stored cost of {n:,} x {m:,} points", f"{remedy}, or fewer points"
    )
    return _stored(X, Y, metric)


def _is_root(metric: MetricLike) -> bool:
    """Tell whether the metric is the root of a sum over the axes."""
    return isinstance(metric, str) and metric in METRICS and METRICS[metric].is_root


def _stored(X: Matrix, Y: Matrix, metric: MetricLike) -> Dense:
    """Return the stored costs; scale the points where squares would leave float64."""
    exponent = 0
    if _is_root(metric) and X.shape[1] == Y.shape[1]:
        exponent = int(np.frexp(reach(X, Y))[1])
        exponent = 0 if abs(exponent) < MAX_SAFE_EXPONENT else exponent
    if exponent != 0:
        cloud = PointCloud.of_points(np.ldexp(X, -exponent), np.ldexp(Y, -exponent), metric)
        return Dense(np.ldexp(cloud.matrix(), exponent))
    cloud = PointCloud.of_points(X, Y, metric)
    return Dense(cloud.matrix()) if callable(metric) else StoredCloud(cloud)


# -- stored clouds ---------------------------------------------------------------------------------
#
# The cost is computed and stored when a method asks for all of it.


class StoredCloud(Dense):
    """A cost matrix that keeps its points.

    Methods that search points never compute the matrix. All others use it as any stored cost. Both
    see the same costs to the last bit.

    Parameters
    ----------
    cloud : PointCloud
        Points and a metric that has a name.
    """

    def __init__(self, cloud: PointCloud) -> None:
        self.cloud = cloud
        self.shape, self.dimension = cloud.shape, cloud.dimension
        self.is_shared = False
        self._single = None

    @cached_property
    def C(self) -> Matrix:  # type: ignore[override]
        """All costs."""
        n, m = self.shape
        what = f"a stored cost of {n:,} x {m:,} points"
        memory.ask(self.nbytes, what, "use lazy=True, or fewer points")
        C = self.cloud.matrix()
        C.setflags(write=False)
        return C

    @property
    def _is_computed(self) -> bool:
        return "C" in self.__dict__

    @cached_property
    def embedding(self) -> Embedding | None:
        """The points themselves, unless they have many coordinates."""
        return self.cloud.embedding

    @property
    def places(self) -> Places | None:
        """The points."""
        return self.cloud.places

    def call(self) -> PublicCall:
        """Return the call on points."""
        return self.cloud.call()

    @cached_property
    def lattice(self) -> Lattice | None:
        """None: points are not searched for a grid."""
        return None

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest cost."""
        if self._is_computed or self.cloud.X.shape[1] > MAX_HULL_DIMENSION:
            return float(self.C.min()), float(self.C.max())
        return self.cloud.bounds

    def entries(self, rows: Index, cols: Index) -> Vector:
        """Return the costs of single pairs."""
        return super().entries(rows, cols) if self._is_computed else self.cloud.entries(rows, cols)

    def ctransform_rows(self, g: Vector) -> Vector:
        """Return min_j C_ij - g_j."""
        return super().ctransform_rows(g) if self._is_computed else self.cloud.ctransform_rows(g)

    def ctransform_cols(self, f: Vector) -> Vector:
        """Return min_i C_ij - f_i."""
        return super().ctransform_cols(f) if self._is_computed else self.cloud.ctransform_cols(f)

    def ctransform_error(self, f: Vector, g: Vector) -> float:
        """Bound the error of a c-transform over the points."""
        return self.cloud.ctransform_error(f, g)

    def rescaled(self, power: int) -> Dense:
        """Return the geometry of 2**power C."""
        cloud = self.cloud.rescaled(power)
        return super().rescaled(power) if cloud is None else StoredCloud(cloud)

    def shifted(self, delta: float) -> Dense:
        """Return the geometry of C + delta."""
        if delta == 0:
            return self
        moved = StoredCloud(self.cloud.shifted(delta))
        if "bounds" in self.__dict__:
            moved.bounds = self.bounds[0] + delta, self.bounds[1] + delta
        if self._is_computed and self.cloud.shift == 0:  # the bits that the points give
            moved.C = self.C + delta
            moved.C.setflags(write=False)
        return moved

    def restricted(self, rows: Index, cols: Index) -> StoredCloud:
        """Return the geometry of some of the points."""
        return StoredCloud(self.cloud.restricted(rows, cols))
