"""Costs on regular grids: every pass is linear, or nearly so, in the number of cells.

Both costs are sums over the axes, so exp(-C / η) is a product of one-dimensional kernels that
are applied one axis at a time. For ``cityblock`` each is a first-order recursive filter, O(n);
for ``sqeuclidean`` a small dense kernel, O(n^(1 + 1/d)). The scaling domain is used while its
results stay in the range of floats, and a log domain of (level, mantissa) pairs otherwise.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from .._types import Matrix, Vector
from ..errors import InvalidProblem
from ..kernels import grid as kernels
from ..kernels import threads
from .base import Geometry, log_total

# The scaling domain holds exponents in (-700 - HEADROOM, 700 - HEADROOM) of the largest.
HEADROOM = 300.0
# Sums below this may have lost terms to underflow.
SMALLEST_SUM = 1e-290
# Cells up to which a log-sum-exp is one call.
SMALL_GRID = 1 << 15
# Longest axis whose squared-Euclidean kernel is stored.
LONGEST_AXIS = 4096


class Grid(Geometry):
    """Masses on d-dimensional grids (d = 1, 2, 3) with a common origin and spacing.

    Parameters
    ----------
    shape_a, shape_b : int or tuple of int
        Cells along each axis, of the sources and of the targets (the same by default).
    metric : {"cityblock", "sqeuclidean"}
        Cost between cell centres.
    spacing : float or sequence of float
        Distance of neighbouring centres along each axis.
    """

    certificate_passes = 6  # the plan is priced in the log domain

    def __init__(
        self,
        shape_a: int | Sequence[int],
        shape_b: int | Sequence[int] | None = None,
        metric: str = "cityblock",
        spacing: float | Sequence[float] = 1.0,
    ) -> None:
        self.shape_a = _shape(shape_a, "shape_a")
        self.shape_b = self.shape_a if shape_b is None else _shape(shape_b, "shape_b")
        if len(self.shape_a) != len(self.shape_b):
            raise InvalidProblem(
                f"the grids have {len(self.shape_a)} and {len(self.shape_b)} axes; both must have "
                "the same number."
            )
        if metric not in ("cityblock", "sqeuclidean"):
            raise InvalidProblem(
                f"metric is {metric!r}; a grid serves 'cityblock' and 'sqeuclidean' (use "
                "PointCloud on the cell centres for others)."
            )
        steps = np.broadcast_to(np.asarray(spacing, dtype=float), (len(self.shape_a),))
        if not (np.isfinite(steps).all() and (steps > 0).all()):
            raise InvalidProblem(f"spacing is {spacing!r}; it must be positive and finite.")
        self.metric, self.spacing = metric, tuple(float(h) for h in steps)
        self.shape = math.prod(self.shape_a), math.prod(self.shape_b)
        self.shift = 0.0

    def __repr__(self) -> str:
        return f"Grid({self.shape_a} to {self.shape_b}, {self.metric}, spacing {self.spacing})"

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest cost: the same cell, and opposite corners."""
        far = (max(a, b) - 1 for a, b in zip(self.shape_a, self.shape_b, strict=True))
        cost = sum(self._along(k, steps) for k, steps in enumerate(far))
        return self.shift, self.shift + float(cost)

    def _along(self, axis: int, steps: Any) -> Any:
        """Return the cost of moving a number of cells along an axis."""
        distance = self.spacing[axis] * np.abs(steps)
        return distance if self.metric == "cityblock" else distance**2

    def shifted(self, delta: float) -> Grid:
        """Return the geometry of C + delta."""
        if delta == 0:
            return self
        out = Grid(self.shape_a, self.shape_b, self.metric, self.spacing)
        out.shift = self.shift + delta
        return out

    @cached_property
    def pass_entries(self) -> int:
        """Entries that one pass works through: one, or one line, for every cell and axis."""
        pairs = list(zip(self.shape_a, self.shape_b, strict=True))
        lengths = [1 if self.metric == "cityblock" else max(pair) for pair in pairs]
        return max(self.shape) * sum(lengths)

    def miniature(self) -> Grid:
        """Return a grid of two cells along every axis."""
        return Grid((2,) * len(self.shape_a), None, self.metric, self.spacing)

    def digest(self) -> str:
        """Return a hash of shapes, metric, spacing and shift."""
        return hashlib.sha256(f"{self!r} {self.shift!r}".encode()).hexdigest()[:16]

    def block(self, start: int, stop: int) -> Matrix:
        """Compute rows ``start:stop`` of C."""
        cells = np.unravel_index(np.arange(start, stop), self.shape_a)
        out = np.full((stop - start, *self.shape_b), self.shift)
        for axis, length in enumerate(self.shape_b):
            cost = self._along(axis, cells[axis][:, None] - np.arange(length))
            shape = [stop - start] + [1] * len(self.shape_b)
            shape[axis + 1] = length
            out += cost.reshape(shape)
        return out.reshape(stop - start, self.shape[1])

    # -- filters -----------------------------------------------------------------------------

    def _axes(self, swap: bool) -> list[tuple[int, int, int]]:
        """Return (axis, length out, length in): inputs live on b, or on a when swapped."""
        pairs = zip(self.shape_a, self.shape_b, strict=True)
        return [(k, b, a) if swap else (k, a, b) for k, (a, b) in enumerate(pairs)]

    def _lse(self, swap: bool, x: Vector, eta: float, z: Vector | None = None) -> Vector:
        """Return log sum_j z_j exp((x_j - C_ij) / η) for z >= 0."""
        weight = self._ones[swap] if z is None else z
        top = x.max()
        if top == -np.inf:
            return np.full(self.shape[1] if swap else self.shape[0], -np.inf)
        level = top - HEADROOM * eta
        result = self._scaled_lse(swap, x, weight, level, eta)
        if result is not None:
            result += (level - self.shift) / eta
            return result
        t, total, _ = self._log(swap, x / eta, weight, np.zeros_like(x), eta)
        with np.errstate(divide="ignore"):
            return np.asarray(t + np.log(total) - self.shift / eta)

    @cached_property
    def _ones(self) -> tuple[Vector, Vector]:
        return np.ones(self.shape[1]), np.ones(self.shape[0])

    def _scaled_lse(
        self, swap: bool, x: Vector, weight: Vector, level: float, eta: float
    ) -> Vector | None:
        """Return log sum_j weight_j exp((x_j - level - C_ij) / η), or None out of range."""
        field = np.empty(x.size)
        if self.metric == "cityblock" and self.shape_a == self.shape_b and x.size <= SMALL_GRID:
            shape, steps = self._padded_shape, self._padded_spacing / eta
            rhos, keeps, out = np.exp(-steps), -np.expm1(-2 * steps), np.empty(x.size)
            least = kernels.l1_lse(x, weight, shape, rhos, keeps, level, 1 / eta, field, out)
            return out if least > SMALLEST_SUM else None
        threads.share(kernels.exp_into, x.size, x.size, x, level, 1 / eta, weight, field)
        cells: Any = field.reshape(self.shape_a if swap else self.shape_b)
        for axis, n_out, n_in in self._axes(swap):
            if self.metric == "cityblock":
                cells = self._decayed(cells, axis, n_out, n_in, eta)
            elif max(n_out, n_in) > LONGEST_AXIS:
                return None
            else:
                cells = _multiplied(self._axis_kernel(axis, n_out, n_in, eta), cells, axis)
        sums = np.ravel(cells)
        if not sums.min() > SMALLEST_SUM:
            return None
        threads.share(kernels.log_into, sums.size, sums.size, sums, sums)
        return sums

    def _decayed(self, cells: Any, axis: int, n_out: int, n_in: int, eta: float) -> Any:
        """Filter a field along one axis by exp(-h |i - j| / η), in place where lengths agree."""
        step = self.spacing[axis] / eta
        if n_out > n_in:
            widths = [(0, n_out - n_in if k == axis else 0) for k in range(cells.ndim)]
            cells = np.pad(cells, widths)
        outer, inner = math.prod(cells.shape[:axis]), math.prod(cells.shape[axis + 1 :])
        lines = np.ascontiguousarray(cells).reshape(outer, cells.shape[axis], inner)
        n_lines = outer if outer > 1 else inner
        threads.share(
            kernels.l1_scaling, n_lines, 2 * lines.size,
            lines, math.exp(-step), -math.expm1(-2 * step),
        )  # fmt: skip
        shape = [n_out if k == axis else length for k, length in enumerate(cells.shape)]
        return lines[:, :n_out].reshape(shape)

    def _axis_kernel(self, axis: int, n_out: int, n_in: int, eta: float) -> Matrix:
        """Return exp(-C / η) along one axis, kept while η stays."""
        key = (axis, n_out, n_in, eta)
        if key not in self._kernels:
            if len(self._kernels) > 8:
                self._kernels.clear()
            steps = np.subtract.outer(np.arange(n_out), np.arange(n_in))
            self._kernels[key] = np.exp(-self._along(axis, steps) / eta)
        return self._kernels[key]

    @cached_property
    def _kernels(self) -> dict[tuple[Any, ...], Matrix]:
        return {}

    @cached_property
    def _padded_shape(self) -> tuple[int, int, int]:
        a, b, c = (*self.shape_a, 1, 1)[:3]
        return a, b, c

    @cached_property
    def _padded_spacing(self) -> Vector:
        return np.array([*self.spacing, 1.0, 1.0][:3])

    def _log(
        self, swap: bool, t: Vector, z: Vector, w: Vector, eta: float
    ) -> tuple[Vector, Vector, Vector]:
        """Apply exp(-C / η) to z exp(t); w comes back as the cost-weighted field."""
        shape = self.shape_a if swap else self.shape_b
        fields: tuple[Any, ...] = tuple(x.reshape(shape) for x in (t, z, w))
        kernel = kernels.l1_log if self.metric == "cityblock" else kernels.sq_log
        for axis, n_out, n_in in self._axes(swap):
            price = float(self._along(axis, 1))
            fields = _filtered(kernel, fields, axis, n_out, n_in, price / eta, price)
        t, z, w = (np.ravel(x) for x in fields)
        return t, z, w

    def _ctransform(self, swap: bool, x: Vector) -> Vector:
        """Return min_j C_ij - x_j."""
        field = x.reshape(self.shape_a if swap else self.shape_b)
        kernel = kernels.l1_max if self.metric == "cityblock" else kernels.sq_max
        for axis, n_out, n_in in self._axes(swap):
            (field,) = _filtered(kernel, (field,), axis, n_out, n_in, self.spacing[axis])
        return self.shift - np.ravel(field)

    # -- the geometry's questions --------------------------------------------------------------

    def lse_rows(self, g: Vector, eta: float, out: Vector | None = None) -> Vector:
        """Return log sum_j exp((g_j - C_ij) / η)."""
        return _into(out, self._lse(False, g, eta))

    def lse_cols(self, f: Vector, eta: float, out: Vector | None = None) -> Vector:
        """Return log sum_i exp((f_i - C_ij) / η)."""
        return _into(out, self._lse(True, f, eta))

    def log_marginals(self, f: Vector, g: Vector, eta: float) -> tuple[Vector, Vector, float]:
        """Return the logarithms of X 1, of Xᵀ 1 and of the mass of X."""
        log_r, log_c = self._lse(False, g, eta) + f / eta, self._lse(True, f, eta) + g / eta
        return log_r, log_c, log_total(log_r)

    def apply_rows(self, f: Vector, g: Vector, eta: float, v: Vector) -> Vector:
        """Return X v."""
        return self._apply(False, f, g, eta, v)

    def apply_cols(self, f: Vector, g: Vector, eta: float, u: Vector) -> Vector:
        """Return Xᵀ u."""
        return self._apply(True, g, f, eta, u)

    def _apply(self, swap: bool, out: Vector, into: Vector, eta: float, v: Vector) -> Vector:
        product = np.exp(out / eta + self._lse(swap, into, eta, np.maximum(v, 0)))
        if (v < 0).any():
            product -= np.exp(out / eta + self._lse(swap, into, eta, np.maximum(-v, 0)))
        return np.asarray(product)

    def price_rows(
        self, f: Vector, g: Vector, eta: float, v: Vector, d: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """Return X v, (C * X) v and C d, for v >= 0."""
        t, z, w = self._log(False, g / eta, v, np.zeros_like(v), eta)
        scale = np.exp((f - self.shift) / eta + t)
        mass = scale * z
        return mass, scale * w + self.shift * mass, self.matvec(d)

    def matvec(self, v: Vector) -> Vector:
        """Return C v, from one-dimensional marginals of v."""
        field = v.reshape(self.shape_b)
        out = np.full(self.shape_a, self.shift * float(v.sum()))
        for axis, n_out, n_in in self._axes(False):
            others = tuple(k for k in range(field.ndim) if k != axis)
            shape = [1] * field.ndim
            shape[axis] = n_out
            line = _moments(self.metric, field.sum(axis=others), n_out, n_in)
            out += self._along(axis, 1) * line.reshape(shape)
        return out.ravel()

    def ctransform_rows(self, g: Vector) -> Vector:
        """Return min_j C_ij - g_j."""
        return self._ctransform(False, g)

    def ctransform_cols(self, f: Vector) -> Vector:
        """Return min_i C_ij - f_i."""
        return self._ctransform(True, f)


def _filtered(
    kernel: Any, fields: tuple[Any, ...], axis: int, n_out: int, n_in: int, *args: float
) -> tuple[Any, ...]:
    """Run an axis kernel on fields of one shape; the axis goes from n_in to n_out cells.

    The last axis is moved to the front, so that kernels always run across it. The recursive
    filters need equal lengths: the shorter side is padded with empty cells.
    """
    empties = (-np.inf, 0.0, 0.0)[: len(fields)]
    is_recursive = kernel in (kernels.l1_log, kernels.l1_max)
    length = max(n_out, n_in) if is_recursive else n_in
    n_result = length if is_recursive else n_out
    is_last = axis == fields[0].ndim - 1 and axis > 0
    shape = list(fields[0].shape)
    arrays = []
    for field, empty in zip(fields, empties, strict=True):
        moved = np.moveaxis(field, axis, 0) if is_last else field
        at = 0 if is_last else axis
        if length > n_in:
            widths = [(0, 0)] * moved.ndim
            widths[at] = (0, length - n_in)
            moved = np.pad(moved, widths, constant_values=empty)
        outer, inner = math.prod(moved.shape[:at]), math.prod(moved.shape[at + 1 :])
        arrays.append(np.ascontiguousarray(moved).reshape(outer, length, inner))
    outer, _, inner = arrays[0].shape
    results = [np.empty((outer, n_result, inner)) for _ in arrays]
    n_lines = outer if outer > 1 else inner
    threads.share(kernel, n_lines, 8 * arrays[0].size, *arrays, *args, *results)
    shape[axis] = n_out
    out = []
    for result in results:
        kept = result[:, :n_out]
        if is_last:
            rest = [shape[-1], *shape[:-1]]
            out.append(np.moveaxis(kept.reshape(rest), 0, -1))
        else:
            out.append(kept.reshape(shape))
    return tuple(out)


def _multiplied(K: Matrix, field: Any, axis: int) -> Any:
    """Multiply a field by a matrix along one axis."""
    if axis == 0:
        rest = field.shape[1:]
        return (K @ field.reshape(field.shape[0], -1)).reshape(K.shape[0], *rest)
    if axis == field.ndim - 1:
        return field @ K.T
    return np.matmul(K, field)  # the middle of three


def _moments(metric: str, mass: Vector, n_out: int, n_in: int) -> Vector:
    """Return sum_j |i - j| mass_j, or of its square, for i = 0..n_out-1, in linear time."""
    i, j = np.arange(n_out, dtype=float), np.arange(n_in, dtype=float)
    if metric == "sqeuclidean":
        mean = (j @ mass) / (mass.sum() or 1.0)
        spread = ((j - mean) ** 2) @ mass
        return np.asarray((i - mean) ** 2 * mass.sum() + spread)
    below = np.concatenate([[0.0], np.cumsum(mass)])[np.minimum(np.arange(n_out) + 1, n_in)]
    first = np.concatenate([[0.0], np.cumsum(j * mass)])[np.minimum(np.arange(n_out) + 1, n_in)]
    return np.asarray(i * below - first + (j @ mass - first) - i * (mass.sum() - below))


def _into(out: Vector | None, result: Vector) -> Vector:
    if out is None:
        return result
    out[:] = result
    return out


def _shape(shape: Any, name: str) -> tuple[int, ...]:
    cells = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if not 1 <= len(cells) <= 3 or not all(int(c) == c and c > 0 for c in cells):
        raise InvalidProblem(
            f"{name} is {shape!r}; a grid has one to three axes of at least one cell each."
        )
    return tuple(int(c) for c in cells)
