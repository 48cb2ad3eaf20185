"""Flows between neighbouring cells of a grid: coarser grids, spanning trees, and a simplex.

With the l1 cost, transport on a grid is a minimum-cost flow on its graph, in which every cell is
joined to the next one along each axis. All grids have three axes here, missing ones of length 1;
cell (i, j, k) has number (i n1 + j) n2 + k. A spanning tree is one byte per cell, *marks*: bit k is
set if the edge to the next cell along axis k belongs to it. Masses, flows and prices are integers,
so that arithmetic is exact and no tolerance is needed.
"""

from __future__ import annotations

import numpy as np

from .arrays import copy_to, empty, zeros
from .compiling import KERNEL, njit
from .network import ONE, exchange

#: A number above every flow and every price.
UNBOUNDED = np.int64(1) << np.int64(62)
#: Side of a tile of cells that are priced together, for grids of one, two and three axes.
TILE_SIDES = (128, 8, 4)


@njit(**KERNEL)
def strides(shape):
    """Return the change of a cell's number per step along each axis; 0 for an axis of length 1."""
    step = np.array([shape[1] * shape[2], shape[2], 1])
    for k in range(3):
        if shape[k] == 1:  # else it would equal the stride of another axis
            step[k] = 0
    return step


@njit(**KERNEL)
def halved(supply, shape, coarse):
    """Return the sums over blocks of two cells along each axis; the last may have one."""
    out = zeros(coarse[0] * coarse[1] * coarse[2], np.int64)
    u = 0
    for i in range(shape[0]):
        for j in range(shape[1]):
            line = ((i >> 1) * coarse[1] + (j >> 1)) * coarse[2]
            for k in range(shape[2]):
                out[line + (k >> 1)] += supply[u]
                u += 1
    return out


@njit(**KERNEL)
def comb(shape):
    """Return the spanning tree of all lines along the last axis and one line across them."""
    marks = zeros(shape[0] * shape[1] * shape[2], np.uint8)
    u = 0
    for i in range(shape[0]):
        for j in range(shape[1]):
            for k in range(shape[2]):
                if k + 1 < shape[2]:
                    marks[u] |= 4
                if k == 0 and j + 1 < shape[1]:
                    marks[u] |= 2
                if k == 0 and j == 0 and i + 1 < shape[0]:
                    marks[u] |= 1
                u += 1
    return marks


@njit(**KERNEL)
def refined(marks, coarse, shape):
    """Refine a coarse tree: one edge between blocks per coarse edge, and combs within blocks."""
    out = zeros(shape[0] * shape[1] * shape[2], np.uint8)
    u = 0
    for i in range(shape[0]):
        for j in range(shape[1]):
            line = ((i >> 1) * coarse[1] + (j >> 1)) * coarse[2]
            for k in range(shape[2]):
                crossing = marks[line + (k >> 1)]
                a, b, c = i & 1, j & 1, k & 1
                mark = 0
                if c == 0:
                    mark |= 4 if k + 1 < shape[2] else 0
                elif a + b == 0:
                    mark |= crossing & 4
                if c + b == 0:
                    mark |= 2 if j + 1 < shape[1] else 0
                elif c + a == 0:
                    mark |= crossing & 2
                if c + b + a == 0:
                    mark |= 1 if i + 1 < shape[0] else 0
                elif c + b == 0:
                    mark |= crossing & 1
                out[u] = mark
                u += 1
    return out


@njit(**KERNEL)
def hang(marks, shape, parents):
    """Hang a spanning tree from its first cell, breadth first; return the cells in that order."""
    n = marks.size
    step = strides(shape)
    queue = empty(n, np.uint32)
    parents[n] = n
    parents[0], queue[0] = n, 0
    tail = 1
    for head in range(n):
        u = int(queue[head])
        parent = int(parents[u])
        for k in range(3):
            if marks[u] >> k & 1 and u + step[k] != parent:
                parents[u + step[k]], queue[tail] = u, u + step[k]
                tail += 1
            v = u - step[k]
            if v >= 0 and marks[v] >> k & 1 and v != parent:
                parents[v], queue[tail] = u, v
                tail += 1
    return queue


@njit(**KERNEL)
def basis(marks, supply, costs, shape, tree):
    """Build the strongly feasible basis of a spanning tree, where empty arcs point up."""
    parents, _, after, before, last, sizes, is_up, flow, y = tree
    n = supply.size
    step = strides(shape)
    queue = hang(marks, shape, parents)
    surplus = zeros(n + 1, np.int64)
    copy_to(supply, surplus[:n])
    sizes[:] = 1
    for place in range(n - 1, -1, -1):
        u = queue[place]
        is_up[u], flow[u] = surplus[u] >= 0, abs(surplus[u])
        surplus[parents[u]] += surplus[u]
        sizes[parents[u]] += sizes[u]
    free = empty(n + 1, np.uint32)  # the next free place in the preorder of each subtree
    nodes = empty(n + 1, np.uint32)
    free[n], nodes[0], y[n] = 1, n, 0
    for u in queue:
        parent = parents[u]
        place = free[parent]
        free[parent] += sizes[u]
        free[u], nodes[place] = place + ONE, u
        if parent == n:
            y[u] = 0
        else:
            away = abs(np.int64(u) - np.int64(parent))
            cost = costs[axis_of(away, step)]
            y[u] = y[parent] - cost if is_up[u] else y[parent] + cost
    for place in range(n + 1):
        u, v = nodes[place], nodes[place + 1 if place < n else 0]
        after[u], before[v], last[u] = v, u, nodes[free[u] - ONE]


@njit(**KERNEL)
def is_basis(tree, supply, costs, shape):
    """Tell whether a basis read from a file is consistent with supply, costs and shape."""
    parents, _, after, before, last, sizes, is_up, flow, y = tree
    n = supply.size
    step = strides(shape)
    nodes, place = empty(n + 1, np.int64), empty(n + 1, np.int64)
    place[:] = -1
    u = n
    for k in range(n + 1):
        if place[u] >= 0:
            return False
        nodes[k], place[u] = u, k
        v = int(after[u])
        if v > n or before[v] != u:
            return False
        u = v
    counted, surplus = empty(n + 1, np.int64), zeros(n + 1, np.int64)
    counted[:] = 1
    copy_to(supply, surplus[:n])
    for k in range(n, 0, -1):
        u = nodes[k]
        v = int(parents[u])
        if v > n or place[v] >= k:
            return False
        if surplus[u] != (flow[u] if is_up[u] else -flow[u]) or is_up[u] != (surplus[u] >= 0):
            return False
        if v < n:
            axis = axis_of(abs(u - v), step)
            if abs(u - v) != step[axis]:
                return False
            line = min(u, v) // step[axis] % shape[axis]
            rise = y[v] - y[u] if is_up[u] else y[u] - y[v]
            if line + 1 >= shape[axis] or rise != costs[axis]:
                return False
        counted[v] += counted[u]
        surplus[v] += surplus[u]
    for u in range(n + 1):
        if sizes[u] != counted[u] or last[u] != nodes[place[u] + counted[u] - 1]:
            return False
    return parents[n] == n and surplus[n] == 0


@njit(**KERNEL)
def axis_of(away, step):
    """Return the axis along which neighbours differ, given the difference of their numbers."""
    return 2 if away == step[2] else (1 if away == step[1] else 0)


@njit(**KERNEL)
def marks_of(tree, shape):
    """Return the marks of the tree of a basis."""
    parents = tree[0]
    n = parents.size - 1
    step = strides(shape)
    marks = zeros(n, np.uint8)
    for u in range(n):
        v = int(parents[u])
        if v < n:
            marks[min(u, v)] |= 1 << axis_of(abs(u - v), step)
    return marks


@njit(**KERNEL)
def flows_of(tree, shape):
    """Return the flow of a basis to the next cell along each axis, negative if it is incoming."""
    parents, is_up, flow = tree[0], tree[6], tree[7]
    n = parents.size - 1
    step = strides(shape)
    out = zeros((3, n), np.int64)
    for u in range(n):
        v = int(parents[u])
        if v < n:
            out[axis_of(abs(u - v), step), min(u, v)] = flow[u] if is_up[u] == (u < v) else -flow[u]
    return out


@njit(**KERNEL)
def tiles(shape):
    """Return the sides of the tiles of pricing, and their numbers along each axis."""
    n_axes = (shape > 1).sum()
    side = TILE_SIDES[max(n_axes, 1) - 1]
    sides = np.minimum(shape, side)
    return sides, (shape + sides - 1) // sides


@njit(**KERNEL)
def steepest(y, low, high, shape, costs):
    """Return the least reduced cost of the arcs from a box of cells to the next ones, or back.

    The box is low:high along each axis. With the reduced cost, the ends of the arc; 0 if none is
    negative.
    """
    least, i, j = np.int64(0), np.int64(0), np.int64(0)
    step = strides(shape)
    for a in range(low[0], high[0]):
        for b in range(low[1], high[1]):
            line = a * step[0] + b * step[1]
            for k in range(3):
                to = high[2]
                if k == 2:
                    to = min(to, shape[2] - 1)
                elif (b if k == 1 else a) + 1 == shape[k]:
                    continue
                ahead, cost = step[k], costs[k]
                for v in range(line + low[2], line + to):
                    rise = y[v + ahead] - y[v]
                    reduced = cost - abs(rise)
                    if reduced < least:
                        least = reduced
                        i, j = (v, v + ahead) if rise > 0 else (v + ahead, v)
    return least, i, j


@njit(**KERNEL)
def pivots(tree, shape, costs, start, left, budget):
    """Pivot until an optimum, or until cells priced and nodes walked over exceed ``budget``.

    ``left`` tiles from ``start`` on may still have negative reduced costs: at first all. Return the
    next tile, the tiles left (0 at an optimum), and the numbers of cells priced and nodes visited.
    The arc of least reduced cost of a tile enters until the tile has no negative one: nearby pivots
    move smaller subtrees.
    """
    y = tree[8]
    sides, counts = tiles(shape)
    n_tiles = counts[0] * counts[1] * counts[2]
    at, priced, walked = start, 0, 0
    low, high = empty(3, np.int64), empty(3, np.int64)
    while left > 0 and priced + walked < budget:
        rest = at
        for k in range(2, -1, -1):
            low[k] = rest % counts[k] * sides[k]
            high[k] = min(low[k] + sides[k], shape[k])
            rest //= counts[k]
        reduced, i, j = steepest(y, low, high, shape, costs)
        priced += (high[0] - low[0]) * (high[1] - low[1]) * (high[2] - low[2])
        if reduced < 0:
            walked += exchange(np.uint32(i), np.uint32(j), np.uint32(0), reduced, UNBOUNDED, tree)
            left = n_tiles
        else:
            left -= 1
            at = at + 1 if at + 1 < n_tiles else 0
    return at, left, priced, walked


# -- from a flow to a plan -------------------------------------------------------------------------
#
# A flow between neighbouring cells is decomposed into (source, target, mass).


@njit(**KERNEL)
def _outgoing(u, flows, step, ends, amounts):
    """Write the targets and amounts of the flow out of cell u; return their number."""
    size = 0
    for k in range(3):
        if flows[k, u] > 0:
            ends[size], amounts[size] = u + step[k], flows[k, u]
            size += 1
        v = u - step[k]
        if v >= 0 and flows[k, v] < 0:
            ends[size], amounts[size] = v, -flows[k, v]
            size += 1
    return size


@njit(**KERNEL)
def _sources_left(flows, step):
    """Return the number of cells from which each cell receives."""
    n = flows.shape[1]
    left = zeros(n, np.uint8)
    for k in range(3):
        for u in range(n):
            if flows[k, u] > 0:
                left[u + step[k]] += 1
            elif flows[k, u] < 0:
                left[u] += 1
    return left


@njit(**KERNEL)
def flow_to_plan(supply, flows, shape):
    """Return (source, target, mass) of a flow without cycles that serves ``supply``.

    ``flows`` is as from :func:`flows_of`. Cells are visited in topological order, each after those
    that send to it. A cell holds a list of parcels (source, mass). It keeps the mass it lacks,
    fills every outgoing arc but the last from the head of the list, splitting at most one parcel,
    and sends the rest through the last arc. On the flow of a tree there are fewer parcels than
    cells with supply or demand, and their arcs form a forest.
    """
    n = supply.size
    step = strides(shape)
    left = _sources_left(flows, step)
    n_ends = np.count_nonzero(supply)
    owner, link = empty(n_ends + 1, np.uint32), empty(n_ends + 1, np.int32)
    held = empty(n_ends + 1, np.int64)
    head, tail = empty(n, np.int32), empty(n, np.int32)
    head[:] = -1
    source, target = empty(n_ends, np.int64), empty(n_ends, np.int64)
    mass = empty(n_ends, np.int64)
    order = empty(n, np.uint32)
    made, delivered, known = 0, 0, 0
    for u in range(n):
        if left[u] == 0:
            order[known] = u
            known += 1
        if supply[u] > 0:
            owner[made], held[made], link[made] = u, supply[u], -1
            head[u] = tail[u] = made
            made += 1
    ends, amounts = empty(6, np.int64), empty(6, np.int64)
    for place in range(n):
        u = np.int64(order[place])
        lacks = -supply[u]
        while lacks > 0:
            p = head[u]
            x = min(lacks, held[p])
            source[delivered], target[delivered], mass[delivered] = owner[p], u, x
            delivered += 1
            lacks -= x
            held[p] -= x
            if held[p] == 0:
                head[u] = link[p]
        n_out = _outgoing(u, flows, step, ends, amounts)
        for out in range(n_out):
            v, x = ends[out], amounts[out]
            first = head[u]
            last = tail[u]
            if out < n_out - 1:
                last = first
                while held[last] < x:
                    x -= held[last]
                    last = link[last]
                head[u] = link[last]
                if held[last] > x:  # the excess stays here as a new parcel
                    owner[made], held[made], link[made] = owner[last], held[last] - x, link[last]
                    if link[last] < 0:
                        tail[u] = made
                    head[u], held[last] = made, x
                    made += 1
            link[last] = -1
            if head[v] < 0:
                head[v] = first
            else:
                link[tail[v]] = first
            tail[v] = last
            left[v] -= 1
            if left[v] == 0:
                order[known] = v
                known += 1
    return source[:delivered], target[:delivered], mass[:delivered]
