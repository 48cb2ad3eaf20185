"""Costs between two point clouds, computed when they are needed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from .. import memory, parallel
from .._types import Array, Index, Matrix, Vector
from ..arguments import numeric, shown
from ..errors import InvalidProblem
from ..kernels import points as kernels
from ..metrics import METRICS, POINT_METRICS, Metric
from . import passes
from .base import Geometry, LogSums, log_total
from .coordinates import HULL_DIMENSION, as_points, check_space, directions, extreme
from .index import DIMENSIONS, Embedding, Searched
from .ranges import check_range, reach
from .sweeps import BLOCK_ENTRIES, Block, row_blocks

#: Entries up to which costs are compared one by one to find the smallest and the largest.
EXACT_BOUNDS = 1 << 28
#: The same in dimensions in which extreme points are quickly found.
FLAT_BOUNDS = 1 << 24
#: Exponents (f + g - C) / η up to this size are accurate to 1e-3 in float32.
SINGLE_LIMIT = 1e4

#: Entries of a row that take as long as a single pair.
PAIR_ENTRIES = 16

#: In what kernels compute.
Precision = type[np.float64] | type[np.float32]
#: The name of a metric, or a function of a source and all targets.
MetricLike = str | Callable[[Vector, Matrix], ArrayLike]


def check_metric(metric: object) -> None:
    """Refuse what is neither the name of a metric nor a function."""
    if not callable(metric) and (not isinstance(metric, str) or metric not in METRICS):
        raise InvalidProblem(
            f"metric is {shown(metric)}; it must be one of {', '.join(POINT_METRICS)}, or a "
            "callable (point, points) -> costs."
        )


@dataclass(frozen=True)
class _Scaled:
    """2**power times another metric."""

    metric: Callable[[Vector, Matrix], ArrayLike]
    power: int

    def __call__(self, x: Vector, Y: Matrix) -> Vector:
        return np.ldexp(np.asarray(self.metric(x, Y), dtype=np.float64), self.power)


class PointCloud(Geometry):
    """The cost between the points of two clouds, never stored.

    Parameters
    ----------
    X_a : (n, d) array-like
        Sources; a vector is n points on a line.
    X_b : (m, d) array-like
        Targets.
    metric : {"sqeuclidean", "euclidean", "cityblock", "cosine"} or callable
        A callable takes one source (d,) and all targets (m, d) and returns m costs; it runs
        in Python and is slow.
    single : bool
        Allow float32 in the log-sum-exp passes of iterates (:attr:`rough`) where exponents are
        small enough; everything else, and so every certificate, is in float64.
    """

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
        X, Y = as_points(X_a, "X_a"), as_points(X_b, "X_b")
        check_space(X.shape, Y.shape)
        check_metric(metric)
        if not callable(metric) and METRICS[metric].degree == 0:
            X, Y = directions(X, "X_a"), directions(Y, "X_b")
        elif not callable(metric):
            check_range(reach(X, Y), METRICS[metric].power, X.shape[1], f"{metric}: the points")
        self.X, self.Y, self.metric, self.single = X, Y, metric, single
        self.shape, self.dimension = (X.shape[0], Y.shape[0]), X.shape[1]
        self.shift = 0.0
        if callable(metric):
            memory.ask(
                self.workspace,
                f"a callable metric on {X.shape[0]:,} x {Y.shape[0]:,} points",
                "use a metric that has a name, or fewer points",
            )

    def __repr__(self) -> str:
        name = self.metric if isinstance(self.metric, str) else "callable"
        return f"PointCloud({self.shape[0]} x {self.shape[1]}, {self.X.shape[1]}-d, {name})"

    def block(self, start: int, stop: int) -> Matrix:
        """Compute rows ``start:stop`` of C."""
        out = np.empty((stop - start, self.shape[1]))
        for i in range(start, stop):
            out[i - start] = self._costs(i)
        out += self.shift
        return out

    def _costs(self, i: int) -> Vector:
        """Return what a callable metric says of source i, or what is wrong with it."""
        assert not isinstance(self.metric, str)  # those are _Fused
        costs = numeric(self.metric(self.X[i], self.Y), "what the metric returned")
        if costs.shape != self.shape[1:]:
            raise InvalidProblem(
                f"the metric returned an array of shape {costs.shape} for source {i}; it must "
                f"return one cost for each of the {self.shape[1]} targets."
            )
        if not np.isfinite(costs).all():
            j = int(np.argmin(np.isfinite(costs)))
            raise InvalidProblem(
                f"the metric returned {costs[j]} for source {i} and target {j}; costs must be "
                "finite."
            )
        return costs

    def rescaled(self, power: int) -> PointCloud | None:
        """Return the geometry of 2**power C, by moving the points apart or together."""
        shift = float(np.ldexp(self.shift, power))
        if callable(self.metric):
            return self._copy(self.X, self.Y, shift, metric=_Scaled(self.metric, power))
        degree = METRICS[self.metric].degree
        if degree == 0:
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
        low = np.minimum(self.X.min(axis=0), self.Y.min(axis=0))
        high = np.maximum(self.X.max(axis=0), self.Y.max(axis=0))
        return np.asarray(0.5 * low + 0.5 * high)

    @cached_property
    def _layouts(self) -> dict[tuple[bool, Precision], tuple[Array, Array]]:
        return {}

    @property
    def embedding(self) -> Embedding | None:
        """The points themselves, unless they have many coordinates."""
        if self.X.shape[1] > DIMENSIONS[-1]:
            return None
        return Embedding(self.X, self.Y, self._named.code, self.shift)

    @cached_property
    def _trees(self) -> Searched | None:
        return Searched.of(self.embedding)

    def _share(
        self, kernel: Callable[..., None], swap: bool, *args: object, dtype: Precision = np.float64
    ) -> None:
        n, m = self.shape[::-1] if swap else self.shape
        clouds = self._args(swap, dtype)
        if m <= passes.WIDE:
            parallel.share(kernel, n, n * m, *clouds, *args)
        else:
            n_out = passes.FORMS[kernel.__name__].n_out
            passes.share_wide(kernel, clouds, args[:-n_out], args[-n_out:])

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
        if n * m > (EXACT_BOUNDS if self.X.shape[1] > HULL_DIMENSION else FLAT_BOUNDS):
            # All metrics are convex: the largest cost is one between extreme points.
            far = self._copy(extreme(self.X), extreme(self.Y), self.shift)
            if far.shape[0] * far.shape[1] <= EXACT_BOUNDS:
                return self.shift, max(float(C.max()) for _, _, C in far.blocks())
            low = np.minimum(self.X.min(axis=0), self.Y.min(axis=0))
            high = np.maximum(self.X.max(axis=0), self.Y.max(axis=0))
            corners = self._copy(low[None], high[None], self.shift)
            return self.shift, float(corners.block(0, 1)[0, 0])
        out, zeros = np.empty(n), np.zeros(m)
        self._share(kernels.ctransform_rows, False, zeros, 1.0, out)
        low = float(out.min())
        self._share(kernels.ctransform_rows, False, zeros, -1.0, out)
        return low, float((-out).max())

    @property
    def rough(self) -> LogSums:
        """Log-sum-exp in float32 where it is allowed and exponents are small enough."""
        return _Rough(self) if self.single else self

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

    def _ctransform(self, swap: bool, x: Vector) -> Vector:
        """Search trees where that is quicker than a pass: the bits are the same."""
        out = None if self._trees is None else self._trees.ctransform(swap, -x)
        if out is None:
            out = np.empty(self.shape[1] if swap else self.shape[0])
            self._share(kernels.ctransform_rows, swap, x, 1.0, out)
        return out


@dataclass(frozen=True)
class _Rough:
    """The passes of a cloud that may be in float32."""

    cloud: _Fused

    def lse_rows(self, g: Vector, eta: float) -> Vector:
        """Return log sum_j exp((g_j - C_ij) / η), to about three digits of the exponents."""
        return self.cloud._rough_lse(False, g, eta)

    def lse_cols(self, f: Vector, eta: float) -> Vector:
        """Return log sum_i exp((f_i - C_ij) / η), likewise."""
        return self.cloud._rough_lse(True, f, eta)
