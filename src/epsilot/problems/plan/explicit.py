"""A plan that is stored, as averages of plans are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..._types import Matrix, Vector
from ...files.saved import Arrays, Saved
from ...geometry import Geometry
from ...kernels.vectors import matvec, rmatvec
from .arcs import Arcs
from .core import Kept, Ordinary, priced_rows


@dataclass(frozen=True)
class Explicit(Ordinary):
    """A dense array."""

    mark: ClassVar[str] = "X"

    X: Matrix

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self.X.shape[0], self.X.shape[1]

    def rows(self, v: Vector) -> Vector:
        """Return K v."""
        return matvec(self.X, v)

    def cols(self, u: Vector) -> Vector:
        """Return Kᵀ u."""
        return rmatvec(self.X, u)

    def marginals(self) -> tuple[Vector, Vector]:
        """Return K 1 and Kᵀ 1."""
        n, m = self.shape
        return self.rows(np.ones(m)), self.cols(np.ones(n))

    def price(self, geometry: Geometry, v: Vector, d: Vector) -> tuple[Vector, Vector, Vector]:
        """Return K v, (C * K) v and C d."""
        shipped = geometry.matvec(d) if d.any() else np.zeros(self.shape[0])
        return self.rows(v), priced_rows(geometry, lambda i, k: self.X[i:k], v), shipped

    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of K."""
        return np.array(self.X[start:stop], dtype=np.float64)

    def embedded(self, geometry: Geometry, rows: Kept, cols: Kept) -> Arcs:
        """Return the positive entries as arcs of the larger problem."""
        return Arcs.of(self.X).embedded(geometry, rows, cols)

    def cropped(self, geometry: Geometry, raised: float) -> Explicit:
        """Return the first rows and columns."""
        n, m = geometry.shape
        return Explicit(np.ascontiguousarray(self.X[:n, :m]))

    def arrays(self) -> Arrays:
        """Return the array."""
        return {"X": self.X}

    @classmethod
    def from_arrays(cls, saved: Saved, geometry: Geometry) -> Explicit:
        """Return a saved array of masses."""
        return cls(saved.masses("X", geometry.shape))

    def is_nonnegative(self) -> bool:
        """Tell whether no entry is negative."""
        return bool((self.X >= 0).all())
