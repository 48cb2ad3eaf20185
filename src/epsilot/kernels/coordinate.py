"""Coordinate methods: Greenkhorn and stochastic Sinkhorn, APDRCD and APDGCD.

The first part minimises the exp-dual over one row or column of the plan at a time. A coordinate
is a row (0 .. n-1) or a column (n .. n+m-1). ``z`` holds both potentials in
cost units, ``masses`` both marginals, ``sums`` the running marginals of the plan
X = exp((f + g - C) / η) and ``h`` the violations ρ(masses, sums). ``CT`` is a C-ordered copy
of the transposed cost, so that columns are contiguous too. The plan is not stored: the log-sum-exp
of an update also gives the previous sum of the row.
"""

from __future__ import annotations

import math

import numpy as np

from .arrays import copy_to, empty
from .compiling import EXTREMUM, KERNEL, njit
from .dense import row_max
from .exp_log import exp, log, rough_log, wide_vectors
from .sums import add_priced_gibbs, distance, fma, gibbs_into, positive, total

SAMPLING_BLOCK = 64  # weights per block of the prefix sums of sampling


@njit(**KERNEL)
def refresh(masses, inverses, sums, factor, weights, h):
    """Add factor weights_j to sums_j, and write h_j = ρ(masses_j, sums_j); return the l1 error.

    ρ(a, b) = b - a + a log(a / b); ``inverses`` is 1 / masses. Near a = b the series replaces
    the difference, which would cancel. A sum that cancellation has made nonpositive gets an
    infinite violation, so that it is chosen and repaired.
    """
    for j in range(masses.size):
        held = fma(factor, weights[j], sums[j])
        sums[j] = held
        excess = held - masses[j]
        x = excess * inverses[j]
        near = x * x * (0.5 - x * (1 / 3 - 0.25 * x))
        far = x - rough_log(max(1 + x, 1e-300))
        value = masses[j] * (near if abs(x) < 1e-3 else far)
        h[j] = value if held > 0 else np.inf
    return distance(sums, masses)


@njit(**KERNEL)
def update(C, CT, inv_eta, masses, inverses, log_masses, z, sums, h, errors, tops, weights, chosen):
    """Minimise the exp-dual exactly over one coordinate and refresh sums and violations.

    The scaling comes from a new sum of the row, never from the running sum, whose error may exceed
    a tiny sum. ``errors`` and ``tops`` hold the l1 error and the largest violation of the rows and
    of the columns.
    """
    n = C.shape[0]
    is_row = chosen < n
    line = C[chosen] if is_row else CT[chosen - n]
    start, stop = (n, z.size) if is_row else (0, n)
    other = z[start:stop]
    w = weights[: stop - start]
    # The weights are the current entries, at most 1, unless all of them have underflowed.
    held = 1.0
    mass = gibbs_into(line, other, w, z[chosen], inv_eta)
    if not 1e-200 < mass < 1e200:
        best = row_max(line, other)
        held = exp((z[chosen] + best) * inv_eta)
        z[chosen] = -best
        mass = gibbs_into(line, other, w, -best, inv_eta)
    z[chosen] += (log_masses[chosen] - log(mass)) / inv_eta
    own = 0 if is_row else 1
    errors[own] -= abs(sums[chosen] - masses[chosen])
    sums[chosen] = masses[chosen]
    h[chosen] = 0
    errors[1 - own] = refresh(
        masses[start:stop],
        inverses[start:stop],
        sums[start:stop],
        masses[chosen] / mass - held,
        w,
        h[start:stop],
    )
    tops[0], tops[1] = largest(h[:n]), largest(h[n:])


@njit(**EXTREMUM)
def largest(h):
    """Return max_i h_i."""
    wide_vectors()
    best = h[0]
    for i in range(1, h.size):
        best = h[i] if h[i] > best else best
    return best


@njit(**KERNEL)
def _first(h, value):
    """Return the first index whose entry equals ``value``."""
    for i in range(h.size):
        if h[i] == value:
            return i
    return 0


@njit(**KERNEL)
def _powers(h, top, power, out):
    """Write out_i = (h_i / top)**power, scaled so that it cannot all underflow."""
    for i in range(h.size):
        held = h[i] if h[i] > 0 else 0.0
        out[i] = exp(power * log(held / top))


@njit(**KERNEL)
def sample(h, uniform):
    """Return the index at which the prefix sums of the positive h pass uniform * total."""
    n_blocks = (h.size + SAMPLING_BLOCK - 1) // SAMPLING_BLOCK
    whole = 0.0
    for k in range(n_blocks):
        whole += positive(h[k * SAMPLING_BLOCK : (k + 1) * SAMPLING_BLOCK])
    left = uniform * whole
    last = int(uniform * h.size)
    for k in range(n_blocks):
        block = h[k * SAMPLING_BLOCK : (k + 1) * SAMPLING_BLOCK]
        held = positive(block)
        if left >= held and k < n_blocks - 1:
            left -= held
            continue
        for i in range(block.size):
            if block[i] > 0:
                last = k * SAMPLING_BLOCK + i
                left -= block[i]
                if left < 0:
                    return last
    return last


@njit(**KERNEL)
def choose(h, n, tops, power, uniform, scaled):
    """Draw an index with probability proportional to h**power; the largest h if infinite."""
    if power == 0:
        return int(uniform * h.size)
    top = max(tops[0], tops[1])
    if power == np.inf or top == np.inf:
        return _first(h[:n], top) if tops[0] >= tops[1] else n + _first(h[n:], top)
    if power == 1 or not top > 0:
        return sample(h, uniform)
    _powers(h, top, power, scaled)
    return sample(scaled, uniform)


@njit(**KERNEL)
def epoch(
    C, CT, inv_eta, masses, inverses, log_masses, z, sums, h, errors, tops, power, uniforms, enough
):
    """Choose and update one coordinate for each uniform number.

    End after the update that brings the l1 error to ``enough``. Returns how many of the updates
    were of rows, and how many were made.
    """
    n_rows = 0
    weights = empty(max(C.shape), C.dtype)
    scaled = empty(h.size, C.dtype)
    for k in range(uniforms.size):
        chosen = choose(h, C.shape[0], tops, power, uniforms[k], scaled)
        n_rows += chosen < C.shape[0]
        update(
            C, CT, inv_eta, masses, inverses, log_masses, z, sums, h, errors, tops, weights, chosen
        )
        if errors[0] + errors[1] <= enough:
            return n_rows, k + 1
    return n_rows, uniforms.size


# -- accelerated primal-dual methods ---------------------------------------------------------------
#
# Averaged plans, moments and coordinate steps.
#
# ``C`` is (n, m) and C-ordered, potentials are in cost units and ``inv_eta`` is 1/η, as in
# ``dense``. Coordinates 0..n-1 are rows and n..n+m-1 columns.

#: Largest exponent; the plan of the sum-exp dual may be huge before convergence.
MAX_EXPONENT = 700.0


@njit(**KERNEL)
def _mix_row(X, row, fi, g, inv_eta, keep, add):
    """Write X_j = keep X_j + add exp((f_i + g_j - row_j) / η)."""
    for j in range(row.size):
        X[j] = fma(add, exp((fi + g[j] - row[j]) * inv_eta), keep * X[j])


@njit(**KERNEL)
def mix_plan(C, X, f, g, inv_eta, keep, add, start, stop):
    """Write X = keep X + add exp((f + g - C) / η), rows ``start:stop``."""
    for i in range(start, stop):
        _mix_row(X[i], C[i], f[i], g, inv_eta, keep, add)


@njit(**KERNEL)
def moments_at(C, f, g, inv_eta, level, r, cost, parts, start, stop):
    """Do ``dense.marginals_at``, and write the cost of each row of X."""
    n_chunks = parts.shape[0]
    for k in range(start, stop):
        parts[k] = 0
        for i in range(C.shape[0] * k // n_chunks, C.shape[0] * (k + 1) // n_chunks):
            r[i], cost[i] = add_priced_gibbs(C[i], g, parts[k], f[i] - level, inv_eta)


@njit(**KERNEL)
def _clipped_sum(costs, others, potential, inv_eta, work):
    """Return sum_j exp((potential + others_j - costs_j) / η)."""
    x = work[: costs.size]
    for j in range(costs.size):
        x[j] = exp(min((potential + others[j] - costs[j]) * inv_eta, MAX_EXPONENT))
    return total(x)


@njit(**KERNEL)
def _couple(lam, z, theta):
    """Write lam = (1 - θ) lam + θ z."""
    for i in range(lam.size):
        lam[i] += theta * (z[i] - lam[i])


@njit(**KERNEL)
def next_theta(theta):
    """Return the solution of θ'² = (1 - θ') θ²."""
    square = theta * theta
    return 0.5 * (math.sqrt(square * square + 4 * square) - square)


@njit(**KERNEL)
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
    work = empty(max(C.shape), C.dtype)
    for i in chosen:
        _couple(lam, z, theta)  # lam now holds the paper's y
        if left >= 0:
            left -= 1 / theta
            if left < 0:
                copy_to(lam, y)
        if i < n:
            g = _clipped_sum(C[i], lam[n:], lam[i], inv_eta, work) - b[i]
        else:
            g = _clipped_sum(C[:, i - n], lam[:n], lam[i], inv_eta, work) - b[i]
        lam[i] -= g * inv_smooth
        z[i] -= g * inv_smooth / (n_coordinates * theta)
        theta = next_theta(theta)
    if left >= 0:  # round-off put the pick past the last step
        copy_to(lam, y)
    return theta, weight


@njit(**KERNEL)
def _average_row(X, row, fi, g, inv_eta, keep, add, x, col):
    """Add a row x of the plan to its average and to the column sums; return its sum."""
    for j in range(row.size):
        x[j] = exp(min((fi + g[j] - row[j]) * inv_eta, MAX_EXPONENT))
        col[j] += x[j]
        X[j] = fma(add, x[j], keep * X[j])
    return total(x)


@njit(**KERNEL)
def greedy_coordinates(C, b, inv_eta, inv_smooth, theta, weight, n_steps, lam, z, X, average, sums):
    """Take steps on the coordinate of largest gradient; keep the exact weighted average.

    ``X`` and ``average`` hold the averaged plan and its marginals, ``weight`` the sum of the
    averaging weights 1/θ so far, ``sums`` is scratch. Returns θ and the new weight.
    """
    n = C.shape[0]
    n_coordinates = lam.size
    x = empty(C.shape[1], C.dtype)
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
