"""Assignments of least cost, by shortest augmenting paths (Jonker and Volgenant 1987).

Costs are (n, n), padded with infinity to multiples of ``HEIGHT`` and ``WIDTH``. They are stored, or
the rows are computed when they are read: C = M - U W with few columns of U. Column prices v are
kept such that every matched row has its column of least C_ij - v_j.
"""

from __future__ import annotations

import numpy as np

from .arrays import empty
from .compiling import KERNEL, njit
from .simd8 import least_of_row, lower_to, relax, two_least_of_row

#: Passes that try to match every row without a search.
REDUCTION_PASSES = 2


@njit(**KERNEL)
def stored(C):
    """Return a stored cost as ``cost_row`` reads it: M, U, W and the memory of a row."""
    return C, empty((0, 0)), empty((0, 0)), empty(0)


@njit(**KERNEL)
def cost_row(cost, i):
    """Return row i of the cost M - U W; M may be empty, or all of the cost."""
    M, U, W, out = cost
    k = W.shape[0]
    if k == 0:
        return M[i]
    if M.shape[0] > 0:
        for j in range(out.size):
            out[j] = M[i, j] - U[i, 0] * W[0, j]
    elif k == 3:  # the clouds of the plane, in one loop
        for j in range(out.size):
            out[j] = -(U[i, 0] * W[0, j]) - U[i, 1] * W[1, j] - U[i, 2] * W[2, j]
        return out
    else:
        for j in range(out.size):
            out[j] = -(U[i, 0] * W[0, j])
    for d in range(1, k):
        for j in range(out.size):
            out[j] -= U[i, d] * W[d, j]
    return out


@njit(**KERNEL)
def _reduce(cost, n, v, columns, rows, queue, free):
    """Match rows to their cheapest columns, and lower the price to that of the second cheapest.

    A row that loses its column is next in the queue. Return the number of rows left in it.
    """
    tail = n
    for i in range(n):
        queue[i] = i
    for j in range(v.size):
        free[j] = v[j]
    for _ in range(REDUCTION_PASSES):
        n_rows, tail = tail, 0
        k = 0
        steps = 2 * n_rows
        while k < n_rows:
            i = queue[k]
            k += 1
            row = cost_row(cost, i)
            least, j, second = two_least_of_row(row, v)
            loser = rows[j]
            if second > least and second < np.inf:
                v[j] -= second - least
            elif loser >= 0:
                cheapest, other = least_of_row(row, free)
                if cheapest > least:
                    queue[tail] = i
                    tail += 1
                    continue
                j, loser = other, -1
            columns[i], rows[j], free[j] = j, i, -np.inf
            if loser >= 0:
                columns[loser] = -1
                steps -= 1
                if steps > 0 and second > least:
                    k -= 1
                    queue[k] = loser
                else:
                    queue[tail] = loser
                    tail += 1
    return tail


@njit(**KERNEL)
def _augment(cost, i, v, columns, rows, distances, befores, prices, reached, lengths, free):
    """Match row i along a shortest path to a free column, and keep the prices feasible.

    ``free`` is 0 for free columns and -inf for others: of columns at the same distance, a free one
    is taken.
    """
    for k in range(v.size):
        distances[k], prices[k] = np.inf, v[k]
    least, j = relax(cost_row(cost, i), prices, 0.0, i, distances, befores)
    size, before = 0, -np.inf
    while rows[j] >= 0:
        if least == before:
            nearest, other = least_of_row(distances, free)
            if nearest == least:
                j = other
                break
        before = least
        # A reached column is never a candidate again: its reduced costs become infinite.
        distances[j], prices[j] = np.inf, -np.inf
        reached[size], lengths[size] = j, least
        size += 1
        r = rows[j]
        row = cost_row(cost, r)
        least, j = relax(row, prices, least - (row[j] - v[j]), r, distances, befores)
    for k in range(size):
        v[reached[k]] += lengths[k] - least
    free[j] = -np.inf
    while True:
        r = befores[j]
        rows[j], j, columns[r] = r, columns[r], j
        if r == i:
            return


@njit(**KERNEL)
def assign(C, n, v, columns, rows, befores, reached, left, work):
    """Match the n rows of C to as many columns at the least cost, and price the columns.

    ``columns`` gets the column of each row, ``rows`` the row of each column. Integer arrays have as
    many entries as C has columns, and ``work`` four such rows.
    """
    for j in range(v.size):
        v[j] = np.inf if j < n else 0.0
    for i in range(n):
        lower_to(C[i], 0.0, v)
    assign_from(stored(C), n, v, columns, rows, befores, reached, left, work)


@njit(**KERNEL)
def assign_from(cost, n, v, columns, rows, befores, reached, left, work):
    """Match rows and columns at the least cost, starting from any finite prices v."""
    for j in range(v.size):
        columns[j], rows[j] = -1, -1
    n_left = _reduce(cost, n, v, columns, rows, reached, work[3])
    for j in range(rows.size):
        work[3, j] = 0.0 if rows[j] < 0 else -np.inf
    for k in range(n_left):
        left[k] = reached[k]
    for k in range(n_left):
        _augment(
            cost, left[k], v, columns, rows, work[0], befores, work[1], reached, work[2], work[3]
        )
