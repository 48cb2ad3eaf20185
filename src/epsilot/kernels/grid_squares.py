"""One axis of the squared Euclidean kernel on a grid, in the log domain of :mod:`.grid`.

A sum has a term for every cell of the axis, but where η is small next to none of them is above 0.
Lines next to each other share a bound of every cell's terms, and leave out those that are 0: the
bits are those of the whole sum.
"""

from __future__ import annotations

import numpy as np

from .compiling import njit
from .dense import INLINE, INLINE_EXTREMUM, SUM
from .grid import line_range
from .sums import fma
from .vexp import power_of_two, wide_vectors

#: The least power of two that is not 0.
SMALLEST_POWER = -1000.0
#: Lines whose sums leave out the same terms.
SIDE_BY_SIDE = 32


@njit(**INLINE_EXTREMUM)
def _raise(line, power, place, top, places):
    """top = max(top, line + power), on one line across the axis, and where it comes from."""
    for k in range(top.size):
        value = line[k] + power
        places[k] = place if value > top[k] else places[k]
        top[k] = value if value > top[k] else top[k]


@njit(**INLINE_EXTREMUM)
def _from_places(t, powers, i, places, top):
    """Set tops to what comes from given places; return the least of those that are any."""
    least = np.inf
    for k in range(top.size):
        j = int(places[k])
        top[k] = t[j, k] + powers[abs(i - j)]
        least = top[k] if -np.inf < top[k] < least else least
    return least


@njit(**INLINE_EXTREMUM)
def _highest_levels(t, out):
    """out_j = the largest level of line j across the axis."""
    for j in range(out.size):
        line, best = t[j], -np.inf
        for k in range(line.size):
            best = line[k] if line[k] > best else best
        out[j] = best


@njit(**INLINE)
def _add_to(x, y, out):
    """out_j = x_j + y_j."""
    for j in range(out.size):
        out[j] = x[j] + y[j]


@njit(**INLINE)
def _axis_add(t, z, w, factor, power, cost, base, Z, W):
    """(Z, W) += (z, w + cost z) factor 2**(t + power - base), on one line across the axis."""
    for k in range(Z.size):
        x = factor * power_of_two(t[k] + power - base[k])
        Z[k] = fma(z[k], x, Z[k])
        W[k] = fma(fma(cost, z[k], w[k]), x, W[k])


@njit(**INLINE)
def _within(bounds, least, near):
    """List the places whose bound is at least ``least``; return how many they are."""
    count = 0
    for j in range(bounds.size):
        near[count] = j
        count += 1 if bounds[j] >= least else 0
    return count


@njit(**SUM)
def _sq_log_lines(t, z, w, factors, powers, around, price, out_t, out_z, out_w):
    """Do :func:`sq_log` on a few lines, side by side; terms that are 0 are left out.

    ``bounds`` holds the largest level of the lines that comes from every cell of the axis.
    """
    wide_vectors()
    length, n_lines = t.shape
    highest, bounds = np.empty(length), np.empty(length)
    near, base, places = np.empty(length, np.int64), np.empty(n_lines), np.zeros(n_lines)
    _highest_levels(t, highest)
    out_t[0] = -np.inf
    for j in range(length):
        _raise(t[j], powers[j], float(j), out_t[0], places)
    for i in range(out_t.shape[0]):
        top, Z, W = out_t[i], out_z[i], out_w[i]
        Z[:] = 0
        W[:] = 0
        least = _from_places(t, powers, i, places, top)
        first = around.size // 2 - i
        _add_to(highest, around[first : first + length], bounds)
        count = _within(bounds, least + SMALLEST_POWER, near)
        for n in range(count):
            j = near[n]
            if bounds[j] > least:
                _raise(t[j], powers[abs(i - j)], float(j), top, places)
        for k in range(n_lines):
            base[k] = top[k] if top[k] > -np.inf else 0.0
        for n in range(count):
            j = near[n]
            d = abs(i - j)
            _axis_add(t[j], z[j], w[j], factors[d], powers[d], price * d**2, base, Z, W)


@njit(**SUM)
def sq_log(t, z, w, factors, powers, price, out_t, out_z, out_w, start, stop):
    """Filter (t, z, w) by factors_d 2**powers_d, d = |i - j|, w collecting the cost price d²."""
    outer, _, inner = t.shape
    a0, a1, c0, c1 = line_range(outer, inner, start, stop)
    around = np.concatenate((powers[:0:-1], powers))
    for a in range(a0, a1):
        for c in range(c0, c1, SIDE_BY_SIDE):
            d = min(c + SIDE_BY_SIDE, c1)
            _sq_log_lines(
                t[a, :, c:d], z[a, :, c:d], w[a, :, c:d], factors, powers, around, price,
                out_t[a, :, c:d], out_z[a, :, c:d], out_w[a, :, c:d],
            )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def sq_pairs(x, h, out, start, stop):
    """out_i = max_j x_j - h² (i - j)² along the axis, every pair being compared."""
    outer, length, inner = x.shape
    a0, a1, c0, c1 = line_range(outer, inner, start, stop)
    out[a0:a1, :, c0:c1] = -np.inf
    for a in range(a0, a1):
        for j in range(length):
            if inner == 1:  # the loop that is vectorised goes along the axis
                best, value = out[a, :, 0], x[a, j, 0]
                for i in range(best.size):
                    gap = h * (i - j)
                    best[i] = max(best[i], value - gap * gap)
                continue
            for i in range(out.shape[1]):
                best, line, gap = out[a, i, c0:c1], x[a, j, c0:c1], h * (i - j)
                for c in range(best.size):
                    best[c] = max(best[c], line[c] - gap * gap)


@njit(cache=True, nogil=True, error_model="numpy")
def _envelope(x, h, sites, edges, out):
    """out_i = max_j x_j - h² (i - j)², by the upper envelope of the parabolas."""
    count = 0
    for j in range(x.size):
        if x[j] == -np.inf:
            continue
        edge = -np.inf
        while count > 0:
            k = sites[count - 1]
            edge = 0.5 * ((x[k] - x[j]) / (h * h * (j - k)) + j + k)
            if edge > edges[count - 1]:
                break
            count -= 1
        sites[count] = j
        edges[count] = edge if count > 0 else -np.inf
        count += 1
    at = 0
    for i in range(out.size):
        if count == 0:
            out[i] = -np.inf
            continue
        while at + 1 < count and edges[at + 1] < i:
            at += 1
        gap = h * (i - sites[at])
        out[i] = x[sites[at]] - gap * gap


@njit(cache=True, nogil=True, error_model="numpy")
def sq_max(x, h, out, start, stop):
    """out_i = max_j x_j - h² (i - j)² along the axis, in linear time."""
    outer, length, inner = x.shape
    a0, a1, c0, c1 = line_range(outer, inner, start, stop)
    sites = np.empty(length, np.int64)
    edges = np.empty(length)
    line = np.empty(length)
    result = np.empty(out.shape[1])
    for a in range(a0, a1):
        for c in range(c0, c1):
            for i in range(length):
                line[i] = x[a, i, c]
            _envelope(line, h, sites, edges, result)
            for i in range(result.size):
                out[a, i, c] = result[i]
