"""Complete a flow on arcs to given marginals by augmenting paths (Dinic 1970).

Arcs go from rows to columns and have no capacity. A path may also go back along an arc that carries
flow, and lower it. Where no path is left, the rows that paths reach, and all their columns, are a
cut: these rows have more mass than their columns can take.
"""

from __future__ import annotations

import numpy as np

from .arrays import empty
from .compiling import KERNEL, njit


@njit(**KERNEL)
def _levels(lists, flow, left, right, tiny, row_level, col_level, queue):
    """Write the levels of rows and columns: distances from rows with mass left.

    Return whether a column that is reached can take mass. Columns are numbered from n in the queue.
    """
    starts, cols, first, places, rows = lists
    n = left.size
    row_level[:] = -1
    col_level[:] = -1
    head, tail = 0, 0
    for i in range(n):
        if left[i] > tiny:
            row_level[i], queue[tail] = 0, i
            tail += 1
    is_open, deepest = False, 1 << 60
    while head < tail:
        u = queue[head]
        head += 1
        if u < n:
            if row_level[u] >= deepest:
                continue
            for arc in range(starts[u], starts[u + 1]):
                j = cols[arc]
                if col_level[j] < 0:
                    col_level[j], queue[tail] = row_level[u] + 1, n + j
                    tail += 1
                    if right[j] > tiny:
                        is_open, deepest = True, min(deepest, col_level[j])
        elif col_level[u - n] < deepest:
            for k in range(first[u - n], first[u - n + 1]):
                i = rows[k]
                if row_level[i] < 0 and flow[places[k]] > tiny:
                    row_level[i], queue[tail] = col_level[u - n] + 1, i
                    tail += 1
    return is_open


@njit(**KERNEL)
def complete(lists, flow, left, right, moved, limit, tiny, row_level, col_level):
    """Add flow along shortest paths until ``limit`` is moved or no path of their length is left.

    Return the mass that was moved, before and now, and whether longer paths may be left.

    ``left`` and ``right`` are what rows and columns lack; amounts up to ``tiny`` are ignored. If no
    path is left, rows and columns of nonnegative level are a cut.
    """
    starts, cols, first, places, rows = lists
    n, m = left.size, right.size
    queue = empty(n + m, np.int64)
    path = empty(n + m + 1, np.int64)  # arcs from a row with mass left, there and back in turn
    if not _levels(lists, flow, left, right, tiny, row_level, col_level, queue):
        return moved, False
    at_row, at_col = starts[:-1].copy(), first[:-1].copy()
    for source in range(n):
        while left[source] > tiny and moved < limit:
            length, i = 0, source
            found = False
            while True:
                # From row i to a column of the next level ...
                j = -1
                while at_row[i] < starts[i + 1]:
                    candidate = cols[at_row[i]]
                    if col_level[candidate] == row_level[i] + 1:
                        j = candidate
                        break
                    at_row[i] += 1
                if j >= 0:
                    path[length] = at_row[i]
                    length += 1
                    if right[j] > tiny:
                        found = True
                        break
                    # ... and back to a row of the level after that.
                    back = -1
                    while at_col[j] < first[j + 1]:
                        k = at_col[j]
                        if row_level[rows[k]] == col_level[j] + 1 and flow[places[k]] > tiny:
                            back = k
                            break
                        at_col[j] += 1
                    if back >= 0:
                        path[length] = back
                        length += 1
                        i = rows[back]
                    else:
                        length -= 1
                        at_row[i] += 1
                elif length == 0:
                    break
                else:  # leave row i, and the arc that led back to it
                    length -= 1
                    j = cols[places[path[length]]]
                    at_col[j] += 1
                    length -= 1
                    i = source if length == 0 else rows[path[length - 1]]
                    # Try the next way from the column j again, by the same arc.
            if not found:
                break
            j = cols[path[length - 1]]
            amount = min(left[source], right[j], limit - moved)
            for step in range(1, length, 2):
                amount = min(amount, flow[places[path[step]]])
            for step in range(length):
                if step % 2 == 0:
                    flow[path[step]] += amount
                else:
                    flow[places[path[step]]] -= amount
            left[source] -= amount
            right[j] -= amount
            moved += amount
    return moved, moved < limit
