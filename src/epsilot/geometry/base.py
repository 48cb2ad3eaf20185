"""What a cost can do, whatever its form: nothing above this file assumes an array in memory.

A geometry answers seven questions about C and the Gibbs plan X = exp((f + g - C) / η), with
potentials f, g in cost units: log-sum-exp by rows or columns, both marginals, X v, Xᵀ u, the
cost of X, C v, and c-transforms. The base class answers all of them from blocks of rows, so
a lazy geometry need only say how to compute a block; structured ones override the rest.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from .. import parallel
from .._types import Index, Matrix, Vector
from ..kernels import dense as kernels
from ..kernels import k_least
from ..kernels.vectors import exp, log, logaddexp, matvec, rmatvec
from ..metrics import metric_of
from .line import Line
from .sweeps import BLOCK_ENTRIES, Block, ByRow, ColumnSums, fold, n_chunks, row_blocks, sweep
from .tree_index import Embedding

if TYPE_CHECKING:
    from dask.array import Array as DaskArray


def log_total(log_x: Vector) -> float:
    """Return the logarithm of the sum of the exponentials of a vector."""
    highest = log_x.max()
    return float(highest + log(exp(log_x - highest).sum()))


class LogSums(Protocol):
    """Log-sum-exp by rows and by columns, which is what iterates need of a cost."""

    def lse_rows(self, g: Vector, eta: float) -> Vector:
        """Return log sum_j exp((g_j - C_ij) / η)."""

    def lse_cols(self, f: Vector, eta: float) -> Vector:
        """Return log sum_i exp((f_i - C_ij) / η)."""


class Lattice(NamedTuple):
    """Cells of two grids with a common origin, and the lengths of steps between neighbours."""

    shape_a: tuple[int, ...]
    shape_b: tuple[int, ...]
    spacing: tuple[float, ...]
    rows: Index | None = None  # cells that sources are, if not all
    cols: Index | None = None  # cells that targets are, likewise

    def restricted(self, rows: Index, cols: Index) -> Lattice:
        """Return the same cells for some of the sources and targets."""
        kept = (rows, self.rows), (cols, self.cols)
        rows, cols = (some if all_ is None else all_[some] for some, all_ in kept)
        return self._replace(rows=rows, cols=cols)


class Coarser(NamedTuple):
    """The cost between cells of sources and of targets, and how potentials extend from them.

    ``shift`` is a constant that all costs of the finer geometry have and these do not.
    """

    geometry: Geometry  # between cells
    p: Vector  # masses of the cells of sources
    q: Vector  # masses of the cells of targets
    from_rows: Geometry  # between sources and cells of targets
    from_cols: Geometry  # between targets and cells of sources
    shift: float = 0.0


class Halved(NamedTuple):
    """The cost between cells twice as long along every axis, the same on both sides."""

    geometry: Geometry
    pool: Callable[[Vector], Vector]  # masses of fine cells -> of coarse ones
    prolong: Callable[[Vector], Vector]  # a potential of coarse cells -> of fine ones


class Call(NamedTuple):
    """The public function that solves on a cost like this one, for reports."""

    function: str
    data: tuple[str, ...]  # names of the arrays that it takes
    keywords: dict[str, str]
    has_weights: bool = True  # whether it takes weights beside the data


class Places(NamedTuple):
    """Where sources and targets are, and the metric that costs are made by if it has a name."""

    X: Matrix
    Y: Matrix
    metric: str | None


class Geometry(ABC):
    """A cost between n sources and m targets.

    Subclasses set ``shape`` and implement :meth:`block`; methods take and return float64
    arrays and release the GIL while they work.
    """

    shape: tuple[int, int]

    # What a geometry can do, which is all that checks, "auto", starts and methods ask of it.

    #: What messages call it.
    noun: str = "a cost"
    #: Whether C is stored, so that plans may be too.
    is_dense: bool = False
    #: Whether a pass over all rows of C takes seconds, which row and simplex methods need.
    has_rows: bool = True
    #: Whether passes go axis by axis, in far less time than there are entries.
    is_separable: bool = False
    #: Whether passes go through blocks of rows of C.
    is_blockwise: bool = True
    #: Coordinates of the points that costs are distances of; None if there are no such points.
    dimension: int | None = None
    #: Whether passes run on the workers of a cluster, which can keep their results.
    is_remote: bool = False
    #: Whether sources and targets can be gathered into cells that have costs of the same kind.
    can_coarsen: bool = False

    @property
    def embedding(self) -> Embedding | None:
        """Points and a metric that give these costs in few dimensions, if there are any."""
        return None

    @property
    def lattice(self) -> Lattice | None:
        """The cells between which costs are lengths of paths from neighbour to neighbour."""
        return None

    @cached_property
    def line(self) -> Line | None:
        """The points in order, if costs are convex in the distance of points on a line."""
        embedding = self.embedding if self.dimension == 1 else None
        if embedding is None or not metric_of(embedding.metric).is_on_line:
            return None
        return Line.of(embedding)

    @property
    def places(self) -> Places | None:
        """Coordinates of sources and targets, for pictures, if they are known here."""
        return None

    # How it does it.

    #: What a certificate costs, in units of the seventeen operations an entry of a dense one.
    certificate_passes: int = 1
    #: Least η, as a share of the largest cost, whose exponents are in the range of floats.
    finest_eta: float = 1e-17

    @abstractmethod
    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of C, C-ordered float64."""

    @abstractmethod
    def shifted(self, delta: float) -> Geometry:
        """Return the geometry of C + delta."""

    def restricted(self, rows: Index, cols: Index) -> Geometry | None:
        """Return the geometry on a subset of sources and targets, or None if it cannot."""
        return None

    def coarsen(self, n_cells: int, p: Vector, q: Vector) -> Coarser | None:
        """Return the cost between about ``n_cells`` cells on each side, or None if it cannot."""
        return None

    def halved(self) -> Halved | None:
        """Return the cost between cells twice as long, if both sides are the same grid."""
        return None

    def call(self) -> Call:
        """Return the public call that solves on such a cost."""
        return Call("solve", ("M",), {})

    def rescaled(self, power: int) -> Geometry | None:
        """Return the geometry of 2**power C, for an even power, or None if it cannot."""
        return None

    def detached(self) -> Geometry:
        """Return a geometry that later changes of the user's arrays do not reach."""
        return self

    @property
    def rough(self) -> LogSums:
        """Passes of iterates, which may be in float32 where that is allowed; all others are not."""
        return self

    @property
    def exact(self) -> Geometry:
        """The same cost without float32 in rough passes either."""
        return self

    def miniature(self) -> Geometry:
        """Return a tiny geometry of the same kind, on which kernels compile."""
        small = [np.arange(min(2, size)) for size in self.shape]
        return self.restricted(*small) or self

    # -- sizes -----------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes that an explicit float64 cost or plan would take."""
        return 8 * self.shape[0] * self.shape[1]

    @property
    def workspace(self) -> int:
        """Bytes that a pass needs beyond O(n + m): partial sums of every block of rows."""
        n, m = self.shape
        rows = n if self.is_dense else max(1, BLOCK_ENTRIES // m)
        return 8 * m * n_chunks(rows * m) * -(-n // rows) if self.is_blockwise else 0

    @property
    def pass_entries(self) -> int:
        """Entries that one pass works through, for counting operations."""
        return self.shape[0] * self.shape[1]

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest cost."""
        lows, highs = zip(*((C.min(), C.max()) for _, _, C in self.blocks()), strict=True)
        return float(min(lows)), float(max(highs))

    @property
    def roughly(self) -> Geometry:
        """The same cost; bounds of it that take a pass may be wider, and need none."""
        return self

    def is_same(self, other: Geometry) -> bool:
        """Tell whether another geometry is this one, or has equal costs computed alike."""
        return self is other or (type(self) is type(other) and self.digest() == other.digest())

    def digest(self) -> str:
        """Return a hash of the cost, for checkpoints and saved results."""
        h = hashlib.sha256(repr(self.shape).encode())
        for _, _, C in self.blocks():
            h.update(C.data)
        return h.hexdigest()[:16]

    @property
    def cost_unit(self) -> float:
        """Largest cost, or 1 if all are 0: what relative tolerances are shares of."""
        return self.bounds[1] or 1.0

    # -- passes ----------------------------------------------------------------------------

    def blocks(self) -> Iterator[tuple[int, int, Matrix]]:
        """Yield (start, stop, C[start:stop]) until all rows are seen."""
        n, m = self.shape
        if self.is_dense:
            yield 0, n, self.matrix()
            return
        for rows in row_blocks(n, m):
            yield rows.start, rows.stop, self.block(rows.start, rows.stop)

    def single_blocks(self, unit: float) -> Iterator[Block]:
        """Yield (start, stop, C[start:stop] / unit) in float32, for crude passes."""
        for start, stop, C in self.blocks():
            yield start, stop, (C * (1 / unit)).astype(np.float32)

    def sweep(self, kernel: Callable[..., None], *args: object, unit: float | None = None) -> None:
        """Call ``kernel(C, *args, start, stop)`` on every block of rows of C.

        Arguments that are :class:`ByRow` are cut as the rows are, and :class:`ColumnSums` add up
        over the blocks. With a ``unit`` the pass is a crude one, over C / unit in float32.
        """
        sweep(self.blocks() if unit is None else self.single_blocks(unit), kernel, args)

    def _fold(
        self,
        kernel: Callable[..., None],
        combine: Callable[[Vector, Vector], Vector],
        *args: object,
    ) -> Vector:
        """Combine what a kernel says of the columns of every block of rows of C."""
        return fold(self.blocks(), kernel, combine, self.shape[1], args)

    @cached_property
    def transposed(self) -> Matrix:
        """A C-ordered copy of Cᵀ, for methods that read columns."""
        return np.ascontiguousarray(self.matrix().T)

    def matrix(self) -> Matrix:
        """Return all of C, which is computed here unless it is stored; not to be written to."""
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
        """Return the k columns of least C_ij + price_j for some rows, from the least on.

        The columns and their costs are (rows, k) arrays; the third result is a threshold for each
        row: no other column's cost + price is below it (+inf if there is no other).
        """
        n, m = rows.size, self.shape[1]
        cols, costs = np.zeros((n, k), dtype=np.int64), np.empty((n, k))
        thresholds = np.empty(n)
        for part in row_blocks(n, m, 4 * BLOCK_ENTRIES):
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
        else:  # a column far below the largest entry: take its own maximum
            log_c = self.lse_cols(f, eta) + g / eta
        return log_r, log_c, log_total(log_r)

    # -- the Gibbs plan as an operator -----------------------------------------------------

    # Every product with X sums the same numbers, exp((f_i + g_j - C_ij) / η) to the last bit: where
    # exponents are large, what rounding does to them is the plan's, and no marginal depends on it.

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
        """Return X v, or with ``swap`` Xᵀ v, on the workers; only if ``is_remote``."""
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
        """Return a potential, lowered by a rounding or two if c-transforms are then exact."""
        return g

    def ctransform_error(self, f: Vector, g: Vector) -> float:
        """Return what rounding, beyond that of C_ij - g_j, may have added to f, its minimum."""
        return 0.0

    def ctransform_cols(self, f: Vector) -> Vector:
        """Return min_i C_ij - f_i."""
        return self._fold(kernels.ctransform_cols, np.minimum, ByRow(f))
