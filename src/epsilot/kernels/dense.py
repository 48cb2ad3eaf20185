"""Passes over an explicit block of the cost matrix.

``C`` is (n, m) and C-ordered, ``f`` and ``g`` are row and column potentials in cost units,
``inv_eta`` is 1/η. Potentials may be -inf (an empty row or column), never +inf or NaN. Every
kernel writes ``out[start:stop]`` and nothing else, so slices may run in different threads.
Rows are read along memory; columns are taken in tiles of ``TILE`` columns so that the C-order
is still followed and the accumulators stay in the first-level cache.

``reassoc`` lets sums be vectorised; ``nnan`` (extrema only, whose inputs are validated)
lets LLVM recognise a maximum. Neither touches infinities.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from .vexp import exp, larger, wide_vectors

TILE = 512  # columns per tile
STRIP = 32  # rows per strip of the streaming column log-sum-exp

SUM = {"cache": True, "nogil": True, "error_model": "numpy",
        "fastmath": {"reassoc", "contract", "nsz"}}  # fmt: skip
EXTREMUM = {**SUM, "fastmath": {"reassoc", "contract", "nsz", "nnan"}}

# Loops that become part of their kernel. Left as functions they are compiled twice, alone and with
# the kernel, with different rounding, and which of the two runs depends on what else the process
# has compiled or loaded. Their kernel must say wide_vectors() itself.
INLINE = {**SUM, "forceinline": True}
INLINE_EXTREMUM = {**EXTREMUM, "forceinline": True}


@njit(**EXTREMUM)
def row_max(row, g):
    """Return max_j g_j - row_j."""
    wide_vectors()
    best = g[0] - row[0]
    for j in range(1, row.size):
        best = larger(g[j] - row[j], best)
    return best


@njit(**SUM)
def exp_sum(row, g, shift, inv_eta):
    """Return sum_j exp((g_j - row_j - shift) / η)."""
    total = row.dtype.type(0)
    for j in range(row.size):
        total += exp((g[j] - row[j] - shift) * inv_eta)
    return total


@njit(**SUM)
def lse_rows(C, g, inv_eta, out, start, stop):
    """out_i = log sum_j exp((g_j - C_ij) / η)."""
    for i in range(start, stop):
        best = row_max(C[i], g)
        if best == -np.inf:
            out[i] = -np.inf
        else:
            out[i] = best * inv_eta + math.log(exp_sum(C[i], g, best, inv_eta))


@njit(**EXTREMUM)
def _raise_to(row, fi, best):
    """best_j = max(best_j, f_i - C_ij) on one tile of a row."""
    wide_vectors()
    for j in range(best.size):
        best[j] = larger(fi - row[j], best[j])


@njit(**SUM)
def _add_exp(row, fi, shift, inv_eta, total):
    """total_j += exp((f_i - C_ij - shift_j) / η) on one tile of a row."""
    for j in range(total.size):
        total[j] += exp((fi - row[j] - shift[j]) * inv_eta)


@njit(**SUM)
def lse_cols(C, f, inv_eta, out, start, stop):
    """out_j = log sum_i exp((f_i - C_ij) / η), streamed: one read of C from memory."""
    n = C.shape[0]
    work = np.empty((3, TILE), C.dtype)
    for lo in range(start, stop, TILE):
        hi = min(lo + TILE, stop)
        shift, best, total = work[0, : hi - lo], work[1, : hi - lo], work[2, : hi - lo]
        shift[:] = 0
        best[:] = -np.inf
        total[:] = 0
        for first in range(0, n, STRIP):
            last = min(first + STRIP, n)
            for i in range(first, last):
                _raise_to(C[i, lo:hi], f[i], best)
            for j in range(total.size):
                level = best[j] if best[j] > -np.inf else shift[j]
                if total[j] > 0:
                    total[j] *= exp((shift[j] - level) * inv_eta)
                shift[j] = level
            for i in range(first, last):
                _add_exp(C[i, lo:hi], f[i], shift, inv_eta, total)
        for j in range(total.size):
            out[lo + j] = shift[j] * inv_eta + math.log(total[j]) if total[j] > 0 else -np.inf


@njit(**SUM)
def apply_rows(C, f, g, inv_eta, v, out, start, stop):
    """out_i = sum_j exp((f_i + g_j - C_ij) / η) v_j."""
    for i in range(start, stop):
        fi = f[i]
        total = v.dtype.type(0)
        for j in range(C.shape[1]):
            total += exp((fi + g[j] - C[i, j]) * inv_eta) * v[j]
        out[i] = total


@njit(**SUM)
def _add_gibbs(row, fi, ui, g, inv_eta, total):
    """total_j += exp((f_i + g_j - C_ij) / η) u_i on one tile of a row."""
    for j in range(total.size):
        total[j] += exp((fi + g[j] - row[j]) * inv_eta) * ui


@njit(**SUM)
def apply_cols(C, f, g, inv_eta, u, out, start, stop):
    """out_j = sum_i exp((f_i + g_j - C_ij) / η) u_i."""
    out[start:stop] = 0
    for lo in range(start, stop, TILE):
        hi = min(lo + TILE, stop)
        for i in range(C.shape[0]):
            _add_gibbs(C[i, lo:hi], f[i], u[i], g[lo:hi], inv_eta, out[lo:hi])


@njit(**SUM)
def apply_cost_rows(C, f, g, inv_eta, v, d, mass, cost, shipped, start, stop):
    """Price row i of X = exp((f + g - C) / η) diag(v): its mass, its cost, and (C d)_i."""
    for i in range(start, stop):
        fi = f[i]
        total = v.dtype.type(0)
        price = v.dtype.type(0)
        extra = v.dtype.type(0)
        for j in range(C.shape[1]):
            x = exp((fi + g[j] - C[i, j]) * inv_eta) * v[j]
            total += x
            price += x * C[i, j]
            extra += C[i, j] * d[j]
        mass[i] = total
        cost[i] = price
        shipped[i] = extra


@njit(**SUM)
def _weighted_row(row, g, shift, inv_eta, weights):
    """weights_j = exp((g_j - row_j - shift) / η); return their sum."""
    total = row.dtype.type(0)
    for j in range(row.size):
        weights[j] = exp((g[j] - row[j] - shift) * inv_eta)
        total += weights[j]
    return total


@njit(**SUM)
def log_marginals(C, f, g, inv_eta, log_r, parts, levels, start, stop):
    """Both marginals of X = exp((f + g - C) / η) with one exponential an entry.

    ``log_r`` gets the logarithms of the row sums. Chunk k of the rows adds its column sums to
    ``parts[k]``, divided by exp(``levels[k]``), its largest entry so far; ``start`` and
    ``stop`` number chunks.
    """
    n, m = C.shape
    n_chunks = parts.shape[0]
    weights = np.empty(m, C.dtype)
    for k in range(start, stop):
        part = parts[k]
        part[:] = 0
        level = -np.inf
        for i in range(n * k // n_chunks, n * (k + 1) // n_chunks):
            best = row_max(C[i], g)
            top = (f[i] + best) * inv_eta
            if top == -np.inf:
                log_r[i] = -np.inf
                continue
            log_r[i] = top + math.log(_weighted_row(C[i], g, best, inv_eta, weights))
            if top > level:
                scale = exp(level - top)
                for j in range(m):
                    part[j] *= scale
                level = top
            factor = exp(top - level)
            for j in range(m):
                part[j] += factor * weights[j]
        levels[k] = level


@njit(**SUM)
def _sum_row(row, g, shift, inv_eta, part):
    """part_j += exp((shift + g_j - row_j) / η); return what was added."""
    total = row.dtype.type(0)
    for j in range(row.size):
        x = exp((shift + g[j] - row[j]) * inv_eta)
        part[j] += x
        total += x
    return total


@njit(**SUM)
def marginals_at(C, f, g, inv_eta, level, r, parts, start, stop):
    """Row sums of X = exp((f + g - C - level) / η); chunk k adds its column sums to parts[k].

    ``start`` and ``stop`` number chunks. The caller guesses the level and checks the sums.
    """
    n_chunks = parts.shape[0]
    for k in range(start, stop):
        parts[k] = 0
        for i in range(C.shape[0] * k // n_chunks, C.shape[0] * (k + 1) // n_chunks):
            r[i] = _sum_row(C[i], g, f[i] - level, inv_eta, parts[k])


@njit(**EXTREMUM)
def ctransform_rows(C, g, out, start, stop):
    """out_i = min_j C_ij - g_j."""
    for i in range(start, stop):
        out[i] = -row_max(C[i], g)


@njit(**EXTREMUM)
def ctransform_cols(C, f, out, start, stop):
    """out_j = min_i C_ij - f_i."""
    for lo in range(start, stop, TILE):
        hi = min(lo + TILE, stop)
        best = out[lo:hi]
        best[:] = -np.inf
        for i in range(C.shape[0]):
            _raise_to(C[i, lo:hi], f[i], best)
        for j in range(best.size):
            best[j] = -best[j]


@njit(**SUM)
def relax_block(old, log_mass, mass, lse, eta, omega, limit, out):
    """Update a block of potentials by Sinkhorn's rule, overrelaxed where log t <= limit.

    Return the l1 distance of its marginal from the mass.
    """
    excess = 0.0
    inv_eta = 1 / eta
    for i in range(old.size):
        new = eta * (log_mass[i] - lse[i])
        log_t = (new - old[i]) * inv_eta
        is_safe = log_t <= limit and mass[i] > 0
        extra = (omega - 1) * log_t if is_safe else 0.0
        out[i] = new + eta * extra
        excess += mass[i] * abs(exp(extra) - 1)
    return excess


@njit(**SUM)
def missing_mass(potential, lse, mass, inv_eta):
    """Return sum_i |exp(potential_i / η + lse_i) - mass_i|."""
    total = 0.0
    for i in range(potential.size):
        total += abs(exp(potential[i] * inv_eta + lse[i]) - mass[i])
    return total
