"""Kernels of the restricted network simplex: crude sweeps in float32, and arcs worth having.

A sweep updates every row potential exactly and, with the same exponentials, adds up the
columns under the new rows: one pass and one exponential an entry for what plain Sinkhorn does
in two. It is only as accurate as float32; the certificate does not rely on it.
"""

from __future__ import annotations

import numpy as np

from .compiling import njit
from .dense import EXTREMUM, SUM, row_max
from .fused import gibbs_into
from .sums import fma
from .vexp import exp, wide_vectors
from .vlog import log

#: Groups, at least, into which a row is divided.
LANES = 512
#: Groups between the places where neighbouring rows begin to look.
STRIDE = 37
#: Halvings that look for the k-th least of the groups' minima.
BISECTIONS = 16
#: Overrelaxation is for small corrections; a large one, in logarithms, is taken as it is.
NEAR = 1.0


@njit(**SUM)
def to_single(C, factor, out, start, stop):
    """out = factor C in float32."""
    for i in range(start, stop):
        row, result = C[i], out[i]
        for j in range(row.size):
            result[j] = np.float32(row[j] * factor)


@njit(**SUM)
def _add_scaled(weights, factor, part):
    """part += factor weights."""
    for j in range(part.size):
        part[j] = fma(factor, weights[j], part[j])


@njit(**SUM)
def sweep(C, f, g, inv_eta, log_p, omega, parts, start, stop):
    """Move f_i to (or, when near, past) row mass p_i; add the new plan's columns to ``parts``.

    ``start`` and ``stop`` number chunks of rows, one for each row of ``parts``. Rows whose sum
    leaves the range of float32 are taken relative to their own maximum.
    """
    n, m = C.shape
    n_chunks = parts.shape[0]
    weights = np.empty(m, C.dtype)
    tiny = 1e-30
    for k in range(start, stop):
        for i in range(n * k // n_chunks, n * (k + 1) // n_chunks):
            mass = gibbs_into(C[i], g, weights, f[i], inv_eta)
            if not tiny < mass < 1 / tiny:
                f[i] = -row_max(C[i], g)
                mass = gibbs_into(C[i], g, weights, f[i], inv_eta)
            move = log_p[i] - log(mass)
            if abs(move) < NEAR:
                move *= omega
            f[i] += C.dtype.type(move / inv_eta)
            _add_scaled(weights, C.dtype.type(exp(move)), parts[k])


@njit(**SUM)
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
    """out_c = min of row_j - g_j over j = c, c + G, c + 2 G, ..., where G is the size of ``out``.

    Such groups let all lanes of a vector work side by side, up to the end.
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


@njit(**SUM)
def _bar(minima, k):
    """Return a number with at least k minima below it, or equal to it, and few more."""
    low, high = _extremes(minima)
    for _ in range(BISECTIONS):
        middle = (low + high) * minima.dtype.type(0.5)
        count = _count_below(minima, middle)
        if count < k:
            low = middle
        else:
            high = middle
            if count <= k + k // 2:
                break
    return high


@njit(**SUM)
def _keep_least(i, row, f, g, bar, minima, values, indices):
    """Keep the reduced costs row_j - f - g_j below ``bar``, at most as many as there is room for.

    ``values`` hold +inf where there is room; ``minima`` tell which groups to look at. Where it
    begins depends on the number i of the row, lest all rows choose the same among equal costs.
    """
    first = STRIDE * i % minima.size
    for turn in range(minima.size):
        c = first + turn if first + turn < minima.size else first + turn - minima.size
        if minima[c] - f < bar:
            for j in range(c, row.size, minima.size):
                reduced = row[j] - f - g[j]
                if reduced < bar:
                    bar = min(bar, _insert(reduced, j, values, indices))


@njit(**SUM)
def least_of_rows(C, f, g, slack, values, indices, start, stop):
    """Find the columns of least reduced cost C_ij - f_i - g_j of every row.

    The k-th least of the minima over groups of columns bounds a row's k-th least entry, so few
    entries are looked at one by one. ``slack`` is what rounding can add to a reduced cost.
    """
    m, k = C.shape[1], values.shape[1]
    minima = np.empty(min(m, max(LANES, 8 * k)), C.dtype)
    for i in range(start, stop):
        _group_minima(C[i], g, minima)
        bar = _bar(minima, k) - f[i] + slack
        _keep_least(i, C[i], f[i], g, bar, minima, values[i], indices[i])


@njit(**SUM)
def negative_of_rows(C, f, g, bar, values, indices, start, stop):
    """Find the columns of least reduced cost of every row, as far as they are below ``bar``."""
    minima = np.empty(min(C.shape[1], LANES), C.dtype)
    for i in range(start, stop):
        _group_minima(C[i], g, minima)
        _keep_least(i, C[i], f[i], g, bar, minima, values[i], indices[i])
