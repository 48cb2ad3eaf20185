"""Sorted points on a line: c-transforms of distances in two sweeps, of their powers by bisection.

Where costs are the distance itself, whole intervals of columns are equally good for a row, and a
tree cannot prune. In sorted order, the best column to the left of a point is the best one to the
left of the previous point, or lies between the two points. The same holds to the right. Where
costs are convex, the best columns of sorted rows are sorted too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._types import Index, Vector
from ..kernels import line as kernels
from ..metrics import metric_of
from .tree_index import Embedding, pair_costs

#: Most rounding errors of two compared sums and of their costs, in units of the last place.
MAX_ROUNDINGS = 16


@dataclass(frozen=True)
class Line:
    """Both sides of a cost between points on a line, each sorted."""

    rows: Index
    cols: Index
    x: Vector
    y: Vector
    embedding: Embedding

    @classmethod
    def of(cls, embedding: Embedding) -> Line:
        """Sort the points."""
        x, y = embedding.X[:, 0], embedding.Y[:, 0]
        rows, cols = np.argsort(x, kind="stable"), np.argsort(y, kind="stable")
        return cls(rows, cols, x[rows], y[cols], embedding)

    @cached_property
    def centre(self) -> float:
        """The centre of all points; sums relative to it keep their digits."""
        return float(0.5 * min(self.x[0], self.y[0]) + 0.5 * max(self.x[-1], self.y[-1]))

    @property
    def length(self) -> float:
        """The largest distance."""
        return float(max(self.y[-1] - self.x[0], self.x[-1] - self.y[0], 0.0))

    def _costs(self, rows: Index, cols: Index) -> Vector:
        return pair_costs(self.embedding, rows, cols)

    def bounds(self) -> tuple[float, float]:
        """Return the smallest cost, between neighbours, and the largest, between the ends."""
        after = np.searchsorted(self.y, self.x)
        beside = (np.clip(after - step, 0, self.y.size - 1) for step in (0, 1))
        low = min(float(self._costs(self.rows, self.cols[j]).min()) for j in beside)
        ends = np.array([0, -1])
        return low, float(self._costs(self.rows[ends], self.cols[ends[::-1]]).max())

    @cached_property
    def _cost(self) -> tuple[float, float]:
        """Factor and exponent of the cost."""
        return metric_of(self.embedding.metric).line_cost

    def ctransform(self, swap: bool, prices: Vector) -> Vector:
        """Return min_j C_ij + price_j, or with ``swap`` the minima over rows."""
        search = self._nearest if self._cost[1] == 1 else self._best
        places, *sides = search(prices, swap)
        out = np.full(places.size, np.inf)
        for found in sides:
            is_there = found >= 0
            here, there = places[is_there], found[is_there]
            values = self._costs(there, here) if swap else self._costs(here, there)
            out[here] = np.minimum(out[here], values + prices[there])
        return out

    def _nearest(self, prices: Vector, swap: bool) -> tuple[Index, Index, Index]:
        """Return rows and, for each, two columns (or -1) one of which has least distance + price.

        With ``swap``, columns and two rows each, by the prices of rows.
        """
        (rows, x), (cols, y) = self._sides(swap)
        left, right = np.empty((2, x.size), dtype=np.int64)
        kernels.nearest(x, y, np.ascontiguousarray(prices[cols]), self.centre, left, right)
        found = [np.where(place < 0, -1, cols[place]) for place in (left, right)]
        return rows, found[0], found[1]

    def _best(self, prices: Vector, swap: bool) -> tuple[Index, Index]:
        """Return rows and, for each, a column of least cost + price; with ``swap``, the reverse."""
        (rows, x), (cols, y) = self._sides(swap)
        places = np.empty(x.size, dtype=np.int64)
        kernels.convex_minima(x, y, np.ascontiguousarray(prices[cols]), *self._cost, places)
        return rows, cols[places]

    def _sides(self, swap: bool) -> list[tuple[Index, Vector]]:
        sides = [(self.rows, self.x), (self.cols, self.y)]
        return sides[::-1] if swap else sides

    def error(self, f: Vector, g: Vector) -> float:
        """Bound the error of a minimum that compares sums instead of costs.

        Sums that a rounding may exchange are near the minimum f, so that the cost in them is at
        most |f| + |g|.
        """
        eps = float(np.finfo(float).eps)
        sizes = (float(np.abs(x[np.isfinite(x)]).max(initial=0.0)) for x in (f, g))
        size, exponent = sum(sizes) + abs(self.embedding.shift), self._cost[1]
        if exponent == 1:
            return MAX_ROUNDINGS * eps * (size + 2 * self.length)
        # A row may inherit the error of each bisection that bounds its columns.
        n_levels = 1 + max(f.size, g.size).bit_length()
        return n_levels * (MAX_ROUNDINGS + 2 * exponent) * eps * size
