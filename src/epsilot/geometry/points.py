"""Costs between two point clouds, computed when they are needed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import memory, parallel
from .._types import Array, Index, Matrix, Vector
from ..kernels import points as kernels
from ..metrics import METRICS, Metric, MetricLike
from . import sweeps
from .base import Call, Coarser, Geometry, LogSums, Places, log_total
from .coordinates import (
    HULL_DIMENSION,
    ScaledMetric,
    as_points,
    box,
    check_metric,
    check_range,
    check_space,
    directions,
    extreme,
    metric_costs,
    reach,
)
from .float32 import MIN_PRODUCT_DIMENSION, Float32LogSums, Float32Points, square_blocks
from .line import Line
from .sweeps import BLOCK_ENTRIES, Block, row_blocks
from .tree_index import (
    DIMENSIONS,
    PAIR_ENTRIES,
    SEARCHED_ENTRIES,
    Embedding,
    Searched,
    Trees,
    clusters,
)

#: Entries up to which costs are compared one by one to find the smallest and the largest.
EXACT_BOUNDS = 1 << 28
#: The same in dimensions in which extreme points are quickly found.
FLAT_BOUNDS = 1 << 24
#: Exponents (f + g - C) / η up to this size are accurate to 1e-3 in float32.
SINGLE_LIMIT = 1e4
#: Columns from which float32 finds minima that float64 decides.
WORTH_BOUNDS = 1024
#: In what kernels compute.
Precision = type[np.float64] | type[np.float32]


class PointCloud(Geometry):
    """The cost between the points of two clouds, never stored.

    Parameters
    ----------
    X_a : (n, d) array-like
        Sources; a vector is n points on a line.
    X_b : (m, d) array-like
        Targets.
    metric : str or callable
        A name of ``epsilot.metrics.POINT_METRICS``: "sqeuclidean" (default), "euclidean" or
        another. A callable takes one source (d,) and all targets (m, d) and returns m costs; it
        runs in Python and is slow.
    single : bool
        Allow float32 in the log-sum-exp passes of iterates (:attr:`rough`) where exponents are
        small enough; everything else, and so every certificate, is in float64.
    """

    noun = "a point cloud"

    def __new__(
        cls, X_a: ArrayLike, X_b: ArrayLike, metric: MetricLike = "sqeuclidean", **_: bool
    ) -> PointCloud:
        """Choose the compiled kernels unless the metric is a Python function."""
        return object.__new__(cls if callable(metric) else _Fused)

    def __init__(
        self,
        X_a: ArrayLike,
        X_b: ArrayLike,
        metric: MetricLike = "sqeuclidean",
        *,
        single: bool = False,
    ) -> None:
        self._begin(as_points(X_a, "X_a"), as_points(X_b, "X_b"), metric, single)

    @classmethod
    def of_points(
        cls, X: Matrix, Y: Matrix, metric: MetricLike, *, single: bool = False
    ) -> PointCloud:
        """Return the cost between points that :func:`as_points` has checked."""
        out = cls.__new__(cls, X, Y, metric)
        out._begin(X, Y, metric, single)
        return out

    def _begin(self, X: Matrix, Y: Matrix, metric: MetricLike, single: bool) -> None:
        """Hold points and a metric, or say what is wrong with them."""
        check_space(X.shape, Y.shape)
        check_metric(metric)
        if not callable(metric) and METRICS[metric].degree == 0:
            X, Y = directions(X, "X_a"), directions(Y, "X_b")
        elif not callable(metric):
            check_range(reach(X, Y), METRICS[metric].power, X.shape[1], f"{metric}: the points")
        self.X, self.Y, self.metric, self.single = X, Y, metric, single
        self.shape, self.dimension, self.shift = (len(X), len(Y)), X.shape[1], 0.0
        if callable(metric):
            what = f"a callable metric on {len(X):,} x {len(Y):,} points"
            memory.ask(self.workspace, what, "use a metric that has a name, or fewer points")

    def __repr__(self) -> str:
        name = self.metric if isinstance(self.metric, str) else "callable"
        return f"PointCloud({self.shape[0]} x {self.shape[1]}, {self.X.shape[1]}-d, {name})"

    def __reduce__(self) -> tuple[object, ...]:
        """Let copies hold what was given, and nothing that was derived from it."""
        kept = ("X", "Y", "metric", "single", "shape", "dimension", "shift")
        return object.__new__, (type(self),), {name: getattr(self, name) for name in kept}

    @property
    def places(self) -> Places | None:
        """The points."""
        return Places(self.X, self.Y, self.metric if isinstance(self.metric, str) else None)

    def call(self) -> Call:
        """Return the call on points."""
        metric = repr(self.metric) if isinstance(self.metric, str) else "metric"
        return Call("solve_sample", ("X_a", "X_b"), {"metric": metric})

    def block(self, start: int, stop: int) -> Matrix:
        """Compute rows ``start:stop`` of C."""
        assert not isinstance(self.metric, str)  # those are _Fused
        out = np.empty((stop - start, self.shape[1]))
        for i in range(start, stop):
            out[i - start] = metric_costs(self.metric, self.X, self.Y, i)
        out += self.shift
        return out

    def rescaled(self, power: int) -> PointCloud | None:
        """Return the geometry of 2**power C, by moving the points apart or together."""
        shift = float(np.ldexp(self.shift, power))
        if callable(self.metric):
            return self._copy(self.X, self.Y, shift, metric=ScaledMetric(self.metric, power))
        degree = METRICS[self.metric].degree
        if degree == 0 or power % degree:
            return None
        step = power // degree
        X, Y = (np.ldexp(points, step) for points in (self.X, self.Y))
        return self._copy(X, Y, shift)

    def shifted(self, delta: float) -> PointCloud:
        """Return the geometry of C + delta."""
        return self._copy(self.X, self.Y, self.shift + delta, moved=delta)

    def restricted(self, rows: Index, cols: Index) -> PointCloud:
        """Return the geometry of some of the points."""
        return self._copy(self.X[rows], self.Y[cols], self.shift)

    def _copy(
        self,
        X: Matrix,
        Y: Matrix,
        shift: float,
        *,
        metric: MetricLike | None = None,
        is_single: bool | None = None,
        moved: float | None = None,
    ) -> PointCloud:
        """Return a cloud of the same kind; its bounds are known if these are, but for a move."""
        out: PointCloud = object.__new__(type(self))
        out.X, out.Y, out.metric = X, Y, self.metric if metric is None else metric
        out.single = self.single if is_single is None else is_single
        out.shape, out.dimension, out.shift = (X.shape[0], Y.shape[0]), X.shape[1], shift
        if moved is not None and "bounds" in self.__dict__:
            out.bounds = self.bounds[0] + moved, self.bounds[1] + moved
        return out

    def digest(self) -> str:
        """Return a hash of points, metric and shift; of the costs where a metric has no name."""
        if callable(self.metric):
            return super().digest()
        h = hashlib.sha256(f"{self.metric!s} {self.shift!r} {self.shape}".encode())
        h.update(np.ascontiguousarray(self.X).data)
        h.update(np.ascontiguousarray(self.Y).data)
        return h.hexdigest()[:16]


class _Fused(PointCloud):
    """A cloud with one of the compiled metrics: every pass is one kernel."""

    is_blockwise = False
    can_coarsen = True
    has_rough = True  # whether float32 copies of all points are at hand

    def _args(
        self, swap: bool = False, dtype: Precision = np.float64
    ) -> tuple[Array, Array, int, np.floating]:
        """Return what every kernel takes first."""
        key = swap, dtype
        if key not in self._layouts:
            X, Y = (self.Y, self.X) if swap else (self.X, self.Y)
            if dtype == np.float32 and self._named.degree > 0:
                X, Y = X - self._centre, Y - self._centre  # float32 has no digits to spare
            sources, targets = np.ascontiguousarray(X, dtype), np.ascontiguousarray(Y.T, dtype)
            self._layouts[key] = sources, targets
        return *self._layouts[key], self._named.code, dtype(self.shift)

    @property
    def _named(self) -> Metric:
        return METRICS[str(self.metric)]

    @cached_property
    def _centre(self) -> Vector:
        """A point in the middle of both clouds."""
        low, high = box(self.X, self.Y)
        return np.asarray(0.5 * low + 0.5 * high)

    @cached_property
    def _layouts(self) -> dict[tuple[bool, Precision], tuple[Array, Array]]:
        return {}

    @property
    def embedding(self) -> Embedding | None:
        """The points themselves, unless they have many coordinates."""
        if self.X.shape[1] > DIMENSIONS[-1]:
            return None
        return Embedding(self.X, self.Y, self._named.code, self.shift, trees=self._trees)

    @cached_property
    def _trees(self) -> Trees:
        return Trees(self.X, self.Y)

    def _copy(self, X: Matrix, Y: Matrix, shift: float, **how: Any) -> PointCloud:
        """Return a cloud of the same kind, with the same trees if it has the same points."""
        out = super()._copy(X, Y, shift, **how)
        if X is self.X and Y is self.Y:
            out._trees = self._trees  # type: ignore[attr-defined]
        return out

    @cached_property
    def _index(self) -> Searched | Line | None:
        """What c-transforms search: trees, which distances on a line leave nothing to prune."""
        if self.line is None or self._named.degree != 1:
            return Searched.of(self.embedding)
        return self.line if self.pass_entries >= SEARCHED_ENTRIES else None

    def coarsen(self, n_cells: int, p: Vector, q: Vector) -> Coarser:
        """Return the cost between weighted centroids of about so many cells of equal count."""
        (X, p), (Y, q) = (clusters(Z, w, n_cells) for Z, w in ((self.X, p), (self.Y, q)))
        cells = PointCloud(X, Y, self.metric, single=self.single)
        from_rows = PointCloud(self.X, cells.Y, self.metric, single=True)
        from_cols = PointCloud(self.Y, cells.X, self.metric, single=True)
        return Coarser(cells, p, q, from_rows, from_cols, self.shift)

    def _share(
        self, kernel: Callable[..., None], swap: bool, *args: object, dtype: Precision = np.float64
    ) -> None:
        n, m = self.shape[::-1] if swap else self.shape
        clouds = self._args(swap, dtype)
        if m <= sweeps.MAX_TILE_COLUMNS:
            parallel.share(kernel, n, n * m, *clouds, *args)
        else:
            n_out = sweeps.FORMS[kernel.__name__].n_out
            sweeps.share_wide(kernel, clouds, args[:-n_out], args[-n_out:])

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
        entries = rows.size * PAIR_ENTRIES
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
        if self._named.square and self.X.shape[1] >= MIN_PRODUCT_DIMENSION:
            X, Y = (Z - self._centre for Z in (self.X, self.Y))
            yield from square_blocks(X, Y, self._named.square / unit, self.shift / unit)
            return
        X, *rest = self._args(dtype=np.float32)
        blocks = list(row_blocks(n, m, 2 * BLOCK_ENTRIES))
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
        has_corners = self._named.is_convex and self.X.shape[1] <= HULL_DIMENSION
        if n * m > (FLAT_BOUNDS if has_corners else EXACT_BOUNDS):
            if has_corners:
                far = self._copy(extreme(self.X), extreme(self.Y), self.shift)
                if far.shape[0] * far.shape[1] <= EXACT_BOUNDS:
                    return self.shift, max(float(C.max()) for _, _, C in far.blocks())
            return self._box_bounds
        out, zeros = np.empty(n), np.zeros(m)
        self._share(kernels.ctransform_rows, False, zeros, 1.0, out)
        low = float(out.min())
        self._share(kernels.ctransform_rows, False, zeros, -1.0, out)
        return low, float((-out).max())

    @property
    def _box_bounds(self) -> tuple[float, float]:
        """Bounds of the costs: none is above that between opposite corners of a box."""
        near, away = (corner[None] for corner in box(self.X, self.Y))
        return self.shift, float(self._copy(near, away, self.shift).block(0, 1)[0, 0])

    @property
    def roughly(self) -> PointCloud:
        """The same cloud, with the bounds of a box around it."""
        out = self._copy(self.X, self.Y, self.shift)
        out.bounds = self._box_bounds
        return out

    @property
    def rough(self) -> LogSums:
        """Log-sum-exp in float32 where it is allowed and exponents are small enough."""
        return Float32LogSums(self._rough_lse) if self.single else self

    @cached_property
    def exact(self) -> Geometry:
        """The same cloud without float32."""
        if not self.single:
            return self
        return self._copy(self.X, self.Y, self.shift, is_single=False, moved=0.0)

    def _lse(self, swap: bool, x: Vector, eta: float) -> Vector:
        out = np.empty(self.shape[1] if swap else self.shape[0])
        self._share(kernels.lse_rows, swap, x, 1 / eta, out)
        return out

    def _rough_lse(self, swap: bool, x: Vector, eta: float) -> Vector:
        if not self.bounds[1] < SINGLE_LIMIT * eta:
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

    def ctransform_rows(self, g: Vector) -> Vector:
        """Return min_j C_ij - g_j."""
        return self._ctransform(False, g)

    def ctransform_cols(self, f: Vector) -> Vector:
        """Return min_i C_ij - f_i."""
        return self._ctransform(True, f)

    def ctransform_error(self, f: Vector, g: Vector) -> float:
        """Return what sweeps along a line compare otherwise than costs; all else has none."""
        return 0.0 if self._index is None else self._index.error(f, g)

    def _ctransform(self, swap: bool, x: Vector) -> Vector:
        """Search trees where that is quicker than a pass: the bits are the same."""
        out = None if self._index is None else self._index.ctransform(swap, -x)
        if out is None and self._bounds is not None and x.size >= WORTH_BOUNDS:
            out = self._bounds.ctransform(self._args(swap), swap, x)
        if out is None:
            out = np.empty(self.shape[1] if swap else self.shape[0])
            self._share(kernels.ctransform_rows, swap, x, 1.0, out)
        return out

    def k_least(self, rows: Index, prices: Vector, k: int) -> tuple[Index, Matrix, Vector]:
        """Return the k columns of least cost + price of some rows; see the base class."""
        if self._bounds is None or self.shape[1] < WORTH_BOUNDS:
            return super().k_least(rows, prices, k)
        return self._bounds.k_least(self._args(), rows, prices, k)

    @cached_property
    def _bounds(self) -> Float32Points | None:
        """The points in float32, which say what columns are worth looking at."""
        if not self.has_rough or max(self.shape) < WORTH_BOUNDS:
            return None
        centre = self._centre if self._named.degree > 0 else np.zeros(self.X.shape[1])
        return Float32Points.of(self.X, self.Y, centre, self._named, self.shift)
