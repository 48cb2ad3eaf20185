"""Kernels of the restricted network simplex: crude sweeps in float32, and arcs worth having.

A sweep updates every row potential exactly and, with the same exponentials, adds up the
columns under the new rows: one pass and one exponential an entry for what plain Sinkhorn does
in two. It is only as accurate as float32; the certificate does not rely on it.
"""

from __future__ import annotations

import numpy as np

from .compiling import KERNEL, njit
from .dense import row_max
from .exp_log import exp, log
from .sums import fma, gibbs_into

#: Overrelaxation is for small corrections; a large one, in logarithms, is taken as it is.
NEAR = 1.0


@njit(**KERNEL)
def to_single(C, factor, out, start, stop):
    """out = factor C in float32."""
    for i in range(start, stop):
        row, result = C[i], out[i]
        for j in range(row.size):
            result[j] = np.float32(row[j] * factor)


@njit(**KERNEL)
def _add_scaled(weights, factor, part):
    """part += factor weights."""
    for j in range(part.size):
        part[j] = fma(factor, weights[j], part[j])


@njit(**KERNEL)
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
