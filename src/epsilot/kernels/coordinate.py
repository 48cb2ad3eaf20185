"""Coordinate minimisation of the exp-dual: one row or column of the plan at a time.

A coordinate is a row (0 .. n-1) or a column (n .. n+m-1). ``z`` holds both potentials in
cost units, ``masses`` both marginals, ``sums`` the running marginals of the plan
X = exp((f + g - C) / η) and ``h`` the violations ρ(masses, sums). ``CT`` is a C-ordered copy
of the transposed cost, so that columns are read along memory too. The plan is not stored:
the fresh log-sum-exp of an update also gives what the row held before.
"""

from __future__ import annotations

import numpy as np

from .compiling import njit
from .dense import EXTREMUM, SUM, row_max
from .fused import gibbs_into
from .sums import distance, fma, positive
from .vexp import exp, wide_vectors
from .vlog import log, rough_log

BLOCK = 64  # weights summed at once when sampling


@njit(**SUM)
def refresh(masses, inverses, sums, factor, weights, h):
    """sums_j += factor weights_j and h_j = ρ(masses_j, sums_j); return the l1 error.

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


@njit(**SUM)
def update(C, CT, inv_eta, masses, inverses, log_masses, z, sums, h, errors, tops, weights, chosen):
    """Minimise the exp-dual exactly over one coordinate and refresh sums and violations.

    The scaling comes from the freshly summed row, never from the running sum, whose error may
    exceed a sum that has collapsed. ``errors`` and ``tops`` hold the l1 error and the largest
    violation of the rows and of the columns.
    """
    n = C.shape[0]
    is_row = chosen < n
    line = C[chosen] if is_row else CT[chosen - n]
    start, stop = (n, z.size) if is_row else (0, n)
    other = z[start:stop]
    w = weights[: stop - start]
    # The weights are the entries held now, at most 1, unless they have all underflowed.
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


@njit(**SUM)
def _first(h, value):
    """Return the first index whose entry equals ``value``."""
    for i in range(h.size):
        if h[i] == value:
            return i
    return 0


@njit(**SUM)
def _powers(h, top, power, out):
    """out_i = (h_i / top)**power, scaled so that it cannot all underflow."""
    for i in range(h.size):
        held = h[i] if h[i] > 0 else 0.0
        out[i] = exp(power * log(held / top))


@njit(**SUM)
def sample(h, uniform):
    """Return the index at which the prefix sums of the positive h pass uniform * total."""
    n_blocks = (h.size + BLOCK - 1) // BLOCK
    whole = 0.0
    for k in range(n_blocks):
        whole += positive(h[k * BLOCK : (k + 1) * BLOCK])
    left = uniform * whole
    last = int(uniform * h.size)
    for k in range(n_blocks):
        block = h[k * BLOCK : (k + 1) * BLOCK]
        held = positive(block)
        if left >= held and k < n_blocks - 1:
            left -= held
            continue
        for i in range(block.size):
            if block[i] > 0:
                last = k * BLOCK + i
                left -= block[i]
                if left < 0:
                    return last
    return last


@njit(**SUM)
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


@njit(**SUM)
def epoch(C, CT, inv_eta, masses, inverses, log_masses, z, sums, h, errors, tops, power, uniforms):
    """Choose and update one coordinate for each uniform number; return how many were rows."""
    n_rows = 0
    weights = np.empty(max(C.shape), C.dtype)
    scaled = np.empty(h.size, C.dtype)
    for k in range(uniforms.size):
        chosen = choose(h, C.shape[0], tops, power, uniforms[k], scaled)
        n_rows += chosen < C.shape[0]
        update(
            C, CT, inv_eta, masses, inverses, log_masses, z, sums, h, errors, tops, weights, chosen
        )
    return n_rows
