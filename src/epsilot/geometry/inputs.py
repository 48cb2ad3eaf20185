"""Make geometries of what users pass: costs, points and grids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import memory
from .._types import Index, Matrix, Vector
from ..arguments import check_flag
from ..metrics import GRID_METRICS, METRICS, MetricLike, NamedMetric, as_named, compiled_metric
from .base import Geometry, Lattice, Places, PublicCall
from .coordinates import as_metric, as_pair, metric_keywords, reach
from .dense import Dense
from .grid import Grid
from .points import PointCloud
from .sparse import Sparse, least_forbidden
from .tree_index import Embedding
from .tuning import TUNING


def as_geometry(M: ArrayLike | Geometry) -> Geometry:
    """Return a geometry unchanged; wrap a cost in :class:`Dense`, or in :class:`Sparse`.

    Sparse costs are SciPy's sparse arrays, and matrices with forbidden entries: inf, the largest
    float, or masked ones.
    """
    if isinstance(M, Geometry):
        return M
    given: Any = M
    if hasattr(given, "tocsr"):
        return Sparse.of_scipy(given)
    if np.ma.isMaskedArray(given) and np.ma.is_masked(given):
        return Sparse.of_array(given)
    stored = Dense(given)
    is_sparse = stored.bounds[1] >= least_forbidden(getattr(given, "dtype", None))
    return Sparse.of_array(given) if is_sparse else stored


def cloud_geometry(
    X_a: ArrayLike,
    X_b: ArrayLike,
    metric: MetricLike = "sqeuclidean",
    lazy: bool | None = None,
    *,
    p: float = 1.0,
    metric_params: Mapping[str, Any] | None = None,
) -> Geometry:
    """Return the cost between two clouds: stored when small, computed on the fly when large."""
    check_flag("lazy", lazy)
    metric = as_metric(metric, p, metric_params)
    X, Y = as_pair(X_a, X_b)
    n, m = len(X), len(Y)
    is_function = callable(as_named(metric).name)
    is_stored = (is_function or n * m <= TUNING.max_stored_entries) if lazy is None else not lazy
    if not is_stored:
        return PointCloud.of_points(X, Y, metric, single=True)
    remedy = "use a metric that has a name" if is_function else "use lazy=True"
    memory.ask(
        2 * 8 * n * m, f"a stored cost of {n:,} x {m:,} points", f"{remedy}, or fewer points"
    )
    return _stored(X, Y, metric)


def forms_of(M: ArrayLike | Geometry) -> list[ArrayLike | Geometry]:
    """Return a cost, and for points the other forms in which :func:`cloud_geometry` holds them."""
    if not isinstance(M, PointCloud):
        return [M]
    return [M, StoredCloud(M), PointCloud.of_points(M.X, M.Y, M.metric, single=True)]


def grid_geometry(
    shape_a: tuple[int, ...],
    shape_b: tuple[int, ...],
    metric: MetricLike,
    spacing: float | Sequence[float],
) -> Geometry:
    """Return the cost between the cells of two grids: axis by axis, or between their centres."""
    row = compiled_metric(metric)
    row = row.on_line() if row is not None and len(shape_a) == 1 else row
    if row is not None and row.is_distance and row.degree == 1 and len(shape_a) == 1:
        row = METRICS["cityblock"]
    for name in GRID_METRICS:
        if row is METRICS[name]:
            return Grid(shape_a, shape_b, name, spacing)
    steps = Grid(shape_a, shape_b, spacing=spacing)  # checks shapes and spacing
    places = steps.places
    assert places is not None
    geometry = cloud_geometry(places.X, places.Y, metric)
    keywords = metric_keywords(metric) | steps.call().keywords
    keywords["metric"] = metric_keywords(metric)["metric"]
    cloud = geometry.cloud if isinstance(geometry, StoredCloud) else geometry
    assert isinstance(cloud, PointCloud)
    cloud.public_call = steps.call()._replace(keywords=keywords)
    return geometry


def _is_root(metric: MetricLike) -> bool:
    """Tell whether the metric is the root of a sum over the axes."""
    row = compiled_metric(metric)
    return row is not None and row.is_root


def _stored(X: Matrix, Y: Matrix, metric: MetricLike) -> Dense:
    """Return the stored costs; scale the points where squares would leave float64."""
    exponent = 0
    if _is_root(metric) and X.shape[1] == Y.shape[1]:
        exponent = int(np.frexp(reach(X, Y))[1])
        # Float64 holds sums of squares of distances below 2^450 safely.
        exponent = 0 if abs(exponent) < 450 else exponent
    if exponent != 0:
        cloud = PointCloud.of_points(np.ldexp(X, -exponent), np.ldexp(Y, -exponent), metric)
        return Dense(np.ldexp(cloud.matrix(), exponent))
    return StoredCloud(PointCloud.of_points(X, Y, metric))


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
        Points and a metric.
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
        return "C" in self.__dict__ or self.cloud.is_blockwise

    @cached_property
    def embedding(self) -> Embedding | None:
        """The points themselves, unless they have many coordinates."""
        return self.cloud.embedding

    @cached_property
    def recovered(self) -> Embedding | None:
        """None: the points are known."""
        return None

    @property
    def places(self) -> Places | None:
        """The points."""
        return self.cloud.places

    @property
    def cost_metric(self) -> NamedMetric:
        """The metric."""
        return self.cloud.cost_metric

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
        if self._is_computed or self.cloud.X.shape[1] > TUNING.max_hull_dimension:
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
        if cloud is None:
            return super().rescaled(power)
        return self._with(cloud, lambda: np.ldexp(self.C, power))

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

    def _with(self, cloud: PointCloud, costs: Callable[[], Matrix]) -> StoredCloud:
        """Return the geometry of other points; keep costs that are slow to compute again."""
        out = StoredCloud(cloud)
        if cloud.is_blockwise:
            out.C = np.ascontiguousarray(costs())
            out.C.setflags(write=False)
        return out

    def restricted(self, rows: Index, cols: Index) -> StoredCloud:
        """Return the geometry of some of the points."""
        return self._with(self.cloud.restricted(rows, cols), lambda: self.C[np.ix_(rows, cols)])
