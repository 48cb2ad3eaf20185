"""Minima over columns that float32 finds and float64 decides.

Costs are computed in float32, twice as many at a time; columns whose value is within what that may
be off are computed again. What is returned is the minimum of the float64 values, bit for bit.
"""

from __future__ import annotations

import numpy as np

from .compiling import njit
from .dense import SUM, row_max
from .points import fill
from .sinkhorn32 import LANES, _bar, _group_minima

#: Columns that are computed again together.
TILE = 256


@njit(**SUM)
def ctransform_rows(X, Y, metric, shift, g, rough_x, rough_y, rough_g, error, out, start, stop):
    """out_i = min_j C_ij - g_j; ``error`` is what a rough value may be off."""
    m = Y.shape[1]
    rough, costs = np.empty(TILE, rough_x.dtype), np.empty(TILE)
    bests = np.empty(-(-m // TILE), rough_x.dtype)
    zero = rough_x.dtype.type(0)
    for i in range(start, stop):
        for t in range(bests.size):
            lo, hi = TILE * t, min(TILE * (t + 1), m)
            fill(rough_x[i], rough_y, metric, zero, lo, hi, rough)
            bests[t] = row_max(rough[: hi - lo], rough_g[lo:hi])
        bar, best = np.float64(bests.max()) - 2 * error, -np.inf
        for t in range(bests.size):
            if bests[t] >= bar:
                lo, hi = TILE * t, min(TILE * (t + 1), m)
                fill(X[i], Y, metric, shift, lo, hi, costs)
                best = max(best, row_max(costs[: hi - lo], g[lo:hi]))
        out[i] = 0 - best


@njit(**SUM)
def least_columns(
    X, Y, metric, shift, prices, rows, rough_x, rough_y, rough_g, error, cols, costs, thresholds,
    start, stop,
):  # fmt: skip
    """Write the k least columns of the named rows by cost + price, in rising order.

    ``thresholds`` gets the k-th value, below which no other column is, or +inf if there is none.
    At least k groups of columns have a rough minimum up to the bar, so that k values are at most
    the bar + error, and whatever is among the k least has a rough value up to the bar + 2 error.
    """
    m, k = Y.shape[1], cols.shape[1]
    rough, one = np.empty(m, rough_x.dtype), np.empty(1)
    minima = np.empty(min(m, max(LANES, 8 * k)), rough_x.dtype)
    values, zero = np.empty(k), rough_x.dtype.type(0)
    for at in range(start, stop):
        i = rows[at]
        values[:] = np.inf
        for lo in range(0, m, TILE):
            hi = min(lo + TILE, m)
            fill(rough_x[i], rough_y, metric, zero, lo, hi, rough[lo:hi])
        _group_minima(rough, rough_g, minima)
        bar = np.float64(_bar(minima, k)) + 2 * error
        for c in range(minima.size):
            if not minima[c] <= bar:
                continue
            for j in range(c, m, minima.size):
                if not rough[j] - rough_g[j] <= bar:
                    continue
                fill(X[i], Y, metric, shift, j, j + 1, one)
                value = one[0] + prices[j]
                if value < values[k - 1]:
                    s = k - 1
                    while s > 0 and values[s - 1] > value:
                        values[s] = values[s - 1]
                        cols[at, s], costs[at, s] = cols[at, s - 1], costs[at, s - 1]
                        s -= 1
                    values[s], cols[at, s], costs[at, s] = value, j, one[0]
        thresholds[at] = values[k - 1] if k < m else np.inf
