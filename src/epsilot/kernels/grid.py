"""One axis of a separable kernel at a time.

An array on a grid is seen as (outer, length, inner): the axis at work, what lies before it and
what lies after it. A positive field is kept as ``z 2**t`` with whole t where the plain scaling
would leave the range of floats:

    (T, Z) + (t, z) = (max, z 2**(t - max) + Z 2**(T - max)).

Powers of two are exact, so that both ways of computing, on either side, sum the same numbers up
to the rounding of sums and of products of a few factors, however large the exponents are. A second
field ``w`` on the same level ``t`` carries cost-weighted mass. Kernels work on lines
``start:stop``, counted along ``outer`` when there is more than one, else along ``inner``.
"""

from __future__ import annotations

import numpy as np

from .compiling import njit
from .dense import EXTREMUM, SUM
from .sums import fma
from .vexp import LOG2_E, exp, exponent, power_of_two
from .vlog import log

#: ln 2 in two parts, and the number whose addition rounds to whole numbers.
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
ROUNDER = 1.5 * 2.0**52

# Lines along memory that are filtered side by side: two vectors of 512 bits.
GATHERED = 16
# Side of a tile: a line of the cache, of which a set holds as many.
TILE = 8


@njit(**SUM)
def line_range(outer, inner, start, stop):
    """Return the (outer, inner) ranges that a slice of lines stands for."""
    if outer > 1:
        return start, stop, 0, inner
    return 0, 1, start, stop


@njit(**SUM)
def transpose(x, out, start, stop):
    """out = xᵀ on rows ``start:stop`` of x, by tiles that stay in the first-level cache."""
    for row in range(start, stop, TILE):
        for col in range(0, x.shape[1], TILE):
            for j in range(col, min(col + TILE, x.shape[1])):
                for i in range(row, min(row + TILE, stop)):
                    out[j, i] = x[i, j]


@njit(**SUM)
def exp_into(x, shift, inv_eta, z, out, start, stop):
    """out_i = z_i exp((x_i - shift) / η)."""
    part, weight, result = x[start:stop], z[start:stop], out[start:stop]
    for i in range(part.size):
        result[i] = weight[i] * exp((part[i] - shift) * inv_eta)


@njit(**SUM)
def log_into(x, shift, out, start, stop):
    """out_i = log x_i + shift."""
    part, result = x[start:stop], out[start:stop]
    for i in range(part.size):
        result[i] = log(part[i]) + shift


@njit(**SUM)
def split(x, shift, inv_eta, m, k, start, stop):
    """exp((x_i - shift) / η) = m_i 2**k_i with whole k_i; 0 and -inf where x_i = -inf."""
    part, factors, powers = x[start:stop], m[start:stop], k[start:stop]
    for i in range(part.size):
        y = (part[i] - shift) * inv_eta
        whole = (y * LOG2_E + ROUNDER) - ROUNDER
        factor = exp(fma(-whole, LN2_LOW, fma(-whole, LN2_HIGH, y)))
        factors[i] = factor if y > -np.inf else 0.0
        powers[i] = whole if y > -np.inf else -np.inf


@njit(**SUM)
def lift(m, k, level, v, out, start, stop):
    """out_i = v_i m_i 2**(k_i - level)."""
    factors, powers, weight, result = m[start:stop], k[start:stop], v[start:stop], out[start:stop]
    for i in range(result.size):
        result[i] = weight[i] * factors[i] * power_of_two(powers[i] - level)


@njit(**SUM)
def land(m, k, level, x, start, stop):
    """Replace x_i by x_i m_i 2**(k_i + level)."""
    factors, powers, result = m[start:stop], k[start:stop], x[start:stop]
    for i in range(result.size):
        product = result[i] * factors[i]
        power = powers[i] + level
        power = power if power > -2000.0 else -2000.0
        power = power if power < 2000.0 else 2000.0
        half = (0.5 * power + ROUNDER) - ROUNDER
        moved = product * power_of_two(half) * power_of_two(power - half)
        result[i] = moved if product > 0 else 0.0


# -- cityblock: exp(-h |i - j| / η) is a first-order recursive filter ------------------------


@njit(**SUM)
def _add_decayed(before, rho, keep, x):
    """x = keep x + rho before, on one line across the axis."""
    for j in range(x.size):
        x[j] = keep * x[j] + rho * before[j]


@njit(**SUM)
def _l1_lines(x, rho, keep):
    """Replace x_i by sum_j rho^|i-j| x_j along the first axis, for all columns at once."""
    for i in range(1, x.shape[0]):
        _add_decayed(x[i - 1], rho, 1.0, x[i])
    for i in range(x.shape[0] - 2, -1, -1):
        _add_decayed(x[i + 1], rho, keep, x[i])


@njit(**SUM)
def l1_scaling(x, rho, keep, start, stop):
    """Replace x_i by sum_j rho^|i-j| x_j along the axis, with keep = 1 - rho².

    With F_i = x_i + rho F_{i-1} the sum y obeys y_i = (1 - rho²) F_i + rho y_{i+1}: one sweep
    forward, one back, in place, and nothing is subtracted. Where the axis runs along memory,
    lines are gathered, so that their recursions advance side by side.
    """
    outer, length, inner = x.shape
    a0, a1, c0, c1 = line_range(outer, inner, start, stop)
    if inner > 1:
        for a in range(a0, a1):
            _l1_lines(x[a, :, c0:c1], rho, keep)
        return
    gathered = np.empty((length, GATHERED), x.dtype)
    for lo in range(a0, a1, GATHERED):
        hi = min(lo + GATHERED, a1)
        for a in range(lo, hi):
            for i in range(length):
                gathered[i, a - lo] = x[a, i, 0]
        _l1_lines(gathered[:, : hi - lo], rho, keep)
        for a in range(lo, hi):
            for i in range(length):
                x[a, i, 0] = gathered[i, a - lo]


@njit(**SUM)
def l1_lse(x, weight, shape, rhos, keeps, level, inv_eta, shift, out):
    """out = log sum_j weight_j exp((x_j - C_ij) / η) on a small grid; return the least sum.

    All axes in one call: on small grids calling costs more than computing. Sums are taken
    relative to the level, and ``shift`` is added to their logarithms.
    """
    field = np.empty(x.size)
    exp_into(x, level, inv_eta, weight, field, 0, x.size)
    least = l1_axes(field, shape, rhos, keeps)
    log_into(field, shift, out, 0, field.size)
    return least


@njit(**SUM)
def l1_axes(field, shape, rhos, keeps):
    """Do :func:`l1_scaling` along all axes of a small grid; return the least sum."""
    for axis in range(3):
        outer, inner = 1, 1
        for k in range(axis):
            outer *= shape[k]
        for k in range(axis + 1, 3):
            inner *= shape[k]
        if shape[axis] > 1:
            cells = field.reshape((outer, shape[axis], inner))
            l1_scaling(cells, rhos[axis], keeps[axis], 0, outer if outer > 1 else inner)
    least = field[0]
    for i in range(field.size):
        least = min(least, field[i])
    return least


@njit(**SUM)
def _decay_price(z, w, rho, h, Z, W):
    """Move (Z, W) one cell on, every unit paying h and decaying by rho, and add (z, w)."""
    for j in range(Z.size):
        W[j] = w[j] + rho * (W[j] + h * Z[j])
        Z[j] = z[j] + rho * Z[j]


@njit(**SUM)
def _return_price(z, w, rho, h, Z, W, out_z, out_w):
    """Move (Z, W) one cell back, add it to what came forward, then add (z, w) to it."""
    for j in range(Z.size):
        W[j] = rho * (W[j] + h * Z[j])
        Z[j] = rho * Z[j]
        out_z[j] += Z[j]
        out_w[j] += W[j]
        W[j] += w[j]
        Z[j] += z[j]


@njit(**SUM)
def l1_price(z, w, rho, h, out_z, out_w, start, stop):
    """Filter (z, w) by rho^|i-j| along the axis, w collecting the cost h |i - j|."""
    outer, length, inner = z.shape
    a0, a1, c0, c1 = line_range(outer, inner, start, stop)
    Z, W = np.empty(c1 - c0), np.empty(c1 - c0)
    for a in range(a0, a1):
        Z[:] = 0
        W[:] = 0
        for i in range(length):
            _decay_price(z[a, i, c0:c1], w[a, i, c0:c1], rho, h, Z, W)
            out_z[a, i, c0:c1] = Z
            out_w[a, i, c0:c1] = W
        Z[:] = 0
        W[:] = 0
        for i in range(length - 1, -1, -1):
            ahead = out_z[a, i, c0:c1], out_w[a, i, c0:c1]
            _return_price(z[a, i, c0:c1], w[a, i, c0:c1], rho, h, Z, W, ahead[0], ahead[1])


@njit(**SUM)
def _merge(t, z, w, T, Z, W):
    """(T, Z, W) += (t, z, w), levels kept apart; empty fields are at level -inf."""
    for j in range(T.size):
        top = t[j] if t[j] > T[j] else T[j]
        base = top if top > -np.inf else 0.0
        a, b = power_of_two(t[j] - base), power_of_two(T[j] - base)
        Z[j] = z[j] * a + Z[j] * b
        W[j] = w[j] * a + W[j] * b
        T[j] = top


@njit(**SUM)
def _travel(m, k, h, T, Z, W):
    """Move a field one cell on: it decays by m 2**k and every unit of it pays h."""
    for j in range(T.size):
        moved = m * Z[j]
        extra = exponent(moved) if moved > 0 else 0.0
        factor = power_of_two(-extra)
        W[j] = m * (W[j] + h * Z[j]) * factor
        Z[j] = moved * factor
        T[j] += k + extra


@njit(**SUM)
def l1_log(t, z, w, m, k, h, out_t, out_z, out_w, start, stop):
    """Filter (t, z, w) along the axis in the log domain, w collecting the cost h |i - j|."""
    outer, length, inner = t.shape
    a0, a1, c0, c1 = line_range(outer, inner, start, stop)
    held = np.empty((3, c1 - c0), t.dtype)
    T, Z, W = held[0], held[1], held[2]
    for a in range(a0, a1):
        T[:] = -np.inf
        Z[:] = 0
        W[:] = 0
        for i in range(length):
            _merge(t[a, i, c0:c1], z[a, i, c0:c1], w[a, i, c0:c1], T, Z, W)
            out_t[a, i, c0:c1] = T
            out_z[a, i, c0:c1] = Z
            out_w[a, i, c0:c1] = W
            _travel(m, k, h, T, Z, W)
        T[:] = -np.inf
        Z[:] = 0
        W[:] = 0
        for i in range(length - 1, 0, -1):
            _merge(t[a, i, c0:c1], z[a, i, c0:c1], w[a, i, c0:c1], T, Z, W)
            _travel(m, k, h, T, Z, W)
            b = i - 1
            _merge(T, Z, W, out_t[a, b, c0:c1], out_z[a, b, c0:c1], out_w[a, b, c0:c1])


@njit(**EXTREMUM)
def _highest(x, h, held):
    """held = max(x, held - h), on one line across the axis."""
    for j in range(held.size):
        moved = held[j] - h
        held[j] = x[j] if x[j] > moved else moved


@njit(**EXTREMUM)
def l1_max(x, h, out, start, stop):
    """out_i = max_j x_j - h |i - j| along the axis: a distance transform."""
    outer, length, inner = x.shape
    a0, a1, c0, c1 = line_range(outer, inner, start, stop)
    held = np.empty(c1 - c0, x.dtype)
    for a in range(a0, a1):
        held[:] = -np.inf
        for i in range(length):
            _highest(x[a, i, c0:c1], h, held)
            out[a, i, c0:c1] = held
        for i in range(length - 2, -1, -1):
            _highest(out[a, i, c0:c1], h, held)
            out[a, i, c0:c1] = held
