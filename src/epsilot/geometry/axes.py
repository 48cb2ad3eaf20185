"""Separable operations on a field of a grid, one axis at a time; fields have one to three axes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .. import parallel
from .._types import Matrix, Vector
from ..kernels import grid as kernels
from ..kernels.products import product
from ..kernels.vectors import dot

#: exp(-700), below which factors of a kernel are lost.
FAINTEST = 9.85967654375977e-305


def filtered(
    kernel: Callable[..., None],
    fields: tuple[Matrix, ...],
    axis: int,
    n_out: int,
    n_in: int,
    *args: float | Vector,
) -> tuple[Matrix, ...]:
    """Run an axis kernel on fields of one shape; the axis goes from n_in to n_out cells.

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
        lines = field.reshape(inner, n_in).T if is_last else field
        if length > n_in:
            empty = -np.inf if k == 0 and kernel is not kernels.l1_price else 0.0
            lines = lines.reshape(outer, n_in, inner)
            lines = np.pad(lines, [(0, 0), (0, length - n_in), (0, 0)], constant_values=empty)
        arrays.append(np.ascontiguousarray(lines).reshape(outer, length, inner))
    n_result = length if is_recursive else n_out
    results = [np.empty((outer, n_result, inner)) for _ in arrays]
    n_lines = outer if outer > 1 else inner
    parallel.share(kernel, n_lines, 8 * arrays[0].size, *arrays, *args, *results)
    after = (*shape[:axis], n_out, *shape[axis + 1 :])
    if is_last:
        return tuple(result[0, :n_out].T.reshape(after) for result in results)
    return tuple(result[:, :n_out].reshape(after) for result in results)


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
    """Tell whether terms from beyond ``reach`` cells, if their factors are lost, do not matter.

    Such factors are below exp(-700); the product must be large against what they could add.
    """
    x, y = np.moveaxis(field, axis, 0), np.moveaxis(product, axis, 0)
    before = np.arange(len(y)) - reach - 1  # the last cell beyond reach, seen from either end
    far = np.zeros(y.shape)
    for ordered, at in ((x, before), (x[::-1], before[::-1] + len(x) - len(y))):
        seen = at >= 0
        far[seen] += np.cumsum(ordered, axis=0)[np.minimum(at[seen], len(x) - 1)]
    return bool((far * FAINTEST <= 1e-14 * y).all())


def moments(metric: str, mass: Vector, n_out: int) -> Vector:
    """Return sum_j |i - j| mass_j, or of its square, for i = 0..n_out-1, in linear time."""
    if metric == "cityblock":
        (_, cost) = filtered(
            kernels.l1_price, (mass, np.zeros_like(mass)), 0, n_out, mass.size, 1.0, 1.0
        )
        return np.asarray(cost)
    i, j = np.arange(n_out, dtype=float), np.arange(mass.size, dtype=float)
    size = np.abs(mass)
    i, j = (x - dot(j, size) / (size.sum() or 1.0) for x in (i, j))  # of any sign, never far off
    return np.asarray(i * (i * mass.sum() - 2 * dot(j, mass)) + dot(j * j, mass))
