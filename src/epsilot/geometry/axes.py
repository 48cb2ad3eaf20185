"""Separable operations on fields of one to three axes, one axis at a time."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

import numpy as np

from .. import parallel
from .._types import Matrix, Vector
from ..kernels import grid as kernels
from ..kernels.products import product
from ..kernels.vectors import dot
from .tuning import TUNING

_held = threading.local()


def filtered(
    kernel: Callable[..., None],
    fields: tuple[Matrix, ...],
    axis: int,
    n_out: int,
    n_in: int,
    *args: float | Vector,
) -> tuple[Matrix, ...]:
    """Run an axis kernel on fields of one shape, from n_in to n_out cells along the axis.

    The last axis is moved to the front, so that kernels always run across it. The recursive
    filters need equal lengths: the shorter side is padded with empty cells.
    """
    is_recursive = kernel in (kernels.l1_log, kernels.l1_max, kernels.l1_price)
    length = max(n_out, n_in) if is_recursive else n_in
    shape = fields[0].shape
    is_last = axis == len(shape) - 1 and axis > 0
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    if is_last:
        outer, inner = 1, outer
    arrays = []
    for k, field in enumerate(fields):
        lines = (
            _transposed(field.reshape(inner, n_in), _scratch(f"in {k}", n_in, inner))
            if is_last
            else field
        )
        if length > n_in:
            empty = -np.inf if k == 0 and kernel is not kernels.l1_price else 0.0
            lines = lines.reshape(outer, n_in, inner)
            lines = np.pad(lines, [(0, 0), (0, length - n_in), (0, 0)], constant_values=empty)
        arrays.append(np.ascontiguousarray(lines).reshape(outer, length, inner))
    n_result = length if is_recursive else n_out
    results = [
        _scratch(f"out {k}", n_result, inner)[None]
        if is_last
        else np.empty((outer, n_result, inner))
        for k in range(len(fields))
    ]
    n_lines = outer if outer > 1 else inner
    parallel.share(kernel, n_lines, 8 * arrays[0].size, *arrays, *args, *results)
    after = (*shape[:axis], n_out, *shape[axis + 1 :])
    if is_last:
        moved = (_transposed(x[0, :n_out], np.empty((inner, n_out))) for x in results)
        return tuple(x.reshape(after) for x in moved)
    return tuple(result[:, :n_out].reshape(after) for result in results)


def _transposed(x: Matrix, out: Matrix) -> Matrix:
    """Write the transpose of a matrix to ``out`` in tiles, faster than NumPy's copy."""
    parallel.share(kernels.transpose, x.shape[0], x.size, x, out)
    return out


def _scratch(name: str, n: int, m: int) -> Matrix:
    """Return a scratch array of this thread, valid until the next pass.

    New memory costs more than a pass, because the system clears every page of it.
    """
    if n * m > TUNING.max_scratch_cells:
        return np.empty((n, m))
    kept: dict[str, Vector] = _held.__dict__
    if name not in kept or kept[name].size < n * m:
        kept[name] = np.empty(n * m)
    return kept[name][: n * m].reshape(n, m)


def decayed(cells: Matrix, axis: int, n_out: int, n_in: int, rho: float, keep: float) -> Matrix:
    """Filter a field along one axis by rho^|i - j|, in place where lengths agree.

    ``keep`` is 1 - rho².
    """
    if n_out > n_in:
        widths = [(0, n_out - n_in if k == axis else 0) for k in range(cells.ndim)]
        cells = np.pad(cells, widths)
    outer, inner = math.prod(cells.shape[:axis]), math.prod(cells.shape[axis + 1 :])
    lines = np.ascontiguousarray(cells).reshape(outer, cells.shape[axis], inner)
    n_lines = outer if outer > 1 else inner
    parallel.share(kernels.l1_scaling, n_lines, 2 * lines.size, lines, rho, keep)
    return lines[:, :n_out].reshape(*cells.shape[:axis], n_out, *cells.shape[axis + 1 :])


def multiplied(K: Matrix, field: Matrix, axis: int) -> Matrix:
    """Multiply a field by a matrix along one axis."""
    if axis == 0:
        rest = field.shape[1:]
        return product(K, field.reshape(field.shape[0], -1)).reshape(K.shape[0], *rest)
    if axis == field.ndim - 1:
        lines = field.reshape(-1, field.shape[-1])
        return product(lines, K.T).reshape(*field.shape[:-1], K.shape[0])
    return np.stack([product(K, layer) for layer in field])  # the middle of three


def is_lossless(field: Matrix, product: Matrix, axis: int, reach: int) -> bool:
    """Tell whether terms from beyond ``reach`` cells are negligible in a product.

    Their factors are below exp(-700) and may have underflowed to 0.
    """
    x, y = np.moveaxis(field, axis, 0), np.moveaxis(product, axis, 0)
    before = np.arange(len(y)) - reach - 1  # the last cell beyond reach, from either end
    far = np.zeros(y.shape)
    for ordered, at in ((x, before), (x[::-1], before[::-1] + len(x) - len(y))):
        seen = at >= 0
        far[seen] += np.cumsum(ordered, axis=0)[np.minimum(at[seen], len(x) - 1)]
    # Factors of a kernel below exp(-700) may underflow.
    return bool((far * 9.85967654375977e-305 <= 1e-14 * y).all())


def moments(metric: str, mass: Vector, n_out: int) -> Vector:
    """Return sum_j |i - j| mass_j, or of its square, for i = 0..n_out-1, in linear time."""
    if metric == "cityblock":
        (_, cost) = filtered(
            kernels.l1_price, (mass, np.zeros_like(mass)), 0, n_out, mass.size, 1.0, 1.0
        )
        return np.asarray(cost)
    i, j = np.arange(n_out, dtype=float), np.arange(mass.size, dtype=float)
    size = np.abs(mass)
    i, j = (
        x - dot(j, size) / (size.sum() or 1.0) for x in (i, j)
    )  # centred: masses may have any sign
    return np.asarray(i * (i * mass.sum() - 2 * dot(j, mass)) + dot(j * j, mass))


def pooled(field: Matrix) -> Matrix:
    """Return the sums of pairs of neighbouring cells along every axis."""
    for axis, n in enumerate(field.shape):
        odd = [(0, n % 2 if k == axis else 0) for k in range(field.ndim)]
        field = np.pad(field, odd)
        even, after = (_part(field, axis, slice(i, None, 2)) for i in (0, 1))
        field = even + after
    return field


def stretched(field: Matrix, shape: tuple[int, ...]) -> Matrix:
    """Interpolate a field linearly to cells half as long along every axis, cut to a shape."""
    for axis, n in enumerate(shape):
        m = field.shape[axis]
        before = field.take(np.maximum(np.arange(m) - 1, 0), axis)
        after = field.take(np.minimum(np.arange(m) + 1, m - 1), axis)
        pair = np.stack([0.75 * field + 0.25 * before, 0.75 * field + 0.25 * after], axis + 1)
        doubled = pair.reshape(*field.shape[:axis], 2 * m, *field.shape[axis + 1 :])
        field = _part(doubled, axis, slice(0, n))
    return field


def _part(field: Matrix, axis: int, part: slice) -> Matrix:
    """Return a part of a field along one axis."""
    places = [slice(None)] * field.ndim
    places[axis] = part
    return field[tuple(places)]


# -- exponentials as a factor and a power of two ---------------------------------------------------
#
# exp(x / η) = m 2**k may be far out of the range of floats. Products keep the factor m and the
# whole power k apart, and multiplying by powers of two is exact.


def split(x: Vector, shift: float, eta: float) -> tuple[Vector, Vector]:
    """Return factors m and whole powers k with exp((x - shift) / η) = m 2**k."""
    m, k = np.empty(x.size), np.empty(x.size)
    parallel.share(kernels.split, x.size, x.size, x, shift, 1 / eta, m, k)
    return m, k


def lifted(m: Vector, k: Vector, level: float, v: Vector) -> Vector:
    """Return v m 2**(k - level)."""
    out = np.zeros(v.size)
    if level == -math.inf:
        return out
    parallel.share(kernels.lift, v.size, v.size, m, k, level, v, out)
    return out


def geometric(m: float, k: float, length: int) -> tuple[Vector, Vector]:
    """Return the powers 0, 1, ... of m 2**k as factors and whole powers of two, by doubling."""
    factors, powers = np.ones(length), np.zeros(length)
    done = 1
    while done < length:
        end = min(2 * done, length)
        factors[done:end], extra = np.frexp(factors[: end - done] * m)
        powers[done:end] = powers[: end - done] + k + extra
        (m,), (more,) = np.frexp([m * m])
        k, done = 2 * k + more, end
    return factors, powers


def landed(
    f: Vector, shift: float, eta: float, level: float | Vector, *fields: Vector
) -> list[Vector]:
    """Return exp((f - shift) / η) 2**level times the fields."""
    m, k = split(f, shift, eta)
    k += level
    for x in fields:
        parallel.share(kernels.land, x.size, x.size, m, k, 0.0, x)
    return list(fields)


def joined(m: Vector, k: Vector) -> Vector:
    """Return m 2**k, 0 below the range of floats."""
    return np.asarray(np.ldexp(m, np.maximum(k, -2000.0).astype(np.int32)))
