"""What a cost can do, whatever its form: nothing above this file assumes an array in memory.

A geometry answers seven questions about C and the Gibbs plan X = exp((f + g - C) / η), with
potentials f, g in cost units: log-sum-exp by rows or columns, both marginals, X v, Xᵀ u, the
cost of X, C v, and c-transforms. The base class answers all of them from blocks of rows, so
a lazy geometry need only say how to compute a block; structured ones override the rest.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from .. import parallel
from .._types import FloatArray, Index, Matrix, Vector
from ..kernels import dense as kernels
from ..kernels.vectors import exp, log, logaddexp, matvec, rmatvec

# Entries in a block of a lazy cost: 2 MiB of float64, about the second-level cache.
BLOCK_ENTRIES = 1 << 18
N_CHUNKS = 8


def n_chunks(n_entries: int, n_rows: int = N_CHUNKS) -> int:
    """Return the number of pieces a pass is cut into, whatever the number of threads."""
    return min(N_CHUNKS, n_rows, max(1, n_entries // parallel.MIN_ENTRIES_PER_THREAD))


def log_total(log_x: Vector) -> float:
    """Return the logarithm of the sum of the exponentials of a vector."""
    highest = log_x.max()
    return float(highest + log(exp(log_x - highest).sum()))


class Geometry(ABC):
    """A cost between n sources and m targets.

    Subclasses set ``shape`` and implement :meth:`block`; methods take and return float64
    arrays and release the GIL while they work.
    """

    shape: tuple[int, int]

    # What a geometry can do, which is all that checks, "auto", starts and methods ask of it.

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
    #: Whether sources and targets can be gathered into cells that have costs of the same kind.
    can_coarsen: bool = False

    # How it does it.

    #: What a certificate costs, in units of the seventeen operations an entry of a dense one.
    certificate_passes: int = 1
    #: Least η, as a share of the largest cost, whose exponents are in the range of floats.
    finest_eta: float = 1e-17
    #: Roundings, beyond the one of C_ij - g_j, that a c-transform may add up.
    ctransform_roundings: int = 0

    @abstractmethod
    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of C, C-ordered float64."""

    @abstractmethod
    def shifted(self, delta: float) -> Geometry:
        """Return the geometry of C + delta."""

    def restricted(self, rows: Index, cols: Index) -> Geometry | None:
        """Return the geometry on a subset of sources and targets, or None if it cannot."""
        return None

    def rescaled(self, power: int) -> Geometry | None:
        """Return the geometry of 2**power C, for an even power, or None if it cannot."""
        return None

    def detached(self) -> Geometry:
        """Return a geometry that later changes of the user's arrays do not reach."""
        return self

    @property
    def exact(self) -> Geometry:
        """The same cost with every pass in float64, for certificates."""
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

    @cached_property
    def pass_entries(self) -> int:
        """Entries that one pass works through, for counting operations."""
        return self.shape[0] * self.shape[1]

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest cost."""
        lows, highs = zip(*((C.min(), C.max()) for _, _, C in self.blocks()), strict=True)
        return float(min(lows)), float(max(highs))

    def is_same(self, other: Geometry) -> bool:
        """Tell whether another geometry is this one, or has equal costs computed alike."""
        return self is other or (type(self) is type(other) and self.digest() == other.digest())

    def digest(self) -> str:
        """Return a hash of the cost, for checkpoints and saved results."""
        h = hashlib.sha256(repr(self.shape).encode())
        for _, _, C in self.blocks():
            h.update(C.data)
        return h.hexdigest()[:16]

    def blocks(self) -> Iterator[tuple[int, int, Matrix]]:
        """Yield (start, stop, C[start:stop]) until all rows are seen."""
        n, m = self.shape
        step = n if self.is_dense else max(1, BLOCK_ENTRIES // m)
        for start in range(0, n, step):
            stop = min(start + step, n)
            yield start, stop, self.block(start, stop)

    @cached_property
    def transposed(self) -> Matrix:
        """A C-ordered copy of Cᵀ, for methods that read columns."""
        return np.ascontiguousarray(self.block(0, self.shape[0]).T)

    def single_blocks(self, unit: float) -> Iterator[tuple[int, int, FloatArray]]:
        """Yield (start, stop, C[start:stop] / unit) in float32, for crude passes."""
        for start, stop, C in self.blocks():
            yield start, stop, (C * (1 / unit)).astype(np.float32)

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

    # -- log-sum-exp -----------------------------------------------------------------------

    def lse_rows(self, g: Vector, eta: float, out: Vector | None = None) -> Vector:
        """Return log sum_j exp((g_j - C_ij) / η)."""
        out = np.empty(self.shape[0]) if out is None else out
        for start, stop, C in self.blocks():
            parallel.share(kernels.lse_rows, stop - start, C.size, C, g, 1 / eta, out[start:stop])
        return out

    def lse_cols(self, f: Vector, eta: float, out: Vector | None = None) -> Vector:
        """Return log sum_i exp((f_i - C_ij) / η)."""
        out = np.empty(self.shape[1]) if out is None else out
        part = out
        for start, stop, C in self.blocks():
            part = out if start == 0 else np.empty_like(out)
            parallel.share(kernels.lse_cols, out.size, C.size, C, f[start:stop], 1 / eta, part)
            if start > 0:
                out[:] = logaddexp(out, part)
        return out

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
        r, c = np.empty(n), np.zeros(m)
        for start, stop, C in self.blocks():
            parts = np.empty((n_chunks(C.size), m))
            parallel.share(
                kernels.marginals_at, len(parts), C.size,
                C, f[start:stop], g, 1 / eta, 0.0, r[start:stop], parts,
            )  # fmt: skip
            c += parts.sum(axis=0)
        return r, c

    def apply_rows(self, f: Vector, g: Vector, eta: float, v: Vector) -> Vector:
        """Return X v."""
        out = np.empty(self.shape[0])
        for start, stop, C in self.blocks():
            parallel.share(
                kernels.apply_rows, stop - start, C.size,
                C, f[start:stop], g, 1 / eta, v, out[start:stop],
            )  # fmt: skip
        return out

    def apply_cols(self, f: Vector, g: Vector, eta: float, u: Vector) -> Vector:
        """Return Xᵀ u."""
        total = np.zeros(self.shape[1])
        part = np.empty_like(total)
        for start, stop, C in self.blocks():
            parallel.share(
                kernels.apply_cols, part.size, C.size,
                C, f[start:stop], g, 1 / eta, u[start:stop], part,
            )  # fmt: skip
            total += part
        return total

    def price_rows(
        self, f: Vector, g: Vector, eta: float, v: Vector, d: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """Return X v, (C * X) v and C d in one pass."""
        mass, cost, shipped = np.empty((3, self.shape[0]))
        for start, stop, C in self.blocks():
            parallel.share(
                kernels.apply_cost_rows, stop - start, C.size,
                C, f[start:stop], g, 1 / eta, v, d,
                mass[start:stop], cost[start:stop], shipped[start:stop],
            )  # fmt: skip
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
        for start, stop, C in self.blocks():
            parallel.share(kernels.ctransform_rows, stop - start, C.size, C, g, out[start:stop])
        return out

    def ctransform_cols(self, f: Vector) -> Vector:
        """Return min_i C_ij - f_i."""
        out = np.full(self.shape[1], np.inf)
        part = np.empty_like(out)
        for start, stop, C in self.blocks():
            parallel.share(kernels.ctransform_cols, out.size, C.size, C, f[start:stop], part)
            np.minimum(out, part, out=out)
        return out
