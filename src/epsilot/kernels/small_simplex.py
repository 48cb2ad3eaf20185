"""Primal network simplex on all arcs of a small transport problem, with its tree as node sets.

Costs are (rows, columns), padded with infinity to multiples of ``HEIGHT`` and ``WIDTH``. Columns
are the nodes 0 ... of the tree, rows follow from ``C.shape[1]`` on; the root is a column. A basis
is a spanning tree: the parent of each node, the flow on the arc to it, and the set of the nodes
below it, itself included; and node prices y, for which the reduced cost of an arc i -> j is
C_ij + y_i - y_j. An arc of a row to its parent points up, that of a column down, so the arcs of a
cycle gain and lose flow by turns. A tree arc without flow points up: such trees are *strongly
feasible*, and pivots that keep them so cannot cycle.

With sets, a pivot is a few short loops over two paths: one bit tells whether a node is above
another, and prices change eight at a time.
"""

from __future__ import annotations

import numpy as np

from .arrays import zeros
from .compiling import KERNEL, njit
from .simd8 import BYTES, HEIGHT, WIDTH, add_where, least_of_block, least_of_row, subtract, unite

#: Most nodes of a tree: the bits of a set.
MAX_NODES = 8 * BYTES


@njit(**KERNEL)
def padded(n, m):
    """Return the numbers of rows and columns with their padding."""
    return -(-n // HEIGHT) * HEIGHT, -(-m // WIDTH) * WIDTH


def is_small(n: int, m: int) -> bool:
    """Tell whether a tree has bits for so many rows and columns, padded."""
    return -(-n // HEIGHT) * HEIGHT - (-m // WIDTH) * WIDTH <= MAX_NODES


@njit(**KERNEL)
def zero_tree(n_nodes):
    """Return a tree: prices, flow, parents, sets (one more than nodes) and two paths."""
    return (
        zeros(n_nodes), zeros(n_nodes), zeros(n_nodes, np.uint32),
        zeros((n_nodes + 1, BYTES), np.uint8), zeros((2, n_nodes), np.uint32),
    )  # fmt: skip


@njit(**KERNEL)
def pivots(C, tree, n_blocks, tolerance, most):
    """Pivot at most ``most`` times; return the number of pivots.

    Fewer pivots mean that no reduced cost is below -tolerance. Blocks of rows are priced in turn:
    at least ``n_blocks`` per pivot, and more until an arc is found.
    """
    y, flow, parents, sets, paths = tree
    n, m = C.shape
    spare = np.uint32(sets.shape[0] - 1)
    row = 0
    for done in range(most):
        least, first, j = -tolerance, n, np.uint32(0)
        for k in range(1, n // HEIGHT + 1):
            value, col = least_of_block(C, y, row)
            if value < least:
                least, first, j = value, row, np.uint32(col)
            row = row + HEIGHT if row + HEIGHT < n else 0
            if first < n and k >= n_blocks:
                break
        if first == n:
            return done
        while first < n and C[first, j] + y[m + first] - y[j] != least:
            first += 1
        if first == n:
            return most  # a price is not finite
        i = np.uint32(m + first)

        # Climb from both ends to the join of the paths; arcs at even places lose flow.
        byte, bit = j >> np.uint32(3), np.uint8(1) << np.uint8(j & np.uint32(7))
        u, length, out, delta = i, 0, 0, np.inf
        while not sets[u, byte] & bit:
            paths[0, length] = u
            if flow[u] < delta:
                delta, out = flow[u], length
            u = parents[u]
            if sets[u, byte] & bit:
                length += 1
                break
            paths[0, length + 1] = u
            u = parents[u]
            length += 2
        join, inner, rest, side = u, out, length, 0
        u, length, out, least_flow = j, 0, 0, np.inf
        while u != join:
            paths[1, length] = u
            if flow[u] <= least_flow:
                least_flow, out = flow[u], length
            u = parents[u]
            if u == join:
                length += 1
                break
            paths[1, length + 1] = u
            u = parents[u]
            length += 2
        # Of the arcs that empty first, the last on the cycle from the join leaves.
        other, by = length, -least
        if least_flow <= delta:
            delta, inner, side, other, rest, by = least_flow, out, 1, rest, length, least
        inside, outside = paths[side], paths[1 - side]
        end = j if side == 0 else i

        unite(sets, spare, inside[inner], inside[inner])
        gain = -delta
        for k in range(other):
            u = outside[k]
            flow[u] += gain
            gain = -gain
            unite(sets, u, u, spare)
        gain = delta
        for k in range(inner + 1, rest):
            u = inside[k]
            flow[u] += gain
            gain = -gain
            subtract(sets, u, u, spare)
        # Reverse the path from the entering arc to the leaving one.
        gain = delta
        for k in range(inner, 0, -1):
            u, below = inside[k], inside[k - 1]
            parents[u], flow[u] = below, flow[below] + gain
            gain = -gain
            subtract(sets, u, spare, below)
        u = inside[0]
        parents[u], flow[u] = end, delta
        unite(sets, u, spare, spare)
        add_where(sets, spare, by, y)
    return most


@njit(**KERNEL)
def close(m, n_cols, tree, closed, marks, stack):
    """List the nodes of a tree, each before its parent and the root last."""
    parents = tree[2]
    marks[:] = 0
    place = closed.size
    for k in range(closed.size):
        u = k if k < n_cols else m + k - n_cols
        size = 0
        while marks[u] == 0:
            marks[u], stack[size] = 1, u
            size += 1
            u = parents[u]
        while size > 0:
            size -= 1
            place -= 1
            closed[place] = stack[size]


# -- starting bases --------------------------------------------------------------------------------
#
# A greedy plan gives the first tree.


@njit(**KERNEL)
def sort_rows(keys, order, spare):
    """Sort row numbers by their keys, smallest first, with a stable merge sort."""
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


@njit(**KERNEL)
def greedy(C, p, q, g, order, left, free, closed, tree):
    """Build a strongly feasible tree: rows in turn fill their columns of least C_ij - g_j.

    Each arc closes a row or a column, which then hangs from the other one. The column that stays
    open is the root. On a tie the column closes, so that arcs without flow belong to rows and point
    up. ``closed`` gets the nodes in this order: every node before its parent, the root last.
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


@njit(**KERNEL)
def price(C, closed, tree):
    """Write the prices of a tree whose nodes are listed before their parents; the root's is 0."""
    y, _, parents, _, _ = tree
    m = C.shape[1]
    y[:] = 0.0
    for k in range(closed.size - 2, -1, -1):
        u = closed[k]
        v = parents[u]
        y[u] = y[v] - C[u - m, v] if u >= m else y[v] + C[v - m, u]
