"""A plan with few entries, as those of a simplex have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy import sparse

from ..._types import Index, Matrix, Vector
from ...files.saved import Arrays, Saved
from ...geometry import Geometry
from ...kernels.auction import corner
from ...kernels.forest import binned, both_sums, row_costs, settle
from ...kernels.vectors import are_between
from .core import Kept, Ordinary

#: Mass of 1 that the flow on a forest of arcs may leave at its nodes: rounding.
UNSETTLED = 1e-15


@dataclass(frozen=True)
class Arcs(Ordinary):
    """K with K[i, j] = flow on a few arcs (i, j), each named once, and zero elsewhere."""

    mark: ClassVar[str] = "flow"

    shape: tuple[int, int]
    i: Index
    j: Index
    flow: Vector

    @classmethod
    def of(cls, X: Matrix | sparse.sparray) -> Arcs:
        """Return the arcs of a dense or a SciPy sparse matrix."""
        X = sparse.coo_array(X)
        X.sum_duplicates()
        i, j = (np.asarray(x, dtype=np.int64) for x in X.coords)
        return cls(X.shape, i, j, np.asarray(X.data, dtype=np.float64))

    @classmethod
    def none(cls, shape: tuple[int, int]) -> Arcs:
        """Return the plan that moves nothing."""
        places = np.zeros(0, dtype=np.int64)
        return cls(shape, places, places, np.zeros(0))

    def rows(self, v: Vector) -> Vector:
        """Return K v."""
        return _binned(self.i, self.flow, self.j, v, self.shape[0])

    def cols(self, u: Vector) -> Vector:
        """Return Kᵀ u."""
        return _binned(self.j, self.flow, self.i, u, self.shape[1])

    def marginals(self) -> tuple[Vector, Vector]:
        """Return K 1 and Kᵀ 1."""
        n, m = self.shape
        r, c = np.empty(n), np.empty(m)
        both_sums(self.i, self.j, self.flow, r, c)
        return r, c

    def cost(self, geometry: Geometry) -> float:
        """Return <C, K>."""
        costs = geometry.entries(self.i, self.j)
        return float(row_costs(self.i, costs, self.flow, self.shape[0]))

    def price(self, geometry: Geometry, v: Vector, d: Vector) -> tuple[Vector, Vector, Vector]:
        """Return K v, (C * K) v and C d."""
        shipped = geometry.matvec(d) if d.any() else np.zeros(self.shape[0])
        priced = replace(self, flow=geometry.entries(self.i, self.j) * self.flow)
        return self.rows(v), priced.rows(v), shipped

    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of K."""
        K = np.zeros((stop - start, self.shape[1]))
        used = (self.i >= start) & (self.i < stop)
        K[self.i[used] - start, self.j[used]] = self.flow[used]
        return K

    def embedded(self, geometry: Geometry, rows: Kept, cols: Kept) -> Arcs:
        """Return the arcs between the places that rows and columns have in a larger problem."""
        n, m = geometry.shape
        return Arcs((n, m), np.arange(n)[rows][self.i], np.arange(m)[cols][self.j], self.flow)

    def cropped(self, geometry: Geometry, raised: float) -> Arcs:
        """Return the arcs between the first rows and columns."""
        n, m = geometry.shape
        kept = (self.i < n) & (self.j < m)
        return Arcs((n, m), self.i[kept], self.j[kept], self.flow[kept])

    def arrays(self) -> Arrays:
        """Return both ends and the flow of every arc."""
        return {"i": self.i, "j": self.j, "flow": self.flow}

    @classmethod
    def from_arrays(cls, saved: Saved, geometry: Geometry) -> Arcs:
        """Return saved arcs, none of which may leave the problem."""
        n, m = geometry.shape
        size = (saved.size("flow"),)
        i, j = saved.indices("i", size, n), saved.indices("j", size, m)
        arcs = cls((n, m), i, j, saved.masses("flow", size))
        is_named_twice = np.unique(i * m + j).size < i.size
        return cls.of(arcs.tosparse()) if is_named_twice else arcs

    def is_nonnegative(self) -> bool:
        """Tell whether no flow is negative."""
        return are_between(self.flow, 0.0, np.inf)

    def arcs(self) -> Arcs:
        """Return the arcs."""
        return self

    def settled(self, p: Vector, q: Vector) -> Arcs | None:
        """Return the flow that p and q determine if the arcs are a forest that can carry them.

        At most n + m - 1 arcs, and every marginal to rounding: the vertex a simplex has found.
        """
        flow = np.empty(self.flow.size)
        if settle(self.i, self.j, p, q, flow) > UNSETTLED:
            return None
        return Arcs(self.shape, self.i, self.j, flow).above(0.0)

    def completed(self, s: Vector, t: Vector, p: Vector, q: Vector) -> Arcs:
        """Return diag(s) K diag(t), of at most the masses p and q, and what is missing of them.

        That goes from rows to columns in their order, on fewer than n + m arcs.
        """
        n, m = self.shape
        flow = s[self.i] * self.flow * t[self.j]
        left, right = p - np.bincount(self.i, flow, n), q - np.bincount(self.j, flow, m)
        i, j, missing = corner(left, right, 0.0)
        keys, place = np.unique(
            np.concatenate((self.i, i)) * m + np.concatenate((self.j, j)), return_inverse=True
        )
        rows, cols = np.divmod(keys, m)
        total = np.bincount(place, np.concatenate((flow, missing)), keys.size)
        return Arcs(self.shape, rows, cols, total.astype(np.float64, copy=False)).above(0.0)

    def above(self, threshold: float) -> Arcs:
        """Return the arcs whose flow exceeds a threshold."""
        kept = self.flow > threshold
        if np.count_nonzero(kept) == kept.size:
            return self
        return Arcs(self.shape, self.i[kept], self.j[kept], self.flow[kept])

    def tosparse(self) -> sparse.csr_array:
        """Return K as a SciPy CSR matrix."""
        return sparse.csr_array((self.flow, (self.i, self.j)), shape=self.shape)


def _binned(places: Index, flow: Vector, others: Index, x: Vector, size: int) -> Vector:
    """Return the sums of flow x over the arcs of each place."""
    out = np.empty(size)
    binned(places, flow, others, x, out)
    return out
