"""Costs that the library makes itself: tilted, constant, or unknown except for their shape."""

from __future__ import annotations

import hashlib
from functools import cached_property, partial

import numpy as np

from .._types import Index, Matrix, Vector
from ..errors import InvalidProblem
from ..kernels.vectors import dot
from .base import EitherLogSums, Geometry, LogSums, log_total


class Tilted(Geometry):
    """The cost C_ij + u_i + v_j of a cost C; every pass is one of C at other potentials.

    Parameters
    ----------
    untilted
        The cost C between n sources and m targets.
    u, v : (n,), (m,) arrays
        Finite numbers to add to its rows and columns.
    """

    def __init__(self, untilted: Geometry, u: Vector, v: Vector) -> None:
        self._inner, self.u, self.v = untilted, u, v
        self.shape, self.noun = untilted.shape, untilted.noun
        self.has_rows, self.is_separable = untilted.has_rows, untilted.is_separable
        self.is_blockwise, self.finest_eta = untilted.is_blockwise, untilted.finest_eta
        self.certificate_passes = untilted.certificate_passes
        self.certificate_share = untilted.certificate_share

    def __repr__(self) -> str:
        return f"Tilted({self._inner!r})"

    def _on(self, inner: Geometry) -> Tilted:
        return Tilted(inner, self.u, self.v)

    @property
    def untilted(self) -> Geometry:
        """The cost C."""
        return self._inner

    def shifted(self, delta: float) -> Tilted:
        """Return the geometry of C + delta."""
        return self._on(self._inner.shifted(delta))

    def restricted(self, rows: Index, cols: Index) -> Tilted | None:
        """Return the geometry on a subset of sources and targets, or None if unsupported."""
        inner = self._inner.restricted(rows, cols)
        return None if inner is None else Tilted(inner, self.u[rows], self.v[cols])

    def detached(self) -> Tilted:
        """Return a geometry that does not share memory with the user's arrays."""
        return self._on(self._inner.detached())

    @property
    def exact(self) -> Tilted:
        """The same cost with all passes in float64."""
        return self._on(self._inner.exact)

    @property
    def rough(self) -> LogSums:
        """Log-sum-exp passes in the precision of the cost's own."""
        return EitherLogSums(partial(self._lse, self._inner.rough))

    def miniature(self) -> Tilted:
        """Return a tiny geometry of the same class, to compile kernels on."""
        inner = self._inner.miniature()
        n, m = inner.shape
        return Tilted(inner, self.u[:n], self.v[:m])

    # -- sizes -----------------------------------------------------------------------------

    @property
    def workspace(self) -> int:
        """Bytes that a pass of the cost needs."""
        return self._inner.workspace

    @property
    def pass_entries(self) -> int:
        """Entries that one pass visits, for counting operations."""
        return self._inner.pass_entries

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Bounds of all costs."""
        low, high = self._inner.bounds
        return low + float(self.u.min() + self.v.min()), high + float(self.u.max() + self.v.max())

    def digest(self) -> str:
        """Return a hash of the cost and of both vectors."""
        h = hashlib.sha256(self._inner.digest().encode())
        h.update(self.u.tobytes() + self.v.tobytes())
        return h.hexdigest()[:16]

    # -- entries ---------------------------------------------------------------------------

    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of the cost."""
        return self._inner.block(start, stop) + (self.u[start:stop, None] + self.v)

    def gathered(self, rows: Index) -> Matrix:
        """Return some rows of the cost."""
        return self._inner.gathered(rows) + (self.u[rows, None] + self.v)

    def entries(self, rows: Index, cols: Index) -> Vector:
        """Return the costs of single pairs."""
        return self._inner.entries(rows, cols) + (self.u[rows] + self.v[cols])

    # -- passes ----------------------------------------------------------------------------

    def lse_rows(self, g: Vector, eta: float) -> Vector:
        """Return log sum_j exp((g_j - C_ij) / η)."""
        return self._lse(self._inner, False, g, eta)

    def lse_cols(self, f: Vector, eta: float) -> Vector:
        """Return log sum_i exp((f_i - C_ij) / η)."""
        return self._lse(self._inner, True, f, eta)

    def _lse(self, inner: LogSums, swap: bool, x: Vector, eta: float) -> Vector:
        """Return the log-sum-exps of rows, or with ``swap`` of columns, by passes of the cost."""
        if swap:
            return inner.lse_cols(x - self.u, eta) - self.v / eta
        return inner.lse_rows(x - self.v, eta) - self.u / eta

    def log_marginals(self, f: Vector, g: Vector, eta: float) -> tuple[Vector, Vector, float]:
        """Return the logarithms of X 1, of Xᵀ 1 and of the mass of X."""
        return self._inner.log_marginals(f - self.u, g - self.v, eta)

    def marginals(self, f: Vector, g: Vector, eta: float) -> tuple[Vector, Vector]:
        """Return X 1 and Xᵀ 1."""
        return self._inner.marginals(f - self.u, g - self.v, eta)

    def apply_rows(self, f: Vector, g: Vector, eta: float, v: Vector) -> Vector:
        """Return X v."""
        return self._inner.apply_rows(f - self.u, g - self.v, eta, v)

    def apply_cols(self, f: Vector, g: Vector, eta: float, u: Vector) -> Vector:
        """Return Xᵀ u."""
        return self._inner.apply_cols(f - self.u, g - self.v, eta, u)

    def price_rows(
        self, f: Vector, g: Vector, eta: float, v: Vector, d: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """Return X v, (C * X) v and C d."""
        f, g = f - self.u, g - self.v
        mass, cost, shipped = self._inner.price_rows(f, g, eta, v, d)
        priced = cost + self.u * mass + self._inner.apply_rows(f, g, eta, self.v * v)
        return mass, priced, shipped + self._tilt(d)

    def gibbs(self, f: Vector, g: Vector, eta: float, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of X."""
        return self._inner.gibbs(f - self.u, g - self.v, eta, start, stop)

    def matvec(self, v: Vector) -> Vector:
        """Return C v."""
        return self._inner.matvec(v) + self._tilt(v)

    def _tilt(self, d: Vector) -> Vector:
        """Return what the two vectors add to C d."""
        return self.u * float(d.sum()) + dot(self.v, d)

    def ctransform_rows(self, g: Vector) -> Vector:
        """Return min_j C_ij - g_j."""
        return self._inner.ctransform_rows(g - self.v) + self.u

    def ctransform_cols(self, f: Vector) -> Vector:
        """Return min_i C_ij - f_i."""
        return self._inner.ctransform_cols(f - self.u) + self.v


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


class UnsavedCost(Geometry):
    """A cost whose entries are unknown; only its shape is.

    Parameters
    ----------
    shape
        (n, m).
    path
        The file, for messages.
    """

    def __init__(self, shape: tuple[int, int], path: str) -> None:
        self.shape = shape
        self._path = path

    def block(self, start: int, stop: int) -> Matrix:
        """Raise InvalidProblem: the costs are needed."""
        raise InvalidProblem(
            f"{self._path} does not hold the costs, which this needs; pass the problem to "
            "Result.load(path, M, a, b)."
        )

    def shifted(self, delta: float) -> Geometry:
        """Return the geometry itself."""
        return self
