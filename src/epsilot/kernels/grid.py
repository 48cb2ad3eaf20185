"""Separable kernels on grids, applied along one axis at a time.

An array on a grid is viewed as (outer, length, inner): the axes before the current one, its length,
and the axes after it. A positive field is stored as ``z 2**t`` with whole t where plain scaling
would leave the range of floats:

    (T, Z) + (t, z) = (max, z 2**(t - max) + Z 2**(T - max)).

Powers of two are exact. Both representations therefore sum the same numbers, up to the rounding of
sums and of products of a few factors, however large the exponents are. A second field ``w`` on the
same level ``t`` carries cost-weighted mass. Kernels work on lines ``start:stop``, counted along
``outer`` if that is longer than 1, else along ``inner``.
"""

from __future__ import annotations

import numpy as np

from .arrays import copy_to, empty, zeros
from .compiling import EXTREMUM, INLINE, INLINE_EXTREMUM, KERNEL, njit
from .exp_log import LOG2_E, exp, exponent, log, power_of_two, wide_vectors
from .sums import fma

#: ln 2 in two parts, and a number so large that adding it rounds to whole numbers.
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
ROUNDER = 1.5 * 2.0**52

#: Contiguous lines that are filtered together: two vectors of 512 bits.
GATHERED_LINES = 16
#: Side of a tile of the transpose: one cache line of doubles.
TRANSPOSE_TILE = 8


@njit(**KERNEL)
def line_range(outer, inner, start, stop):
    """Return the outer and inner ranges of a slice of lines."""
    if outer > 1:
        return start, stop, 0, inner
    return 0, 1, start, stop


@njit(**KERNEL)
def transpose(x, out, start, stop):
    """Write out = xᵀ on rows ``start:stop`` of x, by tiles that stay in the first-level cache."""
    for row in range(start, stop, TRANSPOSE_TILE):
        for col in range(0, x.shape[1], TRANSPOSE_TILE):
            for j in range(col, min(col + TRANSPOSE_TILE, x.shape[1])):
                for i in range(row, min(row + TRANSPOSE_TILE, stop)):
                    out[j, i] = x[i, j]


@njit(**KERNEL)
def exp_into(x, shift, inv_eta, z, out, start, stop):
    """Write out_i = z_i exp((x_i - shift) / η)."""
    part, weight, result = x[start:stop], z[start:stop], out[start:stop]
    for i in range(part.size):
        result[i] = weight[i] * exp((part[i] - shift) * inv_eta)


@njit(**KERNEL)
def log_into(x, shift, out, start, stop):
    """Write out_i = log x_i + shift."""
    part, result = x[start:stop], out[start:stop]
    for i in range(part.size):
        result[i] = log(part[i]) + shift


@njit(**KERNEL)
def split(x, shift, inv_eta, m, k, start, stop):
    """exp((x_i - shift) / η) = m_i 2**k_i with whole k_i; 0 and -inf where x_i = -inf."""
    part, factors, powers = x[start:stop], m[start:stop], k[start:stop]
    for i in range(part.size):
        y = (part[i] - shift) * inv_eta
        whole = (y * LOG2_E + ROUNDER) - ROUNDER
        factor = exp(fma(-whole, LN2_LOW, fma(-whole, LN2_HIGH, y)))
        factors[i] = factor if y > -np.inf else 0.0
        powers[i] = whole if y > -np.inf else -np.inf


@njit(**KERNEL)
def lift(m, k, level, v, out, start, stop):
    """Write out_i = v_i m_i 2**(k_i - level)."""
    factors, powers, weight, result = m[start:stop], k[start:stop], v[start:stop], out[start:stop]
    for i in range(result.size):
        result[i] = weight[i] * factors[i] * power_of_two(powers[i] - level)


@njit(**KERNEL)
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


@njit(**KERNEL)
def _add_decayed(before, rho, keep, x):
    """Write x = keep x + rho before, on one line across the axis."""
    for j in range(x.size):
        x[j] = keep * x[j] + rho * before[j]


@njit(**KERNEL)
def _l1_lines(x, rho, keep):
    """Replace x_i by sum_j rho^|i-j| x_j along the first axis, for all columns at once."""
    for i in range(1, x.shape[0]):
        _add_decayed(x[i - 1], rho, 1.0, x[i])
    for i in range(x.shape[0] - 2, -1, -1):
        _add_decayed(x[i + 1], rho, keep, x[i])


@njit(**KERNEL)
def l1_scaling(x, rho, keep, start, stop):
    """Replace x_i by sum_j rho^|i-j| x_j along the axis, with keep = 1 - rho².

    With F_i = x_i + rho F_{i-1} the sum y obeys y_i = (1 - rho²) F_i + rho y_{i+1}: one sweep
    forward, one back, in place, without subtraction. Where the axis is contiguous, lines are
    gathered, so that their recursions vectorise.
    """
    outer, length, inner = x.shape
    a0, a1, c0, c1 = line_range(outer, inner, start, stop)
    if inner > 1:
        for a in range(a0, a1):
            _l1_lines(x[a, :, c0:c1], rho, keep)
        return
    gathered = empty((length, GATHERED_LINES), x.dtype)
    for lo in range(a0, a1, GATHERED_LINES):
        hi = min(lo + GATHERED_LINES, a1)
        for a in range(lo, hi):
            for i in range(length):
                gathered[i, a - lo] = x[a, i, 0]
        _l1_lines(gathered[:, : hi - lo], rho, keep)
        for a in range(lo, hi):
            for i in range(length):
                x[a, i, 0] = gathered[i, a - lo]


@njit(**KERNEL)
def l1_lse(x, weight, shape, rhos, keeps, level, inv_eta, shift, out):
    """Write out = log sum_j weight_j exp((x_j - C_ij) / η) on a small grid; return the least sum.

    One call filters all axes, because calls cost more than arithmetic on small grids. Sums are
    relative to the level, and ``shift`` is added to their logarithms.
    """
    field = empty(x.size)
    exp_into(x, level, inv_eta, weight, field, 0, x.size)
    least = l1_axes(field, shape, rhos, keeps)
    log_into(field, shift, out, 0, field.size)
    return least


@njit(**KERNEL)
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


@njit(**KERNEL)
def _decay_price(z, w, rho, h, Z, W):
    """Move (Z, W) one cell forward, with decay rho and cost h per unit, and add (z, w)."""
    for j in range(Z.size):
        W[j] = w[j] + rho * (W[j] + h * Z[j])
        Z[j] = z[j] + rho * Z[j]


@njit(**KERNEL)
def _return_price(z, w, rho, h, Z, W, out_z, out_w):
    """Move (Z, W) one cell backward, add it to the forward result, then add (z, w) to it."""
    for j in range(Z.size):
        W[j] = rho * (W[j] + h * Z[j])
        Z[j] = rho * Z[j]
        out_z[j] += Z[j]
        out_w[j] += W[j]
        W[j] += w[j]
        Z[j] += z[j]


@njit(**KERNEL)
def l1_price(z, w, rho, h, out_z, out_w, start, stop):
    """Filter (z, w) by rho^|i-j| along the axis, w collecting the cost h |i - j|."""
    outer, length, inner = z.shape
    a0, a1, c0, c1 = line_range(outer, inner, start, stop)
    Z, W = empty(c1 - c0), empty(c1 - c0)
    for a in range(a0, a1):
        Z[:] = 0
        W[:] = 0
        for i in range(length):
            _decay_price(z[a, i, c0:c1], w[a, i, c0:c1], rho, h, Z, W)
            copy_to(Z, out_z[a, i, c0:c1])
            copy_to(W, out_w[a, i, c0:c1])
        Z[:] = 0
        W[:] = 0
        for i in range(length - 1, -1, -1):
            ahead = out_z[a, i, c0:c1], out_w[a, i, c0:c1]
            _return_price(z[a, i, c0:c1], w[a, i, c0:c1], rho, h, Z, W, ahead[0], ahead[1])


@njit(**KERNEL)
def _merge(t, z, w, T, Z, W):
    """Add (t, z, w) to (T, Z, W) in the log domain; empty fields have level -inf."""
    for j in range(T.size):
        top = t[j] if t[j] > T[j] else T[j]
        base = top if top > -np.inf else 0.0
        a, b = power_of_two(t[j] - base), power_of_two(T[j] - base)
        Z[j] = z[j] * a + Z[j] * b
        W[j] = w[j] * a + W[j] * b
        T[j] = top


@njit(**KERNEL)
def _travel(m, k, h, T, Z, W):
    """Move a field one cell on, with decay m 2**k and cost h per unit."""
    for j in range(T.size):
        moved = m * Z[j]
        extra = exponent(moved) if moved > 0 else 0.0
        factor = power_of_two(-extra)
        W[j] = m * (W[j] + h * Z[j]) * factor
        Z[j] = moved * factor
        T[j] += k + extra


@njit(**KERNEL)
def l1_log(t, z, w, m, k, h, out_t, out_z, out_w, start, stop):
    """Filter (t, z, w) along the axis in the log domain, w collecting the cost h |i - j|."""
    outer, length, inner = t.shape
    a0, a1, c0, c1 = line_range(outer, inner, start, stop)
    held = empty((3, c1 - c0), t.dtype)
    T, Z, W = held[0], held[1], held[2]
    for a in range(a0, a1):
        T[:] = -np.inf
        Z[:] = 0
        W[:] = 0
        for i in range(length):
            _merge(t[a, i, c0:c1], z[a, i, c0:c1], w[a, i, c0:c1], T, Z, W)
            copy_to(T, out_t[a, i, c0:c1])
            copy_to(Z, out_z[a, i, c0:c1])
            copy_to(W, out_w[a, i, c0:c1])
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
    """Write held = max(x, held - h), on one line across the axis."""
    for j in range(held.size):
        moved = held[j] - h
        held[j] = x[j] if x[j] > moved else moved


@njit(**EXTREMUM)
def l1_max(x, h, out, start, stop):
    """Write out_i = max_j x_j - h |i - j| along the axis: a distance transform."""
    outer, length, inner = x.shape
    a0, a1, c0, c1 = line_range(outer, inner, start, stop)
    held = empty(c1 - c0, x.dtype)
    for a in range(a0, a1):
        held[:] = -np.inf
        for i in range(length):
            _highest(x[a, i, c0:c1], h, held)
            copy_to(held, out[a, i, c0:c1])
        for i in range(length - 2, -1, -1):
            _highest(out[a, i, c0:c1], h, held)
            copy_to(held, out[a, i, c0:c1])


# -- sqeuclidean: one axis in the log domain -------------------------------------------------------
#
# A sum has one term per cell of the axis, but for small η almost all of them underflow to 0.
# Neighbouring lines share a bound of every cell's terms and skip those that are 0: the bits are
# those of the whole sum.

#: Smallest exponent of two that is not rounded to 0.
MIN_POWER = -1000.0
#: Lines that are summed together and skip the same terms.
LINES_PER_SUM = 32


@njit(**INLINE_EXTREMUM)
def _raise(line, power, place, top, places):
    """Write top = max(top, line + power) on one line across the axis, and its place."""
    for k in range(top.size):
        value = line[k] + power
        places[k] = place if value > top[k] else places[k]
        top[k] = value if value > top[k] else top[k]


@njit(**INLINE_EXTREMUM)
def _from_places(t, powers, i, places, top):
    """Write the levels that come from given places; return the least finite one."""
    least = np.inf
    for k in range(top.size):
        j = int(places[k])
        top[k] = t[j, k] + powers[abs(i - j)]
        least = top[k] if -np.inf < top[k] < least else least
    return least


@njit(**INLINE_EXTREMUM)
def _highest_levels(t, out):
    """Write out_j = the largest level of line j across the axis."""
    for j in range(out.size):
        line, best = t[j], -np.inf
        for k in range(line.size):
            best = line[k] if line[k] > best else best
        out[j] = best


@njit(**INLINE)
def _add_into(x, y, out):
    """Write out_j = x_j + y_j."""
    for j in range(out.size):
        out[j] = x[j] + y[j]


@njit(**INLINE)
def _axis_add(t, z, w, factor, power, cost, base, Z, W):
    """(Z, W) += (z, w + cost z) factor 2**(t + power - base), on one line across the axis."""
    for k in range(Z.size):
        x = factor * power_of_two(t[k] + power - base[k])
        Z[k] = fma(z[k], x, Z[k])
        W[k] = fma(fma(cost, z[k], w[k]), x, W[k])


@njit(**INLINE)
def _within(bounds, least, near):
    """List the places whose bound is at least ``least``; return their number."""
    count = 0
    for j in range(bounds.size):
        near[count] = j
        count += 1 if bounds[j] >= least else 0
    return count


@njit(**KERNEL)
def _sq_log_lines(t, z, w, factors, powers, around, price, out_t, out_z, out_w):
    """Do :func:`sq_log` on a few lines together, without the terms that are 0.

    ``bounds`` holds the largest level of the lines that comes from every cell of the axis.
    """
    wide_vectors()
    length, n_lines = t.shape
    highest, bounds = empty(length), empty(length)
    near, base, places = empty(length, np.int64), empty(n_lines), zeros(n_lines)
    _highest_levels(t, highest)
    out_t[0] = -np.inf
    for j in range(length):
        _raise(t[j], powers[j], float(j), out_t[0], places)
    for i in range(out_t.shape[0]):
        top, Z, W = out_t[i], out_z[i], out_w[i]
        Z[:] = 0
        W[:] = 0
        least = _from_places(t, powers, i, places, top)
        first = around.size // 2 - i
        _add_into(highest, around[first : first + length], bounds)
        count = _within(bounds, least + MIN_POWER, near)
        for n in range(count):
            j = near[n]
            if bounds[j] > least:
                _raise(t[j], powers[abs(i - j)], float(j), top, places)
        for k in range(n_lines):
            base[k] = top[k] if top[k] > -np.inf else 0.0
        for n in range(count):
            j = near[n]
            d = abs(i - j)
            _axis_add(t[j], z[j], w[j], factors[d], powers[d], price * d**2, base, Z, W)


@njit(**KERNEL)
def sq_log(t, z, w, factors, powers, price, out_t, out_z, out_w, start, stop):
    """Filter (t, z, w) by factors_d 2**powers_d, d = |i - j|, w collecting the cost price d²."""
    outer, _, inner = t.shape
    a0, a1, c0, c1 = line_range(outer, inner, start, stop)
    around = empty(2 * powers.size - 1)
    copy_to(powers[:0:-1], around[: powers.size - 1])
    copy_to(powers, around[powers.size - 1 :])
    for a in range(a0, a1):
        for c in range(c0, c1, LINES_PER_SUM):
            d = min(c + LINES_PER_SUM, c1)
            _sq_log_lines(
                t[a, :, c:d], z[a, :, c:d], w[a, :, c:d], factors, powers, around, price,
                out_t[a, :, c:d], out_z[a, :, c:d], out_w[a, :, c:d],
            )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def sq_pairs(x, h, out, start, stop):
    """Write out_i = max_j x_j - h² (i - j)² along the axis, every pair being compared."""
    outer, length, inner = x.shape
    a0, a1, c0, c1 = line_range(outer, inner, start, stop)
    out[a0:a1, :, c0:c1] = -np.inf
    for a in range(a0, a1):
        for j in range(length):
            if inner == 1:  # the loop that is vectorised goes along the axis
                best, value = out[a, :, 0], x[a, j, 0]
                for i in range(best.size):
                    gap = h * (i - j)
                    best[i] = max(best[i], value - gap * gap)
                continue
            for i in range(out.shape[1]):
                best, line, gap = out[a, i, c0:c1], x[a, j, c0:c1], h * (i - j)
                for c in range(best.size):
                    best[c] = max(best[c], line[c] - gap * gap)


@njit(cache=True, nogil=True, error_model="numpy")
def _envelope(x, h, sites, edges, out):
    """Write out_i = max_j x_j - h² (i - j)², by the upper envelope of the parabolas."""
    count = 0
    for j in range(x.size):
        if x[j] == -np.inf:
            continue
        edge = -np.inf
        while count > 0:
            k = sites[count - 1]
            edge = 0.5 * ((x[k] - x[j]) / (h * h * (j - k)) + j + k)
            if edge > edges[count - 1]:
                break
            count -= 1
        sites[count] = j
        edges[count] = edge if count > 0 else -np.inf
        count += 1
    at = 0
    for i in range(out.size):
        if count == 0:
            out[i] = -np.inf
            continue
        while at + 1 < count and edges[at + 1] < i:
            at += 1
        gap = h * (i - sites[at])
        out[i] = x[sites[at]] - gap * gap


@njit(cache=True, nogil=True, error_model="numpy")
def sq_max(x, h, out, start, stop):
    """Write out_i = max_j x_j - h² (i - j)² along the axis, in linear time."""
    outer, length, inner = x.shape
    a0, a1, c0, c1 = line_range(outer, inner, start, stop)
    sites = empty(length, np.int64)
    edges = empty(length)
    line = empty(length)
    result = empty(out.shape[1])
    for a in range(a0, a1):
        for c in range(c0, c1):
            for i in range(length):
                line[i] = x[a, i, c]
            _envelope(line, h, sites, edges, result)
            for i in range(result.size):
                out[a, i, c] = result[i]


# -- grid detection --------------------------------------------------------------------------------
#
# Whether a stored cost is that between the cells of a grid.


@njit(**KERNEL)
def differs(C, first, second, third, tolerance, out, start, stop):
    """Tell of every row whether an entry is off the sum of three tables by more than a tolerance.

    The tables hold the cost of moving along each axis; a row ends at the first line of cells that
    differs.
    """
    n1, n2 = second.shape[0], third.shape[0]
    for i in range(start, stop):
        out[i] = False
        for a in range(first.shape[0]):
            for b in range(n1):
                base = first[i // (n1 * n2), a] + second[i // n2 % n1, b]
                along, lo = third[i % n2], (a * n1 + b) * n2
                line, n_off = C[i, lo : lo + n2], 0
                for c in range(n2):
                    n_off += abs(line[c] - (base + along[c])) > tolerance
                if n_off > 0:
                    out[i] = True
                    break
            if out[i]:
                break
        if out[i]:
            break
