"""Flows on a forest of arcs, which the masses at the nodes determine."""

from __future__ import annotations

import numpy as np

from .arrays import copy_to, empty, zeros
from .compiling import KERNEL, njit
from .sums import total

#: Largest mass, as a share of 1, that the flow on a forest may leave at its nodes by round-off.
MAX_UNSETTLED_MASS = 1e-15


@njit(**KERNEL)
def take(high, low, amount):
    """Return high + low - amount in two parts; the low part collects rounding errors."""
    left = high - amount
    taken = high - left
    lost = (high - (left + taken)) + (taken - amount)
    return left, low + lost


@njit(**KERNEL)
def binned(places, flow, others, x, out):
    """Write out_p = Σ flow x_o over the arcs between p and o, in their order."""
    out[:] = 0.0
    for k in range(flow.size):
        out[places[k]] += flow[k] * x[others[k]]


@njit(**KERNEL)
def binned_rows(places, flow, others, X, out):
    """Write the same for every column of X."""
    out[:] = 0.0
    for k in range(flow.size):
        p, o = places[k], others[k]
        for c in range(X.shape[1]):
            out[p, c] += flow[k] * X[o, c]


@njit(**KERNEL)
def both_sums(i, j, flow, r, c):
    """Write the flow of all arcs from each row to r, and to each column to c, in arc order."""
    r[:] = 0.0
    c[:] = 0.0
    for k in range(flow.size):
        r[i[k]] += flow[k]
        c[j[k]] += flow[k]


@njit(**KERNEL)
def row_costs(i, costs, flow, n):
    """Return Σ costs flow over all arcs, row by row and in their order."""
    rows = zeros(n)
    for k in range(flow.size):
        cost = costs[k] * flow[k]
        rows[i[k]] += cost
    return total(rows)


@njit(**KERNEL)
def settle(i, j, p, q, flow):
    """Write the flow on the arcs i -> j that the row masses p and column masses q determine.

    Leaves are removed one by one: the arc of a leaf carries all of its remaining mass. Return the
    l1 norm of the mass that remains at the nodes. It is round-off if every tree of the forest has
    as much mass in rows as in columns, and infinite if the arcs close a cycle; the flow is then
    undefined.
    """
    n, n_arcs = p.size, i.size
    n_nodes = n + q.size
    left, rest = empty(n_nodes), zeros(n_nodes)
    copy_to(p, left[:n])
    copy_to(q, left[n:])
    # Number and sum of the arcs that are open at each node: the sum at a leaf is its only arc.
    degrees, sums = zeros(n_nodes, np.int64), zeros(n_nodes, np.int64)
    for k in range(n_arcs):
        u, v = i[k], n + j[k]
        degrees[u] += 1
        degrees[v] += 1
        sums[u] += k
        sums[v] += k
    queue = empty(n_nodes, np.int64)
    head, tail = 0, 0
    for u in range(n_nodes):
        if degrees[u] == 1:
            queue[tail] = u
            tail += 1
    n_done = 0
    while head < tail:
        u = queue[head]
        head += 1
        if degrees[u] != 1:
            continue  # its neighbour has already used its last arc
        arc = sums[u]
        v = n + j[arc] if i[arc] == u else i[arc]
        carried = max(left[u] + rest[u], 0.0)
        flow[arc] = carried
        n_done += 1
        left[u], rest[u] = take(left[u], rest[u], carried)
        left[v], rest[v] = take(left[v], rest[v], carried)
        degrees[u] -= 1
        degrees[v] -= 1
        sums[v] -= arc
        if degrees[v] == 1:
            queue[tail] = v
            tail += 1
    if n_done < n_arcs:
        return np.inf
    stays = 0.0
    for u in range(n_nodes):
        stays += abs(left[u] + rest[u])
    return stays
