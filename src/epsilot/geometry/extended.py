"""A cost with a dummy source and a dummy target, which take the mass that is not transported."""

from __future__ import annotations

import hashlib
import math
from functools import cached_property, partial

import numpy as np

from .. import memory
from .._types import Index, Matrix, Vector
from ..kernels.vectors import dot, exp, logaddexp
from ..metrics import Metric
from .base import EitherLogSums, Geometry, LogSums, log_total
from .dense import Dense
from .tree_index import Embedding


def extended(inner: Geometry, to_rows: Vector, to_cols: Vector, corner: float) -> Geometry:
    """Return a cost with a dummy target, a dummy source, and the cost between these two.

    A stored cost is copied with one more row and column. Any other cost is left as it is, and
    the n + m + 1 numbers are stored separately.

    Parameters
    ----------
    inner
        The cost between n sources and m targets.
    to_rows : (n,) array
        Costs from each source to the dummy target.
    to_cols : (m,) array
        Costs from the dummy source to each target.
    corner
        Cost from the dummy source to the dummy target.
    """
    own = inner.extended(to_rows, to_cols, corner)
    if own is not None:
        return own
    if not inner.is_dense:
        return Extended(inner, to_rows, to_cols, corner)
    n, m = inner.shape
    memory.ask(
        8 * (n + 1) * (m + 1), f"a cost of {n:,} x {m:,} with a dummy row and column",
        "use a point cloud or a grid, which are not stored",
    )  # fmt: skip
    C = np.empty((n + 1, m + 1))
    C[:n, :m], C[:n, m], C[n, :m], C[n, m] = inner.matrix(), to_rows, to_cols, corner
    return Dense(C)


class Extended(Geometry):
    """A cost that is not stored, and the costs of a dummy source and a dummy target."""

    def __init__(self, inner: Geometry, to_rows: Vector, to_cols: Vector, corner: float) -> None:
        self.inner, self.to_rows, self.to_cols, self.corner = inner, to_rows, to_cols, corner
        self.shape = inner.shape[0] + 1, inner.shape[1] + 1
        self.has_rows, self.is_separable = inner.has_rows, inner.is_separable and not inner.has_rows
        self.is_blockwise, self.finest_eta = inner.is_blockwise, inner.finest_eta
        self.certificate_passes = inner.certificate_passes
        self.certificate_share = inner.certificate_share

    def __repr__(self) -> str:
        return f"Extended({self.inner!r})"

    def _on(self, inner: Geometry, delta: float = 0.0) -> Extended:
        """Return an extension of another cost whose dummy costs are higher by delta."""
        return Extended(inner, self.to_rows + delta, self.to_cols + delta, self.corner + delta)

    def shifted(self, delta: float) -> Extended:
        """Return the geometry of C + delta."""
        return self._on(self.inner.shifted(delta), delta)

    def detached(self) -> Extended:
        """Return a geometry that does not share memory with the user's arrays."""
        return self._on(self.inner.detached())

    @property
    def exact(self) -> Extended:
        """The same cost with all passes in float64."""
        return self._on(self.inner.exact)

    @property
    def rough(self) -> LogSums:
        """Log-sum-exp passes in the precision of the inner cost's."""
        return EitherLogSums(partial(self._lse, self.inner.rough))

    def miniature(self) -> Extended:
        """Return a tiny geometry of the same class, to compile kernels on."""
        inner = self.inner.miniature()
        n, m = inner.shape
        return Extended(inner, self.to_rows[:n], self.to_cols[:m], self.corner)

    # -- sizes -----------------------------------------------------------------------------

    @property
    def workspace(self) -> int:
        """Bytes that a pass of the inner cost needs."""
        return self.inner.workspace

    @cached_property
    def pass_entries(self) -> int:
        """Entries that one pass visits, for counting operations."""
        return self.inner.pass_entries + sum(self.shape) - 1

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest cost."""
        low, high = self.inner.bounds
        others = self.to_rows, self.to_cols, np.array([self.corner])
        return min(low, *(float(x.min()) for x in others)), max(
            high, *(float(x.max()) for x in others)
        )

    def digest(self) -> str:
        """Return a hash of the inner cost and the dummy costs."""
        h = hashlib.sha256(self.inner.digest().encode())
        h.update(self.to_rows.tobytes() + self.to_cols.tobytes())
        h.update(np.array(self.corner).tobytes())
        return h.hexdigest()[:16]

    # -- entries ---------------------------------------------------------------------------

    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of C."""
        n, m = self.inner.shape
        out, last = np.empty((stop - start, m + 1)), min(stop, n)
        if start < last:
            out[: last - start, :m] = self.inner.block(start, last)
            out[: last - start, m] = self.to_rows[start:last]
        if stop > n:
            out[n - start, :m], out[n - start, m] = self.to_cols, self.corner
        return out

    def gathered(self, rows: Index) -> Matrix:
        """Return some rows of C."""
        n, m = self.inner.shape
        out, inside = np.empty((rows.size, m + 1)), rows < n
        if inside.any():
            out[inside, :m] = self.inner.gathered(rows[inside])
            out[inside, m] = self.to_rows[rows[inside]]
        out[~inside, :m], out[~inside, m] = self.to_cols, self.corner
        return out

    def entries(self, rows: Index, cols: Index) -> Vector:
        """Return the costs C[rows, cols] of single pairs."""
        n, m = self.inner.shape
        out = np.full(rows.size, self.corner)
        inside, below, beside = (rows < n) & (cols < m), (rows == n) & (cols < m), cols == m
        out[inside] = self.inner.entries(rows[inside], cols[inside])
        out[below] = self.to_cols[cols[below]]
        beside &= rows < n
        out[beside] = self.to_rows[rows[beside]]
        return out

    # -- passes ----------------------------------------------------------------------------

    def lse_rows(self, g: Vector, eta: float) -> Vector:
        """Return log sum_j exp((g_j - C_ij) / η)."""
        return self._lse(self.inner, False, g, eta)

    def lse_cols(self, f: Vector, eta: float) -> Vector:
        """Return log sum_i exp((f_i - C_ij) / η)."""
        return self._lse(self.inner, True, f, eta)

    def _lse(self, inner: LogSums, swap: bool, x: Vector, eta: float) -> Vector:
        """Return the log-sum-exps of rows, or with ``swap`` of columns, by passes of the cost."""
        if swap:
            inside = inner.lse_cols(x[:-1], eta)
            return _bordered_lse(inside, self.to_cols, self.to_rows, self.corner, x, eta)
        inside = inner.lse_rows(x[:-1], eta)
        return _bordered_lse(inside, self.to_rows, self.to_cols, self.corner, x, eta)

    def log_marginals(self, f: Vector, g: Vector, eta: float) -> tuple[Vector, Vector, float]:
        """Return the logarithms of X 1, of Xᵀ 1 and of the mass of X."""
        log_r, log_c = self.lse_rows(g, eta) + f / eta, self.lse_cols(f, eta) + g / eta
        return log_r, log_c, log_total(log_r)

    def _gibbs_border(self, f: Vector, g: Vector, eta: float) -> tuple[Vector, Vector, float]:
        """Return the last column, the last row and the corner of the Gibbs plan."""
        column = exp((f[:-1] + g[-1] - self.to_rows) / eta)
        row = exp((f[-1] + g[:-1] - self.to_cols) / eta)
        return column, row, float(exp(float(f[-1] + g[-1] - self.corner) / eta))

    def marginals(self, f: Vector, g: Vector, eta: float) -> tuple[Vector, Vector]:
        """Return X 1 and Xᵀ 1."""
        column, row, corner = self._gibbs_border(f, g, eta)
        r, c = self.inner.marginals(f[:-1], g[:-1], eta)
        return np.append(r + column, row.sum() + corner), np.append(c + row, column.sum() + corner)

    def apply_rows(self, f: Vector, g: Vector, eta: float, v: Vector) -> Vector:
        """Return X v."""
        column, row, corner = self._gibbs_border(f, g, eta)
        inner = self.inner.apply_rows(f[:-1], g[:-1], eta, v[:-1])
        return np.append(inner + column * v[-1], dot(row, v[:-1]) + corner * v[-1])

    def apply_cols(self, f: Vector, g: Vector, eta: float, u: Vector) -> Vector:
        """Return Xᵀ u."""
        column, row, corner = self._gibbs_border(f, g, eta)
        inner = self.inner.apply_cols(f[:-1], g[:-1], eta, u[:-1])
        return np.append(inner + row * u[-1], dot(column, u[:-1]) + corner * u[-1])

    def price_rows(
        self, f: Vector, g: Vector, eta: float, v: Vector, d: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """Return X v, (C * X) v and C d in one pass."""
        column, row, corner = self._gibbs_border(f, g, eta)
        mass, cost, shipped = self.inner.price_rows(f[:-1], g[:-1], eta, v[:-1], d[:-1])
        last_mass, last_cost = corner * v[-1], self.corner * corner * v[-1]
        return (
            np.append(mass + column * v[-1], dot(row, v[:-1]) + last_mass),
            np.append(cost + self.to_rows * column * v[-1], dot(self.to_cols * row, v[:-1]))
            + np.append(np.zeros(mass.size), last_cost),
            self._bordered(shipped, d),
        )

    def gibbs(self, f: Vector, g: Vector, eta: float, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of X."""
        n, m = self.inner.shape
        column, row, corner = self._gibbs_border(f, g, eta)
        out, last = np.empty((stop - start, m + 1)), min(stop, n)
        if start < last:
            out[: last - start, :m] = self.inner.gibbs(f[:-1], g[:-1], eta, start, last)
            out[: last - start, m] = column[start:last]
        if stop > n:
            out[n - start, :m], out[n - start, m] = row, corner
        return out

    def matvec(self, v: Vector) -> Vector:
        """Return C v."""
        return self._bordered(self.inner.matvec(v[:-1]), v)

    def _bordered(self, inner: Vector, v: Vector) -> Vector:
        """Return C v, given the product of the inner cost and v."""
        return np.append(
            inner + self.to_rows * v[-1], dot(self.to_cols, v[:-1]) + self.corner * v[-1]
        )

    def ctransform_rows(self, g: Vector) -> Vector:
        """Return min_j C_ij - g_j."""
        inner = np.minimum(self.inner.ctransform_rows(g[:-1]), self.to_rows - g[-1])
        return np.append(inner, min((self.to_cols - g[:-1]).min(), self.corner - g[-1]))

    def ctransform_cols(self, f: Vector) -> Vector:
        """Return min_i C_ij - f_i."""
        inner = np.minimum(self.inner.ctransform_cols(f[:-1]), self.to_cols - f[-1])
        return np.append(inner, min((self.to_rows - f[:-1]).min(), self.corner - f[-1]))

    def ctransform_error(self, f: Vector, g: Vector) -> float:
        """Bound the error of f = min_j C_ij - g_j beyond the rounding of each difference."""
        return self.inner.ctransform_error(f[:-1], g[:-1])


class WithBoundary(Extended):
    """A cost of points, which may also go to a boundary at the cost of the nearest way to it.

    The dummies stand for the boundary; from one to the other costs nothing.

    Parameters
    ----------
    inner
        The cost between n sources and m targets.
    to_rows : (n,) array
        Costs from each source to the boundary.
    to_cols : (m,) array
        Costs from the boundary to each target.
    points
        Points and a metric that give all these costs: see :meth:`placed`.
    """

    def __init__(
        self, inner: Geometry, to_rows: Vector, to_cols: Vector, points: Embedding
    ) -> None:
        super().__init__(inner, to_rows, to_cols, points.shift)
        self.points = points

    @staticmethod
    def placed(X: Matrix, Y: Matrix, metric: Metric) -> Embedding:
        """Return points, whose first coordinates are distances to the boundary, and the dummies.

        A dummy is far on the other side, so that it stands for the boundary with any neighbours
        that are in its cell on coarse levels.
        """
        far = -max(float(Z[:, 0].max()) for Z in (X, Y))
        dummy = np.append(far, np.median(np.concatenate([X, Y])[:, 1:], axis=0))
        X, Y = (np.vstack([Z, dummy]) for Z in (X, Y))
        return Embedding(X, Y, metric.to_boundary().key, 0.0)

    def _on(self, inner: Geometry, delta: float = 0.0) -> WithBoundary:
        """Return an extension of another cost whose dummy costs are higher by delta."""
        points = self.points._replace(shift=self.points.shift + delta)
        return WithBoundary(inner, self.to_rows + delta, self.to_cols + delta, points)

    @property
    def embedding(self) -> Embedding:
        """The points, with the dummies."""
        return self.points


def _bordered_lse(
    inner: Vector, beside: Vector, below: Vector, corner: float, x: Vector, eta: float
) -> Vector:
    """Return the log-sum-exps of all lines with one dummy's term, then the other dummy's."""
    last = np.append(x[:-1] - below, x[-1] - corner) / eta
    total = -math.inf if last.max() == -math.inf else log_total(last)
    return np.append(logaddexp(inner, (x[-1] - beside) / eta), total)
