"""Costs between two point clouds, computed when they are needed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import memory, parallel
from .._types import Array, Index, Matrix, Vector
from ..errors import InvalidProblem
from ..kernels import points as kernels
from ..metrics import (
    Metric,
    MetricKey,
    MetricLike,
    NamedMetric,
    as_named,
    compiled_metric,
    metric_of,
)
from . import sweeps
from .base import Coarsening, EitherLogSums, Geometry, LogSums, Places, PublicCall, log_total
from .coordinates import (
    as_metric,
    as_pair,
    box,
    check_range,
    check_space,
    directions,
    extreme,
    metric_keywords,
    reach,
)
from .float32 import Float32Points, square_blocks
from .line import Line
from .metric_costs import CdistCosts, Costs, costs_of
from .sweeps import Block, row_blocks
from .tree_index import (
    COMPILED_DIMENSIONS,
    Embedding,
    TreePair,
    TreeSearch,
    clusters,
)
from .tuning import TUNING

#: The precision in which kernels compute.
Precision = type[np.float64] | type[np.float32]


class PointCloud(Geometry):
    """The cost between the points of two clouds, never stored.

    Blocks of rows are computed by SciPy or by the function. For the metrics of
    ``epsilot.metrics.METRICS`` the object is a :class:`KernelCloud`, whose passes are compiled.

    Parameters
    ----------
    X_a : (n, d) array-like
        Sources; a vector is n points on a line.
    X_b : (m, d) array-like
        Targets. The columns of data frames are matched by their names.
    metric : str or callable
        A name of ``epsilot.metrics.POINT_METRICS``: "sqeuclidean" (default), "euclidean" or
        another of SciPy's. A callable f(u, v) returns the cost of two points; it runs in Python and
        is slow.
    p : float
        Costs are this power of the metric.
    metric_params : dict, optional
        Parameters of the metric, as SciPy's ``cdist`` takes them: ``{"p": 3}`` of "minkowski".
    single : bool
        Allow float32 in the log-sum-exp passes of iterates (:attr:`rough`) where exponents are
        small enough. Everything else, and so every certificate, is in float64.
    """

    noun = "a point cloud"
    public_call: PublicCall | None = None  # None: on points
    X: Matrix
    Y: Matrix
    metric: MetricLike
    shift: float
    factor: float
    _costs: Costs

    def __new__(
        cls,
        X_a: ArrayLike,
        X_b: ArrayLike,
        metric: MetricLike = "sqeuclidean",
        *,
        p: float = 1.0,
        metric_params: Mapping[str, Any] | None = None,
        single: bool = False,
    ) -> PointCloud:
        """Check the arguments; return a :class:`KernelCloud` if the metric has kernels."""
        pair, metric = as_pair(X_a, X_b), as_metric(metric, p, metric_params)
        return cls.of_points(*pair, metric, single=single)

    @staticmethod
    def of_points(X: Matrix, Y: Matrix, metric: MetricLike, *, single: bool = False) -> PointCloud:
        """Return the cost between points that ``as_points`` has checked."""
        kind = PointCloud if compiled_metric(metric) is None else KernelCloud
        out: PointCloud = object.__new__(kind)
        out._check_and_set(X, Y, metric, single)
        return out

    def _check_and_set(self, X: Matrix, Y: Matrix, metric: MetricLike, single: bool) -> None:
        """Check that points and metric fit together, and store them."""
        check_space(X.shape, Y.shape)
        self.X, self.Y, self.metric = X, Y, as_named(metric)
        self.shape, self.dimension = (len(X), len(Y)), X.shape[1]
        self.shift, self.factor = 0.0, 1.0
        what = f"the metric {self.metric} on {len(X):,} x {len(Y):,} points"
        memory.ask(self.workspace, what, "use a metric with compiled kernels, or fewer points")
        self._costs = costs_of(self.cost_metric, X, Y)

    def __repr__(self) -> str:
        return f"PointCloud({self.shape[0]} x {self.shape[1]}, {self.X.shape[1]}-d, {self.metric})"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the points and the metric, and nothing derived from them."""
        state = vars(self._scaled_copy(self.X, self.Y, self.factor, self.shift))
        return object.__new__, (type(self),), state

    @property
    def places(self) -> Places | None:
        """The points."""
        if not isinstance(self._costs, CdistCosts):
            return Places(self.X, self.Y, None)
        return Places(self.X, self.Y, replace(self.cost_metric, params=self._costs.params))

    @property
    def cost_metric(self) -> NamedMetric:
        """The metric."""
        return as_named(self.metric)

    def call(self) -> PublicCall:
        """Return the call on points, or another that made them."""
        keywords = metric_keywords(self.metric)
        return self.public_call or PublicCall("solve_sample", ("X_a", "X_b"), keywords)

    def block(self, start: int, stop: int) -> Matrix:
        """Compute rows ``start:stop`` of C."""
        costs, p = self._costs(self.X[start:stop], self.Y, start), self.cost_metric.p
        is_right = np.isfinite(costs) if p == 1 else (costs >= 0) & (costs < np.inf)
        if not is_right.all():
            i, j = np.argwhere(~is_right)[0]
            needed = "finite" if p == 1 else "finite, and at least 0 for a power"
            raise InvalidProblem(
                f"the metric returned {costs[i, j]} for source {start + i} and target {j}; costs "
                f"must be {needed}."
            )
        return np.asarray(self.factor * (costs if p == 1 else costs**p) + self.shift)

    def shifted(self, delta: float) -> PointCloud:
        """Return the geometry of C + delta."""
        return self._scaled_copy(self.X, self.Y, self.factor, self.shift + delta)

    def rescaled(self, power: int) -> PointCloud | None:
        """Return the geometry of 2**power C."""
        factor, shift = np.ldexp([self.factor, self.shift], power)
        return self._scaled_copy(self.X, self.Y, float(factor), float(shift))

    def restricted(self, rows: Index, cols: Index) -> PointCloud:
        """Return the geometry of some of the points."""
        return self._scaled_copy(self.X[rows], self.Y[cols], self.factor, self.shift)

    def _scaled_copy(self, X: Matrix, Y: Matrix, factor: float, shift: float) -> PointCloud:
        """Return the cost ``factor`` C + ``shift`` between some of the points, or all."""
        out = object.__new__(PointCloud)
        out.X, out.Y, out.metric, out._costs = X, Y, self.metric, self._costs
        out.shape, out.dimension = (len(X), len(Y)), self.dimension
        out.factor, out.shift, out.public_call = factor, shift, self.public_call
        return out

    def digest(self) -> str:
        """Return a hash of points, metric and shift; of the costs if the metric is a function."""
        if callable(self.cost_metric.name):
            return super().digest()
        arrays = (self.X, self.Y, *map(np.asarray, self.cost_metric.params.values()))
        h = hashlib.sha256(f"{self.metric} {self.factor!r} {self.shift!r} {self.shape}".encode())
        for array in arrays:
            h.update(np.ascontiguousarray(array).data)
        return h.hexdigest()[:16]


class KernelCloud(PointCloud):
    """The cost between two clouds, by a metric with compiled kernels."""

    is_blockwise = False
    can_coarsen = True
    has_float32_points = True  # whether this process may hold float32 copies of all points

    def _check_and_set(self, X: Matrix, Y: Matrix, metric: MetricLike, single: bool) -> None:
        """Check that points and metric fit together, and store them."""
        check_space(X.shape, Y.shape)
        row = compiled_metric(metric)
        assert row is not None
        row = row.on_line() if X.shape[1] == 1 else row
        if row.degree == 0:
            X, Y = directions(X, "X_a"), directions(Y, "X_b")
        else:
            check_range(reach(X, Y), row.power, X.shape[1], f"{metric!s}: the points")
        self._set_points(X, Y, metric, row.key, single, 0.0)

    def _set_points(
        self, X: Matrix, Y: Matrix, metric: MetricLike, key: MetricKey, single: bool, shift: float
    ) -> None:
        """Store checked points, metric and shift."""
        self.X, self.Y, self.metric, self.key, self.single = X, Y, metric, key, single
        self.shape, self.dimension, self.shift = (len(X), len(Y)), X.shape[1], shift

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the points, the metric and the shift, and nothing derived from them."""
        names = {"X", "Y", "metric", "key", "single", "shape", "dimension", "shift"}
        state = {name: value for name, value in vars(self).items() if name in names}
        return object.__new__, (type(self),), state

    # -- structure ---------------------------------------------------------------------------

    @property
    def places(self) -> Places | None:
        """The points."""
        return Places(self.X, self.Y, self.metric)

    @property
    def _named(self) -> Metric:
        return metric_of(self.key)

    @property
    def embedding(self) -> Embedding | None:
        """The points themselves, unless they have many coordinates."""
        if self.X.shape[1] > COMPILED_DIMENSIONS[-1]:
            return None
        return Embedding(self.X, self.Y, self.key, self.shift, trees=self._trees)

    @cached_property
    def _trees(self) -> TreePair:
        return TreePair(self.X, self.Y)

    @cached_property
    def _index(self) -> TreeSearch | Line | None:
        """Return the search structure of c-transforms, or None where a pass is faster."""
        if self._searched is not None:
            return TreeSearch.of(self._searched)
        if self.line is None or self._named.square > 0:
            return None
        least = TUNING.min_searched_entries if self._named.degree == 1 else TUNING.min_power_entries
        return self.line if self.pass_entries >= least else None

    @property
    def _searched(self) -> Embedding | None:
        """The points, if c-transforms search trees.

        Trees prune little of distances on a line, and of their powers, which are sorted instead.
        """
        embedding = self.embedding
        is_sorted = self.line is not None and not self._named.square > 0
        if embedding is None or is_sorted or not embedding.is_searched:
            return None
        return embedding

    @property
    def certificate_share(self) -> float:  # type: ignore[override]
        """Fraction of the costs that a certificate looks at."""
        return 1.0 if self._index is None else min(1.0, TUNING.searched_columns / self.shape[1])

    def rescaled(self, power: int) -> KernelCloud | None:
        """Return the geometry of 2**power C, by scaling the points if that is exact."""
        shift, degree = float(np.ldexp(self.shift, power)), self._named.degree
        if self._named.key[2]:  # a cost with an exponent is not rounded alike at another scale
            return self._copy(self.X, self.Y, shift, key=self._named.scaled(2.0**power).key)
        if degree == 0 or power % degree:
            return None
        step = int(power // degree)
        X, Y = (np.ldexp(points, step) for points in (self.X, self.Y))
        return self._copy(X, Y, shift)

    def shifted(self, delta: float) -> KernelCloud:
        """Return the geometry of C + delta."""
        return self._copy(self.X, self.Y, self.shift + delta, moved=delta)

    def restricted(self, rows: Index, cols: Index) -> KernelCloud:
        """Return the geometry of some of the points."""
        return self._copy(self.X[rows], self.Y[cols], self.shift)

    def miniature(self) -> Geometry:
        """Return a tiny cloud with the bounds of this one, and trees if this one searches them.

        So no kernel is compiled for it that this one does not need.
        """
        rows, cols = (np.arange(min(2, size)) for size in self.shape)
        out = self.restricted(rows, cols)
        out.bounds = self.bounds
        if self._searched is not None and out.embedding is not None:
            out._index = TreeSearch.of(out.embedding)
        return out

    def _copy(
        self,
        X: Matrix,
        Y: Matrix,
        shift: float,
        *,
        key: MetricKey | None = None,
        is_single: bool | None = None,
        moved: float | None = None,
    ) -> KernelCloud:
        """Return a cloud of the same class, which shares the trees if it has the same points.

        ``moved`` tells that costs differ from these by a constant, so that known bounds carry over.
        """
        out: KernelCloud = object.__new__(type(self))
        is_single = self.single if is_single is None else is_single
        out._set_points(X, Y, self.metric, self.key if key is None else key, is_single, shift)
        out.public_call = self.public_call
        if moved is not None and "bounds" in self.__dict__:
            out.bounds = self.bounds[0] + moved, self.bounds[1] + moved
        if X is self.X and Y is self.Y:
            out._trees = self._trees
        return out

    def coarsen(self, n_cells: int, p: Vector, q: Vector) -> Coarsening | None:
        """Return the cost between weighted centroids of about ``n_cells`` cells of equal count."""
        (X, p), (Y, q) = (clusters(Z, w, n_cells) for Z, w in ((self.X, p), (self.Y, q)))
        cells = self._between(X, Y, self.single)
        from_rows, from_cols = self._between(self.X, cells.Y), self._between(self.Y, cells.X)
        return Coarsening(cells, p, q, from_rows, from_cols, self.shift)

    def _between(self, X: Matrix, Y: Matrix, is_single: bool = True) -> KernelCloud:
        """Return the same cost between other points, without shift."""
        out: KernelCloud = object.__new__(KernelCloud)
        out._check_and_set(X, Y, self.metric, is_single)
        out.key = self.key
        return out

    def digest(self) -> str:
        """Return a hash of points, metric and shift."""
        h = hashlib.sha256(f"{self.digested_metric} {self.shift!r} {self.shape}".encode())
        h.update(np.ascontiguousarray(self.X).data)
        h.update(np.ascontiguousarray(self.Y).data)
        return h.hexdigest()[:16]

    @property
    def digested_metric(self) -> str:
        """The metric, with the digits of its exponents if it has any."""
        return f"{self.metric!s}{self.key[1:] if any(self.key[1:]) else ''}"

    # -- arguments of kernels ----------------------------------------------------------------

    def _args(
        self, swap: bool = False, dtype: Precision = np.float64
    ) -> tuple[Array, Array, MetricKey, np.floating]:
        """Return the first arguments of every kernel: sources, targets, metric and shift."""
        key = swap, dtype
        if key not in self._layouts:
            X, Y = (self.Y, self.X) if swap else (self.X, self.Y)
            if dtype == np.float32 and self._named.degree > 0:
                X, Y = X - self._centre, Y - self._centre  # float32 has no digits to spare
            sources, targets = np.ascontiguousarray(X, dtype), np.ascontiguousarray(Y.T, dtype)
            self._layouts[key] = sources, targets
        return *self._layouts[key], self.key, dtype(self.shift)

    @cached_property
    def _centre(self) -> Vector:
        """The centre of the box around both clouds."""
        low, high = box(self.X, self.Y)
        return np.asarray(0.5 * low + 0.5 * high)

    @cached_property
    def _layouts(self) -> dict[tuple[bool, Precision], tuple[Array, Array]]:
        return {}

    def _share(
        self, kernel: Callable[..., None], swap: bool, *args: object, dtype: Precision = np.float64
    ) -> None:
        """Run a row kernel on all rows, or with ``swap`` on all columns."""
        n, m = self.shape[::-1] if swap else self.shape
        clouds = self._args(swap, dtype)
        if m <= TUNING.max_tile_columns:
            parallel.share(kernel, n, n * m, *clouds, *args)
        else:
            n_out = sweeps.FORMS[kernel.__name__].n_out
            sweeps.share_tiles(kernel, clouds, args[:-n_out], args[-n_out:])

    # -- entries -----------------------------------------------------------------------------

    def block(self, start: int, stop: int) -> Matrix:
        """Compute rows ``start:stop`` of C."""
        out = np.empty((stop - start, self.shape[1]))
        X, *rest = self._args()
        parallel.share(kernels.cost_rows, stop - start, out.size, X[start:stop], *rest, out)
        return out

    def entries(self, rows: Index, cols: Index) -> Vector:
        """Compute the costs of single pairs."""
        rows, cols = (np.ascontiguousarray(x, dtype=np.int64) for x in (rows, cols))
        out = np.empty(rows.size)
        entries = rows.size * TUNING.entries_per_pair
        parallel.share(kernels.pair_costs, rows.size, entries, *self._args(), rows, cols, out)
        return out

    def gathered(self, rows: Index) -> Matrix:
        """Compute some rows of C."""
        out = np.empty((rows.size, self.shape[1]))
        X, *rest = self._args()
        parallel.share(kernels.cost_rows, rows.size, out.size, X[rows], *rest, out)
        return out

    def single_blocks(self, unit: float) -> Iterator[Block]:
        """Yield blocks of C / unit, computed in float32."""
        n, m = self.shape
        if self._named.square and self.X.shape[1] >= TUNING.min_product_dimension:
            X, Y = (Z - self._centre for Z in (self.X, self.Y))
            yield from square_blocks(X, Y, self._named.square / unit, self.shift / unit)
            return
        X, *rest = self._args(dtype=np.float32)
        blocks = list(row_blocks(n, m, 2 * TUNING.block_entries))
        out = np.empty((blocks[0].stop, m), dtype=np.float32)
        for rows in blocks:
            C = out[: rows.stop - rows.start]
            parallel.share(kernels.cost_rows, len(C), C.size, X[rows], *rest, C)
            C *= np.float32(1 / unit)
            yield rows.start, rows.stop, C

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest cost; for very large clouds, bounds of them."""
        n, m = self.shape
        if self.line is not None:
            return self.line.bounds()
        has_corners = self._named.is_convex and self.X.shape[1] <= TUNING.max_hull_dimension
        if n * m > (
            TUNING.max_compared_entries_flat if has_corners else TUNING.max_compared_entries
        ):
            if has_corners:
                far = self._copy(extreme(self.X), extreme(self.Y), self.shift)
                if far.shape[0] * far.shape[1] <= TUNING.max_compared_entries:
                    return self.shift, max(float(C.max()) for _, _, C in far.blocks())
            return self._box_bounds
        out, zeros = np.empty(n), np.zeros(m)
        self._share(kernels.ctransform_rows, False, zeros, 1.0, out)
        low = float(out.min())
        self._share(kernels.ctransform_rows, False, zeros, -1.0, out)
        return low, float((-out).max())

    @property
    def _box_bounds(self) -> tuple[float, float]:
        """The shift, and the cost between opposite corners of the box around both clouds."""
        near, away = (corner[None] for corner in box(self.X, self.Y))
        return self.shift, float(self._copy(near, away, self.shift).block(0, 1)[0, 0])

    @property
    def roughly(self) -> Geometry:
        """The same cloud, with the bounds of a box around it."""
        out = self._copy(self.X, self.Y, self.shift)
        out.bounds = self._box_bounds
        return out

    # -- log-sum-exp -------------------------------------------------------------------------

    @property
    def rough(self) -> LogSums:
        """Log-sum-exp in float32 where ``single`` allows it and exponents are small enough."""
        return EitherLogSums(self._rough_lse) if self._allows_float32 else self

    @property
    def _allows_float32(self) -> bool:
        return self.single

    @cached_property
    def exact(self) -> Geometry:
        """The same cloud without float32."""
        if not self._allows_float32:
            return self
        return self._copy(self.X, self.Y, self.shift, is_single=False, moved=0.0)

    def _lse(self, swap: bool, x: Vector, eta: float) -> Vector:
        out = np.empty(self.shape[1] if swap else self.shape[0])
        self._share(kernels.lse_rows, swap, x, 1 / eta, out)
        return out

    def _rough_lse(self, swap: bool, x: Vector, eta: float) -> Vector:
        if not self.bounds[1] < TUNING.max_float32_exponent * eta:
            return self._lse(swap, x, eta)
        level = x.max()  # potentials relative to their largest keep their digits
        out = np.empty(self.shape[1] if swap else self.shape[0], dtype=np.float32)
        scaled = (x - level).astype(np.float32)
        self._share(kernels.lse_rows, swap, scaled, np.float32(1 / eta), out, dtype=np.float32)
        return np.asarray(out.astype(np.float64) + level / eta)

    def lse_rows(self, g: Vector, eta: float) -> Vector:
        """Return log sum_j exp((g_j - C_ij) / η)."""
        return self._lse(False, g, eta)

    def lse_cols(self, f: Vector, eta: float) -> Vector:
        """Return log sum_i exp((f_i - C_ij) / η)."""
        return self._lse(True, f, eta)

    def log_marginals(self, f: Vector, g: Vector, eta: float) -> tuple[Vector, Vector, float]:
        """Return the logarithms of X 1, of Xᵀ 1 and of the mass of X."""
        log_r = self.lse_rows(g, eta) + f / eta
        log_c = self.lse_cols(f, eta) + g / eta
        return log_r, log_c, log_total(log_r)

    # -- the Gibbs plan and the cost as operators ----------------------------------------------

    def marginals(self, f: Vector, g: Vector, eta: float) -> tuple[Vector, Vector]:
        """Return X 1 and Xᵀ 1."""
        n, m = self.shape
        return self.apply_rows(f, g, eta, np.ones(m)), self.apply_cols(f, g, eta, np.ones(n))

    def apply_rows(self, f: Vector, g: Vector, eta: float, v: Vector) -> Vector:
        """Return X v."""
        out = np.empty(self.shape[0])
        self._share(kernels.apply_rows, False, f, g, 1 / eta, v, out)
        return out

    def apply_cols(self, f: Vector, g: Vector, eta: float, u: Vector) -> Vector:
        """Return Xᵀ u."""
        out = np.empty(self.shape[1])
        self._share(kernels.apply_rows, True, g, f, 1 / eta, u, out)
        return out

    def price_rows(
        self, f: Vector, g: Vector, eta: float, v: Vector, d: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """Return X v, (C * X) v and C d in one pass."""
        mass, cost, shipped = np.empty((3, self.shape[0]))
        self._share(kernels.price_rows, False, f, g, 1 / eta, v, d, mass, cost, shipped)
        return mass, cost, shipped

    def matvec(self, v: Vector) -> Vector:
        """Return C v."""
        out = np.empty(self.shape[0])
        self._share(kernels.matvec, False, v, out)
        return out

    # -- minima ------------------------------------------------------------------------------

    def ctransform_rows(self, g: Vector) -> Vector:
        """Return min_j C_ij - g_j."""
        return self._ctransform(False, g)

    def ctransform_cols(self, f: Vector) -> Vector:
        """Return min_i C_ij - f_i."""
        return self._ctransform(True, f)

    def ctransform_error(self, f: Vector, g: Vector) -> float:
        """Return the error of c-transforms: 0, except where sorted points are compared."""
        return 0.0 if self._index is None else self._index.error(f, g)

    def _ctransform(self, swap: bool, x: Vector) -> Vector:
        """Search trees where that is faster than a pass; the bits are the same."""
        out = None if self._index is None else self._index.ctransform(swap, -x)
        if (
            out is None
            and self._float32_points is not None
            and x.size >= TUNING.min_float32_columns
        ):
            out = self._float32_points.ctransform(self._args(swap), swap, x)
        if out is None:
            out = np.empty(self.shape[1] if swap else self.shape[0])
            self._share(kernels.ctransform_rows, swap, x, 1.0, out)
        return out

    def k_least(self, rows: Index, prices: Vector, k: int) -> tuple[Index, Matrix, Vector]:
        """Return the k columns of least cost + price of some rows; see the base class."""
        if self._float32_points is None or self.shape[1] < TUNING.min_float32_columns:
            return super().k_least(rows, prices, k)
        return self._float32_points.k_least(self._args(), rows, prices, k)

    @cached_property
    def _float32_points(self) -> Float32Points | None:
        """The points in float32, which narrow down the columns of minima."""
        if not self.has_float32_points or max(self.shape) < TUNING.min_float32_columns:
            return None
        centre = self._centre if self._named.degree > 0 else np.zeros(self.X.shape[1])
        return Float32Points.of(self.X, self.Y, centre, self._named, self.shift)
