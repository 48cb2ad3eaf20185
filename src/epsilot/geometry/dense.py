"""A cost that is stored."""

from __future__ import annotations

import numpy as np

from .._types import Index, Matrix
from .base import Geometry


class Dense(Geometry):
    """An explicit (n, m) cost matrix.

    Parameters
    ----------
    M : (n, m) array-like
        Finite costs of any sign and scale.
    """

    is_dense = True

    def __init__(self, M: Matrix) -> None:
        # A read-only view, whoever owns the array: kernels then compile for one type only.
        self.C: Matrix = np.ascontiguousarray(M, dtype=np.float64).view()
        self.C.setflags(write=False)
        self.shape = self.C.shape[0], self.C.shape[1]

    def __repr__(self) -> str:
        return f"Dense({self.shape[0]} x {self.shape[1]})"

    def block(self, start: int, stop: int) -> Matrix:
        """Return a view of rows ``start:stop``."""
        return self.C[start:stop]

    def shifted(self, delta: float) -> Dense:
        """Return the geometry of C + delta."""
        if delta == 0:
            return self
        moved = Dense(self.C + delta)
        moved.bounds = self.bounds[0] + delta, self.bounds[1] + delta
        return moved

    def restricted(self, rows: Index, cols: Index) -> Dense:
        """Return the geometry on a subset of rows and columns."""
        return Dense(self.C[np.ix_(rows, cols)])
