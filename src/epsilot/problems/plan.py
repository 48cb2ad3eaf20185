"""Transport plans: products, rows and marginals without an (n, m) array.

A plan is a core, two scalings and a rank-one term, as rounding produces it:

    X = mass (diag(s) K diag(t) + e dᵀ)

The core K is the Gibbs plan of two potentials (only the potentials are stored), a dense array
(averaged plans), a list of arcs with their flow (simplex solutions), such arcs added to another
core, or another plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from .._types import Index, Matrix, Vector
from ..arguments import check_count, check_positive, is_of_dask, is_real, numeric, plain
from ..errors import InvalidProblem
from ..files.arrays import Arrays, SavedArrays
from ..geometry import Geometry
from ..geometry.sweeps import row_blocks
from ..kernels.auction import corner
from ..kernels.forest import MAX_UNSETTLED_MASS, binned, both_sums, row_costs, settle
from ..kernels.vectors import are_between, dot, entropy, exp, log, matvec, rmatvec
from ..wording import shown
from .duals import softmin

if TYPE_CHECKING:
    from dask.array import Array as DaskArray


#: Rows or columns to keep of a larger problem: their indices, or a slice.
KeptIndex = Index | slice


class Core(Protocol):
    """A nonnegative matrix K known by its products."""

    #: Name of the array that identifies this kind of core in a file.
    file_key: ClassVar[str]

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
        """Return a copy of rows ``start:stop`` of K."""

    def at(self, i: Index, j: Index) -> Vector:
        """Return the entries K[i, j]."""

    def embedded(self, geometry: Geometry, rows: KeptIndex, cols: KeptIndex) -> Core:
        """Return K on the kept rows and columns of a larger problem, zero elsewhere."""

    def cropped(self, geometry: Geometry, raised: float) -> Core:
        """Return K on the first rows and columns, which a geometry has.

        ``raised`` is by how much the costs that K was made from are higher.
        """

    def detached(self) -> Self:
        """Return a core with its own copy of the user's arrays."""

    def arrays(self) -> Arrays:
        """Return the arrays that a file stores."""

    @classmethod
    def from_arrays(cls, saved: SavedArrays, geometry: Geometry) -> Self:
        """Read the core from an untrusted file, or raise InvalidProblem."""

    def is_finite(self) -> bool:
        """Tell whether K is free of overflow."""

    def is_nonnegative(self) -> bool:
        """Tell whether no entry is negative."""

    def without_overflow(self, p: Vector) -> Core:
        """Return a core for which products with vectors do not overflow."""

    def arcs(self) -> Arcs | None:
        """Return the entries as arcs if they are few, else None."""

    @property
    def is_remote(self) -> bool:
        """Whether products can stay with the workers of a cluster."""

    def remote_product(self, v: Vector, is_transposed: bool) -> DaskArray:
        """Return K v, or Kᵀ v, with its entries on the workers; only if ``is_remote``."""


class CoreDefaults:
    """Default methods of cores."""

    def detached(self) -> Self:
        """Return the core itself, which holds no array of the user's."""
        return self

    def is_finite(self) -> bool:
        """Return True: entries are sums of masses."""
        return True

    def without_overflow(self, p: Vector) -> Self:
        """Return the core itself, whose entries are finite."""
        return self

    def arcs(self) -> Arcs | None:
        """Return None: most entries may be positive."""
        return None

    @property
    def is_remote(self) -> bool:
        """False: entries are in this process."""
        return False

    def remote_product(self, v: Vector, is_transposed: bool) -> DaskArray:
        """Raise NotImplementedError: there are no workers."""
        raise NotImplementedError


def priced_rows(geometry: Geometry, block: Callable[[int, int], Matrix], v: Vector) -> Vector:
    """Return (C * K) v from blocks of rows of K."""
    return np.concatenate([matvec(C * block(i, k), v) for i, k, C in geometry.blocks()])


def spread(x: Vector, index: KeptIndex, size: int, fill: float) -> Vector:
    """Return a vector of ``size`` with ``x`` at ``index`` and ``fill`` elsewhere."""
    out = np.full(size, fill)
    out[index] = x
    return out


@dataclass(frozen=True)
class Arcs(CoreDefaults):
    """A sparse K: flow on distinct arcs (i, j), zero elsewhere."""

    file_key: ClassVar[str] = "flow"

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
        """Return the plan without mass."""
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

    def at(self, i: Index, j: Index) -> Vector:
        """Return the entries K[i, j]."""
        m = self.shape[1]
        mine, wanted = self.i * m + self.j, i * m + j
        order = np.argsort(mine, kind="stable")
        place = np.minimum(np.searchsorted(mine[order], wanted), max(mine.size - 1, 0))
        if mine.size == 0:
            return np.zeros(wanted.size)
        found = order[place]
        return np.where(mine[found] == wanted, self.flow[found], 0.0)

    def embedded(self, geometry: Geometry, rows: KeptIndex, cols: KeptIndex) -> Arcs:
        """Return the arcs with the row and column numbers of a larger problem."""
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
    def from_arrays(cls, saved: SavedArrays, geometry: Geometry) -> Arcs:
        """Read arcs from a file, and check that they belong to the problem."""
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
        """Return the flow that p and q determine on a forest of arcs, or None if there is none.

        At most n + m - 1 arcs, and every marginal to rounding: the vertex a simplex has found.
        """
        flow = np.empty(self.flow.size)
        if settle(self.i, self.j, p, q, flow) > MAX_UNSETTLED_MASS:
            return None
        return Arcs(self.shape, self.i, self.j, flow).above(0.0)

    def completed(self, s: Vector, t: Vector, p: Vector, q: Vector) -> Arcs:
        """Return diag(s) K diag(t) with arcs added for the mass that p and q still lack.

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
    """Return the sum of flow times x over the arcs of each row, or column."""
    out = np.empty(size)
    binned(places, flow, others, x, out)
    return out


@dataclass(frozen=True)
class Explicit(CoreDefaults):
    """A core stored as a dense array."""

    file_key: ClassVar[str] = "X"

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

    def at(self, i: Index, j: Index) -> Vector:
        """Return the entries K[i, j]."""
        return np.asarray(self.X[i, j], dtype=np.float64)

    def embedded(self, geometry: Geometry, rows: KeptIndex, cols: KeptIndex) -> Arcs:
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
    def from_arrays(cls, saved: SavedArrays, geometry: Geometry) -> Explicit:
        """Read the array from a file."""
        return cls(saved.masses("X", geometry.shape))

    def is_nonnegative(self) -> bool:
        """Tell whether no entry is negative."""
        return bool((self.X >= 0).all())


@dataclass(frozen=True)
class Gibbs(CoreDefaults):
    """The Gibbs plan K = exp((f + g - C) / η) of two potentials, in O(n + m) memory."""

    file_key: ClassVar[str] = "eta"

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

    def price(self, geometry: Geometry, v: Vector, d: Vector) -> tuple[Vector, Vector, Vector]:
        """Return K v, (C * K) v and C d, for the plan's own cost or another one."""
        if geometry.is_same(self.geometry):
            return geometry.price_rows(self.f, self.g, self.eta, v, d)
        return self.rows(v), priced_rows(geometry, self.block, v), geometry.matvec(d)

    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of K."""
        return self.geometry.gibbs(self.f, self.g, self.eta, start, stop)

    @property
    def is_remote(self) -> bool:
        """Whether the workers of a cluster hold the costs."""
        return self.geometry.is_remote

    def remote_product(self, v: Vector, is_transposed: bool) -> DaskArray:
        """Return K v, or Kᵀ v, with its entries on the workers."""
        f, g = (self.g, self.f) if is_transposed else (self.f, self.g)
        return self.geometry.apply_there(is_transposed, f, g, self.eta, v)

    def at(self, i: Index, j: Index) -> Vector:
        """Return the entries K[i, j]."""
        return exp((self.f[i] + self.g[j] - self.geometry.entries(i, j)) * (1 / self.eta))

    def embedded(self, geometry: Geometry, rows: KeptIndex, cols: KeptIndex) -> Gibbs:
        """Return the Gibbs plan with potentials -inf on the other rows and columns."""
        n, m = geometry.shape
        f, g = spread(self.f, rows, n, -np.inf), spread(self.g, cols, m, -np.inf)
        return Gibbs(geometry, f, g, self.eta)

    def cropped(self, geometry: Geometry, raised: float) -> Gibbs:
        """Return the Gibbs plan of the first rows and columns."""
        n, m = geometry.shape
        return Gibbs(geometry, self.f[:n] - raised, np.ascontiguousarray(self.g[:m]), self.eta)

    def detached(self) -> Gibbs:
        """Return the plan with its own copy of the user's costs."""
        return replace(self, geometry=self.geometry.detached())

    def arrays(self) -> Arrays:
        """Return the potentials and η."""
        return {"f": self.f, "g": self.g, "eta": np.array(self.eta)}

    @classmethod
    def from_arrays(cls, saved: SavedArrays, geometry: Geometry) -> Gibbs:
        """Read potentials and η from a file."""
        n, m = geometry.shape
        f, g, eta = saved.vector("f", (n,)), saved.vector("g", (m,)), float(saved.vector("eta", ()))
        if not 0 < eta < math.inf:
            raise InvalidProblem(f"the saved plan has η = {eta}; it must be positive and finite.")
        return cls(geometry, f, g, eta)

    def is_finite(self) -> bool:
        """Tell whether the potentials are free of NaN and +inf, which mark an overflow."""
        return are_between(self.f, -np.inf, np.inf) and are_between(self.g, -np.inf, np.inf)

    def is_nonnegative(self) -> bool:
        """Return True: exponentials are positive."""
        return True

    def without_overflow(self, p: Vector) -> Gibbs:
        """Return the plan with row sums p, for potentials whose exponentials overflow."""
        lse = self.geometry.lse_rows(self.g, self.eta)
        return replace(self, f=softmin(log(p), lse, self.eta))


def add_arcs(core: Core, more: Arcs) -> Core:
    """Add the flow of some arcs to a core."""
    arcs = core.arcs()
    if arcs is None:
        return PlusArcs(core, more) if more.flow.size else core
    i, j, flow = (
        np.concatenate([getattr(x, name) for x in (arcs, more)]) for name in ("i", "j", "flow")
    )
    return Arcs.of(sparse.coo_array((flow, (i, j)), shape=core.shape))


@dataclass(frozen=True)
class PlusArcs(CoreDefaults):
    """A core plus the flow of some arcs."""

    file_key: ClassVar[str] = "more.flow"

    core: Core
    more: Arcs

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self.core.shape

    def rows(self, v: Vector) -> Vector:
        """Return the product with v."""
        return self.core.rows(v) + self.more.rows(v)

    def cols(self, u: Vector) -> Vector:
        """Return the product of the transpose with u."""
        return self.core.cols(u) + self.more.cols(u)

    def marginals(self) -> tuple[Vector, Vector]:
        """Return the sums of rows and of columns."""
        (r, c), (more_r, more_c) = self.core.marginals(), self.more.marginals()
        return r + more_r, c + more_c

    def price(self, geometry: Geometry, v: Vector, d: Vector) -> tuple[Vector, Vector, Vector]:
        """Return the product with v, its costs and C d."""
        mass, cost, shipped = self.core.price(geometry, v, d)
        more_mass, more_cost, _ = self.more.price(geometry, v, np.zeros_like(d))
        return mass + more_mass, cost + more_cost, shipped

    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop``."""
        return self.core.block(start, stop) + self.more.block(start, stop)

    @property
    def is_remote(self) -> bool:
        """Whether products with K can stay with the workers of a cluster."""
        return self.core.is_remote

    def remote_product(self, v: Vector, is_transposed: bool) -> DaskArray:
        """Return the product with v, with its entries on the workers."""
        import dask.array

        inside = self.core.remote_product(v, is_transposed)
        flow = self.more.cols(v) if is_transposed else self.more.rows(v)
        return inside + dask.array.from_array(flow, chunks=inside.chunks)

    def at(self, i: Index, j: Index) -> Vector:
        """Return the entries [i, j]."""
        return self.core.at(i, j) + self.more.at(i, j)

    def embedded(self, geometry: Geometry, rows: KeptIndex, cols: KeptIndex) -> PlusArcs:
        """Return both parts in a larger problem."""
        core = self.core.embedded(geometry, rows, cols)
        return PlusArcs(core, self.more.embedded(geometry, rows, cols))

    def cropped(self, geometry: Geometry, raised: float) -> PlusArcs:
        """Return the first rows and columns of both parts."""
        return PlusArcs(self.core.cropped(geometry, raised), self.more.cropped(geometry, raised))

    def detached(self) -> Self:
        """Return a core with its own copy of the user's arrays."""
        return replace(self, core=self.core.detached())

    def arrays(self) -> Arrays:
        """Return the arrays of both parts."""
        parts = {"within": self.core, "more": self.more}
        return {
            f"{part}.{name}": x for part, core in parts.items() for name, x in core.arrays().items()
        }

    @classmethod
    def from_arrays(cls, saved: SavedArrays, geometry: Geometry) -> Self:
        """Read the core from an untrusted file, or raise InvalidProblem."""
        within = saved.under("within")
        kind: type[Core] = Explicit if Explicit.file_key in within else Gibbs
        more = Arcs.from_arrays(saved.under("more"), geometry)
        return cls(kind.from_arrays(within, geometry), more)

    def is_finite(self) -> bool:
        """Tell whether the core is free of overflow."""
        return self.core.is_finite()

    def is_nonnegative(self) -> bool:
        """Tell whether no entry is negative."""
        return self.core.is_nonnegative() and self.more.is_nonnegative()

    def without_overflow(self, p: Vector) -> PlusArcs:
        """Return a core for which products with vectors do not overflow."""
        return replace(self, core=self.core.without_overflow(p))


#: Every kind of core that a file can hold.
CORES: tuple[type[Core], ...] = (Explicit, Arcs, Gibbs, PlusArcs)


def core_from_arrays(saved: SavedArrays, geometry: Geometry) -> Core:
    """Read a core of any kind from a file."""
    for kind in CORES:
        if kind.file_key in saved:
            return kind.from_arrays(saved, geometry)
    names = ", ".join(saved.prefix + kind.file_key for kind in CORES)
    raise InvalidProblem(f"the file has none of the arrays {names}; write it again.")


def lazy_product(plan: Plan, V: DaskArray, is_transposed: bool) -> DaskArray:
    """Return X V, or Xᵀ V, as a Dask array, column by column."""
    size, out = plan.shape if is_transposed else plan.shape[::-1]
    if V.ndim not in (1, 2) or V.shape[0] != size:
        raise InvalidProblem(
            f"the plan is multiplied by an array of shape {V.shape}; it must be a vector of {size} "
            "entries, or a matrix of such columns."
        )
    if not plan.is_remote:
        chunks = ((out,), *V.rechunk({0: -1}).chunks[1:])
        operator = plan.T if is_transposed else plan
        return V.rechunk({0: -1}).map_blocks(operator.__matmul__, dtype=float, chunks=chunks)
    if V.ndim == 1:
        return plan.remote_product(np.asarray(V, np.float64), is_transposed)
    import dask.array

    columns = [np.asarray(V[:, j], np.float64) for j in range(V.shape[1])]
    return dask.array.stack([plan.remote_product(v, is_transposed) for v in columns], axis=1)


#: Largest dense plan, in bytes, that ``Result.plan`` builds by default.
MAX_DENSE_BYTES = 4 << 30
#: Largest number of plans nested in one another in a file.
MAX_NESTED_PLANS = 8


class Correction(NamedTuple):
    """Scalings s and t and a rank-one term e dᵀ, by which rounding corrects a core."""

    s: Vector
    t: Vector
    e: Vector
    d: Vector

    @classmethod
    def nothing(cls, shape: tuple[int, int]) -> Correction:
        """Return the correction that changes nothing."""
        n, m = shape
        return cls(np.ones(n), np.ones(m), np.zeros(n), np.zeros(m))


@dataclass(frozen=True)
class Plan(CoreDefaults):
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

    file_key: ClassVar[str] = "core"

    core: Core
    correction: Correction | None = None
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
        if self.correction is None:
            return self.mass * self.core.rows(v)
        s, t, e, d = self.correction
        return self.mass * (s * self.core.rows(t * v) + e * dot(d, v))

    def cols(self, u: Vector) -> Vector:
        """Return Xᵀ u."""
        if self.correction is None:
            return self.mass * self.core.cols(u)
        s, t, e, d = self.correction
        return self.mass * (t * self.core.cols(s * u) + d * dot(e, u))

    def marginals(self) -> tuple[Vector, Vector]:
        """Return X 1 and Xᵀ 1."""
        if self.correction is None:
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
        if self.correction is None:
            return self.mass * self.core.remote_product(v, is_transposed)
        import dask.array

        s, t, e, d = self.correction
        if is_transposed:
            s, t, e, d = t, s, d, e
        inside = self.core.remote_product(t * v, is_transposed)
        s, e = (dask.array.from_array(x, chunks=inside.chunks) for x in (s, e))
        return self.mass * (s * inside + e * dot(d, v))

    def is_finite(self) -> bool:
        """Tell whether the core is free of overflow."""
        return self.core.is_finite()

    def is_nonnegative(self) -> bool:
        """Tell whether no entry is negative."""
        parts = self.correction or ()
        return self.core.is_nonnegative() and all(bool((x >= 0).all()) for x in parts)

    def at(self, i: Index, j: Index) -> Vector:
        """Return the entries X[i, j]."""
        s, t, e, d = self.correction or Correction.nothing(self.shape)
        return self.mass * (s[i] * self.core.at(i, j) * t[j] + e[i] * d[j])

    def embedded(self, geometry: Geometry, rows: KeptIndex, cols: KeptIndex) -> Plan:
        """Return X on the kept rows and columns of a larger problem, zero elsewhere."""
        core = self.core.embedded(geometry, rows, cols)
        if self.correction is None:
            return Plan(core, None, self.mass)
        n, m = geometry.shape
        s, e = (spread(x, rows, n, 0.0) for x in (self.correction.s, self.correction.e))
        t, d = (spread(x, cols, m, 0.0) for x in (self.correction.t, self.correction.d))
        return Plan(core, Correction(s, t, e, d), self.mass)

    def cropped(self, geometry: Geometry, raised: float) -> Plan:
        """Return X on the first rows and columns."""
        n, m = geometry.shape
        core = self.core.cropped(geometry, raised)
        if self.correction is None:
            return Plan(core, None, self.mass)
        s, t, e, d = self.correction
        return Plan(core, Correction(s[:n], t[:m], e[:n], d[:m]), self.mass)

    def detached(self) -> Plan:
        """Return a plan with its own copy of the user's arrays."""
        core = self.core.detached()
        return self if core is self.core else Plan(core, self.correction, self.mass)

    def arrays(self) -> Arrays:
        """Return the arrays of the correction and the core; a nested plan gets a prefix."""
        correction = self.correction or Correction.nothing(self.shape)
        arrays: Arrays = correction._asdict()
        if self.mass != 1:
            arrays["mass"] = np.array(self.mass)
        inside = self.core.arrays()
        if isinstance(self.core, Plan):
            inside = {f"{self.file_key}.{name}": x for name, x in inside.items()}
        return arrays | inside

    @classmethod
    def from_arrays(cls, saved: SavedArrays, geometry: Geometry) -> Plan:
        """Read a plan from an untrusted file, or raise InvalidProblem."""
        n, m = geometry.shape
        inside = saved.under(cls.file_key)
        if inside.prefix.count(cls.file_key) > MAX_NESTED_PLANS:
            raise InvalidProblem(
                f"the file holds a plan within {MAX_NESTED_PLANS} others; write it again."
            )
        is_nested = "s" in inside
        core = cls.from_arrays(inside, geometry) if is_nested else core_from_arrays(saved, geometry)
        s, e = (saved.masses(name, (n,)) for name in ("s", "e"))
        t, d = (saved.masses(name, (m,)) for name in ("t", "d"))
        mass = float(saved.masses("mass", ())) if "mass" in saved else 1.0
        return cls(core, Correction(s, t, e, d), mass)

    def price(self, geometry: Geometry, v: Vector, d: Vector) -> tuple[Vector, Vector, Vector]:
        """Return X v, (C * X) v and C d, as for a core."""
        own = self.correction or Correction.nothing(self.shape)
        mass, cost, shipped = self.core.price(geometry, own.t * v, d)
        held = own.d * v
        extra = own.e * geometry.matvec(held) if held.any() and own.e.any() else 0.0
        mass, cost = own.s * mass + own.e * held.sum(), own.s * cost + extra
        return self.mass * mass, self.mass * cost, shipped

    def cost(self, geometry: Geometry) -> float:
        """Return <C, X>."""
        arcs = self.core.arcs() if self.correction is None else None
        if arcs is not None:
            return self.mass * arcs.cost(geometry)
        correction = self.correction or Correction.nothing(self.shape)
        _, cost, shipped = self.core.price(geometry, correction.t, correction.d)
        return self.priced(cost, shipped)

    def priced(self, cost: Vector, shipped: Vector) -> float:
        """Return <C, X> from (C * K) t and C d."""
        s, _, e, _ = self.correction or Correction.nothing(self.shape)
        return self.mass * (dot(s, cost) + dot(e, shipped))

    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of X as an array."""
        X = self.core.block(start, stop)
        if self.correction is not None:
            s, t, e, d = self.correction
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
        """Yield (start, rows) for consecutive blocks of rows of X."""
        for rows in row_blocks(*self.shape):
            yield rows.start, self.block(rows.start, rows.stop)

    def entropy(self) -> float:
        """Return H(X) = -Σ X log X; few arcs and a rank-one term need no pass over X."""
        arcs = self.core.arcs()
        if arcs is None:
            return float(sum(entropy(X) for _, X in self.blocks()))
        if self.correction is None:
            return entropy(self.mass * arcs.flow)
        s, t, e, d = self.correction
        i, j, e = arcs.i, arcs.j, self.mass * e
        term = e[i] * d[j]
        of_term = entropy(e) * float(d.sum()) + float(e.sum()) * entropy(d)
        return of_term - entropy(term) + entropy(self.mass * (s[i] * arcs.flow * t[j]) + term)

    def toarray(self, limit: int = MAX_DENSE_BYTES) -> Matrix:
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
        s, t, e, _ = self.correction or Correction.nothing(self.shape)
        if K is not None and not e.any():
            flow = self.mass * (s[K.i] * K.flow * t[K.j])
            return replace(K, flow=flow).above(least).tosparse()
        parts = [sparse.csr_array(np.where(least < X, X, 0.0)) for _, X in self.blocks()]
        return sparse.csr_array(sparse.vstack(parts))

    def scaled(self, factor: float) -> Plan:
        """Return factor X."""
        return self if factor == 1 else Plan(self.core, self.correction, self.mass * factor)


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
