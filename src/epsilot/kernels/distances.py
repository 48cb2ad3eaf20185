r"""Squared distances between points of many coordinates, by inner products.

.. math:: |x_i - y_j|^2 = |x_i|^2 + |y_j|^2 - 2 \langle x_i, y_j \rangle

Points are taken relative to the first of x, so that clouds far from the origin lose no digits: no
point of x is farther from it than twice the largest distance, no point of y than once, so that
every square is within rounding of the largest. Numbers of float32 become float64 as they are
copied; products are those of :mod:`.tiles`, in an order that is written down.
"""

from __future__ import annotations

import numpy as np

from .. import parallel
from .._types import Array, Matrix
from .compiling import njit
from .dense import SUM
from .sums import dot
from .tiles import DEPTH, ROWS, WIDTH, empty_panels, multiply


@njit(**SUM)
def _shift(point, origin, out):
    """Write coordinates of a point relative to another; return the sum of their squares."""
    for k in range(out.size):
        out[k] = np.float64(point[k]) - np.float64(origin[k])
    return dot(out, out)


@njit(**SUM)
def _squares(x, y, out, start, stop):
    """out_ij = |x_i - y_j|², on rows ``start:stop``."""
    (n_terms, m), most = (x.shape[1], y.shape[0]), min(DEPTH, x.shape[1])
    rows, panels = np.empty((ROWS, most)), empty_panels(m, most)
    moved = np.empty(most)
    own, others = np.zeros(stop - start), np.zeros(m)
    out[start:stop] = 0.0
    for k0 in range(0, n_terms, DEPTH):
        depth = min(DEPTH, n_terms - k0)
        here = slice(k0, k0 + depth)
        origin = x[0, here]
        for j in range(m):
            others[j] += _shift(y[j, here], origin, moved[:depth])
            panel, c = panels[j // WIDTH], j % WIDTH
            for k in range(depth):
                panel[k, c] = moved[k]
        for first in range(start, stop, ROWS):
            height = min(ROWS, stop - first)
            for i in range(height):
                own[first - start + i] += _shift(x[first + i, here], origin, rows[i, :depth])
            multiply(rows, 0, height, 0, panels, depth, out, first, 0, m)
    for i in range(start, stop):
        for j in range(m):
            out[i, j] = max((own[i - start] + others[j]) - 2 * out[i, j], 0.0)


def squared_distances(x: Array, y: Array, out: Matrix) -> None:
    """Write the squared distances of points (n, d) and (m, d), of float32 or float64."""
    x, y = (_as_read(z) for z in (x, y))
    parallel.share(_squares, len(x), out.size * x.shape[1] // 16, x, y, out)


def _as_read(x: Array) -> Array:
    """Return points in a form that kernels are compiled for."""
    return np.ascontiguousarray(x, x.dtype if x.dtype == np.float32 else np.float64)
