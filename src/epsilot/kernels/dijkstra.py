"""Inner loops of the primal-dual search over integer costs (Lahn, Mulchandani, Raghvendra).

``c`` is the (n, m) integer cost, ``y`` and ``v`` the integer duals of rows and columns, all of
one dtype (int32 where the costs fit). A row may send to a column at slack c + 1 - y - v, and a
column may give back to a row that feeds it at slack y + v - c. The flow is a linked list of
entries for each column: ``head[j]`` is the first, ``follow[k]`` the next, ``source[k]`` the
row, ``sink[k]`` the column, ``amount[k]`` the flow; ``head[m]`` heads the list of unused
entries, whose amount is 0. ``counts`` gathers arcs relaxed, nodes scanned and arcs tested.

The loops over a row of ``c`` have the shapes that LLVM turns into SIMD code; results are cast
back to the dtype because numba adds small integers as int64.
"""

from __future__ import annotations

import numpy as np

from .arrays import empty, zeros
from .compiling import KERNEL, njit
from .exp_log import wide_vectors

RELAXED, SCANNED, TESTED = range(3)
CHUNK, PIECE = np.uint64(64), np.uint64(16)  # entries that ``find`` compares at once


@njit(**KERNEL)
def _relax(row, base, reach):
    """Write reach_j = min(reach_j, base + row_j)."""
    wide_vectors()
    for j in range(row.size):
        value = row.dtype.type(base + row[j])
        reach[j] = value if value < reach[j] else reach[j]


@njit(inline="always", **KERNEL)
def _has(row, v, wanted, start, size):
    """Tell, without branches, whether one of ``size`` values row_j - v_j equals ``wanted``."""
    hits = row.dtype.type(0)
    for k in range(size):
        j = start + np.uint64(k)
        hits |= row.dtype.type(row.dtype.type(row[j] - v[j]) == wanted)
    return hits != 0


@njit(**KERNEL)
def find(row, v, wanted, start):
    """Return the first index from start on with row_j - v_j == wanted, or the size."""
    # Unsigned indices avoid numba's check for negative ones, which would prevent SIMD code.
    size, j = np.uint64(row.size), np.uint64(start)
    while j + CHUNK <= size and not _has(row, v, wanted, j, CHUNK):
        j += CHUNK
    while j + PIECE <= size and not _has(row, v, wanted, j, PIECE):
        j += PIECE
    while j < size and row[j] - v[j] != wanted:
        j += np.uint64(1)
    return np.int64(j)


@njit(**KERNEL)
def _next_above(row, v, floor, far):
    """Return the least row_j - v_j above the floor, or far."""
    wide_vectors()
    best = far
    for j in range(row.size):
        value = row.dtype.type(row[j] - v[j])
        value = value if value > floor else far
        best = value if value < best else best
    return best


@njit(**KERNEL)
def best_response(c, v, y):
    """Write y_i = min_j c_ij + 1 - v_j, the largest duals that are feasible with v."""
    for i in range(y.size):
        y[i] = 1 + _next_above(c[i], v, c.dtype.type(-1), c.dtype.type(np.iinfo(c.dtype).max // 2))


@njit(**KERNEL)
def search(c, y, v, supply, demand, head, follow, source, amount, level, reach, counts):
    """Find the distance from the free rows to the nearest free column, level by level.

    On return ``level`` holds the distances of the rows and ``reach`` those of the columns plus
    v, right for all nodes nearer than the returned distance. Nodes at one distance are settled
    together, so that selection costs one scan for each distinct distance (Dial's buckets,
    found instead of stored).
    """
    n, m = c.shape
    far = c.dtype.type(np.iinfo(c.dtype).max // 2)
    settled = zeros(m, np.bool_)
    queue = empty(n, np.intp)
    zero = zeros(n, c.dtype)
    n_queue = 0
    for i in range(n):
        level[i] = far
        if supply[i] > 0:
            level[i] = 0
            queue[n_queue] = i
            n_queue += 1
    for j in range(m):
        reach[j] = far
    current = c.dtype.type(0)
    while True:
        for k in range(n_queue):
            i = queue[k]
            _relax(c[i], c.dtype.type(current + 1 - y[i]), reach)
        counts[RELAXED] += n_queue * m
        n_queue = 0
        is_new_level = True
        while is_new_level:
            is_new_level = False
            counts[SCANNED] += m
            j = find(reach, v, current, 0)
            while j < m:
                if not settled[j]:
                    if demand[j] > 0:
                        return current
                    settled[j] = True
                    n_queue = _give_back(
                        c, y, v, j, current, head, follow, source, amount, level, queue, n_queue,
                        counts,
                    )  # fmt: skip
                j = find(reach, v, current, j + 1)
            if n_queue == 0:
                column = _next_above(reach, v, current, far)
                row = _next_above(level, zero, current, far)
                counts[SCANNED] += n + m
                current = column if column < row else row
                if current >= far:
                    return c.dtype.type(-1)
                i = find(level, zero, current, 0)
                while i < n:
                    queue[n_queue] = i
                    n_queue += 1
                    i = find(level, zero, current, i + 1)
                is_new_level = column == current  # a free column may end the search at once


@njit(**KERNEL)
def _give_back(c, y, v, j, current, head, follow, source, amount, level, queue, n_queue, counts):
    """Relax the arcs from column j to the rows that feed it; queue rows reached at no cost."""
    k = head[j]
    while k >= 0:
        i = source[k]
        value = current + y[i] + v[j] - c[i, j]
        counts[RELAXED] += 1
        if amount[k] > 0 and value < level[i]:
            level[i] = value
            if value == current:
                queue[n_queue] = i
                n_queue += 1
        k = follow[k]
    return n_queue


@njit(**KERNEL)
def start_phase(c, y, v, supply, demand, head, follow, source, amount, row_at, col_at, counts):
    """Drop empty flow entries, search, raise the duals, and rewind the pointers of the DFS."""
    n, m = c.shape
    level, reach = empty(n, c.dtype), empty(m, c.dtype)
    recycle_empty(head, follow, amount)
    distance = search(c, y, v, supply, demand, head, follow, source, amount, level, reach, counts)
    for i in range(n):
        if level[i] < distance:
            y[i] += distance - level[i]
        row_at[i] = 0
    for j in range(m):
        if reach[j] - v[j] < distance:
            v[j] = reach[j] - distance
        col_at[j] = head[j]
    return distance


@njit(**KERNEL)
def recycle_empty(head, follow, amount):
    """Move entries without flow to the list of unused ones."""
    m = head.size - 1
    for j in range(m):
        before, k = -1, head[j]
        while k >= 0:
            after = follow[k]
            if amount[k] > 0:
                before = k
            else:
                if before < 0:
                    head[j] = after
                else:
                    follow[before] = after
                follow[k] = head[m]
                head[m] = k
            k = after


@njit(**KERNEL)
def send(i, j, b, head, follow, source, sink, amount):
    """Add b to the flow from row i to column j; there must be an unused entry."""
    k = head[j]
    while k >= 0 and source[k] != i:
        k = follow[k]
    if k < 0:
        unused = head.size - 1
        k = head[unused]
        head[unused] = follow[k]
        follow[k] = head[j]
        head[j] = k
        source[k] = i
        sink[k] = j
    amount[k] += b


@njit(**KERNEL)
def has_unused(head, follow, wanted):
    """Tell whether at least ``wanted`` unused entries are left."""
    k = head[head.size - 1]
    while k >= 0 and wanted > 0:
        wanted -= 1
        k = follow[k]
    return wanted == 0


@njit(**KERNEL)
def route(
    c, y, v, supply, demand, head, follow, source, sink, amount, row_at, col_at, first, counts
):
    """Augment along paths of zero slack, depth first, from each free row from ``first`` on.

    The pointers ``row_at`` and ``col_at`` only advance, so an arc is tested once per phase.
    Returns n, or the row to continue from after the lists of flow have been enlarged.
    """
    n = supply.size
    far = c.dtype.type(np.iinfo(c.dtype).max // 2)
    row_on, col_on = zeros(n, np.bool_), zeros(v.size, np.bool_)
    path_row, path_col = empty(n + 1, np.intp), empty(n + 1, np.intp)
    alive = v.copy()
    for j in range(v.size):
        if col_at[j] < 0 and demand[j] == 0:
            alive[j] = -far
    for r in range(first, n):
        while supply[r] > 0:
            depth = _grow(
                c, y, v, r, demand, follow, source, amount, row_at, col_at, row_on, col_on,
                path_row, path_col, alive, counts,
            )  # fmt: skip
            if depth < 0:
                break
            b = min(supply[r], demand[path_col[depth]])
            for e in range(depth):
                b = min(b, amount[col_at[path_col[e]]])
            is_roomy = has_unused(head, follow, depth + 1)
            for e in range(depth + 1):
                row_on[path_row[e]] = False
                col_on[path_col[e]] = False
            if not is_roomy:
                return r
            for e in range(depth + 1):
                if e < depth:
                    amount[col_at[path_col[e]]] -= b
                send(path_row[e], path_col[e], b, head, follow, source, sink, amount)
            supply[r] -= b
            demand[path_col[depth]] -= b
            counts[TESTED] += 2 * depth + 1
    return n


@njit(**KERNEL)
def _grow(
    c, y, v, r, demand, follow, source, amount, row_at, col_at, row_on, col_on, path_row, path_col,
    alive, counts,
):  # fmt: skip
    """Grow a path from row r to a free column; return its last index, or -1 if there is none."""
    m = v.size
    depth = 0
    path_row[0] = r
    row_on[r] = True
    is_at_row = True
    while True:
        i = path_row[depth]
        if is_at_row:
            begin = row_at[i]
            j = find(c[i], alive, c.dtype.type(y[i] - 1), begin)
            counts[TESTED] += min(j + 1, m) - begin
            row_at[i] = j
            if j == m:  # dead end: back to the column that led here
                row_on[i] = False
                if depth == 0:
                    return -1
                depth -= 1
                col_at[path_col[depth]] = follow[col_at[path_col[depth]]]
                is_at_row = False
            elif col_on[j]:
                row_at[i] += 1
            else:
                path_col[depth] = j
                col_on[j] = True
                if demand[j] > 0:
                    return depth
                is_at_row = False
        else:
            j = path_col[depth]
            k = col_at[j]
            while k >= 0:
                counts[TESTED] += 1
                x = source[k]
                if amount[k] > 0 and not row_on[x] and y[x] + v[j] == c[x, j]:
                    break
                k = follow[k]
            col_at[j] = k
            if k < 0:
                col_on[j] = False
                alive[j] = -(np.iinfo(c.dtype).max // 2)  # no arc to it is admissible any more
                row_at[i] += 1
                is_at_row = True
            else:
                depth += 1
                path_row[depth] = source[k]
                row_on[source[k]] = True
                is_at_row = True


# -- push-relabel ----------------------------------------------------------------------------------
#
# Inner loop of the push-relabel variant (Lahn, Raghvendra, Zhang), on the lists of ``dijkstra``.
#
# All pushes and releases of a phase use the duals of its start. A row with free supply pushes along
# arcs with c + 1 = y + v: first into free demand, then in exchange for *loose* flow, which the
# column then releases from rows with y + v = c. Rows left with supply rise by one, columns that can
# take no more fall by one.


@njit(**KERNEL)
def push_phases(
    c, y, v, supply, demand, head, follow, source, sink, amount, loose, allowed, budget, counts
):
    """Run phases until the free supply is at most ``allowed`` or the budget of tests is spent.

    Returns the number of phases, or minus that number minus one when the lists of flow must be
    enlarged: a phase starts only if every row and column could add an entry.
    """
    n, m = c.shape
    need = zeros(m, np.int64)
    is_spent, is_raised = zeros(m, np.bool_), zeros(n, np.bool_)
    n_phases = 0
    last = counts[TESTED] + budget
    while True:
        free = supply[0] * 0
        n_free = 0
        for i in range(n):
            free += supply[i]
            n_free += supply[i] > 0
        if free <= allowed or (n_phases > 0 and counts[TESTED] >= last):
            return n_phases
        recycle_empty(head, follow, amount)
        if not has_unused(head, follow, n_free + m):
            return -n_phases - 1
        _push(
            c, y, v, supply, demand, head, follow, source, sink, amount, loose, need, is_spent,
            is_raised, counts,
        )  # fmt: skip
        _release(c, y, v, supply, head, follow, source, amount, need, counts)
        for i in range(n):
            y[i] += is_raised[i]
        for j in range(m):
            v[j] -= is_spent[j]
        _find_loose(c, y, v, demand, head, follow, source, amount, loose, counts)
        n_phases += 1


@njit(**KERNEL)
def _push(
    c, y, v, supply, demand, head, follow, source, sink, amount, loose, need, is_spent, is_raised,
    counts,
):  # fmt: skip
    """Push the supply of every free row; mark rows that keep some and full columns."""
    n, m = c.shape
    for j in range(m):
        is_spent[j] = False
        need[j] = 0
    for i in range(n):
        is_raised[i] = False
        if supply[i] == 0:
            continue
        wanted = c.dtype.type(y[i] - 1)
        j = find(c[i], v, wanted, 0)
        while j < m and supply[i] > 0:
            if not is_spent[j]:
                b = min(supply[i], demand[j])
                demand[j] -= b
                if demand[j] == 0:
                    more = min(supply[i] - b, loose[j] - need[j])
                    need[j] += more
                    b += more
                    is_spent[j] = loose[j] == need[j]
                if b > 0:
                    send(i, j, b, head, follow, source, sink, amount)
                    supply[i] -= b
            if supply[i] > 0:
                j = find(c[i], v, wanted, j + 1)
        counts[TESTED] += min(j + 1, m)
        is_raised[i] = supply[i] > 0


@njit(**KERNEL)
def _release(c, y, v, supply, head, follow, source, amount, need, counts):
    """Return the promised flow to rows whose arc is tight."""
    for j in range(need.size):
        k = head[j]
        while k >= 0 and need[j] > 0:
            counts[TESTED] += 1
            i = source[k]
            if y[i] + v[j] == c[i, j]:
                b = min(need[j], amount[k])
                amount[k] -= b
                supply[i] += b
                need[j] -= b
            k = follow[k]


@njit(**KERNEL)
def _find_loose(c, y, v, demand, head, follow, source, amount, loose, counts):
    """Write loose_j = the flow into a full column j that may be released at the new duals."""
    for j in range(loose.size):
        loose[j] = 0
        if demand[j] > 0:
            continue
        k = head[j]
        while k >= 0:
            counts[TESTED] += 1
            if y[source[k]] + v[j] == c[source[k], j]:
                loose[j] += amount[k]
            k = follow[k]
