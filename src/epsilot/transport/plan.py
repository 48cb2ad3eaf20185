"""Transport plans: a core, two scalings and a rank-one term, which is what rounding produces.

    X = diag(s) K diag(t) + e dᵀ

The core K is the Gibbs plan of two potentials (nothing is stored but the potentials), a dense
array (averaged plans), a list of arcs with their flow (simplex solutions), or another plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from .._types import Index, Matrix, Vector
from ..arguments import check_count, check_positive, is_real, numeric, shown
from ..errors import InvalidProblem
from ..geometry import Geometry
from ..kernels.forest import settle
from ..kernels.vectors import dot, entropy, log, matvec, rmatvec

#: Largest dense plan that ``Result.plan`` builds without being asked twice, in bytes.
DENSE_LIMIT = 4 << 30
#: Mass of 1 that the flow on a forest of arcs may leave at its nodes: rounding.
UNSETTLED = 1e-15
_BLOCK_ENTRIES = 1 << 18


class Core(Protocol):
    """A nonnegative matrix known by its products."""

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""

    def rows(self, v: Vector) -> Vector:
        """Return K v."""

    def cols(self, u: Vector) -> Vector:
        """Return Kᵀ u."""

    def marginals(self) -> tuple[Vector, Vector]:
        """Return K 1 and Kᵀ 1."""

    def price(self, geometry: Geometry, v: Vector, d: Vector) -> tuple[Vector, Vector, Vector]:
        """Return K v, (C * K) v and C d."""

    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of K."""


@dataclass(frozen=True)
class Gibbs:
    """K = exp((f + g - C) / η), in O(n + m) memory."""

    geometry: Geometry
    f: Vector
    g: Vector
    eta: float

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self.geometry.shape

    def rows(self, v: Vector) -> Vector:
        """Return K v."""
        return self.geometry.apply_rows(self.f, self.g, self.eta, v)

    def cols(self, u: Vector) -> Vector:
        """Return Kᵀ u."""
        return self.geometry.apply_cols(self.f, self.g, self.eta, u)

    def marginals(self) -> tuple[Vector, Vector]:
        """Return K 1 and Kᵀ 1."""
        return self.geometry.marginals(self.f, self.g, self.eta)

    def tamed(self, p: Vector) -> Gibbs:
        """Return the plan with row sums p, for potentials whose exponentials overflow."""
        lse = self.geometry.exact.lse_rows(self.g, self.eta)
        return replace(self, f=self.eta * (log(p) - lse))

    def price(self, geometry: Geometry, v: Vector, d: Vector) -> tuple[Vector, Vector, Vector]:
        """Return K v, (C * K) v and C d, for the plan's own cost or another one."""
        if geometry.is_same(self.geometry):
            return geometry.price_rows(self.f, self.g, self.eta, v, d)
        rows = [matvec(C * self.block(i, k), v) for i, k, C in geometry.blocks()]
        return self.rows(v), np.concatenate(rows), geometry.matvec(d)

    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of K."""
        return self.geometry.gibbs(self.f, self.g, self.eta, start, stop)


@dataclass(frozen=True)
class Explicit:
    """A dense array."""

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
        cost = np.concatenate([matvec(C * self.X[i:k], v) for i, k, C in geometry.blocks()])
        return self.rows(v), cost, shipped

    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of K."""
        return np.array(self.X[start:stop], dtype=np.float64)


@dataclass(frozen=True)
class Arcs:
    """K with K[i, j] = flow on a few arcs (i, j), each named once, and zero elsewhere."""

    shape: tuple[int, int]
    i: Index
    j: Index
    flow: Vector

    @classmethod
    def of(cls, X: Any) -> Arcs:
        """Return the arcs of a dense or a SciPy sparse matrix."""
        X = sparse.coo_array(X)
        X.sum_duplicates()
        i, j = (np.asarray(x, dtype=np.int64) for x in X.coords)
        return cls(X.shape, i, j, np.asarray(X.data, dtype=np.float64))

    def rows(self, v: Vector) -> Vector:
        """Return K v."""
        return _binned(self.i, self.flow * v[self.j], self.shape[0])

    def cols(self, u: Vector) -> Vector:
        """Return Kᵀ u."""
        return _binned(self.j, self.flow * u[self.i], self.shape[1])

    def marginals(self) -> tuple[Vector, Vector]:
        """Return K 1 and Kᵀ 1."""
        n, m = self.shape
        return _binned(self.i, self.flow, n), _binned(self.j, self.flow, m)

    def price(self, geometry: Geometry, v: Vector, d: Vector) -> tuple[Vector, Vector, Vector]:
        """Return K v, (C * K) v and C d."""
        shipped = geometry.matvec(d) if d.any() else np.zeros(self.shape[0])
        priced = replace(self, flow=geometry.entries(self.i, self.j) * self.flow)
        return self.rows(v), priced.rows(v), shipped

    def settled(self, p: Vector, q: Vector) -> Arcs | None:
        """Return the flow that p and q determine if the arcs are a forest that can carry them.

        At most n + m - 1 arcs, and every marginal to rounding: the vertex a simplex has found.
        """
        flow = np.empty(self.flow.size)
        if settle(self.i, self.j, p, q, flow) > UNSETTLED:
            return None
        kept = flow > 0
        return Arcs(self.shape, self.i[kept], self.j[kept], flow[kept])

    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of K."""
        K = np.zeros((stop - start, self.shape[1]))
        used = (self.i >= start) & (self.i < stop)
        K[self.i[used] - start, self.j[used]] = self.flow[used]
        return K

    def tosparse(self) -> Any:
        """Return K as a SciPy CSR matrix."""
        return sparse.csr_array((self.flow, (self.i, self.j)), shape=self.shape)


def _binned(place: Index, x: Vector, size: int) -> Vector:
    """Return the sums of the x that have the same place."""
    return np.bincount(place, x, size).astype(np.float64, copy=False)


@dataclass(frozen=True)
class Plan:
    """X = mass (diag(s) K diag(t) + e dᵀ), usable as a linear operator.

    ``X @ V``, ``X.T @ U``, ``X.row(i)``, ``X.marginals()``, ``X.toarray()`` and
    ``X.tosparse(threshold)`` work without forming X, but for the last two.
    """

    core: Core
    s: Vector
    t: Vector
    e: Vector
    d: Vector
    mass: float = 1.0

    @classmethod
    def of(cls, core: Core) -> Plan:
        """Return the plan that is its core."""
        n, m = core.shape
        return cls(core, np.ones(n), np.ones(m), np.zeros(n), np.zeros(m))

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self.core.shape

    @property
    def T(self) -> _Transposed:
        """The transposed operator."""
        return _Transposed(self)

    def __matmul__(self, V: Matrix) -> Matrix:
        return _columnwise(self.rows, V, self.shape[1])

    def rows(self, v: Vector) -> Vector:
        """Return X v."""
        return self.mass * (self.s * self.core.rows(self.t * v) + self.e * dot(self.d, v))

    def cols(self, u: Vector) -> Vector:
        """Return Xᵀ u."""
        return self.mass * (self.t * self.core.cols(self.s * u) + self.d * dot(self.e, u))

    def marginals(self) -> tuple[Vector, Vector]:
        """Return X 1 and Xᵀ 1."""
        n, m = self.shape
        return self.rows(np.ones(m)), self.cols(np.ones(n))

    def is_nonnegative(self) -> bool:
        """Tell whether no entry is negative."""
        parts = [self.s, self.t, self.e, self.d]
        if isinstance(self.core, Arcs):
            parts.append(self.core.flow)
        elif isinstance(self.core, Explicit):
            parts.append(self.core.X)
        return all(bool((x >= 0).all()) for x in parts)

    def price(self, geometry: Geometry, v: Vector, d: Vector) -> tuple[Vector, Vector, Vector]:
        """Return X v, (C * X) v and C d: a plan can be the core of another."""
        mass, cost, shipped = self.core.price(geometry, self.t * v, d)
        held = self.d * v
        extra = self.e * geometry.matvec(held) if held.any() and self.e.any() else 0.0
        mass, cost = self.s * mass + self.e * held.sum(), self.s * cost + extra
        return self.mass * mass, self.mass * cost, shipped

    def cost(self, geometry: Geometry) -> float:
        """Return <C, X>."""
        _, cost, shipped = self.core.price(geometry, self.t, self.d)
        return self.priced(cost, shipped)

    def priced(self, cost: Vector, shipped: Vector) -> float:
        """Return <C, X> from (C * K) t and C d."""
        return self.mass * (dot(self.s, cost) + dot(self.e, shipped))

    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of X as an array."""
        X = self.core.block(start, stop)
        X *= self.s[start:stop, None]
        X *= self.t
        X += self.e[start:stop, None] * self.d
        if self.mass != 1:
            X *= self.mass
        return X

    def row(self, i: int) -> Vector:
        """Return row i of X."""
        check_count("the row", i, 0)
        if i >= self.shape[0]:
            raise InvalidProblem(f"the row is {i}; the plan has rows 0 to {self.shape[0] - 1}.")
        return np.asarray(self.block(i, i + 1)[0])

    def blocks(self) -> Any:
        """Yield (start, rows) until the whole of X is seen."""
        n, m = self.shape
        step = max(1, _BLOCK_ENTRIES // m)
        for start in range(0, n, step):
            yield start, self.block(start, min(start + step, n))

    def entropy(self) -> float:
        """Return H(X) = -sum X log X."""
        return float(sum(entropy(X) for _, X in self.blocks()))

    def toarray(self, limit: int = DENSE_LIMIT) -> Matrix:
        """Return X as an (n, m) array, if it takes at most ``limit`` bytes."""
        n, m = self.shape
        check_positive("limit", limit)
        if 8 * n * m > limit:
            raise MemoryError(
                f"a dense plan of {n} x {m} entries takes {8 * n * m / 2**30:.1f} GiB; the limit "
                f"is {limit / 2**30:.1f} GiB (use plan_operator: products, rows, tosparse; or "
                "plan_operator.toarray(limit=...))."
            )
        out = np.empty((n, m))
        for start, X in self.blocks():
            out[start : start + X.shape[0]] = X
        return out

    def tosparse(self, threshold: float = 0.0) -> Any:
        """Return the entries above ``threshold`` as a CSR matrix."""
        if not (is_real(threshold) and threshold >= 0):
            raise InvalidProblem(f"threshold is {shown(threshold)}; it must be a number >= 0.")
        if isinstance(self.core, Arcs) and not self.e.any():
            K = self.core
            flow = self.mass * (self.s[K.i] * K.flow * self.t[K.j])
            kept = flow > threshold
            return Arcs(K.shape, K.i[kept], K.j[kept], flow[kept]).tosparse()
        parts = [sparse.csr_array(np.where(threshold < X, X, 0.0)) for _, X in self.blocks()]
        return sparse.csr_array(sparse.vstack(parts))

    def scaled(self, factor: float) -> Plan:
        """Return factor X."""
        return replace(self, mass=self.mass * factor)


def detached(plan: Plan) -> Plan:
    """Return a plan that later changes of the user's arrays do not reach."""
    if not isinstance(plan.core, Gibbs):
        return plan
    return replace(plan, core=replace(plan.core, geometry=plan.core.geometry.detached()))


def embedded(core: Core, geometry: Geometry, rows: Any, cols: Any) -> Core:
    """Return a core on the kept rows and columns of a larger problem, zero elsewhere."""
    n, m = geometry.shape
    if isinstance(core, Gibbs):
        f, g = spread(core.f, rows, n, -np.inf), spread(core.g, cols, m, -np.inf)
        return Gibbs(geometry, f, g, core.eta)
    K = core if isinstance(core, Arcs) else Arcs.of(core.X)  # type: ignore[attr-defined]
    return Arcs((n, m), np.arange(n)[rows][K.i], np.arange(m)[cols][K.j], K.flow)


def spread(x: Vector, index: Any, size: int, fill: float) -> Vector:
    """Return a vector of ``size`` with ``x`` at ``index`` and ``fill`` elsewhere."""
    out = np.full(size, fill)
    out[index] = x
    return out


@dataclass(frozen=True)
class _Transposed:
    plan: Plan

    @property
    def shape(self) -> tuple[int, int]:
        n, m = self.plan.shape
        return m, n

    @property
    def T(self) -> Plan:
        return self.plan

    def __matmul__(self, U: Matrix) -> Matrix:
        return _columnwise(self.plan.cols, U, self.plan.shape[0])


def _columnwise(product: Any, V: Any, size: int) -> Matrix:
    """Apply a matrix-vector product to a vector or to each column of a matrix."""
    V = numeric(V, "what the plan is multiplied by")
    if V.ndim not in (1, 2) or V.shape[0] != size:
        raise InvalidProblem(
            f"the plan is multiplied by an array of shape {V.shape}; it must be a vector of {size} "
            "entries, or a matrix of such columns."
        )
    if V.ndim == 1:
        return np.asarray(product(V))
    return np.stack([product(np.ascontiguousarray(v)) for v in V.T], axis=1)
