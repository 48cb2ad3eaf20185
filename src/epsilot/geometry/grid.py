"""Costs on regular grids: every pass is linear, or nearly so, in the number of cells.

Both metrics are sums over the axes, so exp(-C / η) is a product of one-dimensional kernels that
are applied one axis at a time. For ``cityblock`` each kernel is a first-order recursive filter,
O(n); for ``sqeuclidean`` it is a small dense matrix, O(n^(1 + 1/d)). Passes run in the scaling
domain while its results stay in the range of floats, and otherwise in a log domain of
(level, mantissa) pairs.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .. import parallel
from .._types import FloatArray, Index, Matrix, Vector
from ..errors import InvalidProblem
from ..kernels import grid as kernels
from ..kernels.vectors import LN2, expm1, log
from ..metrics import GRID_METRICS, METRICS, NamedMetric
from ..wording import shown
from .axes import (
    decayed,
    filtered,
    geometric,
    is_lossless,
    joined,
    landed,
    lifted,
    moments,
    multiplied,
    pooled,
    split,
    stretched,
)
from .base import Geometry, HalvedGrid, Lattice, Places, PublicCall, log_total
from .coordinates import check_range, grid_shape, grid_spacing
from .dense import Dense
from .sweeps import Block
from .tree_index import Embedding
from .tuning import TUNING

#: The scaling domain holds exponents in (-700 - HEADROOM, 700 - HEADROOM) relative to the largest;
#: the same in bits.
HEADROOM, HEADROOM_BITS = 300.0, 433.0
#: Least sum that has lost no term to underflow; the second where factors exp(-C / η) may be out of
#: range although a field of exp(700 - HEADROOM) would bring their terms back.
MIN_SUM, MIN_LOSSY_SUM = 1e-290, 1e-118


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

    Examples
    --------
    >>> import epsilot
    >>> epsilot.Grid((2, 3)).row(0)  # from the first cell to all six
    array([0., 1., 2., 1., 2., 3.])
    """

    noun = "a grid"
    is_separable = True
    certificate_passes = 6  # the plan is priced in the log domain
    is_blockwise = False
    finest_eta = 2e-15  # exponents are split into whole powers of two, of at most 51 bits

    def __init__(
        self,
        shape_a: int | Sequence[int],
        shape_b: int | Sequence[int] | None = None,
        metric: str = GRID_METRICS[0],
        spacing: float | Sequence[float] = 1.0,
    ) -> None:
        self.shape_a = grid_shape(shape_a, "shape_a")
        self.shape_b = self.shape_a if shape_b is None else grid_shape(shape_b, "shape_b")
        if len(self.shape_a) != len(self.shape_b):
            raise InvalidProblem(
                f"the grids have {len(self.shape_a)} and {len(self.shape_b)} axes; both must have "
                "the same number."
            )
        if not isinstance(metric, str) or metric not in GRID_METRICS:
            raise InvalidProblem(
                f"metric is {shown(metric)}; a grid serves {' and '.join(map(repr, GRID_METRICS))} "
                "(use PointCloud on the cell centres for others)."
            )
        self.metric, self.spacing = metric, grid_spacing(spacing, len(self.shape_a))
        self.shape = math.prod(self.shape_a), math.prod(self.shape_b)
        self.shift = 0.0
        self.dimension = len(self.shape_a)
        self.has_rows = self.shape[0] * self.shape[1] <= TUNING.max_row_entries
        cells = (max(pair) - 1 for pair in zip(self.shape_a, self.shape_b, strict=True))
        largest = max(h * k for h, k in zip(self.spacing, cells, strict=True))
        what = f"cells with the spacing {shown(spacing)}"
        check_range(largest, METRICS[metric].power, len(self.spacing), what)

    def __repr__(self) -> str:
        return f"Grid({self.shape_a} to {self.shape_b}, {self.metric}, spacing {self.spacing})"

    @property
    def lattice(self) -> Lattice | None:
        """The cells, if the metric is l1: costs then add up along paths."""
        if self.metric != "cityblock":
            return None
        return Lattice(self.shape_a, self.shape_b, tuple(self.spacing))

    @property
    def places(self) -> Places | None:
        """The centres of the cells."""
        X, Y = (
            np.indices(shape).reshape(len(shape), -1).T * np.asarray(self.spacing)
            for shape in (self.shape_a, self.shape_b)
        )
        return Places(X, Y, self.metric)

    @property
    def cost_metric(self) -> NamedMetric:
        """The metric."""
        return NamedMetric(self.metric)

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest cost: of one cell to itself, and between opposite corners."""
        far = (max(a, b) - 1 for a, b in zip(self.shape_a, self.shape_b, strict=True))
        cost = sum(self._along(k, steps) for k, steps in enumerate(far))
        return self.shift, self.shift + float(cost)

    def _along(self, axis: int, steps: ArrayLike) -> Matrix:
        """Return the cost of moving a number of cells along an axis."""
        distance = self.spacing[axis] * np.abs(steps)
        return distance if self.metric == "cityblock" else distance * distance

    def ctransform_error(self, f: Vector, g: Vector) -> float:
        """Bound the error of f = min_j C_ij - g_j beyond the rounding of each difference.

        It is a few roundings per axis, or per cell of an axis. Potentials and costs that are
        multiples of one power of two are not rounded, unless an envelope of parabolas replaces
        the comparison of all pairs. In the l1 metric costs are lowered to such multiples.
        """
        size = float(np.abs(f).max() + np.abs(g).max()) + self.bounds[1]
        cells = sum(map(max, self.shape_a, self.shape_b))
        if self.metric == "cityblock" or self.compares_pairs:
            unit = self._unit(size)
            if unit is not None and all((x == unit * np.rint(x / unit)).all() for x in (f, g)):
                return 0.0
            cells = cells if self.metric == "cityblock" else len(self.shape_a)
        return float((8 + 4 * cells) * np.finfo(float).eps * size)

    @property
    def compares_pairs(self) -> bool:
        """Whether minima of squares compare all pairs along an axis: fast enough, and exact."""
        return self.metric == "sqeuclidean" and self.pass_entries <= TUNING.max_pair_entries

    def round_down(self, g: Vector) -> Vector:
        """Lower a potential to multiples of a power of two, so that c-transforms are exact."""
        unit = self._unit(2 * (float(np.abs(g).max()) + self.bounds[1]))
        return g if unit is None else unit * np.floor(g / unit)

    def _unit(self, size: float) -> float | None:
        """Return the least power of two whose multiples up to a size add up exactly.

        None if costs are not such multiples and cannot be lowered to them.
        """
        if not 0 < size < np.inf:
            return None
        power = math.frexp(size)[1] - 52  # float64 adds whole numbers of 52 bits exactly
        unit = math.ldexp(1.0, power)
        if self.metric == "cityblock":
            return unit if math.fmod(self.shift, unit) == 0 else None
        return unit if power <= -self._bits else None

    def _lowered_spacing(self, x: Vector) -> list[float]:
        """Return the spacing, lowered to multiples of the unit of a rounded potential.

        Minima of lowered costs are feasible potentials, and exact where mass does not move.
        """
        unit = self._unit(2 * (float(np.abs(x).max()) + self.bounds[1]))
        if unit is None or self.metric != "cityblock":
            return list(self.spacing)
        return [unit * math.floor(h / unit) for h in self.spacing]

    @cached_property
    def _bits(self) -> int:
        """Binary digits after the point that represent all costs."""
        spacing, shift = (
            max(x.as_integer_ratio()[1].bit_length() - 1 for x in numbers)
            for numbers in (self.spacing, [self.shift])
        )
        return max(int(METRICS[self.metric].degree) * spacing, shift)

    def rescaled(self, power: int) -> Self:
        """Return the geometry of 2**power C."""
        power //= int(METRICS[self.metric].degree)
        return type(self)(
            self.shape_a, self.shape_b, self.metric, [math.ldexp(h, power) for h in self.spacing]
        ).shifted(math.ldexp(self.shift, power))

    def shifted(self, delta: float) -> Self:
        """Return the geometry of C + delta."""
        if delta == 0:
            return self
        out = type(self)(self.shape_a, self.shape_b, self.metric, self.spacing)
        out.shift = self.shift + delta
        return out

    def restricted(self, rows: Index, cols: Index) -> Dense | None:
        """Return the stored costs between some cells, if a pass over them is as fast."""
        if rows.size * cols.size > min(
            TUNING.stored_per_pass_entry * self.pass_entries, TUNING.max_kept_entries
        ):
            return None
        C = self.entries(np.repeat(rows, cols.size), np.tile(cols, rows.size))
        points = self.embedding if self.metric == "sqeuclidean" else None
        return Dense.part(
            C.reshape(rows.size, cols.size),
            self.lattice and self.lattice.restricted(rows, cols),
            points and points._replace(X=points.X[rows], Y=points.Y[cols]),
        )

    def halved(self) -> HalvedGrid | None:
        """Return the cost between cells twice as long if both sides are one grid, else None."""
        if self.shape_a != self.shape_b:
            return None
        fine = self.shape_a
        shape = tuple(-(-n // 2) for n in fine)
        coarse = type(self)(shape, shape, self.metric, [2 * h for h in self.spacing])
        return HalvedGrid(
            coarse.shifted(self.shift),
            lambda p: np.ravel(pooled(p.reshape(fine))),
            lambda g: np.ravel(stretched(g.reshape(shape), fine)),
        )

    def call(self) -> PublicCall:
        """Return the call on images, which are the weights."""
        keywords = {"metric": repr(self.metric)}
        spacing = set(self.spacing)
        if spacing != {1.0}:
            steps = tuple(map(float, self.spacing))
            keywords["spacing"] = repr(steps[0] if len(spacing) == 1 else steps)
        return PublicCall("solve_grid", ("A", "B"), keywords, has_weights=False)

    @cached_property
    def pass_entries(self) -> int:
        """Entries that one pass visits: one, or one line, per cell and axis."""
        pairs = list(zip(self.shape_a, self.shape_b, strict=True))
        lengths = [1 if self.metric == "cityblock" else max(pair) for pair in pairs]
        return max(self.shape) * sum(lengths)

    @property
    def embedding(self) -> Embedding:
        """The centres of the cells."""
        X, Y = (
            np.stack(np.unravel_index(np.arange(math.prod(shape)), shape), axis=1) * self.spacing
            for shape in (self.shape_a, self.shape_b)
        )
        return Embedding(np.asarray(X), np.asarray(Y), METRICS[self.metric].key, self.shift)

    def miniature(self) -> Self:
        """Return a grid of two cells along every axis."""
        return type(self)((2,) * len(self.shape_a), None, self.metric, self.spacing)

    def digest(self) -> str:
        """Return a hash of shapes, metric, spacing and shift."""
        return hashlib.sha256(f"{self!r} {self.shift!r}".encode()).hexdigest()[:16]

    def entries(self, rows: Index, cols: Index) -> Vector:
        """Compute the costs of single pairs of cells."""
        out = np.full(rows.size, self.shift)
        sources, targets = (
            np.unravel_index(rows, self.shape_a),
            np.unravel_index(cols, self.shape_b),
        )
        for axis, (i, j) in enumerate(zip(sources, targets, strict=True)):
            out += self._along(axis, i - j)
        return out

    def single_blocks(self, unit: float) -> Iterator[Block]:
        """Yield blocks of C / unit in float32; keep those of small grids for the next call."""
        if self.shape[0] * self.shape[1] > TUNING.max_kept_entries:
            yield from super().single_blocks(unit)
            return
        if unit not in self._singles:
            self._singles.clear()
            self._singles[unit] = (self.matrix() * (1 / unit)).astype(np.float32)
        yield 0, self.shape[0], self._singles[unit]

    @cached_property
    def _singles(self) -> dict[float, FloatArray]:
        return {}

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
        top = float(x.max())
        if top == -math.inf:
            return np.full(self.shape[1] if swap else self.shape[0], -np.inf)
        result = self._scaled_lse(swap, x, weight, top - HEADROOM * eta, eta)
        if result is not None:
            return result
        m, k = split(x, 0.0, eta)
        t, total, _ = self._log(swap, k, weight * m, eta)
        return np.asarray(t * LN2 + log(total) - self.shift / eta)

    @cached_property
    def _ones(self) -> tuple[Vector, Vector]:
        return np.ones(self.shape[1]), np.ones(self.shape[0])

    def _scaled_lse(
        self, swap: bool, x: Vector, weight: Vector, level: float, eta: float
    ) -> Vector | None:
        """Return log sum_j weight_j exp((x_j - C_ij) / η), or None out of range."""
        shift = (level - self.shift) / eta
        if self._is_one_call:
            out = np.empty(x.size)
            least = kernels.l1_lse(x, weight, *self._decays(eta), level, 1 / eta, shift, out)
            return out if least > self._smallest_sum(eta) else None
        field = np.empty(x.size)
        parallel.share(kernels.exp_into, x.size, x.size, x, level, 1 / eta, weight, field)
        sums = self._scaled(swap, field, eta)
        if sums is None:
            return None
        parallel.share(kernels.log_into, sums.size, sums.size, sums, shift, sums)
        return sums

    @cached_property
    def _is_one_call(self) -> bool:
        """Whether all axes are filtered in one call."""
        is_even = self.metric == "cityblock" and self.shape_a == self.shape_b
        return is_even and self.shape[0] <= TUNING.max_one_call_cells

    def _scaled(self, swap: bool, field: Vector, eta: float) -> Vector | None:
        """Return sum_j exp(-C_ij / η) field_j, or None out of range; may overwrite the field."""
        if self._is_one_call:
            least = kernels.l1_axes(field, *self._decays(eta))
            return field if least > self._smallest_sum(eta) else None
        cells = field.reshape(self.shape_a if swap else self.shape_b)
        for axis, n_out, n_in in self._axes(swap):
            if self.metric == "cityblock":
                _, rhos, keeps = self._decays(eta)
                cells = decayed(cells, axis, n_out, n_in, float(rhos[axis]), float(keeps[axis]))
            elif max(n_out, n_in) > TUNING.max_kernel_axis:
                return None
            else:
                before = cells
                cells = multiplied(self._axis_kernel(axis, n_out, n_in, eta), cells, axis)
                if self._has_lost(before, cells, axis, eta):
                    return None
        sums = np.ravel(cells)
        return sums if sums.min() > self._smallest_sum(eta) else None

    def _scaled_price(self, field: Vector, eta: float) -> tuple[Vector, Vector] | None:
        """Return the sums of ``_scaled`` and their costs, or None out of range."""
        z = field.reshape(self.shape_b)
        w = np.zeros_like(z)
        for axis, n_out, n_in in self._axes(False):
            if self.metric == "cityblock":
                h, rho = self.spacing[axis], float(self._decays(eta)[1][axis])
                z, w = filtered(kernels.l1_price, (z, w), axis, n_out, n_in, rho, h)
            elif max(n_out, n_in) > TUNING.max_kernel_axis:
                return None
            else:
                K = self._axis_kernel(axis, n_out, n_in, eta)
                steps = np.subtract.outer(np.arange(n_out), np.arange(n_in))
                w = multiplied(K, w, axis) + multiplied(K * self._along(axis, steps), z, axis)
                before, z = z, multiplied(K, z, axis)
                if self._has_lost(before, z, axis, eta):
                    return None
        sums = np.ravel(z)
        return (sums, np.ravel(w)) if sums.min() > self._smallest_sum(eta) else None

    def _smallest_sum(self, eta: float) -> float:
        """Return the least sum that has lost no significant term."""
        is_lost = self.metric == "cityblock" and max(self.spacing) > 700 * eta
        return MIN_LOSSY_SUM if is_lost else MIN_SUM

    def _has_lost(self, before: Matrix, after: Matrix, axis: int, eta: float) -> bool:
        """Tell whether factors exp(-C / η) out of range may have changed a sum along an axis."""
        reach = int(math.sqrt(700 * eta) / self.spacing[axis])
        if max(before.shape[axis], after.shape[axis]) - 1 <= reach:
            return False
        return after.min() < MIN_LOSSY_SUM and not is_lossless(before, after, axis, reach)

    def _axis_kernel(self, axis: int, n_out: int, n_in: int, eta: float) -> Matrix:
        """Return exp(-C / η) along one axis, cached while η is the same."""
        key = (axis, n_out, n_in, eta)
        kernel: Matrix | None = self._kernels.get(key)
        if kernel is None:
            steps = np.abs(np.subtract.outer(np.arange(n_out), np.arange(n_in)))
            kernel = joined(*self._powers(axis, eta))[steps]
            self._keep(key, kernel)
        return kernel

    def _keep(self, key: Hashable, value: object) -> None:
        if len(self._kernels) > 16:
            self._kernels.clear()
        self._kernels[key] = value

    def _powers(self, axis: int, eta: float) -> tuple[Vector, Vector]:
        """Return exp(-C / η) for 0, 1, ... steps along an axis, as factors and powers of two."""
        found: tuple[Vector, Vector] | None = self._kernels.get((axis, eta))
        if found is None:
            length = max(self.shape_a[axis], self.shape_b[axis])
            if self.metric == "cityblock":
                found = geometric(*self._step(axis, eta), length)
            else:
                found = split(-self._along(axis, np.arange(length)), 0.0, eta)
            self._keep((axis, eta), found)
        return found

    def _step(self, axis: int, eta: float) -> tuple[float, float]:
        """Return exp(-C / η) of one step along an axis, as a factor and a power of two."""
        (m,), (k,) = split(-np.array([self._along(axis, 1)]), 0.0, eta)
        return float(m), float(k)

    @cached_property
    def _kernels(self) -> dict[Hashable, Any]:
        return {}

    def _decays(self, eta: float) -> tuple[tuple[int, ...], Vector, Vector]:
        """Return the shape of three axes, rho and 1 - rho² of each, cached while η is the same."""
        found: tuple[tuple[int, ...], Vector, Vector] | None = self._kernels.get(eta)
        if found is None:
            steps = np.array([*self.spacing, 1.0, 1.0][:3])
            m, k = split(-steps, 0.0, eta)
            rhos = joined(m, k)
            found = (*self.shape_a, 1, 1)[:3], rhos, -expm1(-2 * steps / eta)
            self._kernels.clear()
            self._kernels[eta] = found
        return found

    def _log(self, swap: bool, k: Vector, z: Vector, eta: float) -> tuple[Vector, Vector, Vector]:
        """Apply exp(-C / η) to z 2**k; return level, factor and cost-weighted factor."""
        shape = self.shape_a if swap else self.shape_b
        levels = np.where(z > 0, k, -np.inf)  # empty cells must not raise the level
        fields: tuple[Matrix, ...] = tuple(x.reshape(shape) for x in (levels, z, np.zeros_like(z)))
        kernel = kernels.l1_log if self.metric == "cityblock" else kernels.sq_log
        for axis, n_out, n_in in self._axes(swap):
            price = float(self._along(axis, 1))
            powers = (self._step if self.metric == "cityblock" else self._powers)(axis, eta)
            fields = filtered(kernel, fields, axis, n_out, n_in, *powers, price)
        t, z, w = (np.ravel(x) for x in fields)
        return t, z, w

    def _ctransform(self, swap: bool, x: Vector) -> Vector:
        """Return min_j C_ij - x_j."""
        field = x.reshape(self.shape_a if swap else self.shape_b)
        kernel = kernels.l1_max
        if self.metric == "sqeuclidean":
            kernel = kernels.sq_pairs if self.compares_pairs else kernels.sq_max
        spacing = self._lowered_spacing(x)
        for axis, n_out, n_in in self._axes(swap):
            (field,) = filtered(kernel, (field,), axis, n_out, n_in, spacing[axis])
        return self.shift - np.ravel(field)

    # -- the passes of a geometry --------------------------------------------------------------

    def lse_rows(self, g: Vector, eta: float) -> Vector:
        """Return log sum_j exp((g_j - C_ij) / η)."""
        return self._lse(False, g, eta)

    def lse_cols(self, f: Vector, eta: float) -> Vector:
        """Return log sum_i exp((f_i - C_ij) / η)."""
        return self._lse(True, f, eta)

    def log_marginals(self, f: Vector, g: Vector, eta: float) -> tuple[Vector, Vector, float]:
        """Return the logarithms of X 1, of Xᵀ 1 and of the mass of X."""
        log_r, log_c = self._lse(False, g, eta) + f / eta, self._lse(True, f, eta) + g / eta
        return log_r, log_c, log_total(log_r)

    def marginals(self, f: Vector, g: Vector, eta: float) -> tuple[Vector, Vector]:
        """Return X 1 and Xᵀ 1."""
        ones, others = self._ones
        return self.apply_rows(f, g, eta, ones), self.apply_cols(f, g, eta, others)

    def apply_rows(self, f: Vector, g: Vector, eta: float, v: Vector) -> Vector:
        """Return X v."""
        return self._apply(False, f, g, eta, v)

    def apply_cols(self, f: Vector, g: Vector, eta: float, u: Vector) -> Vector:
        """Return Xᵀ u."""
        return self._apply(True, g, f, eta, u)

    def _apply(self, swap: bool, out: Vector, into: Vector, eta: float, v: Vector) -> Vector:
        if v.min() < 0:
            above = self._apply(swap, out, into, eta, np.maximum(v, 0))
            return above - self._apply(swap, out, into, eta, np.maximum(-v, 0))
        m, k = split(into, 0.0, eta)
        level = float(k.max()) - HEADROOM_BITS
        z = self._scaled(swap, lifted(m, k, level, v), eta)
        if z is not None:
            return landed(out, self.shift, eta, level, z)[0]
        t, z, _ = self._log(swap, k, m * v, eta)
        return landed(out, self.shift, eta, t, z)[0]

    def price_rows(
        self, f: Vector, g: Vector, eta: float, v: Vector, d: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """Return X v, (C * X) v and C d, for v >= 0."""
        m, k = split(g, 0.0, eta)
        level = float(k.max()) - HEADROOM_BITS
        priced = self._scaled_price(lifted(m, k, level, v), eta)
        if priced is not None:
            mass, cost = landed(f, self.shift, eta, level, *priced)
        else:
            t, z, w = self._log(False, k, m * v, eta)
            mass, cost = landed(f, self.shift, eta, t, z, w)
        return mass, cost + self.shift * mass, self.matvec(d)

    def gibbs(self, f: Vector, g: Vector, eta: float, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of X, as products of the factors that the passes sum."""
        (a, row_power), (b, col_power) = split(f[start:stop], self.shift, eta), split(g, 0.0, eta)
        X: Matrix = np.multiply.outer(a, b).reshape(stop - start, *self.shape_b)
        power: Matrix = np.add.outer(row_power, col_power).reshape(X.shape)
        cells = np.unravel_index(np.arange(start, stop), self.shape_a)
        for axis, length in enumerate(self.shape_b):
            steps = np.abs(cells[axis][:, None] - np.arange(length))
            shape = [1] * X.ndim
            shape[0], shape[axis + 1] = steps.shape
            factors, powers = (x[steps].reshape(shape) for x in self._powers(axis, eta))
            X *= factors
            power += powers
        X, power = X.ravel(), power.ravel()
        parallel.share(kernels.land, X.size, X.size, np.ones_like(X), power, 0.0, X)
        return np.asarray(X.reshape(stop - start, self.shape[1]))

    def matvec(self, v: Vector) -> Vector:
        """Return C v, from one-dimensional marginals of v."""
        field = v.reshape(self.shape_b)
        out = np.full(self.shape_a, self.shift * float(v.sum()))
        for axis, n_out, _ in self._axes(False):
            others = tuple(k for k in range(field.ndim) if k != axis)
            shape = [1] * field.ndim
            shape[axis] = n_out
            line = moments(self.metric, field.sum(axis=others), n_out)
            out += self._along(axis, 1) * line.reshape(shape)
        return out.ravel()

    def ctransform_rows(self, g: Vector) -> Vector:
        """Return min_j C_ij - g_j."""
        return self._ctransform(False, g)

    def ctransform_cols(self, f: Vector) -> Vector:
        """Return min_i C_ij - f_i."""
        return self._ctransform(True, f)
