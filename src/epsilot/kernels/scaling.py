"""Products with a stored kernel matrix: Sinkhorn in the kernel domain, and averaged plans.

``K`` is (n, m) and C-ordered. Every kernel writes ``out[start:stop]`` and nothing else, so
slices may run in different threads.
"""

from __future__ import annotations

from .compiling import njit
from .dense import INLINE, SUM, TILE, row_max
from .fused import gibbs_into
from .sums import dot, fma
from .vexp import exp, wide_vectors
from .vlog import log


@njit(**INLINE)
def _add(out, factor, x):
    """out_j += factor * x_j."""
    for j in range(out.size):
        out[j] = fma(factor, x[j], out[j])


@njit(**SUM)
def matvec(K, v, out, start, stop):
    """Write K v."""
    for i in range(start, stop):
        out[i] = dot(K[i], v)


@njit(**SUM)
def rmatvec(K, u, out, start, stop):
    """Write Kᵀ u."""
    wide_vectors()
    out[start:stop] = 0
    for lo in range(start, stop, TILE):
        hi = min(lo + TILE, stop)
        for i in range(K.shape[0]):
            _add(out[lo:hi], u[i], K[i, lo:hi])


@njit(**SUM)
def weigh_rows(C, g, inv_eta, W, top, lse, start, stop):
    """W_ij = exp((g_j - C_ij - top_i) / η) with top_i = max_j g_j - C_ij; also log-sum-exp."""
    wide_vectors()
    for i in range(start, stop):
        best = row_max(C[i], g)
        top[i] = best
        lse[i] = best * inv_eta + log(gibbs_into(C[i], g, W[i], -best, inv_eta))


@njit(**INLINE)
def _blend_row(average, keep, factor, weights):
    """average_j = keep average_j + factor weights_j."""
    for j in range(average.size):
        average[j] = fma(factor, weights[j], keep * average[j])


@njit(**SUM)
def blend(average, keep, factor, W, start, stop):
    """average_ij = keep average_ij + factor_i W_ij."""
    wide_vectors()
    for i in range(start, stop):
        _blend_row(average[i], keep, factor[i], W[i])


@njit(**SUM)
def sweep(K, v, p, u, omega, limit, errors, parts, start, stop):
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
            _add(part, value, K[i])
        errors[k] = error
