"""Passes over the cost between two point clouds, computed on the fly in tiles.

``X`` is (n, d), ``Y`` is (d, m): coordinates of the targets run along memory, so that the cost
of one source to a tile of targets vectorises. Columns are the rows of the swapped clouds, so
only row passes exist. Kernels take float64 or float32 arrays; every kernel writes
``out[start:stop]``. No n x m array is formed: a tile of ``TILE`` costs lives in the
first-level cache.
"""

from __future__ import annotations

import numpy as np

from .arrays import empty
from .compiling import KERNEL, njit
from .dense import row_max
from .exp_log import exp, log
from .metrics import fill_costs
from .sums import dot, exp_sum, gibbs_dot, gibbs_price

TILE = 1024


@njit(**KERNEL)
def fill(x, Y, metric, shift, lo, hi, out):
    """Write out_j = cost of x and target j of the tile lo..hi, plus shift; ``metric`` is a key."""
    row = out[: hi - lo]
    fill_costs(metric, x, Y, row, lo, hi)
    if shift != 0:
        for j in range(row.size):
            row[j] += shift


@njit(**KERNEL)
def cost_rows(X, Y, metric, shift, out, start, stop):
    """Write out_ij = cost of source i and target j, for rows start..stop of a block."""
    m = Y.shape[1]
    for i in range(start, stop):
        for lo in range(0, m, TILE):
            hi = min(lo + TILE, m)
            fill(X[i], Y, metric, shift, lo, hi, out[i, lo:hi])


@njit(**KERNEL)
def pair_costs(X, Y, metric, shift, rows, cols, out, start, stop):
    """Write out_k = cost of source rows_k and target cols_k."""
    for k in range(start, stop):
        j = cols[k]
        fill(X[rows[k]], Y, metric, shift, j, j + 1, out[k : k + 1])


@njit(**KERNEL)
def lse_rows(X, Y, metric, shift, g, inv_eta, out, start, stop):
    """Write out_i = log sum_j exp((g_j - C_ij) / η)."""
    m = Y.shape[1]
    tile = empty(TILE, X.dtype)
    for i in range(start, stop):
        level = g.dtype.type(-np.inf)
        held = g.dtype.type(0)
        for lo in range(0, m, TILE):
            hi = min(lo + TILE, m)
            fill(X[i], Y, metric, shift, lo, hi, tile)
            row = tile[: hi - lo]
            best = row_max(row, g[lo:hi])
            if best == -np.inf:
                continue
            if best > level:
                if held > 0:
                    held *= exp((level - best) * inv_eta)
                level = best
            held += exp_sum(row, g[lo:hi], level, inv_eta)
        out[i] = level * inv_eta + log(held) if held > 0 else level


@njit(**KERNEL)
def price_rows(X, Y, metric, shift, f, g, inv_eta, v, d, mass, cost, shipped, start, stop):
    """Price row i of X = exp((f + g - C) / η) diag(v): its mass, its cost, and (C d)_i."""
    m = Y.shape[1]
    tile = empty(TILE, X.dtype)
    for i in range(start, stop):
        mass[i] = 0
        cost[i] = 0
        shipped[i] = 0
        for lo in range(0, m, TILE):
            hi = min(lo + TILE, m)
            fill(X[i], Y, metric, shift, lo, hi, tile)
            part = gibbs_price(tile[: hi - lo], g[lo:hi], v[lo:hi], d[lo:hi], f[i], inv_eta)
            mass[i] += part[0]
            cost[i] += part[1]
            shipped[i] += part[2]


@njit(**KERNEL)
def apply_rows(X, Y, metric, shift, f, g, inv_eta, v, out, start, stop):
    """Write out_i = sum_j exp((f_i + g_j - C_ij) / η) v_j."""
    m = Y.shape[1]
    tile = empty(TILE, X.dtype)
    for i in range(start, stop):
        out[i] = 0
        for lo in range(0, m, TILE):
            hi = min(lo + TILE, m)
            fill(X[i], Y, metric, shift, lo, hi, tile)
            out[i] += gibbs_dot(tile[: hi - lo], g[lo:hi], v[lo:hi], f[i], inv_eta)


@njit(**KERNEL)
def matvec(X, Y, metric, shift, v, out, start, stop):
    """Write out_i = sum_j C_ij v_j."""
    m = Y.shape[1]
    tile = empty(TILE, X.dtype)
    for i in range(start, stop):
        out[i] = 0
        for lo in range(0, m, TILE):
            hi = min(lo + TILE, m)
            fill(X[i], Y, metric, shift, lo, hi, tile)
            out[i] += dot(tile[: hi - lo], v[lo:hi])


@njit(**KERNEL)
def ctransform_rows(X, Y, metric, shift, g, sign, out, start, stop):
    """Write out_i = min_j sign C_ij - g_j; sign = -1 with g = 0 gives minus the largest cost."""
    m = Y.shape[1]
    tile = empty(TILE, X.dtype)
    for i in range(start, stop):
        best = -np.inf
        for lo in range(0, m, TILE):
            hi = min(lo + TILE, m)
            fill(X[i], Y, metric, shift, lo, hi, tile)
            row = tile[: hi - lo]
            if sign < 0:
                for j in range(row.size):
                    row[j] = -row[j]
            best = max(best, row_max(row, g[lo:hi]))
        out[i] = 0 - best


# -- many pairs of small clouds --------------------------------------------------------------------
#
# The costs of a batch of small problems, in one call.

#: Range of distances along an axis whose sums of squares float64 holds safely.
MIN_REACH, MAX_REACH = 2.0**-450, 2.0**450


@njit(**KERNEL)
def _is_ordinary(X, Y):
    """Tell whether float64 holds the squares of distances along each axis safely."""
    reach = 0.0
    for k in range(X.shape[1]):
        low, high = np.inf, -np.inf
        for i in range(X.shape[0]):
            low, high = min(low, X[i, k]), max(high, X[i, k])
        for j in range(Y.shape[0]):
            low, high = min(low, Y[j, k]), max(high, Y[j, k])
        reach = max(reach, high - low)
    return reach == 0 or MIN_REACH <= reach <= MAX_REACH


@njit(**KERNEL)
def cloud_costs(X, Y, metric, sizes, out):
    """Write the cost matrices of pairs of clouds one after the other.

    A row of ``sizes`` holds the numbers of points of both clouds and of their coordinates. Costs
    whose squares would under- or overflow are NaN.
    """
    x, y, at = 0, 0, 0
    for k in range(sizes.shape[0]):
        n, m, d = sizes[k]
        sources, targets = X[x : x + n * d].reshape(n, d), Y[y : y + m * d].reshape(m, d)
        costs = out[at : at + n * m].reshape(n, m)
        if _is_ordinary(sources, targets):
            along = empty((d, m))
            for j in range(m):
                for c in range(d):
                    along[c, j] = targets[j, c]
            cost_rows(sources, along, metric, 0.0, costs, 0, n)
        else:
            costs[:] = np.nan
        x, y, at = x + n * d, y + m * d, at + n * m
