"""The array version of Dijkstra's search + DFS that the specification describes, compiled.

Dense int64 costs and flow, selection by scanning all nodes, the slacks of a row relaxed along
memory, and the flow stored by columns so that scans of a column follow memory too. Operations
are counted by the specification's rule: 4 for every arc of a settled node, 3 for every arc of a
node that the DFS visits in a phase (each phase tests the arcs of a node once), 3 for a path arc.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FAR = np.iinfo(np.int64).max // 4


@njit(cache=True, error_model="numpy")
def search(c, y, v, supply, demand, flow, level_r, level_c, done_r, done_c):
    """Return the distance to the nearest free column and the operations spent."""
    n, m = c.shape
    ops = 0
    for i in range(n):
        level_r[i] = 0 if supply[i] > 0 else FAR
        done_r[i] = False
    for j in range(m):
        level_c[j] = FAR
        done_c[j] = False
    while True:
        best, node = FAR, -1
        for i in range(n):
            if not done_r[i] and level_r[i] < best:
                best, node = level_r[i], i
        for j in range(m):
            if not done_c[j] and level_c[j] < best:
                best, node = level_c[j], n + j
        ops += n + m
        if node < n:
            i = node
            done_r[i] = True
            base = best + 1 - y[i]
            row = c[i]
            for j in range(m):
                level_c[j] = min(level_c[j], base + row[j] - v[j])
            ops += 4 * m
        else:
            j = node - n
            if demand[j] > 0:
                return best, ops
            done_c[j] = True
            column = flow[j]
            for i in range(n):
                if column[i] > 0:
                    level_r[i] = min(level_r[i], best + y[i] + v[j] - c[i, j])
            ops += 4 * n


@njit(cache=True, error_model="numpy")
def route(c, y, v, supply, demand, flow, row_at, col_at, row_on, col_on, path_row, path_col):
    """Augment along zero-slack paths from every free row; return the operations spent."""
    n, m = c.shape
    ops = 0
    row_at[:] = 0
    col_at[:] = 0
    seen_r, seen_c = np.zeros(n, np.bool_), np.zeros(m, np.bool_)
    for r in range(n):
        while supply[r] > 0:
            depth, is_at_row, is_found = 0, True, False
            path_row[0] = r
            row_on[r] = True
            while True:
                i = path_row[depth]
                if is_at_row:
                    j = row_at[i]
                    ops += 0 if seen_r[i] else 3 * m
                    seen_r[i] = True
                    while j < m:
                        if y[i] + v[j] == c[i, j] + 1 and not col_on[j]:
                            break
                        j += 1
                    row_at[i] = j
                    if j == m:
                        row_on[i] = False
                        if depth == 0:
                            break
                        depth -= 1
                        col_at[path_col[depth]] += 1
                        is_at_row = False
                    else:
                        path_col[depth] = j
                        col_on[j] = True
                        if demand[j] > 0:
                            is_found = True
                            break
                        is_at_row = False
                else:
                    j = path_col[depth]
                    x = col_at[j]
                    ops += 0 if seen_c[j] else 3 * n
                    seen_c[j] = True
                    while x < n:
                        if flow[j, x] > 0 and y[x] + v[j] == c[x, j] and not row_on[x]:
                            break
                        x += 1
                    col_at[j] = x
                    is_at_row = True
                    if x == n:
                        col_on[j] = False
                        row_at[i] += 1
                    else:
                        depth += 1
                        path_row[depth] = x
                        row_on[x] = True
            if not is_found:
                break
            b = min(supply[r], demand[path_col[depth]])
            for e in range(depth):
                b = min(b, flow[path_col[e], path_row[e + 1]])
            for e in range(depth + 1):
                flow[path_col[e], path_row[e]] += b
                if e < depth:
                    flow[path_col[e], path_row[e + 1]] -= b
                row_on[path_row[e]] = False
                col_on[path_col[e]] = False
            supply[r] -= b
            demand[path_col[depth]] -= b
            ops += 3 * (2 * depth + 1)
    return ops


def solve(C, p, q, epsilon, s=0.1, theta=None):
    """Return plan, row potential, phases and operations of the whole run."""
    n, m = C.shape
    unit = (1 - s) * epsilon / 2
    theta = (n + m) * C.max() / (s * epsilon) if theta is None else theta
    c = np.floor(C / unit + 1e-9).astype(np.int64)
    supply = np.floor(theta * p).astype(np.int64)
    demand = np.ceil(theta * q).astype(np.int64)
    y, v = np.zeros(n, np.int64), np.zeros(m, np.int64)
    flow = np.zeros((m, n), np.int64)
    level_r, level_c = np.empty(n, np.int64), np.empty(m, np.int64)
    row_at, col_at = np.empty(n, np.int64), np.empty(m, np.int64)
    path_row, path_col = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    flags = [np.zeros(k, np.bool_) for k in (n, m, n, m)]
    n_phases = ops = 0
    while supply.sum() > 0:
        distance, spent = search(c, y, v, supply, demand, flow, level_r, level_c, *flags[:2])
        y += np.maximum(distance - level_r, 0)
        v -= np.maximum(distance - level_c, 0)
        ops += spent + route(
            c, y, v, supply, demand, flow, row_at, col_at, *flags[2:], path_row, path_col
        )
        n_phases += 1
    return flow.T / theta, unit * y, n_phases, ops
