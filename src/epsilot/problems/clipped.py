"""Entropic problems whose potentials are bounded: what a method is told of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from .._types import Potentials, Vector
from .problem import Entropic


class Best(NamedTuple):
    """The best potential of the rows, or of the columns, with the best constant beside it."""

    potential: Vector
    level: float  # µ: the plan is exp((f + g + µ - C) / η - 1)


@dataclass(frozen=True)
class Clipped(Entropic, ABC):
    """A problem whose dual is maximised over the rows, or the columns, by clipping."""

    @abstractmethod
    def best_rows(self, lse: Vector) -> Best:
        """Return the best rows, given log Σ_j exp((g_j - C_ij) / η - 1)."""

    def translated(self, f: Vector, g: Vector) -> Potentials:
        """Return potentials that differ by a constant between them, the best one."""
        return f, g

    @abstractmethod
    def best_cols(self, lse: Vector) -> Best:
        """Return the best columns, given log Σ_i exp((f_i - C_ij) / η - 1)."""
