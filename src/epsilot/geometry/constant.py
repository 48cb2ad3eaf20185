"""A cost that is the same everywhere, with passes of O(n + m)."""

from __future__ import annotations

import numpy as np

from .._types import Matrix, Vector
from .base import Geometry, log_total


class ConstantCost(Geometry):
    """The cost c between all sources and targets.

    If c is the least entry of another cost, potentials that are feasible here are feasible there,
    and every lower bound carries over.
    """

    is_blockwise = False

    def __init__(self, shape: tuple[int, int], cost: float) -> None:
        self.shape, self.cost = shape, cost
        self.bounds = cost, cost

    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of C."""
        return np.full((stop - start, self.shape[1]), self.cost)

    def shifted(self, delta: float) -> ConstantCost:
        """Return the geometry of C + delta."""
        return ConstantCost(self.shape, self.cost + delta)

    def lse_rows(self, g: Vector, eta: float) -> Vector:
        """Return log sum_j exp((g_j - c) / η)."""
        return np.full(self.shape[0], log_total((g - self.cost) / eta))

    def lse_cols(self, f: Vector, eta: float) -> Vector:
        """Return log sum_i exp((f_i - c) / η)."""
        return np.full(self.shape[1], log_total((f - self.cost) / eta))

    def ctransform_rows(self, g: Vector) -> Vector:
        """Return c - max g."""
        return np.full(self.shape[0], self.cost - g.max())

    def ctransform_cols(self, f: Vector) -> Vector:
        """Return c - max f."""
        return np.full(self.shape[1], self.cost - f.max())
