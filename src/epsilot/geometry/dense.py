"""A cost that is stored."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from .. import parallel
from .._types import FloatArray, Index, Matrix, Vector
from ..arguments import cost_matrix
from ..kernels import dense as kernels
from ..kernels.sinkhorn32 import to_single
from ..kernels.vectors import log
from ..metrics import METRICS
from .base import Geometry, Lattice, Places
from .grid_detection import Cells, recognised
from .sweeps import SAFE, Block, n_chunks
from .tree_index import Embedding


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
        # A read-only view, whoever owns the array: kernels then compile for one type only.
        self.C: Matrix = np.ascontiguousarray(cost_matrix(M)).view()
        self.C.setflags(write=False)
        self.is_shared = not isinstance(M, np.ndarray) or np.may_share_memory(self.C, M)
        self.shape = self.C.shape[0], self.C.shape[1]
        self.bounds = float(self.C.min()), float(self.C.max())
        self._single: tuple[float, FloatArray] | None = None

    @classmethod
    def _own(cls, C: Matrix, bounds: tuple[float, float] | None = None) -> Dense:
        """Return the geometry of an array that nobody else holds, with its bounds if known."""
        out = cls(C)
        out.is_shared = False
        if bounds is not None:
            out.bounds = bounds
        return out

    @cached_property
    def _cells(self) -> Cells | None:
        return recognised(self.C)

    @cached_property
    def lattice(self) -> Lattice | None:
        """The cells of a grid, if these are the l1 distances between them."""
        cells = self._cells
        if cells is None or cells.power != METRICS["cityblock"].power:
            return None
        return Lattice(cells.shape, cells.shape, cells.spacing)

    @cached_property
    def embedding(self) -> Embedding | None:
        """The cells of a grid, if these are the squared distances between them."""
        cells = self._cells
        if cells is None or cells.power != METRICS["sqeuclidean"].power:
            return None
        places = np.indices(cells.shape).reshape(len(cells.shape), -1).T
        X = np.asarray(places * cells.spacing, dtype=np.float64)
        return Embedding(X, X, METRICS["sqeuclidean"].code, 0.0)

    @property
    def places(self) -> Places | None:
        """The cells of a grid, if these are distances between them."""
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
        return Dense._own(np.ldexp(self.C, power))

    def detached(self) -> Dense:
        """Return a geometry with its own copy of a cost that may be the user's."""
        return Dense._own(self.C.copy()) if self.is_shared else self

    def entries(self, rows: Index, cols: Index) -> Vector:
        """Return the costs C[rows, cols] of single pairs."""
        return np.asarray(self.C[rows, cols])

    def gathered(self, rows: Index) -> Matrix:
        """Return some rows of C."""
        return np.asarray(self.C[rows])

    def single_blocks(self, unit: float) -> Iterator[Block]:
        """Yield all of C / unit in float32, kept for the next call."""
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
        return Dense._own(self.C + delta, (self.bounds[0] + delta, self.bounds[1] + delta))

    def log_marginals(self, f: Vector, g: Vector, eta: float) -> tuple[Vector, Vector, float]:
        """Return the logarithms of X 1, of Xᵀ 1 and of the mass of X.

        The level of the exponents is guessed from one row, which saves looking for the maximum
        of each; the sums show whether the guess was good.
        """
        n, m = self.shape
        i = int(np.argmax(f))
        level = float(f[i] + (g - self.C[i]).max())
        r, parts = np.empty(n), np.empty((n_chunks(n * m), m))
        parallel.share(
            kernels.marginals_at, len(parts), n * m, self.C, f, g, 1 / eta, level, r, parts
        )
        c = parts.sum(axis=0)
        if not (min(r.min(), c.min()) > 1 / SAFE and max(r.max(), c.max()) < SAFE):
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
        """Return the geometry on a subset of rows and columns; cells stay what they were."""
        lattice, points = self.lattice, self.embedding
        return self.part(
            self.C[np.ix_(rows, cols)],
            lattice and lattice.restricted(rows, cols),
            points and points._replace(X=points.X[rows], Y=points.Y[cols]),
        )

    @classmethod
    def part(cls, C: Matrix, lattice: Lattice | None, embedding: Embedding | None) -> Dense:
        """Return the geometry of new costs between cells or points that are known."""
        out = Dense._own(C)
        out.lattice, out.embedding = lattice, embedding
        return out


def as_geometry(M: ArrayLike | Geometry) -> Geometry:
    """Return a geometry as it is, and a matrix of costs as one."""
    return M if isinstance(M, Geometry) else Dense(M)
