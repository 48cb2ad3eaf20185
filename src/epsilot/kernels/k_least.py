"""Find the k least columns of rows, by cost + price or by reduced cost."""

from __future__ import annotations

import numpy as np

from .arrays import empty
from .compiling import EXTREMUM, KERNEL, njit
from .dense import row_max
from .exp_log import wide_vectors
from .points import fill

#: Fewest groups of columns per row.
MIN_GROUPS = 512
#: Groups between the starting points of neighbouring rows.
GROUP_STRIDE = 37
#: Most bisections in the search for the k-th least of the groups' minima.
MAX_BISECTIONS = 16


@njit(**KERNEL)
def _insert(value, index, values, indices):
    """Replace the largest of ``values`` by a smaller value; return the new largest."""
    worst, second = 0, -values.dtype.type(np.inf)
    for s in range(1, values.size):
        if values[s] > values[worst]:
            second, worst = values[worst], s
        else:
            second = max(second, values[s])
    if value < values[worst]:
        values[worst] = value
        indices[worst] = index
    return max(second, values[worst])


@njit(**EXTREMUM)
def _group_minima(row, g, out):
    """Write out_c = min of row_j - g_j over the group j = c, c + G, c + 2 G, ...

    G is the size of ``out``. Interleaved groups vectorise without a final reduction.
    """
    wide_vectors()
    size = out.size
    for c in range(size):
        out[c] = row[c] - g[c]
    for lo in range(size, row.size, size):
        part, shift = row[lo : lo + size], g[lo : lo + size]
        for c in range(part.size):
            value = part[c] - shift[c]
            out[c] = value if value < out[c] else out[c]


@njit(**EXTREMUM)
def _count_below(x, bar):
    """Return how many entries are below ``bar``."""
    wide_vectors()
    count = np.int32(0)
    for c in range(x.size):
        count += np.int32(1) if x[c] < bar else np.int32(0)
    return count


@njit(**EXTREMUM)
def _extremes(x):
    """Return the least and the largest entry."""
    wide_vectors()
    low, high = x[0], x[0]
    for c in range(1, x.size):
        low = x[c] if x[c] < low else low
        high = x[c] if x[c] > high else high
    return low, high


@njit(**KERNEL)
def _kth_bound(minima, k):
    """Return a number that at least k minima, and few more, do not exceed."""
    low, high = _extremes(minima)
    for _ in range(MAX_BISECTIONS):
        middle = (low + high) * minima.dtype.type(0.5)
        count = _count_below(minima, middle)
        if count < k:
            low = middle
        else:
            high = middle
            if count <= k + k // 2:
                break
    return high


@njit(**KERNEL)
def _keep_least(i, row, f, g, bar, minima, values, indices):
    """Keep the least reduced costs row_j - f - g_j below ``bar``, as many as ``values`` holds.

    Unused entries of ``values`` are +inf. ``minima`` tell which groups to search. The first group
    depends on the row number i, so that rows choose different columns among equal costs.
    """
    first = GROUP_STRIDE * i % minima.size
    for turn in range(minima.size):
        c = first + turn if first + turn < minima.size else first + turn - minima.size
        if minima[c] - f < bar:
            for j in range(c, row.size, minima.size):
                reduced = row[j] - f - g[j]
                if reduced < bar:
                    bar = min(bar, _insert(reduced, j, values, indices))


@njit(**KERNEL)
def least_of_rows(C, f, g, slack, values, indices, start, stop):
    """Find the columns of least reduced cost C_ij - f_i - g_j of every row.

    The k-th least of the groups' minima bounds the k-th least entry of a row, so few entries are
    compared one by one. ``slack`` bounds the rounding error of a reduced cost.
    """
    m, k = C.shape[1], values.shape[1]
    minima = empty(min(m, max(MIN_GROUPS, 8 * k)), C.dtype)
    for i in range(start, stop):
        _group_minima(C[i], g, minima)
        bar = _kth_bound(minima, k) - f[i] + slack
        _keep_least(i, C[i], f[i], g, bar, minima, values[i], indices[i])


@njit(**KERNEL)
def negative_of_rows(C, f, g, bar, values, indices, start, stop):
    """Find the columns of least reduced cost of every row among those below ``bar``."""
    minima = empty(min(C.shape[1], MIN_GROUPS), C.dtype)
    for i in range(start, stop):
        _group_minima(C[i], g, minima)
        _keep_least(i, C[i], f[i], g, bar, minima, values[i], indices[i])


@njit(**KERNEL)
def least_columns(C, prices, cols, costs, thresholds, start, stop):
    """Write the k least columns of every row by cost + price, in rising order, and their costs.

    ``thresholds`` gets the k-th value, a lower bound of all other columns, or +inf if none is left.
    """
    m, k = C.shape[1], cols.shape[1]
    g, minima = -prices, empty(min(m, max(MIN_GROUPS, 8 * k)), np.float64)
    values, found = empty(k), empty(k, np.int64)
    for i in range(start, stop):
        values[:] = np.inf
        found[:] = 0
        _group_minima(C[i], g, minima)
        bar = np.nextafter(_kth_bound(minima, k), np.inf)
        _keep_least(i, C[i], 0.0, g, bar, minima, values, found)
        for s in range(k):
            value, j, place = values[s], found[s], s
            while place > 0 and values[place - 1] > value:
                values[place], found[place] = values[place - 1], found[place - 1]
                place -= 1
            values[place], found[place] = value, j
        for s in range(k):
            cols[i, s], costs[i, s] = found[s], C[i, found[s]]
        thresholds[i] = values[k - 1] if k < m else np.inf


# -- minima by float32 -----------------------------------------------------------------------------
#
# Costs are computed in float32, twice as many at a time. Columns whose value is within the error of
# the least are computed again in float64. The result has the bits of the float64 minimum.

#: Columns per tile, computed again together in float64.
TILE = 256


@njit(**KERNEL)
def ctransform_rows_float32(
    X, Y, metric, shift, g, rough_x, rough_y, rough_g, error, out, start, stop
):
    """Write out_i = min_j C_ij - g_j; ``error`` bounds the error of a float32 value."""
    m = Y.shape[1]
    rough, costs = empty(TILE, rough_x.dtype), empty(TILE)
    bests = empty(-(-m // TILE), rough_x.dtype)
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


@njit(**KERNEL)
def least_columns_float32(
    X, Y, metric, shift, prices, rows, rough_x, rough_y, rough_g, error, cols, costs, thresholds,
    start, stop,
):  # fmt: skip
    """Write the k least columns of the named rows by cost + price, in rising order.

    ``thresholds`` gets the k-th value, a lower bound of all other columns, or +inf if none is left.
    At least k groups have a float32 minimum of at most the bar, so k values are at most bar +
    error, and each of the k least columns has a float32 value of at most bar + 2 error.
    """
    m, k = Y.shape[1], cols.shape[1]
    rough, one = empty(m, rough_x.dtype), empty(1)
    minima = empty(min(m, max(MIN_GROUPS, 8 * k)), rough_x.dtype)
    values, zero = empty(k), rough_x.dtype.type(0)
    for at in range(start, stop):
        i = rows[at]
        values[:] = np.inf
        for lo in range(0, m, TILE):
            hi = min(lo + TILE, m)
            fill(rough_x[i], rough_y, metric, zero, lo, hi, rough[lo:hi])
        _group_minima(rough, rough_g, minima)
        bar = np.float64(_kth_bound(minima, k)) + 2 * error
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
