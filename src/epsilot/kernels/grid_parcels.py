"""From a flow between neighbouring cells to a plan: who sends how much to whom."""

from __future__ import annotations

import numpy as np

from .compiling import njit
from .grid_flow import strides
from .network import OPTIONS


@njit(**OPTIONS)
def _outgoing(u, flows, step, ends, amounts):
    """Write where the flow out of cell u goes, and how much; return the number of such cells."""
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


@njit(**OPTIONS)
def _sources_left(flows, step):
    """Return the number of cells from which each cell receives."""
    n = flows.shape[1]
    left = np.zeros(n, np.uint8)
    for k in range(3):
        for u in range(n):
            if flows[k, u] > 0:
                left[u + step[k]] += 1
            elif flows[k, u] < 0:
                left[u] += 1
    return left


@njit(**OPTIONS)
def parcels(supply, flows, shape):
    """Return (source, target, mass) of a flow without cycles that serves ``supply``.

    ``flows`` is as from :func:`epsilot.kernels.grid_flow.flows_of`. Cells are taken in an order in
    which every one follows those it receives from. A cell holds a list of parcels: it keeps what it
    lacks, fills each arc out of it but the last from the head of the list, splitting one parcel at
    most, and hands the rest to the last arc as a whole. On the flow of a tree there are fewer
    parcels than cells that send or lack, and their arcs are a forest.
    """
    n = supply.size
    step = strides(shape)
    left = _sources_left(flows, step)
    n_ends = np.count_nonzero(supply)
    owner, link = np.empty(n_ends + 1, np.uint32), np.empty(n_ends + 1, np.int32)
    held = np.empty(n_ends + 1, np.int64)
    head, tail = np.full(n, -1, np.int32), np.empty(n, np.int32)
    source, target = np.empty(n_ends, np.int64), np.empty(n_ends, np.int64)
    mass = np.empty(n_ends, np.int64)
    order = np.empty(n, np.uint32)
    made, delivered, known = 0, 0, 0
    for u in range(n):
        if left[u] == 0:
            order[known] = u
            known += 1
        if supply[u] > 0:
            owner[made], held[made], link[made] = u, supply[u], -1
            head[u] = tail[u] = made
            made += 1
    ends, amounts = np.empty(6, np.int64), np.empty(6, np.int64)
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
                if held[last] > x:  # what is too much stays here, as a parcel of its own
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
