"""Kernels of the restricted network simplex: crude sweeps in float32, and arcs worth having.

A sweep updates every row potential exactly and, with the same exponentials, adds up the
columns under the new rows: one pass and one exponential an entry for what plain Sinkhorn does
in two. It is only as accurate as float32; the certificate does not rely on it.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from .dense import EXTREMUM, SUM, row_max
from .vexp import exp, wide_vectors

CHUNK = 32
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
def _gibbs_row(row, shift, g, inv_eta, weights):
    """weights_j = exp((shift + g_j - row_j) / η); return their sum."""
    total = row.dtype.type(0)
    for j in range(row.size):
        weights[j] = exp((shift + g[j] - row[j]) * inv_eta)
        total += weights[j]
    return total


@njit(**SUM)
def _add_scaled(weights, factor, part):
    """part += factor weights."""
    for j in range(part.size):
        part[j] += factor * weights[j]


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
            total = _gibbs_row(C[i], f[i], g, inv_eta, weights)
            if not tiny < total < 1 / tiny:
                f[i] = -row_max(C[i], g)
                total = _gibbs_row(C[i], f[i], g, inv_eta, weights)
            move = log_p[i] - math.log(total)
            if abs(move) < NEAR:
                move *= omega
            f[i] += C.dtype.type(move / inv_eta)
            _add_scaled(weights, C.dtype.type(math.exp(move)), parts[k])


@njit(**SUM)
def _insert(value, index, values, indices):
    """Replace the largest of ``values`` by a smaller value; return the new largest."""
    worst = 0
    for s in range(1, values.size):
        if values[s] > values[worst]:
            worst = s
    if value < values[worst]:
        values[worst] = value
        indices[worst] = index
    largest = values[0]
    for s in range(1, values.size):
        largest = max(largest, values[s])
    return largest


@njit(**EXTREMUM)
def _least(row, g, bar):
    """Return min_j row_j - g_j - bar_j."""
    wide_vectors()
    best = row[0] - g[0] - bar[0]
    for j in range(1, row.size):
        value = row[j] - g[j] - bar[j]
        best = value if value < best else best
    return best


@njit(**EXTREMUM)
def _least_reduced(row, g):
    """Return min_j row_j - g_j."""
    wide_vectors()
    best = row[0] - g[0]
    for j in range(1, row.size):
        value = row[j] - g[j]
        best = value if value < best else best
    return best


@njit(**EXTREMUM)
def _lower(row, f, out):
    """out_j = min(out_j, row_j - f)."""
    wide_vectors()
    for j in range(row.size):
        value = row[j] - f
        out[j] = value if value < out[j] else out[j]


@njit(**SUM)
def least_of_rows(C, f, g, slack, values, indices, group_least, start, stop):
    """Find the columns of least reduced cost C_ij - f_i - g_j of every row.

    ``start`` and ``stop`` number groups of rows, one for each row of ``group_least``, which gets
    the least C_ij - f_i of the group. The k-th least of the minima over chunks of a row bounds
    its k-th least entry, so few entries are looked at one by one. ``slack`` is what rounding can
    add to a reduced cost.
    """
    n, m = C.shape
    n_groups, k = group_least.shape[0], values.shape[1]
    minima = np.empty(-(-m // CHUNK), C.dtype)
    low, where = np.empty(k, C.dtype), np.empty(k, np.int64)
    for group in range(start, stop):
        for i in range(n * group // n_groups, n * (group + 1) // n_groups):
            _lower(C[i], f[i], group_least[group])
            low[:] = np.inf
            bar = low[0]
            for c in range(minima.size):
                lo, hi = c * CHUNK, min((c + 1) * CHUNK, m)
                minima[c] = _least_reduced(C[i, lo:hi], g[lo:hi]) - f[i]
                if minima[c] < bar:
                    bar = _insert(minima[c], c, low, where)
            bar += slack
            values[i, :] = np.inf
            for c in range(minima.size):
                if minima[c] < bar:
                    for j in range(c * CHUNK, min((c + 1) * CHUNK, m)):
                        reduced = C[i, j] - f[i] - g[j]
                        if reduced < bar:
                            bar = min(bar, _insert(reduced, j, values[i], indices[i]))


@njit(**SUM)
def least_of_cols(C, f, g, first, bars, values, indices, start, stop):
    """Update the rows of least reduced cost of every column with rows first, first + 1, ...

    ``bars`` holds a bound on the largest value to keep of each column; call block by block.
    """
    for i in range(C.shape[0]):
        for lo in range(start, stop, CHUNK):
            hi = min(lo + CHUNK, stop)
            if _least(C[i, lo:hi], g[lo:hi], bars[lo:hi]) < f[i]:
                for j in range(lo, hi):
                    reduced = C[i, j] - f[i] - g[j]
                    if reduced < bars[j]:
                        bars[j] = min(bars[j], _insert(reduced, first + i, values[j], indices[j]))
