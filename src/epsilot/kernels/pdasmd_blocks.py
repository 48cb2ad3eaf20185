"""The inner loop of PDASMD on several semi-duals at once, whose variables have mean zero.

An inner step draws one row of every block. The blocks of variables meet only in the projection:
from every block's gradient the weighted mean of all is taken off, so that Σ w_k g_k = 0 stays true.
"""

from __future__ import annotations

import numpy as np

from .compiling import njit
from .dense import INLINE, SUM
from .fused import both_rows, corrected
from .pdasmd import SAFE, add, advance, couple, descend, direct
from .vexp import wide_vectors


@njit(**INLINE)
def _take(x, out):
    """out_j -= x_j."""
    for j in range(out.size):
        out[j] -= x[j]


@njit(**SUM)
def inner_loop(
    C, lse, weights, snap, mu, inv_eta, tau1, tau3, alpha, h, z, y, y_sum, v, g
):  # fmt: skip
    """Run one inner step for each row of every block (steps 7 to 11), in place.

    Parameters
    ----------
    C, lse : (l, k, m) and (l, k) arrays
        The cost rows that the steps draw, and their log-normalisers at the snapshot.
    weights : (k,) array
        w, of total 1.
    snap, mu : (k, m) arrays
        The snapshot, and the column sums there.
    alpha, h
        Mirror step α_s and proximal step 1/(c L̄).
    z, y, y_sum : (k, m) arrays
        The sequences and the sum of the y, relative to the snapshot.
    v, g : (k, m) arrays
        Scratch.
    """
    wide_vectors()
    n_steps, n_blocks, m = C.shape
    E, S, mean, best = np.empty(m), np.empty(m), np.empty(m), np.empty(n_blocks)
    for k in range(n_blocks):
        best[k] = couple(z[k], y[k], tau1, tau3, v[k])
    for t in range(n_steps):
        mean[:] = 0
        for k in range(n_blocks):
            row = C[t, k]
            moved, mass = both_rows(row, snap[k], v[k], E, S, lse[t, k], best[k], inv_eta)
            if moved > SAFE:
                corrected(mu[k], S, E, g[k], mass / moved, 1 / mass)
            else:
                g[k] = mu[k]
                direct(row, snap[k], v[k], inv_eta, S, mass, 1.0, g[k])
            add(mean, weights[k], g[k])
        for k in range(n_blocks):
            _take(mean, g[k])
            if t == n_steps - 1:
                descend(v[k], g[k], False, h, y[k])
            best[k] = advance(g[k], alpha, False, h, tau1, tau3, z[k], v[k], y_sum[k])
