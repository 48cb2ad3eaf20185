"""Transport plans: a core, two scalings and a rank-one term, which is what rounding produces.

    X = mass (diag(s) K diag(t) + e dᵀ)

The core K is the Gibbs plan of two potentials (nothing is stored but the potentials), a dense
array (averaged plans), a list of arcs with their flow (simplex solutions), or another plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ..._types import Matrix, Vector
from ...arguments import check_count, check_positive, is_of_dask, is_real, numeric, plain
from ...errors import InvalidProblem
from ...files.saved import Arrays, Saved
from ...geometry import Geometry
from ...geometry.sweeps import row_blocks
from ...kernels.vectors import dot, entropy
from ...wording import shown
from .core import Core, Kept, Ordinary, spread
from .cores import core_from_arrays
from .lazy import lazy_product

if TYPE_CHECKING:
    from dask.array import Array as DaskArray

#: Largest dense plan that ``Result.plan`` builds without being asked twice, in bytes.
DENSE_LIMIT = 4 << 30
#: Plans within one another that a file may hold.
DEEPEST = 8


class Around(NamedTuple):
    """What rounding puts around a core: the scalings s and t, and the rank-one term e dᵀ."""

    s: Vector
    t: Vector
    e: Vector
    d: Vector

    @classmethod
    def nothing(cls, shape: tuple[int, int]) -> Around:
        """Return scalings by 1, and a term of 0."""
        n, m = shape
        return cls(np.ones(n), np.ones(m), np.zeros(n), np.zeros(m))


@dataclass(frozen=True)
class Plan(Ordinary):
    """X = mass (diag(s) K diag(t) + e dᵀ), or mass K, usable as a linear operator.

    ``X @ V``, ``X.T @ U``, ``X.row(i)``, ``X.marginals()``, ``X.toarray()`` and
    ``X.tosparse(threshold)`` work without forming X, but for the last two. With a Dask array V,
    ``X @ V`` is one.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> X = epsilot.solve(1.0 - np.eye(3)).plan_operator
    >>> X @ np.arange(3.0)  # what arrives of a quantity at each source
    array([0.        , 0.33333333, 0.66666667])
    >>> X.row(1)
    array([0.        , 0.33333333, 0.        ])
    >>> X.tosparse().nnz
    3
    """

    mark: ClassVar[str] = "core"

    core: Core
    around: Around | None = None
    mass: float = 1.0

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self.core.shape

    @property
    def T(self) -> _Transposed:
        """The transposed operator."""
        return _Transposed(self)

    def __matmul__(self, V: Matrix) -> Matrix:
        if is_of_dask(V):
            there: Matrix = lazy_product(self, V, False)
            return there
        return _columnwise(self.rows, V, self.shape[1])

    def rows(self, v: Vector) -> Vector:
        """Return X v."""
        if self.around is None:
            return self.mass * self.core.rows(v)
        s, t, e, d = self.around
        return self.mass * (s * self.core.rows(t * v) + e * dot(d, v))

    def cols(self, u: Vector) -> Vector:
        """Return Xᵀ u."""
        if self.around is None:
            return self.mass * self.core.cols(u)
        s, t, e, d = self.around
        return self.mass * (t * self.core.cols(s * u) + d * dot(e, u))

    def marginals(self) -> tuple[Vector, Vector]:
        """Return X 1 and Xᵀ 1."""
        if self.around is None:
            r, c = self.core.marginals()
            return (r, c) if self.mass == 1 else (self.mass * r, self.mass * c)
        n, m = self.shape
        return self.rows(np.ones(m)), self.cols(np.ones(n))

    @property
    def is_remote(self) -> bool:
        """Whether products can stay with the workers of a cluster."""
        return self.core.is_remote

    def remote_product(self, v: Vector, is_transposed: bool) -> DaskArray:
        """Return X v, or Xᵀ v, with its entries on the workers."""
        if self.around is None:
            return self.mass * self.core.remote_product(v, is_transposed)
        import dask.array

        s, t, e, d = self.around
        if is_transposed:
            s, t, e, d = t, s, d, e
        inside = self.core.remote_product(t * v, is_transposed)
        s, e = (dask.array.from_array(x, chunks=inside.chunks) for x in (s, e))
        return self.mass * (s * inside + e * dot(d, v))

    def is_finite(self) -> bool:
        """Tell whether nothing of the core has overflowed."""
        return self.core.is_finite()

    def is_nonnegative(self) -> bool:
        """Tell whether no entry is negative."""
        parts = self.around or ()
        return self.core.is_nonnegative() and all(bool((x >= 0).all()) for x in parts)

    def embedded(self, geometry: Geometry, rows: Kept, cols: Kept) -> Plan:
        """Return X on the kept rows and columns of a larger problem, zero elsewhere."""
        core = self.core.embedded(geometry, rows, cols)
        if self.around is None:
            return Plan(core, None, self.mass)
        n, m = geometry.shape
        s, e = (spread(x, rows, n, 0.0) for x in (self.around.s, self.around.e))
        t, d = (spread(x, cols, m, 0.0) for x in (self.around.t, self.around.d))
        return Plan(core, Around(s, t, e, d), self.mass)

    def cropped(self, geometry: Geometry, raised: float) -> Plan:
        """Return X on the first rows and columns."""
        n, m = geometry.shape
        core = self.core.cropped(geometry, raised)
        if self.around is None:
            return Plan(core, None, self.mass)
        s, t, e, d = self.around
        return Plan(core, Around(s[:n], t[:m], e[:n], d[:m]), self.mass)

    def detached(self) -> Plan:
        """Return a plan that later changes of the user's arrays do not reach."""
        return Plan(self.core.detached(), self.around, self.mass)

    def arrays(self) -> Arrays:
        """Return the scalings, and the core's arrays; those of a plan within this one apart."""
        around = self.around or Around.nothing(self.shape)
        arrays: Arrays = around._asdict()
        if self.mass != 1:
            arrays["mass"] = np.array(self.mass)
        inside = self.core.arrays()
        if isinstance(self.core, Plan):
            inside = {f"{self.mark}.{name}": x for name, x in inside.items()}
        return arrays | inside

    @classmethod
    def from_arrays(cls, saved: Saved, geometry: Geometry) -> Plan:
        """Return the plan that a file holds, or say in a sentence what is wrong with it."""
        n, m = geometry.shape
        inside = saved.under(cls.mark)
        if inside.prefix.count(cls.mark) > DEEPEST:
            raise InvalidProblem(f"the file holds a plan within {DEEPEST} others; write it again.")
        is_nested = "s" in inside
        core = cls.from_arrays(inside, geometry) if is_nested else core_from_arrays(saved, geometry)
        s, e = (saved.masses(name, (n,)) for name in ("s", "e"))
        t, d = (saved.masses(name, (m,)) for name in ("t", "d"))
        mass = float(saved.masses("mass", ())) if "mass" in saved else 1.0
        return cls(core, Around(s, t, e, d), mass)

    def price(self, geometry: Geometry, v: Vector, d: Vector) -> tuple[Vector, Vector, Vector]:
        """Return X v, (C * X) v and C d: a plan can be the core of another."""
        own = self.around or Around.nothing(self.shape)
        mass, cost, shipped = self.core.price(geometry, own.t * v, d)
        held = own.d * v
        extra = own.e * geometry.matvec(held) if held.any() and own.e.any() else 0.0
        mass, cost = own.s * mass + own.e * held.sum(), own.s * cost + extra
        return self.mass * mass, self.mass * cost, shipped

    def cost(self, geometry: Geometry) -> float:
        """Return <C, X>."""
        arcs = self.core.arcs() if self.around is None else None
        if arcs is not None:
            return self.mass * arcs.cost(geometry)
        around = self.around or Around.nothing(self.shape)
        _, cost, shipped = self.core.price(geometry, around.t, around.d)
        return self.priced(cost, shipped)

    def priced(self, cost: Vector, shipped: Vector) -> float:
        """Return <C, X> from (C * K) t and C d."""
        s, _, e, _ = self.around or Around.nothing(self.shape)
        return self.mass * (dot(s, cost) + dot(e, shipped))

    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of X as an array."""
        X = self.core.block(start, stop)
        if self.around is not None:
            s, t, e, d = self.around
            X *= s[start:stop, None]
            X *= t
            X += e[start:stop, None] * d
        if self.mass != 1:
            X *= self.mass
        return X

    def row(self, i: int) -> Vector:
        """Return row i of X."""
        i = check_count("the row", i, 0)
        if i >= self.shape[0]:
            raise InvalidProblem(f"the row is {i}; the plan has rows 0 to {self.shape[0] - 1}.")
        return np.asarray(self.block(i, i + 1)[0])

    def blocks(self) -> Iterator[tuple[int, Matrix]]:
        """Yield (start, rows) until the whole of X is seen."""
        for rows in row_blocks(*self.shape):
            yield rows.start, self.block(rows.start, rows.stop)

    def entropy(self) -> float:
        """Return H(X) = -sum X log X; of few arcs and a rank-one term without a pass."""
        arcs = self.core.arcs()
        if arcs is None:
            return float(sum(entropy(X) for _, X in self.blocks()))
        if self.around is None:
            return entropy(self.mass * arcs.flow)
        s, t, e, d = self.around
        i, j, e = arcs.i, arcs.j, self.mass * e
        term = e[i] * d[j]
        of_term = entropy(e) * float(d.sum()) + float(e.sum()) * entropy(d)
        return of_term - entropy(term) + entropy(self.mass * (s[i] * arcs.flow * t[j]) + term)

    def toarray(self, limit: int = DENSE_LIMIT) -> Matrix:
        """Return X as an (n, m) array, if it takes at most ``limit`` bytes."""
        n, m = self.shape
        most = check_positive("limit", limit)
        if 8 * n * m > most:
            raise MemoryError(
                f"a dense plan of {n} x {m} entries takes {8 * n * m / 2**30:.1f} GiB; the limit "
                f"is {most / 2**30:.1f} GiB (use plan_operator: products, rows, tosparse; or "
                "plan_operator.toarray(limit=...))."
            )
        out = np.empty((n, m))
        for start, X in self.blocks():
            out[start : start + X.shape[0]] = X
        return out

    def tosparse(self, threshold: float = 0.0) -> sparse.csr_array:
        """Return the entries above ``threshold`` as a CSR matrix."""
        least = plain(threshold)
        if not (is_real(least) and least >= 0):
            raise InvalidProblem(f"threshold is {shown(least)}; it must be a number >= 0.")
        K = self.core.arcs()
        s, t, e, _ = self.around or Around.nothing(self.shape)
        if K is not None and not e.any():
            flow = self.mass * (s[K.i] * K.flow * t[K.j])
            return replace(K, flow=flow).above(least).tosparse()
        parts = [sparse.csr_array(np.where(least < X, X, 0.0)) for _, X in self.blocks()]
        return sparse.csr_array(sparse.vstack(parts))

    def scaled(self, factor: float) -> Plan:
        """Return factor X."""
        return Plan(self.core, self.around, self.mass * factor)


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
        if is_of_dask(U):
            there: Matrix = lazy_product(self.plan, U, True)
            return there
        return _columnwise(self.plan.cols, U, self.plan.shape[0])


def _columnwise(product: Callable[[Vector], Vector], V: ArrayLike, size: int) -> Matrix:
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
