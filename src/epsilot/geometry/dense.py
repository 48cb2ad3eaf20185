"""A cost that is stored."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from .. import parallel
from .._types import FloatArray, Index, Matrix, Vector
from ..arguments import cost_matrix
from ..kernels import dense as kernels
from ..kernels.pipeline import to_single
from ..kernels.vectors import log
from .base import Geometry
from .sweeps import Block, n_chunks

#: Sums within [1/SAFE, SAFE] of a guessed level have lost nothing to under- or overflow.
SAFE = 1e250


class Dense(Geometry):
    """An explicit (n, m) cost matrix.

    Parameters
    ----------
    M : (n, m) array-like
        Finite costs of any sign and scale.
    """

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

    def __repr__(self) -> str:
        return f"Dense({self.shape[0]} x {self.shape[1]})"

    def block(self, start: int, stop: int) -> Matrix:
        """Return a view of rows ``start:stop``."""
        return self.C[start:stop]

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
        """Return the geometry on a subset of rows and columns."""
        return Dense._own(self.C[np.ix_(rows, cols)])
