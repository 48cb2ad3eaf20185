"""Costs on some arcs only: every other pair of a source and a target is forbidden."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .. import parallel
from .._types import Index, Matrix, Vector
from ..arguments import cost_matrix, numeric
from ..errors import InvalidProblem
from ..kernels import arcs as kernels
from .base import AllowedArcs, Geometry, log_total

#: Most rows, and most columns, of a sparse cost: nodes are numbered by 32 bits.
MAX_SIDE = 2**31 - 2


class ArcLists(NamedTuple):
    """The arcs of each row, or of each column: first places, other ends and costs."""

    starts: Index
    others: NDArray[np.uint32]
    costs: Vector


class Sparse(Geometry):
    """Costs on some arcs; a plan can use no other pairs.

    Parameters
    ----------
    rows, cols : (k,) array-like of int
        Sources and targets of the arcs. Of parallel arcs, the cheapest counts.
    costs : (k,) array-like
        Finite costs of any sign. inf, or the largest float, means no arc.
    shape : (int, int)
        Numbers of sources and targets.

    Examples
    --------
    >>> import epsilot
    >>> M = epsilot.Sparse([0, 0, 1], [0, 1, 1], [1.0, 2.0, 5.0], shape=(2, 2))
    >>> M
    Sparse(2 x 2, 3 arcs)
    >>> epsilot.solve(M).value
    3.0
    """

    noun = "a sparse cost"
    has_rows = False

    def __init__(
        self, rows: ArrayLike, cols: ArrayLike, costs: ArrayLike, shape: tuple[int, int]
    ) -> None:
        n, m = _checked_shape(shape)
        i, j = _indices(rows, "rows", n), _indices(cols, "cols", m)
        values = numeric(costs, "costs")
        if not i.shape == j.shape == values.shape == (values.size,):
            raise InvalidProblem(
                f"rows, cols and costs have shapes {i.shape}, {j.shape} and {values.shape}; they "
                "must be three vectors of one length, with one entry for each arc."
            )
        forbidden = least_forbidden(getattr(costs, "dtype", None))
        owned, starts = np.array(values, dtype=np.float64), np.empty(n + 1, dtype=np.int64)
        others = j.astype(np.uint32)
        if kernels.are_in_order(i.astype(np.uint32), others, owned, forbidden, starts):
            self._take((n, m), ArcLists(starts, others, owned))
            return
        kept = ~(values >= forbidden)  # with NaN
        if not kept.all():
            i, j, values = i[kept], j[kept], values[kept]
        bad = ~np.isfinite(values)
        if bad.any():
            k = int(np.argmax(bad))
            raise InvalidProblem(describe_bad_cost(int(i[k]), int(j[k]), float(values[k])))
        keys = i * m + j
        order = np.argsort(values, kind="stable")
        order = order[np.argsort(keys[order], kind="stable")]
        keys = keys[order]
        first = np.ones(keys.size, dtype=np.bool_)
        first[1:] = keys[1:] > keys[:-1]
        order = order[first]
        lists = _in_order((n, m), i[order], j[order], values[order].astype(np.float64)).by_rows
        self._take((n, m), lists)

    def _take(self, shape: tuple[int, int], by_rows: ArcLists) -> None:
        self.shape, self.by_rows = shape, by_rows
        costs = by_rows.costs
        self.bounds = (float(costs.min()), float(costs.max())) if costs.size else (0.0, 0.0)

    @classmethod
    def _own(cls, shape: tuple[int, int], by_rows: ArcLists) -> Sparse:
        """Return the geometry of lists that are already in order."""
        out = cls.__new__(cls)
        out._take(shape, by_rows)
        return out

    @classmethod
    def of_rows(cls, shape: tuple[int, int], starts: Index, cols: Index, costs: Vector) -> Sparse:
        """Return the geometry of arcs by rows, each arc once, with finite costs."""
        stored = sparse.csr_array((costs, cols, starts), shape=shape)
        stored.sort_indices()
        return cls._own(shape, ArcLists(starts, stored.indices.astype(np.uint32), stored.data))

    @classmethod
    def of_scipy(cls, M: Any) -> Sparse:
        """Return the arcs that a SciPy sparse array stores, explicit zeros included."""
        if M.ndim != 2:
            raise InvalidProblem(f"M has shape {M.shape}; a cost must be a matrix.")
        coo = M.tocsr(copy=True).tocoo()  # CSR adds up entries that are stored twice
        return cls(coo.row, coo.col, coo.data, coo.shape)

    @classmethod
    def of_array(cls, M: Any) -> Sparse:
        """Return the arcs of a matrix whose forbidden entries are inf, float max or masked."""
        mask = np.ma.getmaskarray(M) if np.ma.isMaskedArray(M) else None
        array = np.ma.getdata(M) if mask is not None else M
        C = cost_matrix(array)
        forbidden = is_forbidden(C, getattr(array, "dtype", None))
        if mask is not None:
            forbidden = forbidden | mask
        i, j = np.nonzero(~forbidden)
        return cls(i, j, C[i, j], (C.shape[0], C.shape[1]))

    def __repr__(self) -> str:
        return f"Sparse({self.shape[0]} x {self.shape[1]}, {self.n_arcs} arcs)"

    # -- arcs ------------------------------------------------------------------------------

    @property
    def n_arcs(self) -> int:
        """Number of arcs."""
        return self.by_rows.costs.size

    @cached_property
    def rows(self) -> Index:
        """The row of each arc, in order."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.by_rows.starts))

    @cached_property
    def _columns(self) -> tuple[Index, Index, NDArray[np.uint32]]:
        starts, cols, _ = self.by_rows
        m, rows = self.shape[1], np.empty(self.n_arcs, dtype=np.uint32)
        places, first = np.empty(cols.size, dtype=np.int64), np.empty(m + 1, dtype=np.int64)
        kernels.by_columns(starts, cols, m, places, first, rows)
        return places, first, rows

    @cached_property
    def by_cols(self) -> ArcLists:
        """The arcs of each column."""
        places, first, rows = self._columns
        return ArcLists(first, rows, self.by_rows.costs[places])

    @cached_property
    def allowed(self) -> AllowedArcs:  # type: ignore[override]
        """The arcs that plans may use."""
        starts, cols, costs = self.by_rows
        places, first, others = self._columns
        return AllowedArcs(starts, cols, first, places, others, self.rows, costs)

    # -- changes ---------------------------------------------------------------------------

    def _with(self, costs: Vector) -> Sparse:
        """Return the same arcs at other costs."""
        out = Sparse._own(self.shape, self.by_rows._replace(costs=costs))
        known = ("rows", "_columns")
        out.__dict__.update((x, self.__dict__[x]) for x in known if x in self.__dict__)
        return out

    def shifted(self, delta: float) -> Sparse:
        """Return the geometry of C + delta."""
        return self if delta == 0 else self._with(self.by_rows.costs + delta)

    def rescaled(self, power: int) -> Sparse:
        """Return the geometry of 2**power C."""
        return self._with(np.ldexp(self.by_rows.costs, power))

    def restricted(self, rows: Index, cols: Index) -> Sparse:
        """Return the arcs between some sources and targets, whose numbers rise."""
        n, m = self.shape
        new_row, new_col = np.full(n, -1), np.full(m, -1)
        new_row[rows], new_col[cols] = np.arange(rows.size), np.arange(cols.size)
        i, j = new_row[self.rows], new_col[self.by_rows.others]
        kept = (i >= 0) & (j >= 0)
        costs = self.by_rows.costs[kept]
        return _in_order((rows.size, cols.size), i[kept], j[kept], costs)

    def miniature(self) -> Sparse:
        """Return a tiny geometry with all arcs, to compile kernels on."""
        n, m = (min(2, size) for size in self.shape)
        i, j = np.divmod(np.arange(n * m), m)
        return _in_order((n, m), i, j, np.arange(n * m, dtype=np.float64))

    def extended(self, to_rows: Vector, to_cols: Vector, corner: float) -> Sparse:
        """Return the arcs with a dummy target, a dummy source, and the arc between these two."""
        n, m = self.shape
        starts, cols, costs = self.by_rows
        ends = starts[1:]
        others = np.insert(cols, ends, np.full(n, m, dtype=np.uint32))
        values = np.insert(costs, ends, to_rows)
        others = np.concatenate([others, np.arange(m + 1, dtype=np.uint32)])
        values = np.concatenate([values, to_cols, [corner]])
        first = np.concatenate([starts + np.arange(n + 1), [values.size]])
        return Sparse._own((n + 1, m + 1), ArcLists(first, others, values))

    # -- entries ---------------------------------------------------------------------------

    @property
    def pass_entries(self) -> int:
        """Arcs, which one pass visits."""
        return max(self.n_arcs, 1)

    @property
    def workspace(self) -> int:
        """No bytes: passes write one number per row or column."""
        return 0

    def digest(self) -> str:
        """Return a hash of the arcs and their costs."""
        h = hashlib.sha256(repr(self.shape).encode())
        for x in self.by_rows:
            h.update(np.ascontiguousarray(x).data)
        return h.hexdigest()[:16]

    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of C, infinite where there is no arc."""
        starts, cols, costs = self.by_rows
        out = np.full((stop - start, self.shape[1]), np.inf)
        part = slice(starts[start], starts[stop])
        out[self.rows[part] - start, cols[part]] = costs[part]
        return out

    def entries(self, rows: Index, cols: Index) -> Vector:
        """Return the costs of single pairs, infinite where there is no arc."""
        starts, others, costs = self.by_rows
        found = np.empty(rows.size, dtype=np.int64)
        kernels.find(starts, others, np.asarray(rows, np.int64), np.asarray(cols, np.int64), found)
        out = np.full(rows.size, np.inf)
        out[found >= 0] = costs[found[found >= 0]]
        return out

    def k_least(self, rows: Index, prices: Vector, k: int) -> tuple[Index, Matrix, Vector]:
        """Return the k arcs of least C_ij + price_j of some rows, in rising order.

        Rows with fewer arcs have columns -1 and infinite costs at the end.
        """
        cols, costs = np.empty((rows.size, k), dtype=np.int64), np.empty((rows.size, k))
        thresholds = np.empty(rows.size)
        kernels.k_least(*self.by_rows, prices, rows, cols, costs, thresholds)
        return cols, costs, thresholds

    # -- passes ----------------------------------------------------------------------------

    def _pass(self, kernel: Any, lists: ArcLists, *args: object) -> Vector:
        out = np.empty(lists.starts.size - 1)
        parallel.share(kernel, out.size, self.pass_entries, *lists, *args, out)
        return out

    def lse_rows(self, g: Vector, eta: float) -> Vector:
        """Return log sum_j exp((g_j - C_ij) / η) over the arcs."""
        return self._pass(kernels.lse, self.by_rows, g, 1 / eta)

    def lse_cols(self, f: Vector, eta: float) -> Vector:
        """Return log sum_i exp((f_i - C_ij) / η) over the arcs."""
        return self._pass(kernels.lse, self.by_cols, f, 1 / eta)

    def log_marginals(self, f: Vector, g: Vector, eta: float) -> tuple[Vector, Vector, float]:
        """Return the logarithms of X 1, of Xᵀ 1 and of the mass of X."""
        log_r, log_c = self.lse_rows(g, eta) + f / eta, self.lse_cols(f, eta) + g / eta
        return log_r, log_c, log_total(log_r)

    def marginals(self, f: Vector, g: Vector, eta: float) -> tuple[Vector, Vector]:
        """Return X 1 and Xᵀ 1."""
        n, m = self.shape
        return self.apply_rows(f, g, eta, np.ones(m)), self.apply_cols(f, g, eta, np.ones(n))

    def apply_rows(self, f: Vector, g: Vector, eta: float, v: Vector) -> Vector:
        """Return X v."""
        return self._pass(kernels.apply_gibbs, self.by_rows, f, g, 1 / eta, v)

    def apply_cols(self, f: Vector, g: Vector, eta: float, u: Vector) -> Vector:
        """Return Xᵀ u."""
        return self._pass(kernels.apply_gibbs, self.by_cols, g, f, 1 / eta, u)

    def price_rows(
        self, f: Vector, g: Vector, eta: float, v: Vector, d: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """Return X v, (C * X) v and C d."""
        cost = self._pass(kernels.price_gibbs, self.by_rows, f, g, 1 / eta, v)
        return self.apply_rows(f, g, eta, v), cost, self.matvec(d)

    def gibbs(self, f: Vector, g: Vector, eta: float, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of X."""
        starts, cols, costs = self.by_rows
        values = np.empty(costs.size)
        kernels.gibbs(starts, cols, costs, f, g, 1 / eta, values, start, stop)
        out, part = np.zeros((stop - start, self.shape[1])), slice(starts[start], starts[stop])
        out[self.rows[part] - start, cols[part]] = values[part]
        return out

    def matvec(self, v: Vector) -> Vector:
        """Return C v, infinite where v is not zero and there is no arc."""
        return self._pass(kernels.product, self.by_rows, v)

    def ctransform_rows(self, g: Vector) -> Vector:
        """Return min_j C_ij - g_j over the arcs, inf without arcs."""
        return self._pass(kernels.ctransform, self.by_rows, g)

    def ctransform_cols(self, f: Vector) -> Vector:
        """Return min_i C_ij - f_i over the arcs, inf without arcs."""
        return self._pass(kernels.ctransform, self.by_cols, f)


def _in_order(shape: tuple[int, int], i: Index, j: Index, costs: Vector) -> Sparse:
    """Return the geometry of arcs that are already sorted by rows, then columns."""
    counts = np.bincount(i, minlength=shape[0])
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Sparse._own(shape, ArcLists(starts, j.astype(np.uint32), costs))


def is_forbidden(costs: Vector, dtype: Any = None) -> NDArray[np.bool_]:
    """Tell which costs are inf, or the largest number of their type of floats."""
    return np.asarray(costs >= least_forbidden(dtype))


def least_forbidden(dtype: Any = None) -> float:
    """Return the largest number of a type of floats, which stands for a forbidden pair."""
    largest = _LARGEST.get(dtype) if isinstance(dtype, np.dtype) else None
    return float(np.finfo(np.float64).max) if largest is None else largest


#: Largest numbers of the types of floats that are not larger than float64.
_LARGEST = {np.dtype(kind): float(np.finfo(kind).max) for kind in (np.float16, np.float32)}


def describe_bad_cost(i: int, j: int, cost: float) -> str:
    """Return the sentence that rejects a cost that is no number, or minus infinity."""
    return (
        f"the cost of row {i}, column {j} is {cost}; costs must be finite, or inf where a pair is "
        "forbidden (replace it by the right one)."
    )


def _checked_shape(shape: Any) -> tuple[int, int]:
    try:
        n, m = (int(size) for size in shape)
    except (TypeError, ValueError):
        n = m = 0
    if not (1 <= n <= MAX_SIDE and 1 <= m <= MAX_SIDE):
        raise InvalidProblem(
            f"shape is {shape!r}; it must be two numbers of at least 1 (sources and targets)."
        )
    return n, m


def _indices(x: ArrayLike, name: str, size: int) -> Index:
    """Return checked indices below a size."""
    array = np.asarray(x)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise InvalidProblem(f"{name} is of type {array.dtype}; it must hold integers.")
    if array.min() < 0 or array.max() >= size:
        bad = int(array[(array < 0) | (array >= size)].flat[0])
        raise InvalidProblem(f"{name} holds {bad}; indices must be from 0 to {size - 1}.")
    return np.asarray(array, dtype=np.int64)
