"""Passes over an explicit block of the cost matrix.

``C`` is (n, m) and C-ordered, ``f`` and ``g`` are row and column potentials in cost units,
``inv_eta`` is 1/η. Potentials may be -inf (an empty row or column), never +inf or NaN. Every
kernel writes ``out[start:stop]`` and nothing else, so slices may run in different threads.
Rows are read along memory; columns are taken in tiles of ``TILE`` columns so that the C-order
is still followed and the accumulators stay in the first-level cache.

No kernel is compiled with flags that let LLVM change rounding. A kernel gives the same bits however
it was compiled, and exp((f_i + g_j - C_ij) / η) is the same number in every kernel. Sums are those
of :mod:`.sums`. Extrema, whose inputs are validated, are compiled with ``nnan`` so that LLVM
recognises a maximum.
"""

from __future__ import annotations

import numpy as np

from .arrays import empty
from .compiling import EXTREMUM, INLINE, KERNEL, njit
from .exp_log import exp, larger, log, wide_vectors
from .sums import (
    add_gibbs,
    dot,
    exp_sum,
    exp_sum_into,
    fma,
    gibbs_dot,
    gibbs_into,
    gibbs_price,
    total,
)

TILE = 512  # columns per tile
STRIP = 32  # rows per strip of the streaming column log-sum-exp


@njit(**EXTREMUM)
def row_max(row, g):
    """Return max_j g_j - row_j."""
    wide_vectors()
    best = g[0] - row[0]
    for j in range(1, row.size):
        best = larger(g[j] - row[j], best)
    return best


@njit(**KERNEL)
def lse_rows(C, g, inv_eta, out, start, stop):
    """Write out_i = log sum_j exp((g_j - C_ij) / η)."""
    tops = empty(stop - start, C.dtype)
    for i in range(start, stop):
        best = row_max(C[i], g)
        tops[i - start] = best if best > -np.inf else 0.0
        out[i] = exp_sum(C[i], g, tops[i - start], inv_eta)
    for i in range(start, stop):  # a separate loop, so that the logarithms vectorise
        out[i] = tops[i - start] * inv_eta + log(out[i])


@njit(**EXTREMUM)
def _raise_to(row, fi, best):
    """Raise best_j to f_i - C_ij where that is larger, on one tile of a row."""
    wide_vectors()
    for j in range(best.size):
        best[j] = larger(fi - row[j], best[j])


@njit(**KERNEL)
def _add_exp(row, fi, shift, inv_eta, sums):
    """Add exp((f_i - C_ij - shift_j) / η) to sums_j on one tile of a row."""
    for j in range(sums.size):
        sums[j] += exp((fi - row[j] - shift[j]) * inv_eta)


@njit(**KERNEL)
def lse_cols(C, f, inv_eta, out, start, stop):
    """Write out_j = log sum_i exp((f_i - C_ij) / η), streamed: one read of C from memory."""
    n = C.shape[0]
    work = empty((3, TILE), C.dtype)
    for lo in range(start, stop, TILE):
        hi = min(lo + TILE, stop)
        shift, best, sums = work[0, : hi - lo], work[1, : hi - lo], work[2, : hi - lo]
        shift[:] = 0
        best[:] = -np.inf
        sums[:] = 0
        for first in range(0, n, STRIP):
            last = min(first + STRIP, n)
            for i in range(first, last):
                _raise_to(C[i, lo:hi], f[i], best)
            for j in range(sums.size):
                level = best[j] if best[j] > -np.inf else shift[j]
                if sums[j] > 0:
                    sums[j] *= exp((shift[j] - level) * inv_eta)
                shift[j] = level
            for i in range(first, last):
                _add_exp(C[i, lo:hi], f[i], shift, inv_eta, sums)
        for j in range(sums.size):
            out[lo + j] = shift[j] * inv_eta + log(sums[j]) if sums[j] > 0 else -np.inf


@njit(**KERNEL)
def gibbs(C, f, g, inv_eta, X, start, stop):
    """Write X_ij = exp((f_i + g_j - C_ij) / η)."""
    for i in range(start, stop):
        gibbs_into(C[i], g, X[i], f[i], inv_eta)


@njit(**KERNEL)
def apply_rows(C, f, g, inv_eta, v, out, start, stop):
    """Write out_i = sum_j exp((f_i + g_j - C_ij) / η) v_j."""
    for i in range(start, stop):
        out[i] = gibbs_dot(C[i], g, v, f[i], inv_eta)


@njit(**KERNEL)
def _add_gibbs(row, fi, ui, g, inv_eta, sums):
    """Add exp((f_i + g_j - C_ij) / η) u_i to sums_j on one tile of a row."""
    for j in range(sums.size):
        sums[j] = fma(exp((fi + g[j] - row[j]) * inv_eta), ui, sums[j])


@njit(**KERNEL)
def apply_cols(C, f, g, inv_eta, u, out, start, stop):
    """Write out_j = sum_i exp((f_i + g_j - C_ij) / η) u_i."""
    out[start:stop] = 0
    for lo in range(start, stop, TILE):
        hi = min(lo + TILE, stop)
        for i in range(C.shape[0]):
            _add_gibbs(C[i, lo:hi], f[i], u[i], g[lo:hi], inv_eta, out[lo:hi])


@njit(**KERNEL)
def apply_cost_rows(C, f, g, inv_eta, v, d, mass, cost, shipped, start, stop):
    """Price row i of X = exp((f + g - C) / η) diag(v): its mass, its cost, and (C d)_i."""
    for i in range(start, stop):
        mass[i], cost[i], shipped[i] = gibbs_price(C[i], g, v, d, f[i], inv_eta)


@njit(**KERNEL)
def log_marginals(C, f, g, inv_eta, log_r, parts, levels, start, stop):
    """Write both marginals of X = exp((f + g - C) / η), with one exponential per entry.

    ``log_r`` gets the logarithms of the row sums. Chunk k of the rows adds its column sums to
    ``parts[k]``, divided by exp(``levels[k]``), its largest entry so far; ``start`` and
    ``stop`` number chunks.
    """
    n, m = C.shape
    n_chunks = parts.shape[0]
    weights = empty(m, C.dtype)
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
            log_r[i] = top + log(exp_sum_into(C[i], g, weights, best, inv_eta))
            if top > level:
                scale = exp(level - top)
                for j in range(m):
                    part[j] *= scale
                level = top
            factor = exp(top - level)
            for j in range(m):
                part[j] += factor * weights[j]
        levels[k] = level


@njit(**KERNEL)
def marginals_at(C, f, g, inv_eta, level, r, parts, start, stop):
    """Write the row sums of X = exp((f + g - C - level) / η), and the column sums by chunk.

    Chunk k of the rows writes to parts[k]. ``start`` and ``stop`` count chunks. The caller guesses
    the level and checks the sums.
    """
    n_chunks = parts.shape[0]
    for k in range(start, stop):
        parts[k] = 0
        for i in range(C.shape[0] * k // n_chunks, C.shape[0] * (k + 1) // n_chunks):
            r[i] = add_gibbs(C[i], g, parts[k], f[i] - level, inv_eta)


# A maximum may be a zero of either sign. 0 - x has the same sign for both; -x has not.


@njit(**KERNEL)
def ctransform_rows(C, g, out, start, stop):
    """Write out_i = min_j C_ij - g_j."""
    for i in range(start, stop):
        out[i] = 0 - row_max(C[i], g)


@njit(**KERNEL)
def ctransform_cols(C, f, out, start, stop):
    """Write out_j = min_i C_ij - f_i."""
    for lo in range(start, stop, TILE):
        hi = min(lo + TILE, stop)
        best = out[lo:hi]
        best[:] = -np.inf
        for i in range(C.shape[0]):
            _raise_to(C[i, lo:hi], f[i], best)
        for j in range(best.size):
            best[j] = 0 - best[j]


@njit(**KERNEL)
def relax_block(old, log_mass, mass, lse, eta, omega, limit, out):
    """Update a block of potentials by Sinkhorn's rule, overrelaxed where log t <= limit.

    Return the l1 distance of its marginal from the mass.
    """
    excess = empty(old.size)
    inv_eta = 1 / eta
    for i in range(old.size):
        new = eta * (log_mass[i] - lse[i])
        log_t = (new - old[i]) * inv_eta
        is_safe = log_t <= limit and mass[i] > 0
        extra = (omega - 1) * log_t if is_safe else 0.0
        out[i] = new + eta * extra
        excess[i] = mass[i] * abs(exp(extra) - 1)
    return total(excess)


@njit(**KERNEL)
def missing_mass(potential, lse, mass, inv_eta):
    """Return sum_i |exp(potential_i / η + lse_i) - mass_i|."""
    missing = empty(potential.size)
    for i in range(potential.size):
        missing[i] = abs(exp(potential[i] * inv_eta + lse[i]) - mass[i])
    return total(missing)


# -- kernel matrices -------------------------------------------------------------------------------
#
# Products with a stored kernel matrix, for Sinkhorn in the kernel domain and for averaged plans.
#
# ``K`` is (n, m) and C-ordered. Every kernel writes ``out[start:stop]`` and nothing else, so slices
# may run in different threads.


@njit(**INLINE)
def _add_scaled(out, factor, x):
    """Add factor * x_j to out_j."""
    for j in range(out.size):
        out[j] = fma(factor, x[j], out[j])


@njit(**KERNEL)
def matvec(K, v, out, start, stop):
    """Write K v."""
    for i in range(start, stop):
        out[i] = dot(K[i], v)


@njit(**KERNEL)
def rmatvec(K, u, out, start, stop):
    """Write Kᵀ u."""
    wide_vectors()
    out[start:stop] = 0
    for lo in range(start, stop, TILE):
        hi = min(lo + TILE, stop)
        for i in range(K.shape[0]):
            _add_scaled(out[lo:hi], u[i], K[i, lo:hi])


@njit(**KERNEL)
def weigh_rows(C, g, inv_eta, W, top, lse, start, stop):
    """Write W_ij = exp((g_j - C_ij - top_i) / η), its maxima top_i and the log-sum-exps."""
    wide_vectors()
    for i in range(start, stop):
        best = row_max(C[i], g)
        top[i] = best
        lse[i] = best * inv_eta + log(gibbs_into(C[i], g, W[i], -best, inv_eta))


@njit(**INLINE)
def _blend_row(average, keep, factor, weights):
    """Write average_j = keep average_j + factor weights_j."""
    for j in range(average.size):
        average[j] = fma(factor, weights[j], keep * average[j])


@njit(**KERNEL)
def blend(average, keep, factor, W, start, stop):
    """Write average_ij = keep average_ij + factor_i W_ij."""
    wide_vectors()
    for i in range(start, stop):
        _blend_row(average[i], keep, factor[i], W[i])


@njit(**KERNEL)
def scaling_sweep(K, v, p, u, omega, limit, errors, parts, start, stop):
    """Update every u_i, overrelaxed by ω, and sum u_i K_i on the way: K is read once.

    u_i becomes (p_i / (K v)_i) t**(ω - 1), where t is the factor of the plain update, or the
    plain update if t exceeds ``limit``. Chunk k of the rows adds its column sums to
    ``parts[k]`` and its l1 error to ``errors[k]``; ``start`` and ``stop`` number chunks.
    """
    wide_vectors()
    n, n_chunks = K.shape[0], parts.shape[0]
    for k in range(start, stop):
        part = parts[k]
        part[:] = 0
        error = 0.0
        for i in range(n * k // n_chunks, n * (k + 1) // n_chunks):
            held = dot(K[i], v)
            value = p[i] / held
            if omega != 1:
                t = value / u[i]
                if t <= limit:
                    value *= exp((omega - 1) * log(t))
            u[i] = value
            error += abs(value * held - p[i])
            _add_scaled(part, value, K[i])
        errors[k] = error
