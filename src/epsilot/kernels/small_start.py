"""Bases from which the simplex of a small transport problem starts."""

from __future__ import annotations

import numpy as np

from .compiling import njit
from .dense import SUM
from .simd8 import least_of_row, unite


@njit(**SUM)
def sort_rows(keys, order, spare):
    """Put row numbers in the order of their keys, smallest first: a stable merge sort."""
    n = keys.size
    for i in range(n):
        order[i] = i
    run = 1
    while run < n:
        for first in range(0, n, 2 * run):
            middle, last = min(first + run, n), min(first + 2 * run, n)
            i, j = first, middle
            for place in range(first, last):
                if i < middle and (j == last or keys[order[i]] <= keys[order[j]]):
                    spare[place] = order[i]
                    i += 1
                else:
                    spare[place] = order[j]
                    j += 1
        for i in range(n):
            order[i] = spare[i]
        run *= 2


@njit(**SUM)
def greedy(C, p, q, g, order, left, free, closed, tree):
    """Build a strongly feasible tree: rows in turn fill their columns of least C_ij - g_j.

    Each arc closes a row or a column, which then hangs from the other one; the column that stays
    open is the root. Columns close on a tie, so that arcs without flow belong to rows and point up.
    ``closed`` gets the nodes as they close: the root last, and every node before its parent.
    """
    _, flow, parents, sets, _ = tree
    m = C.shape[1]
    sets[:] = 0
    for j in range(q.size):
        left[j], free[j] = q[j], g[j]
        sets[j, j >> 3] = 1 << (j & 7)
    free[q.size :] = -np.inf
    n_open, size, root = q.size, 0, 0
    for k in range(p.size):
        i = order[k]
        node, rest = m + i, p[i]
        sets[node, node >> 3] = 1 << (node & 7)
        while True:
            _, j = least_of_row(C[i], free)
            if n_open > 1 and (left[j] <= rest or k == p.size - 1):
                closing, above, carried = j, node, left[j]
                rest = max(rest - left[j], 0.0)
                free[j] = -np.inf
                n_open -= 1
            else:
                closing, above, carried, root = node, j, rest, j
                left[j] = max(left[j] - rest, 0.0)
            parents[closing], flow[closing], closed[size] = above, carried, closing
            unite(sets, above, above, closing)
            size += 1
            if closing == node:
                break
    parents[root], flow[root], closed[size] = root, 0.0, root


@njit(**SUM)
def price(C, closed, tree):
    """Write the prices of a tree whose nodes are listed before their parents; the root's is 0."""
    y, _, parents, _, _ = tree
    m = C.shape[1]
    y[:] = 0.0
    for k in range(closed.size - 2, -1, -1):
        u = closed[k]
        v = parents[u]
        y[u] = y[v] - C[u - m, v] if u >= m else y[v] + C[v - m, u]
