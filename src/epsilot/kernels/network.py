"""Primal network simplex on the arcs of a transport problem, from one basis to a better one.

Nodes 0 ... n + m - 1 are the rows, then the columns; the root is n + m. A basis is a spanning tree
of arcs, kept as a tuple of arrays: the parent of each node, the arc to it (``preds``) and whether
that arc points up; its flow; the nodes in preorder as a circular list (``after``, ``before``), with
the last of each subtree and its size; and node prices y, for which the reduced cost of an arc
i -> j is c + y[i] - y[j]. Arcs have no capacity, so only those of the tree carry flow. Artificial
arcs join nodes to the root. A tree arc without flow points up: such trees are *strongly feasible*,
and pivots that keep them so cannot cycle.

Indices are unsigned, because numba checks signed ones for wrap-around, which halves the speed.
"""

from __future__ import annotations

import math

import numpy as np

from .arrays import accumulate, copy_to, empty, zeros
from .compiling import KERNEL, njit

ARTIFICIAL = np.uint32(0xFFFFFFFF)
ZERO, ONE, TWO, THREE, FOUR = (np.uint32(k) for k in range(5))
#: Pivots over which the walk length is averaged; fewest and most arcs priced per block.
AVERAGED_PIVOTS, MIN_PRICED_ARCS, MAX_PRICED_ARCS = 64, 50, 1 << 40


@njit(**KERNEL)
def _leader(u, leaders):
    """Return the leader of u's component."""
    while leaders[u] != u:
        leaders[u] = leaders[leaders[u]]
        u = leaders[u]
    return u


@njit(**KERNEL)
def _forest(sources, targets, order, n_nodes):
    """Return the arcs of Kruskal's forest for arcs taken in the given order."""
    leaders, chosen = empty(n_nodes, np.int64), empty(n_nodes, np.int64)
    for u in range(n_nodes):
        leaders[u] = u
    size = 0
    for arc in order:
        u, v = _leader(sources[arc], leaders), _leader(targets[arc], leaders)
        if u != v:
            leaders[u] = v
            chosen[size] = arc
            size += 1
    return chosen[:size]


@njit(**KERNEL)
def _rooted(sources, targets, chosen, parents, preds):
    """Hang a forest from the root, breadth first; return its nodes in that order."""
    root = parents.size - 1
    starts = zeros(root + 2, np.int64)
    for arc in chosen:
        starts[sources[arc] + 2] += 1
        starts[targets[arc] + 2] += 1
    accumulate(starts)
    incident = empty(2 * chosen.size, np.int64)
    for arc in chosen:
        u, v = sources[arc], targets[arc]
        incident[starts[u + 1]] = arc
        starts[u + 1] += 1
        incident[starts[v + 1]] = arc
        starts[v + 1] += 1
    parents[:] = ARTIFICIAL  # not yet seen
    parents[root] = root
    queue = empty(root, np.int64)
    head, tail = 0, 0
    for start in range(root):
        if parents[start] != ARTIFICIAL:
            continue
        parents[start], queue[tail] = root, start
        tail += 1
        while head < tail:
            u = queue[head]
            head += 1
            for place in range(starts[u], starts[u + 1]):
                arc = incident[place]
                v = targets[arc] if sources[arc] == u else sources[arc]
                if parents[v] == ARTIFICIAL:
                    parents[v], preds[v], queue[tail] = u, arc, v
                    tail += 1
    return queue


@njit(**KERNEL)
def crash(sources, targets, costs, order, supply, big, tree):
    """Build a strongly feasible basis from the forest of the first arcs in ``order``.

    ``supply`` is positive for rows and negative for columns. A subtree whose surplus would flow
    against its arc hangs from the root instead. Sending to the root costs nothing and receiving
    from it costs ``big``, so that an optimum receives from it only if the arcs are infeasible.
    """
    parents, preds, after, before, last, sizes, is_up, flow, y = tree
    root = supply.size
    queue = _rooted(sources, targets, _forest(sources, targets, order, root), parents, preds)
    surplus = empty(root)
    copy_to(supply, surplus)
    sizes[:] = 1
    for u in queue[::-1]:
        up = parents[u] != root and sources[preds[u]] == u
        if parents[u] == root or up != (surplus[u] >= 0):
            parents[u], preds[u], up = root, ARTIFICIAL, surplus[u] >= 0
        else:
            surplus[parents[u]] += surplus[u]
        is_up[u], flow[u] = up, abs(surplus[u])
        sizes[parents[u]] += sizes[u]

    free = empty(root + 1, np.int64)  # the next free place in the preorder of each subtree
    nodes = empty(root + 1, np.int64)
    free[root], nodes[0], y[root] = 1, root, 0.0
    for u in queue:
        parent = parents[u]
        place = free[parent]
        free[parent] += sizes[u]
        free[u], nodes[place] = place + 1, u
        cost = costs[preds[u]] if preds[u] != ARTIFICIAL else (0.0 if is_up[u] else big)
        y[u] = y[parent] - cost if is_up[u] else y[parent] + cost
    u = nodes[root]
    for v in nodes:
        after[u], before[v], last[v] = v, u, nodes[free[v] - 1]
        u = v


@njit(**KERNEL)
def shortage(tree, rise):
    """Return the flow from the root to its children, and raise its cost by ``rise``."""
    _, _, after, _, last, sizes, is_up, flow, y = tree
    root = after.size - 1
    total = 0.0
    child = after[root]
    while child != root:
        if not is_up[child]:
            total += flow[child]
            u = child
            for _ in range(sizes[child]):
                y[u] += rise
                u = after[u]
        child = after[last[child]]
    return total


@njit(**KERNEL)
def refresh(costs, tree):
    """Compute the prices of the basis again from the root, free of the pivots' round-off."""
    parents, preds, after, _, _, _, is_up, _, y = tree
    root = after.size - 1
    u = after[root]
    while u != root:
        if preds[u] != ARTIFICIAL:
            cost = costs[preds[u]]
            y[u] = y[parents[u]] - cost if is_up[u] else y[parents[u]] + cost
        u = after[u]


@njit(**KERNEL)
def lower_to_costs(sources, targets, costs, potentials, sweeps):
    """Lower potentials until π_i <= c_ij + π_j in exact arithmetic, at most in some sweeps.

    Costs are nonnegative. Sums are rounded down. Sweeps go forwards and backwards in turn.
    """
    n_arcs = sources.size
    for sweep in range(sweeps):
        is_changed = False
        for k in range(n_arcs):
            arc = k if sweep % 2 == 0 else n_arcs - 1 - k
            i, c, x = sources[arc], costs[arc], potentials[targets[arc]]
            total = c + x
            if potentials[i] < total:
                continue
            part = total - c
            if (c - (total - part)) + (x - part) < 0:  # the sum was rounded up
                total = np.nextafter(total, -np.inf)
            if potentials[i] > total:
                potentials[i], is_changed = total, True
        if not is_changed:
            break


@njit(**KERNEL)
def _cheapest(sources, targets, costs, y, at, end, least, cheapest):
    """Return the least reduced cost of the arcs ``at`` to ``end``, and the first arc that has it.

    ``least`` and ``cheapest`` are those so far. Four arcs are compared at once, because few are
    cheaper than all before.
    """
    arc = at
    while arc + FOUR <= end:
        b, c, d = arc + ONE, arc + TWO, arc + THREE
        first = costs[arc] + y[sources[arc]] - y[targets[arc]]
        second = costs[b] + y[sources[b]] - y[targets[b]]
        third = costs[c] + y[sources[c]] - y[targets[c]]
        fourth = costs[d] + y[sources[d]] - y[targets[d]]
        of_two, of_others = min(first, second), min(third, fourth)
        if min(of_two, of_others) < least:
            if first < least:
                least, cheapest = first, np.uint32(arc)
            if second < least:
                least, cheapest = second, np.uint32(b)
            if third < least:
                least, cheapest = third, np.uint32(c)
            if fourth < least:
                least, cheapest = fourth, np.uint32(d)
        arc = np.uint32(arc + FOUR)
    while arc < end:
        reduced = costs[arc] + y[sources[arc]] - y[targets[arc]]
        if reduced < least:
            least, cheapest = reduced, arc
        arc = np.uint32(arc + ONE)
    return least, cheapest


@njit(**KERNEL)
def pivots(
    sources,
    targets,
    costs,
    tree,
    start,
    tolerance,
    most,
    fewest=MIN_PRICED_ARCS,
    largest=MAX_PRICED_ARCS,
):
    """Pivot at most ``most`` times.

    Return the numbers of pivots, of the next arc to price, of arcs priced and of nodes visited.
    Fewer pivots than ``most`` mean that no reduced cost is below -tolerance, or that artificial
    arcs are too cheap to bound a cycle. The arc of least reduced cost of a block enters; blocks are
    about as long as the walks of a pivot, and between ``fewest`` and ``largest`` arcs.
    """
    y = tree[8]
    n_arcs = np.uint32(sources.size)
    at, average = np.uint32(start), math.sqrt(n_arcs)
    priced, walked = 0, 0
    for done in range(most):
        entering, least, left = n_arcs, -tolerance, n_arcs
        block = np.uint32(min(max(int(average), fewest), largest, n_arcs))
        while left > ZERO and entering == n_arcs:
            n_new = min(block, left)
            left -= n_new
            priced += n_new
            while n_new > ZERO:
                end = np.uint32(min(n_arcs, at + n_new))
                least, entering = _cheapest(sources, targets, costs, y, at, end, least, entering)
                n_new -= np.uint32(end - at)
                at = ZERO if end == n_arcs else end
        if entering == n_arcs:
            return done, at, priced, walked
        i, j = sources[entering], targets[entering]
        steps = exchange(i, j, entering, least, np.inf, tree)
        if steps < 0:
            return done, at, priced, walked
        walked += steps
        average += (steps - average) / AVERAGED_PIVOTS
    return most, at, priced, walked


@njit(**KERNEL)
def exchange(i, j, entering, reduced, most, tree):
    """Let the arc i -> j enter the tree; return the number of nodes visited.

    ``reduced`` is its reduced cost, and ``most`` is above every flow. Flows and prices may be
    floats or integers. If no arc of the cycle loses flow, nothing changes and -1 is returned.
    """
    parents, _, after, _, last, sizes, is_up, flow, y = tree
    n_nodes = parents.size
    root = np.uint32(n_nodes - 1)
    u, v = i, j
    while u != v:
        if sizes[u] < sizes[v]:
            u = parents[u]
        else:
            v = parents[v]
    join = u

    # Of the arcs that empty first, the last on the cycle from the join leaves.
    delta, out, is_source_side, length = most, root, True, 0
    u = i
    while u != join:
        if is_up[u] and flow[u] < delta:
            delta, out = flow[u], u
        u = parents[u]
        length += 1
    u = j
    while u != join:
        if not is_up[u] and flow[u] <= delta:
            delta, out, is_source_side = flow[u], u, False
        u = parents[u]
        length += 1
    if out == root:
        return -1
    if delta > 0:
        u = i
        while u != join:
            flow[u] += -delta if is_up[u] else delta
            u = parents[u]
        u = j
        while u != join:
            flow[u] += delta if is_up[u] else -delta
            u = parents[u]

    inside, outside = (i, j) if is_source_side else (j, i)
    moved = sizes[out]
    u = parents[out]
    while u != join:
        sizes[u] -= moved
        u = parents[u]
    u = outside
    while u != join:
        sizes[u] += moved
        u = parents[u]
    _hang(inside, outside, out, entering, is_source_side, delta, tree)

    # Only differences of prices matter, so the smaller part changes them.
    by = -reduced if is_source_side else reduced
    n_changed = int(moved)
    u = inside
    if 2 * n_changed > n_nodes:
        n_changed, by = n_nodes - n_changed, -by
        u = after[last[inside]]
    for _ in range(n_changed):
        y[u] += by
        u = after[u]
    return length + n_changed


@njit(**KERNEL)
def _hang(inside, outside, out, pred, up, carried, tree):
    """Cut the subtree of ``out``, and hang it by its node ``inside`` from ``outside``.

    The path from ``inside`` to ``out`` is reversed. In preorder, the remaining descendants of each
    of its nodes follow those of the node before it.
    """
    parents, preds, after, before, last, sizes, is_up, flow, _ = tree
    root = np.uint32(parents.size - 1)
    moved, end_of_out, ahead_of_out, cut_from = sizes[out], last[out], before[out], parents[out]
    u, parent = inside, outside
    held, tail, end_below, ahead = ZERO, root, root, root
    while True:
        # Remove the rest of u's subtree from the list ...
        end = ahead if end_below == last[u] else last[u]
        end_below, ahead, behind = last[u], before[u], after[end]
        after[ahead], before[behind] = behind, ahead
        # ... and append it to the reversed one.
        if tail != root:
            after[tail], before[u] = u, tail
        tail = end
        was = parents[u], preds[u], is_up[u], flow[u], sizes[u]
        parents[u], preds[u], is_up[u], flow[u] = parent, pred, up, carried
        sizes[u] = moved - held
        if u == out:
            break
        parent = u
        u, pred, up, carried, held = was[0], was[1], not was[2], was[3], was[4]

    u = cut_from
    while last[u] == end_of_out:
        last[u] = ahead_of_out
        if u == root:
            break
        u = parents[u]
    behind = after[outside]
    after[outside], before[inside] = inside, outside
    after[tail], before[behind] = behind, tail
    u = out
    while u != outside:
        last[u] = tail
        u = parents[u]
    while last[u] == outside:
        last[u] = tail
        if u == root:
            break
        u = parents[u]
