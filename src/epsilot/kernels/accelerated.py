"""Passes of the accelerated primal-dual family: averaged plans, moments, coordinate steps.

``C`` is (n, m) and C-ordered, potentials are in cost units and ``inv_eta`` is 1/η, as in
``dense``. Coordinates 0..n-1 are rows and n..n+m-1 columns.
"""

from __future__ import annotations

import math

import numpy as np

from .compiling import njit
from .dense import SUM
from .fused import add_priced_gibbs
from .sums import fma, total
from .vexp import exp

#: Exponents are cut here: the plan of the sum-exp dual may be huge before it converges.
CLIP = 700.0


@njit(**SUM)
def _mix_row(X, row, fi, g, inv_eta, keep, add):
    """X_j = keep X_j + add exp((f_i + g_j - row_j) / η)."""
    for j in range(row.size):
        X[j] = fma(add, exp((fi + g[j] - row[j]) * inv_eta), keep * X[j])


@njit(**SUM)
def mix_plan(C, X, f, g, inv_eta, keep, add, start, stop):
    """X = keep X + add exp((f + g - C) / η), rows ``start:stop``."""
    for i in range(start, stop):
        _mix_row(X[i], C[i], f[i], g, inv_eta, keep, add)


@njit(**SUM)
def moments_at(C, f, g, inv_eta, level, r, cost, parts, start, stop):
    """As ``dense.marginals_at``, with the cost of each row of X besides."""
    n_chunks = parts.shape[0]
    for k in range(start, stop):
        parts[k] = 0
        for i in range(C.shape[0] * k // n_chunks, C.shape[0] * (k + 1) // n_chunks):
            r[i], cost[i] = add_priced_gibbs(C[i], g, parts[k], f[i] - level, inv_eta)


@njit(**SUM)
def _clipped_sum(costs, others, potential, inv_eta, work):
    """Return sum_j exp((potential + others_j - costs_j) / η)."""
    x = work[: costs.size]
    for j in range(costs.size):
        x[j] = exp(min((potential + others[j] - costs[j]) * inv_eta, CLIP))
    return total(x)


@njit(**SUM)
def _couple(lam, z, theta):
    """lam = (1 - θ) lam + θ z."""
    for i in range(lam.size):
        lam[i] += theta * (z[i] - lam[i])


@njit(**SUM)
def next_theta(theta):
    """Return the solution of θ'² = (1 - θ') θ²."""
    square = theta * theta
    return 0.5 * (math.sqrt(square * square + 4 * square) - square)


@njit(**SUM)
def random_coordinates(C, b, inv_eta, inv_smooth, theta, uniform, chosen, lam, z, y):
    """Take one accelerated step on each of the ``chosen`` coordinates of the sum-exp dual.

    ``y`` gets the point of one step, picked with probability proportional to its averaging
    weight 1/θ by the number ``uniform`` in [0, 1). Returns θ and the sum of the weights.
    """
    n = C.shape[0]
    n_coordinates = lam.size
    weight = 0.0
    ahead = theta
    for _ in range(chosen.size):
        weight += 1 / ahead
        ahead = next_theta(ahead)
    left = uniform * weight
    work = np.empty(max(C.shape), C.dtype)
    for i in chosen:
        _couple(lam, z, theta)  # lam now holds the paper's y
        if left >= 0:
            left -= 1 / theta
            if left < 0:
                y[:] = lam
        if i < n:
            g = _clipped_sum(C[i], lam[n:], lam[i], inv_eta, work) - b[i]
        else:
            g = _clipped_sum(C[:, i - n], lam[:n], lam[i], inv_eta, work) - b[i]
        lam[i] -= g * inv_smooth
        z[i] -= g * inv_smooth / (n_coordinates * theta)
        theta = next_theta(theta)
    if left >= 0:  # round-off left the pick past the last step
        y[:] = lam
    return theta, weight


@njit(**SUM)
def _average_row(X, row, fi, g, inv_eta, keep, add, x, col):
    """Add a row x of the plan to its average and to the column sums; return its sum."""
    for j in range(row.size):
        x[j] = exp(min((fi + g[j] - row[j]) * inv_eta, CLIP))
        col[j] += x[j]
        X[j] = fma(add, x[j], keep * X[j])
    return total(x)


@njit(**SUM)
def greedy_coordinates(C, b, inv_eta, inv_smooth, theta, weight, n_steps, lam, z, X, average, sums):
    """Take steps on the coordinate of largest gradient; keep the exact weighted average.

    ``X`` and ``average`` hold the averaged plan and its marginals, ``weight`` the sum of the
    averaging weights 1/θ so far, ``sums`` is scratch. Returns θ and the new weight.
    """
    n = C.shape[0]
    n_coordinates = lam.size
    x = np.empty(C.shape[1], C.dtype)
    for _ in range(n_steps):
        _couple(lam, z, theta)
        weight += 1 / theta
        add = 1 / (theta * weight)
        keep = 1 - add
        sums[n:] = 0
        for i in range(n):
            sums[i] = _average_row(X[i], C[i], lam[i], lam[n:], inv_eta, keep, add, x, sums[n:])
        best = 0
        steepest = -1.0
        for i in range(n_coordinates):
            average[i] = keep * average[i] + add * sums[i]
            slope = abs(sums[i] - b[i])
            if slope > steepest:
                steepest = slope
                best = i
        g = sums[best] - b[best]
        lam[best] -= g * inv_smooth
        z[best] -= g * inv_smooth / (n_coordinates * theta)
        theta = next_theta(theta)
    return theta, weight
