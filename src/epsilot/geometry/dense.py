"""Stored costs, and the detection of stored grid distances."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import parallel
from .._types import FloatArray, Index, Matrix, Vector
from ..arguments import cost_matrix
from ..kernels import dense as kernels
from ..kernels.grid import differs
from ..kernels.sinkhorn import to_single
from ..kernels.vectors import log
from ..metrics import METRICS
from .base import Geometry, Lattice, Places
from .recovery import recover_points
from .sweeps import MAX_SAFE_SUM, Block, n_chunks
from .tree_index import Embedding
from .tuning import TUNING


class Dense(Geometry):
    """An explicit (n, m) cost matrix.

    Parameters
    ----------
    M : (n, m) array-like
        Finite costs of any sign and scale.

    Examples
    --------
    >>> import epsilot
    >>> epsilot.Dense([[0.0, 2.0, 1.0], [1.0, 0.0, 3.0]])
    Dense(2 x 3)
    """

    noun = "a stored cost"

    is_dense = True

    def __init__(self, M: ArrayLike) -> None:
        # A read-only view, so that kernels compile for one array type only.
        self.C: Matrix = np.ascontiguousarray(cost_matrix(M)).view()
        self.C.setflags(write=False)
        self.is_shared = not isinstance(M, np.ndarray) or np.may_share_memory(self.C, M)
        self.shape = self.C.shape[0], self.C.shape[1]
        # The methods of arrays take a third longer than the ufuncs that they call.
        low, high = np.minimum.reduce(self.C, axis=None), np.maximum.reduce(self.C, axis=None)
        self.bounds = float(low), float(high)
        self._single: tuple[float, FloatArray] | None = None
        self._added = 0.0
        if min(self.shape) < TUNING.min_grid_cells:  # nothing to detect
            self._cells = self.lattice = self.embedding = None

    @classmethod
    def _own(
        cls, C: Matrix, bounds: tuple[float, float] | None = None, added: float = 0.0
    ) -> Dense:
        """Return the geometry of an array that is not shared, with its bounds if known.

        ``added`` is the constant that was added to the costs of the user.
        """
        out = cls(C)
        out.is_shared, out._added = False, added
        if bounds is not None:
            out.bounds = bounds
        return out

    @cached_property
    def _cells(self) -> DetectedGrid | None:
        return detect_grid(self.C)

    @cached_property
    def lattice(self) -> Lattice | None:
        """The cells of a grid, if C holds the l1 distances between them."""
        cells = self._cells
        if cells is None or cells.power != METRICS["cityblock"].power:
            return None
        return Lattice(cells.shape, cells.shape, cells.spacing)

    @cached_property
    def embedding(self) -> Embedding | None:
        """The cells of a grid, if C holds the squared distances between them."""
        cells = self._cells
        if cells is None or cells.power != METRICS["sqeuclidean"].power:
            return None
        places = np.indices(cells.shape).reshape(len(cells.shape), -1).T
        X = np.asarray(places * cells.spacing, dtype=np.float64)
        return Embedding(X, X, METRICS["sqeuclidean"].key, 0.0)

    @cached_property
    def recovered(self) -> Embedding | None:
        """Points in few dimensions, if C holds their Euclidean distances or the squares of them."""
        return recover_points(self.C, self._added) if self.embedding is None else None

    @property
    def places(self) -> Places | None:
        """The cells of a grid, if C holds distances between them."""
        cells = self._cells
        if cells is None:
            return None
        X = np.indices(cells.shape).reshape(len(cells.shape), -1).T * np.asarray(cells.spacing)
        return Places(X, X, None)

    def __repr__(self) -> str:
        return f"Dense({self.shape[0]} x {self.shape[1]})"

    def block(self, start: int, stop: int) -> Matrix:
        """Return a view of rows ``start:stop``."""
        return self.C[start:stop]

    def matrix(self) -> Matrix:
        """Return C."""
        return self.C

    def rescaled(self, power: int) -> Dense:
        """Return the geometry of 2**power C."""
        return Dense._own(np.ldexp(self.C, power), added=math.ldexp(self._added, power))

    def detached(self) -> Dense:
        """Return a geometry with its own copy of C if C may share memory with the user's array."""
        return Dense._own(self.C.copy(), self.bounds, self._added) if self.is_shared else self

    def entries(self, rows: Index, cols: Index) -> Vector:
        """Return the costs C[rows, cols] of single pairs."""
        return np.asarray(self.C[rows, cols])

    def gathered(self, rows: Index) -> Matrix:
        """Return some rows of C."""
        return np.asarray(self.C[rows])

    def single_blocks(self, unit: float) -> Iterator[Block]:
        """Yield all of C / unit in float32, and keep it for the next call."""
        if self._single is None or self._single[0] != unit:
            n, m = self.shape
            out = np.empty((n, m), dtype=np.float32)
            parallel.share(to_single, n, n * m, self.C, 1 / unit, out)
            self._single = unit, out
        yield 0, self.shape[0], self._single[1]

    def shifted(self, delta: float) -> Dense:
        """Return the geometry of C + delta."""
        if delta == 0:
            return self
        bounds = self.bounds[0] + delta, self.bounds[1] + delta
        return Dense._own(self.C + delta, bounds, self._added + delta)

    def log_marginals(self, f: Vector, g: Vector, eta: float) -> tuple[Vector, Vector, float]:
        """Return the logarithms of X 1, of Xᵀ 1 and of the mass of X.

        The level of the exponents is guessed from one row, which saves a maximum per row. Sums out
        of range reveal a bad guess, and the slower pass of the base class then runs.
        """
        n, m = self.shape
        i = int(np.argmax(f))
        level = float(f[i] + (g - self.C[i]).max())
        r, parts = np.empty(n), np.empty((n_chunks(n * m), m))
        parallel.share(
            kernels.marginals_at, len(parts), n * m, self.C, f, g, 1 / eta, level, r, parts
        )
        c = parts.sum(axis=0)
        if not (min(r.min(), c.min()) > 1 / MAX_SAFE_SUM and max(r.max(), c.max()) < MAX_SAFE_SUM):
            return super().log_marginals(f, g, eta)
        level /= eta
        return log(r) + level, log(c) + level, log(r.sum()) + level

    def ctransform_rows(self, g: Vector) -> Vector:
        """Return min_j C_ij - g_j."""
        out = np.empty(self.shape[0])
        parallel.share(kernels.ctransform_rows, out.size, self.C.size, self.C, g, out)
        return out

    def ctransform_cols(self, f: Vector) -> Vector:
        """Return min_i C_ij - f_i."""
        out = np.empty(self.shape[1])
        parallel.share(kernels.ctransform_cols, out.size, self.C.size, self.C, f, out)
        return out

    def restricted(self, rows: Index, cols: Index) -> Dense:
        """Return the geometry on a subset of rows and columns, with its known grid cells."""
        lattice, points = self.lattice, self.embedding
        return self.part(
            self.C[np.ix_(rows, cols)],
            lattice and lattice.restricted(rows, cols),
            points and points._replace(X=points.X[rows], Y=points.Y[cols]),
            self._added,
        )

    @classmethod
    def part(
        cls, C: Matrix, lattice: Lattice | None, embedding: Embedding | None, added: float = 0.0
    ) -> Dense:
        """Return the geometry of costs between cells or points that are known."""
        out = Dense._own(C, added=added)
        out.lattice, out.embedding = lattice, embedding
        return out


# -- grid detection --------------------------------------------------------------------------------
#
# Matrices of pixel distances are common, and methods for grids are far faster than methods that see
# only entries. A detected grid helps to find a plan and potentials; certificates use the stored
# costs themselves.


class DetectedGrid(NamedTuple):
    """A grid whose cells, in C order, are the rows and the columns of a cost."""

    shape: tuple[int, ...]
    spacing: tuple[float, ...]
    power: int  # 1: sums of distances along the axes; 2: of their squares


def detect_grid(C: Matrix) -> DetectedGrid | None:
    """Return the grid whose l1 or squared l2 distances a matrix holds, or None.

    The first row determines the only candidate, so that most matrices are rejected at once.
    """
    n, m = C.shape
    if n != m or n < TUNING.min_grid_cells or C[0, 0] != 0:
        return None
    for power in (1, 2):
        axes = _axes(C[0], power, TUNING.grid_tolerance * float(C[0].max()))
        if axes is not None and not _differs(C, axes, power):
            lengths, steps = zip(*axes, strict=True)
            spacing = steps if power == 1 else tuple(map(math.sqrt, steps))
            return DetectedGrid(lengths, spacing, power)
    return None


def _power_of_steps(steps: Index, power: int) -> Index:
    return steps if power == 1 else steps * steps


def _axes(row: Vector, power: int, tolerance: float) -> list[tuple[int, float]] | None:
    """Return the length and the cost per step of each axis, from the first row; None if no grid."""
    axes: list[tuple[int, float]] = []
    while row.size > 1:
        if len(axes) == TUNING.max_grid_axes or not row[1] > 0:
            return None
        is_off = np.abs(row - row[1] * _power_of_steps(np.arange(row.size), power)) > tolerance
        length = int(np.argmax(is_off)) if is_off.any() else row.size
        if row.size % length:
            return None
        axes.insert(0, (length, float(row[1])))
        row = row[::length]
    return axes


def _differs(C: Matrix, axes: list[tuple[int, float]], power: int) -> bool:
    """Tell whether any cost differs from the sum over the axes."""
    n = len(C)
    tables = []
    for length, step in [(1, 0.0)] * (TUNING.max_grid_axes - len(axes)) + axes:
        steps = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
        tables.append(step * _power_of_steps(steps, power).astype(np.float64))
    tolerance = TUNING.grid_tolerance * sum(float(table.max()) for table in tables)
    corner, out = np.array([0, n - 1]), np.zeros(n, dtype=np.bool_)
    if abs(C[corner, corner[::-1]] - sum(table.max() for table in tables)).max() > tolerance:
        return True
    parallel.share(differs, n, C.size, C, *tables, tolerance, out)
    return bool(out.any())
