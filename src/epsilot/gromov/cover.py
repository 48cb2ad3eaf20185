"""What proves a lower bound: a cover of all cross moments, with a bound of V on each piece.

Every value is an upper bound of V at its matrix, proved by potentials. ``verify`` recomputes the
bounds from these arrays alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._types import Index, Matrix, Vector


@dataclass(frozen=True, eq=False)
class Simplices:
    """A triangulation of the cross-polytope with corners ±radius e_i around all cross moments."""

    points: Matrix  # (k, D)
    values: Vector  # V is at most this there
    prices: Matrix  # (k, m) potentials of the columns that prove the values
    corners: Index  # (s, D + 1) numbers of points
    places: Matrix  # (s, D) any matrix proves a bound on its simplex
    radius: float

    @property
    def pieces(self) -> int:
        """Number of simplices."""
        return len(self.corners)


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes that arise from the first one by halving its longest side, again and again."""

    lows: Matrix  # (k, D) corners of every box, the first one around all cross moments
    highs: Matrix
    values: Vector  # V at the centre is at most this
    leaves: Index  # the boxes that were not halved
    sources: Index  # for each leaf the box whose value bounds it: itself, or one that contains it
    prices: Matrix  # potentials of the columns that prove values
    price_rows: Index  # for each box the row of its potentials, -1 where they were not kept

    @property
    def pieces(self) -> int:
        """Number of boxes that cover all cross moments."""
        return len(self.leaves)


Cover = Simplices | Boxes
