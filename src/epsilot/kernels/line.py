"""Linear-time algorithms for sorted points on a line, with costs convex in their distance.

``x`` and ``y`` are sorted. Costs are ``factor * distance**exponent`` with an exponent >= 1.
"""

from __future__ import annotations

import numpy as np

from .compiling import INLINE, KERNEL, njit
from .exp_log import power


@njit(**INLINE)
def _rise(x, further, y, factor, exponent):
    """Return c(further, y) - c(x, y); squares use a product, which does not cancel."""
    if exponent == 2:
        rise = (further - x) * ((further - y) + (x - y))
    elif exponent != 1:
        rise = power(abs(further - y), exponent) - power(abs(x - y), exponent)
    elif y <= x:
        rise = further - x
    else:
        rise = x - further if further <= y else (further - y) - (y - x)
    return factor * rise


@njit(**INLINE)
def _add(total, rest, x):
    """Return total + rest + x as a rounded sum and its rounding error."""
    x += rest
    moved = total + x
    part = moved - total
    return moved, (total - (moved - part)) + (x - part)


@njit(**KERNEL)
def staircase(x, y, p, q, factor, exponent, i, j, flow, f, g):
    """Write the monotone coupling of two masses, and potentials that are tight on it.

    The path of n + m - 1 pairs goes to the next row where a row has no mass left, and to the next
    column otherwise. Potentials are compensated sums of cost differences: their error does not grow
    with the number of terms.
    """
    n, m = x.size, y.size
    f[0] = 0.0
    g[0] = _rise(y[0], x[0], y[0], factor, exponent)
    r, c, a, b = 0, 0, p[0], q[0]
    row, row_rest, col, col_rest = f[0], 0.0, g[0], 0.0
    for s in range(n + m - 1):
        moved = min(a, b)
        i[s], j[s], flow[s] = r, c, moved
        a -= moved
        b -= moved
        if r + 1 < n and (a <= b or c + 1 == m):
            row, row_rest = _add(row, row_rest, _rise(x[r], x[r + 1], y[c], factor, exponent))
            r += 1
            a, f[r] = p[r], row
        elif c + 1 < m:
            col, col_rest = _add(col, col_rest, _rise(y[c], y[c + 1], x[r], factor, exponent))
            c += 1
            b, g[c] = q[c], col


@njit(**KERNEL)
def nearest(x, y, prices, centre, left, right):
    """Write, for every x, the columns of least distance + price to its left and to its right.

    To the left, price - y decides for every x; to the right, price + y. -1 means no column.
    """
    n, m = x.size, y.size
    c, best, found = 0, np.inf, -1
    for i in range(n):
        while c < m and y[c] <= x[i]:
            value = prices[c] - (y[c] - centre)
            if value < best:
                best, found = value, c
            c += 1
        left[i] = found
    c, best, found = m - 1, np.inf, -1
    for i in range(n - 1, -1, -1):
        while c >= 0 and y[c] >= x[i]:
            value = prices[c] + (y[c] - centre)
            if value < best:
                best, found = value, c
            c -= 1
        right[i] = found


@njit(**KERNEL)
def convex_minima(x, y, prices, factor, exponent, place):
    """Write, for every x, a column of least cost + price.

    The columns never decrease with x (Monge), so that those of two rows bound those between them.
    """
    n, m = x.size, y.size
    step = 1
    while step < n:
        step *= 2
    while step > 0:
        for i in range(step - 1, n, 2 * step):
            low = place[i - step] if i >= step else 0
            high = place[i + step] if i + step < n else m - 1
            best, found = np.inf, low
            for j in range(low, high + 1):
                length = abs(x[i] - y[j])
                cost = length * length if exponent == 2 else power(length, exponent)
                value = prices[j] + factor * cost
                if value < best:
                    best, found = value, j
            place[i] = found
        step //= 2
