"""Potentials of small problems, at places without mass too and in the units of the caller."""

from __future__ import annotations

import numpy as np

from .compiling import njit
from .dense import SUM
from .small_certificate import below

EPS = float(np.finfo(float).eps)


@njit(**SUM)
def _extend(M, scale, offset, f, g):
    """Write the c-transforms where potentials are NaN: f_i + g_j <= C_ij everywhere."""
    n, m = M.shape
    for j in range(m):
        if not np.isnan(g[j]):
            continue
        least = np.inf
        for i in range(n):
            if not np.isnan(f[i]):
                least = min(least, M[i, j] * scale - offset - f[i])
        g[j] = below(least)
    for i in range(n):
        if not np.isnan(f[i]):
            continue
        least = np.inf
        for j in range(m):
            least = min(least, M[i, j] * scale - offset - g[j])
        f[i] = below(least)


@njit(**SUM)
def extend(problems, out):
    """Give potentials to the places without mass of all solved problems."""
    costs, starts, sources, targets, of = problems
    for k in range(of.shape[0]):
        if out.n_arcs[k] == 0:
            continue
        cost, h, t = of[k]
        n, m = sources.sizes[h], targets.sizes[t]
        kept = sources.starts[h + 1] - sources.starts[h] + targets.starts[t + 1] - targets.starts[t]
        if kept == n + m:
            continue
        M = costs[starts[cost] : starts[cost] + n * m].reshape(n, m)
        f, g = out.f[out.at[1, k] : out.at[1, k + 1]], out.g[out.at[2, k] : out.at[2, k + 1]]
        _extend(M, 1.0 / out.numbers[k, 5], out.numbers[k, 4], f, g)


@njit(**SUM)
def to_user(out, f_out, g_out):
    """Write potentials in the caller's units, as feasible as they were.

    What the costs were shifted and scaled by was rounded, so f goes down by as much; a product with
    a unit below 1 may be subnormal, and then is rounded.
    """
    for k in range(out.n_arcs.size):
        offset, unit, largest = out.numbers[k, 4], out.numbers[k, 5], out.numbers[k, 6]
        size = 0.0
        for i in range(out.at[1, k], out.at[1, k + 1]):
            size = max(size, abs(out.f[i]))
        for i in range(out.at[1, k], out.at[1, k + 1]):
            f = out.f[i]
            if offset != 0:
                f = np.nextafter(f - EPS * (largest + size) + offset, -np.inf)
            f_out[i] = below(unit * f) if unit < 1 else unit * f
        for j in range(out.at[2, k], out.at[2, k + 1]):
            g_out[j] = below(unit * out.g[j]) if unit < 1 else unit * out.g[j]
