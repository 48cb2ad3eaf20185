"""Sweeps of Sinkhorn's algorithm: in float32 on potentials, and on a stored Gibbs kernel.

The sweeps in float32 start the restricted network simplex. One updates every row potential and,
with the same exponentials, adds up the columns of the updated plan: one pass and one exponential
per entry, where plain Sinkhorn needs two. No certificate relies on its accuracy.
"""

from __future__ import annotations

import numpy as np

from .arrays import empty
from .compiling import KERNEL, njit
from .dense import row_max, scaling_sweep
from .exp_log import exp, log
from .sums import fma, gibbs_into

#: Largest change of a logarithm that is overrelaxed.
MAX_RELAXED_MOVE = 1.0


@njit(**KERNEL)
def to_single(C, factor, out, start, stop):
    """Write out = factor C in float32."""
    for i in range(start, stop):
        row, result = C[i], out[i]
        for j in range(row.size):
            result[j] = np.float32(row[j] * factor)


@njit(**KERNEL)
def _add_scaled(weights, factor, part):
    """Add factor weights to part."""
    for j in range(part.size):
        part[j] = fma(factor, weights[j], part[j])


@njit(**KERNEL)
def sweep(C, f, g, inv_eta, log_p, omega, parts, start, stop):
    """Update f_i to match row mass p_i, overrelaxed if close; add the new columns to ``parts``.

    ``start`` and ``stop`` count chunks of rows, one per row of ``parts``. Rows whose sum leaves the
    range of float32 are computed relative to their own maximum.
    """
    n, m = C.shape
    n_chunks = parts.shape[0]
    weights = empty(m, C.dtype)
    tiny = 1e-30
    for k in range(start, stop):
        for i in range(n * k // n_chunks, n * (k + 1) // n_chunks):
            mass = gibbs_into(C[i], g, weights, f[i], inv_eta)
            if not tiny < mass < 1 / tiny:
                f[i] = -row_max(C[i], g)
                mass = gibbs_into(C[i], g, weights, f[i], inv_eta)
            move = log_p[i] - log(mass)
            if abs(move) < MAX_RELAXED_MOVE:
                move *= omega
            f[i] += C.dtype.type(move / inv_eta)
            _add_scaled(weights, C.dtype.type(exp(move)), parts[k])


#: Sweeps between two looks at the rate at which the violation falls, and before the first one.
WINDOW_SWEEPS, SETTLING_SWEEPS = 8, 64


@njit(**KERNEL)
def scale(K, p, q, error, max_sweeps, u, v):
    """Update scalings until the columns of diag(u) K diag(v) err by at most ``error`` in l1.

    Its rows are right. Return the number of sweeps and the error. The updates end early where they
    are too slow to reach the error within ``max_sweeps``.
    """
    errors, sums = np.empty(1), np.empty((1, v.size))
    missed, before = np.inf, np.inf
    for k in range(max_sweeps):
        scaling_sweep(K, v, p, u, 1.0, np.inf, errors, sums, 0, 1)
        missed = 0.0
        for j in range(v.size):
            missed += abs(v[j] * sums[0, j] - q[j])
        if not missed > error:
            return k + 1, missed
        if k % WINDOW_SWEEPS == WINDOW_SWEEPS - 1:
            n_windows = (max_sweeps - k) / WINDOW_SWEEPS
            is_slow = not n_windows * log(before / missed) >= log(missed / error)
            if is_slow and k >= SETTLING_SWEEPS:
                return k + 1, missed
            before = missed
        for j in range(v.size):
            v[j] = q[j] / sums[0, j]
    return max_sweeps, missed
