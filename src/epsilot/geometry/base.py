"""The interface of every cost: no layer above this one assumes an array in memory.

A geometry offers passes over C and over the Gibbs plan X = exp((f + g - C) / η), with potentials
f, g in cost units: log-sum-exp by rows or columns, both marginals, X v, Xᵀ u, the cost of X, C v,
and c-transforms. The base class computes all of them from blocks of rows. A new geometry therefore
needs one method, :meth:`Geometry.block`; structured geometries override the rest.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import parallel
from .._types import Array, Index, Matrix, Vector
from ..kernels import arcs as arc_kernels
from ..kernels import dense as kernels
from ..kernels import k_least
from ..kernels.vectors import exp, log, logaddexp, matvec, rmatvec
from ..metrics import MetricLike, NamedMetric, metric_of
from .line import Line
from .sweeps import Block, ByRow, ColumnSums, fold, n_chunks, row_blocks, sweep
from .tree_index import Embedding
from .tuning import TUNING

if TYPE_CHECKING:
    from dask.array import Array as DaskArray


def log_total(log_x: Vector) -> float:
    """Return the logarithm of the sum of the exponentials of a vector."""
    highest = log_x.max()
    return float(highest + log(exp(log_x - highest).sum()))


class LogSums(Protocol):
    """Log-sum-exp by rows and by columns, the passes of Sinkhorn iterates."""

    def lse_rows(self, g: Vector, eta: float) -> Vector:
        """Return log sum_j exp((g_j - C_ij) / η)."""

    def lse_cols(self, f: Vector, eta: float) -> Vector:
        """Return log sum_i exp((f_i - C_ij) / η)."""


@dataclass(frozen=True)
class EitherLogSums:
    """Log-sum-exp by rows and by columns, both from one function."""

    lse: Callable[[bool, Vector, float], Vector]  # whether by columns, the potential, η

    def lse_rows(self, g: Vector, eta: float) -> Vector:
        """Return log sum_j exp((g_j - C_ij) / η)."""
        return self.lse(False, g, eta)

    def lse_cols(self, f: Vector, eta: float) -> Vector:
        """Return log sum_i exp((f_i - C_ij) / η)."""
        return self.lse(True, f, eta)


class Lattice(NamedTuple):
    """Cells of two grids with a common origin, and the lengths of steps between neighbours."""

    shape_a: tuple[int, ...]
    shape_b: tuple[int, ...]
    spacing: tuple[float, ...]
    rows: Index | None = None  # cells of the sources; None: all
    cols: Index | None = None  # cells of the targets; None: all

    def restricted(self, rows: Index, cols: Index) -> Lattice:
        """Return the same cells for some of the sources and targets."""
        kept = (rows, self.rows), (cols, self.cols)
        rows, cols = (some if all_ is None else all_[some] for some, all_ in kept)
        return self._replace(rows=rows, cols=cols)


class Coarsening(NamedTuple):
    """The cost between cells of sources and of targets, and how potentials extend from them.

    The costs of the finer geometry are higher by the constant ``shift``.
    """

    geometry: Geometry  # between cells
    p: Vector  # masses of the cells of sources
    q: Vector  # masses of the cells of targets
    from_rows: Geometry  # between sources and cells of targets
    from_cols: Geometry  # between targets and cells of sources
    shift: float = 0.0


class HalvedGrid(NamedTuple):
    """The cost between cells twice as long along every axis, the same on both sides."""

    geometry: Geometry
    pool: Callable[[Vector], Vector]  # masses of fine cells -> masses of coarse cells
    prolong: Callable[[Vector], Vector]  # potential of coarse cells -> potential of fine cells


class PublicCall(NamedTuple):
    """The public call that solves a problem with this cost, for reports."""

    function: str
    data: tuple[str, ...]  # names of the arrays that it takes
    keywords: dict[str, str]
    has_weights: bool = True  # whether it takes weights in addition to the data


class Places(NamedTuple):
    """Coordinates of sources and targets, and their metric if it has a name."""

    X: Matrix
    Y: Matrix
    metric: MetricLike | None


class AllowedArcs(NamedTuple):
    """The arcs of a sparse cost: by rows, then the places of the same arcs by columns."""

    starts: Index  # first arc of each row
    cols: NDArray[np.uint32]  # column of each arc
    first: Index  # first place of each column
    places: Index  # arcs by columns
    col_rows: NDArray[np.uint32]  # their rows
    rows: Index  # row of each arc
    costs: Vector

    @property
    def lists(self) -> tuple[Array, ...]:
        """The arrays that the search for paths needs."""
        return self.starts, self.cols, self.first, self.places, self.col_rows

    def negative(self, f: Vector, g: Vector, bar: float, k: int) -> tuple[Index, Index, Vector]:
        """Return rows, columns and costs of the arcs with C_ij - f_i - g_j < bar.

        These are at most the k least ones of every row, in rising order.
        """
        most = min(self.costs.size, k * f.size)
        rows, places = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
        listed = self.starts, self.cols, self.costs
        size = arc_kernels.negative(*listed, f, g, bar, k, rows, places)
        found = places[:size]
        return rows[:size], self.cols[found].astype(np.int64), self.costs[found]


class Geometry(ABC):
    """A cost between n sources and m targets.

    Subclasses set ``shape`` and implement :meth:`block`; methods take and return float64
    arrays and release the GIL while they work.
    """

    shape: tuple[int, int]

    # Capabilities. Checks, "auto", starts and methods ask for these, never for a class.

    #: Noun phrase for messages.
    noun: str = "a cost"
    #: Whether C is stored, so that plans may be stored too.
    is_dense: bool = False
    #: Whether a pass over all rows of C takes seconds at most, as row and simplex methods need.
    has_rows: bool = True
    #: Whether passes go axis by axis, in far fewer operations than C has entries.
    is_separable: bool = False
    #: Whether passes go through blocks of rows of C.
    is_blockwise: bool = True
    #: Number of coordinates of the points, where costs are distances of points; else None.
    dimension: int | None = None
    #: Whether passes run on the workers of a cluster, which can keep their results.
    is_remote: bool = False
    #: The arcs that plans may use; None: all pairs.
    allowed: AllowedArcs | None = None
    #: Whether :meth:`coarsen` can group sources and targets into cells.
    can_coarsen: bool = False

    @property
    def embedding(self) -> Embedding | None:
        """Points and a metric in few dimensions that give these costs, or None."""
        return None

    @property
    def recovered(self) -> Embedding | None:
        """Points whose distances are the costs up to round-off, or None.

        They help to find a plan and potentials; nothing is proved by them.
        """
        return None

    @property
    def lattice(self) -> Lattice | None:
        """The grid cells whose shortest paths have these costs as lengths, or None."""
        return None

    @cached_property
    def line(self) -> Line | None:
        """The sorted points, if costs are convex in the distance of points on a line."""
        embedding = self.embedding if self.dimension == 1 else None
        if embedding is None or not metric_of(embedding.metric).is_on_line:
            return None
        return Line.of(embedding)

    @property
    def places(self) -> Places | None:
        """Coordinates of sources and targets, for figures, or None."""
        return None

    @property
    def cost_metric(self) -> NamedMetric | None:
        """The metric that gives the costs, for reports; None for costs without one."""
        return None

    # Costs and limits of passes.

    #: Cost of a certificate, in units of that of a dense cost (17 operations per entry).
    certificate_passes: int = 1
    #: Fraction of the costs that a certificate looks at; searches of trees see few of them.
    certificate_share: float = 1.0
    #: Least η, as a fraction of the largest cost, whose exponents float64 can hold.
    finest_eta: float = 1e-17

    @abstractmethod
    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of C, C-ordered float64."""

    @abstractmethod
    def shifted(self, delta: float) -> Geometry:
        """Return the geometry of C + delta."""

    def restricted(self, rows: Index, cols: Index) -> Geometry | None:
        """Return the geometry on a subset of sources and targets, or None if unsupported."""
        return None

    def coarsen(self, n_cells: int, p: Vector, q: Vector) -> Coarsening | None:
        """Return the cost between about ``n_cells`` cells per side, or None if unsupported."""
        return None

    def halved(self) -> HalvedGrid | None:
        """Return the cost between cells twice as long if both sides are one grid, else None."""
        return None

    def extended(self, to_rows: Vector, to_cols: Vector, corner: float) -> Geometry | None:
        """Return the cost with a dummy target and a dummy source, or None if unsupported."""
        return None

    def call(self) -> PublicCall:
        """Return the public call that solves a problem with such a cost."""
        return PublicCall("solve", ("M",), {})

    def rescaled(self, power: int) -> Geometry | None:
        """Return the geometry of 2**power C for an even power, or None if unsupported."""
        return None

    def detached(self) -> Geometry:
        """Return a geometry that does not share memory with the user's arrays."""
        return self

    @property
    def rough(self) -> LogSums:
        """Log-sum-exp passes for iterates, in float32 where that is allowed."""
        return self

    @property
    def exact(self) -> Geometry:
        """The same cost with all passes in float64."""
        return self

    def miniature(self) -> Geometry:
        """Return a tiny geometry of the same class, to compile kernels on."""
        small = [np.arange(min(2, size)) for size in self.shape]
        return self.restricted(*small) or self

    # -- sizes -----------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes that an explicit float64 cost or plan would take."""
        return 8 * self.shape[0] * self.shape[1]

    @property
    def workspace(self) -> int:
        """Bytes that a pass needs beyond O(n + m): the partial sums of all blocks of rows."""
        n, m = self.shape
        rows = n if self.is_dense else max(1, TUNING.block_entries // m)
        return 8 * m * n_chunks(rows * m) * -(-n // rows) if self.is_blockwise else 0

    @property
    def pass_entries(self) -> int:
        """Entries that one pass visits, for counting operations."""
        return self.shape[0] * self.shape[1]

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest cost."""
        lows, highs = zip(*((C.min(), C.max()) for _, _, C in self.blocks()), strict=True)
        return float(min(lows)), float(max(highs))

    @property
    def untilted(self) -> Geometry:
        """The user's cost, where a regularisation has added numbers per row and column to it."""
        return self

    @property
    def roughly(self) -> Geometry:
        """The same cost, with bounds that may be wider but need no pass."""
        return self

    def is_same(self, other: Geometry) -> bool:
        """Tell whether another geometry is this one, or has equal costs and the same class."""
        return self is other or (type(self) is type(other) and self.digest() == other.digest())

    def digest(self) -> str:
        """Return a hash of the cost, for checkpoints and saved results."""
        h = hashlib.sha256(repr(self.shape).encode())
        for _, _, C in self.blocks():
            h.update(C.data)
        return h.hexdigest()[:16]

    @property
    def cost_unit(self) -> float:
        """The unit of relative tolerances: the largest cost, or 1 if all are 0."""
        return self.bounds[1] or 1.0

    # -- passes ----------------------------------------------------------------------------

    def blocks(self) -> Iterator[tuple[int, int, Matrix]]:
        """Yield (start, stop, C[start:stop]) over all rows."""
        n, m = self.shape
        if self.is_dense:
            yield 0, n, self.matrix()
            return
        for rows in row_blocks(n, m):
            yield rows.start, rows.stop, self.block(rows.start, rows.stop)

    def single_blocks(self, unit: float) -> Iterator[Block]:
        """Yield (start, stop, C[start:stop] / unit) in float32, for passes that prove nothing."""
        for start, stop, C in self.blocks():
            yield start, stop, (C * (1 / unit)).astype(np.float32)

    def sweep(self, kernel: Callable[..., None], *args: object, unit: float | None = None) -> None:
        """Call ``kernel(C, *args, start, stop)`` on every block of rows of C.

        The kernel gets the part of each :class:`ByRow` argument that belongs to its rows, and
        :class:`ColumnSums` add up over the blocks. With a ``unit``, the pass goes over C / unit in
        float32.
        """
        sweep(self.blocks() if unit is None else self.single_blocks(unit), kernel, args)

    def _fold(
        self,
        kernel: Callable[..., None],
        combine: Callable[[Vector, Vector], Vector],
        *args: object,
    ) -> Vector:
        """Combine the column vectors that a kernel writes for every block of rows of C."""
        return fold(self.blocks(), kernel, combine, self.shape[1], args)

    @cached_property
    def transposed(self) -> Matrix:
        """A C-ordered copy of Cᵀ, for methods that read columns."""
        return np.ascontiguousarray(self.matrix().T)

    def matrix(self) -> Matrix:
        """Return all of C, read-only; computed on the spot unless it is stored."""
        return self.block(0, self.shape[0])

    def row(self, i: int) -> Vector:
        """Return row i of C."""
        return np.asarray(self.block(i, i + 1)[0])

    def entries(self, rows: Index, cols: Index) -> Vector:
        """Return the costs C[rows, cols] of single pairs."""
        out = np.empty(rows.size)
        for start, stop, C in self.blocks():
            inside = np.flatnonzero((rows >= start) & (rows < stop))
            out[inside] = C[rows[inside] - start, cols[inside]]
        return out

    def gathered(self, rows: Index) -> Matrix:
        """Return some rows of C, C-ordered float64."""
        return np.stack([self.row(i) for i in rows])

    def k_least(self, rows: Index, prices: Vector, k: int) -> tuple[Index, Matrix, Vector]:
        """Return the k columns of least C_ij + price_j for some rows, in rising order.

        The columns and their costs are (rows, k) arrays. The third result is a threshold per row:
        no other column's cost + price is below it (+inf if there is no other column).
        """
        n, m = rows.size, self.shape[1]
        cols, costs = np.zeros((n, k), dtype=np.int64), np.empty((n, k))
        thresholds = np.empty(n)
        for part in row_blocks(n, m, 4 * TUNING.block_entries):
            C = self.gathered(rows[part])
            found = cols[part], costs[part], thresholds[part]
            parallel.share(k_least.least_columns, len(C), C.size, C, prices, *found)
        return cols, costs, thresholds

    # -- log-sum-exp -----------------------------------------------------------------------

    def lse_rows(self, g: Vector, eta: float) -> Vector:
        """Return log sum_j exp((g_j - C_ij) / η)."""
        out = np.empty(self.shape[0])
        self.sweep(kernels.lse_rows, g, 1 / eta, ByRow(out))
        return out

    def lse_cols(self, f: Vector, eta: float) -> Vector:
        """Return log sum_i exp((f_i - C_ij) / η)."""
        return self._fold(kernels.lse_cols, logaddexp, ByRow(f), 1 / eta)

    def log_marginals(self, f: Vector, g: Vector, eta: float) -> tuple[Vector, Vector, float]:
        """Return the logarithms of X 1, of Xᵀ 1 and of the mass of X, in one pass."""
        n, m = self.shape
        log_r = np.empty(n)
        parts, levels = [], []
        for start, stop, C in self.blocks():
            part, level = np.empty((n_chunks(C.size), m)), np.empty(n_chunks(C.size))
            parallel.share(
                kernels.log_marginals, len(part), C.size,
                C, f[start:stop], g, 1 / eta, log_r[start:stop], part, level,
            )  # fmt: skip
            parts.append(part)
            levels.append(level)
        level = np.concatenate(levels)
        top = level.max()
        c = rmatvec(np.concatenate(parts), exp(level - top))
        if c.min() > 1e-250:
            log_c = log(c) + top
        else:  # a column far below the largest entry: use its own maximum
            log_c = self.lse_cols(f, eta) + g / eta
        return log_r, log_c, log_total(log_r)

    # -- the Gibbs plan as an operator -----------------------------------------------------

    # Every product with X sums the same numbers, exp((f_i + g_j - C_ij) / η) to the last bit. The
    # rounding of large exponents then belongs to the plan, and its marginals are consistent.

    def marginals(self, f: Vector, g: Vector, eta: float) -> tuple[Vector, Vector]:
        """Return X 1 and Xᵀ 1, in one pass."""
        n, m = self.shape
        r, c = np.empty(n), ColumnSums(m)
        self.sweep(kernels.marginals_at, ByRow(f), g, 1 / eta, 0.0, ByRow(r), c)
        return r, c.total

    def apply_rows(self, f: Vector, g: Vector, eta: float, v: Vector) -> Vector:
        """Return X v."""
        out = np.empty(self.shape[0])
        self.sweep(kernels.apply_rows, ByRow(f), g, 1 / eta, v, ByRow(out))
        return out

    def apply_cols(self, f: Vector, g: Vector, eta: float, u: Vector) -> Vector:
        """Return Xᵀ u."""
        return self._fold(kernels.apply_cols, np.add, ByRow(f), g, 1 / eta, ByRow(u))

    def apply_there(self, swap: bool, f: Vector, g: Vector, eta: float, v: Vector) -> DaskArray:
        """Return X v, or with ``swap`` Xᵀ v, kept on the workers; only if ``is_remote``."""
        raise NotImplementedError

    def price_rows(
        self, f: Vector, g: Vector, eta: float, v: Vector, d: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """Return X v, (C * X) v and C d in one pass."""
        mass, cost, shipped = np.empty((3, self.shape[0]))
        out = ByRow(mass), ByRow(cost), ByRow(shipped)
        self.sweep(kernels.apply_cost_rows, ByRow(f), g, 1 / eta, v, d, *out)
        return mass, cost, shipped

    def gibbs(self, f: Vector, g: Vector, eta: float, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of X."""
        C = self.block(start, stop)
        X = np.empty(C.shape)
        parallel.share(kernels.gibbs, stop - start, C.size, C, f[start:stop], g, 1 / eta, X)
        return X

    # -- the cost as an operator -----------------------------------------------------------

    def matvec(self, v: Vector) -> Vector:
        """Return C v."""
        return np.concatenate([matvec(C, v) for _, _, C in self.blocks()])

    def ctransform_rows(self, g: Vector) -> Vector:
        """Return min_j C_ij - g_j."""
        out = np.empty(self.shape[0])
        self.sweep(kernels.ctransform_rows, g, ByRow(out))
        return out

    def round_down(self, g: Vector) -> Vector:
        """Return a potential, lowered slightly if its c-transforms are then exact."""
        return g

    def ctransform_error(self, f: Vector, g: Vector) -> float:
        """Bound the error of f = min_j C_ij - g_j beyond the rounding of each difference."""
        return 0.0

    def ctransform_cols(self, f: Vector) -> Vector:
        """Return min_i C_ij - f_i."""
        return self._fold(kernels.ctransform_cols, np.minimum, ByRow(f))
