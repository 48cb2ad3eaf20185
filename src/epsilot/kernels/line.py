"""Costs that are convex in the distance of points on a line: what sorting makes linear.

``x`` and ``y`` are in rising order. ``square`` is the multiple of the squared distance that costs
are; 0: they are the distance itself.
"""

from __future__ import annotations

import numpy as np

from .compiling import INLINE, KERNEL, njit


@njit(**INLINE)
def _rise(x, further, y, square):
    """Return c(further, y) - c(x, y), as a product where that keeps digits."""
    if square != 0:
        return square * ((further - x) * ((further - y) + (x - y)))
    if y <= x:
        return further - x
    return x - further if further <= y else (further - y) - (y - x)


@njit(**INLINE)
def _add(total, rest, x):
    """Return total + rest + x as a sum and what its rounding left over."""
    x += rest
    moved = total + x
    part = moved - total
    return moved, (total - (moved - part)) + (x - part)


@njit(**KERNEL)
def staircase(x, y, p, q, square, i, j, flow, f, g):
    """Write the monotone coupling of two masses and potentials that are tight along its path.

    The path of n + m - 1 pairs goes down a row where that has no mass left, and to the next column
    otherwise. Potentials are sums of differences of costs, compensated: their error is that of the
    largest of them, not of their number.
    """
    n, m = x.size, y.size
    f[0] = 0.0
    g[0] = abs(x[0] - y[0])
    if square != 0:
        g[0] *= square * g[0]
    r, c, a, b = 0, 0, p[0], q[0]
    row, row_rest, col, col_rest = f[0], 0.0, g[0], 0.0
    for s in range(n + m - 1):
        moved = min(a, b)
        i[s], j[s], flow[s] = r, c, moved
        a -= moved
        b -= moved
        if r + 1 < n and (a <= b or c + 1 == m):
            row, row_rest = _add(row, row_rest, _rise(x[r], x[r + 1], y[c], square))
            r += 1
            a, f[r] = p[r], row
        elif c + 1 < m:
            col, col_rest = _add(col, col_rest, _rise(y[c], y[c + 1], x[r], square))
            c += 1
            b, g[c] = q[c], col


@njit(**KERNEL)
def nearest(x, y, prices, centre, left, right):
    """Write, for every x, the column at its left and at its right of least distance + price.

    To the left, price - y decides, whatever x is, and to the right price + y; -1 if there is none.
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
