"""Passes of iterates, which may be in float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .._types import Vector


@dataclass(frozen=True)
class Rough:
    """Log-sum-exp by rows and columns, to about three digits of the exponents."""

    lse: Callable[[bool, Vector, float], Vector]  # whether by columns, the potential, η

    def lse_rows(self, g: Vector, eta: float) -> Vector:
        """Return log sum_j exp((g_j - C_ij) / η)."""
        return self.lse(False, g, eta)

    def lse_cols(self, f: Vector, eta: float) -> Vector:
        """Return log sum_i exp((f_i - C_ij) / η)."""
        return self.lse(True, f, eta)
