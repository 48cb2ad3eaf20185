"""Inner loop of the push-relabel variant (Lahn, Raghvendra, Zhang), on the lists of ``dijkstra``.

All pushes and releases of a phase use the duals of its start. A row with free supply pushes
along arcs with c + 1 = y + v: first into free demand, then in exchange for *loose* flow, which
the column then releases from rows with y + v = c. Rows left with supply rise by one, columns
that can take no more fall by one.
"""

from __future__ import annotations

import numpy as np

from .compiling import njit
from .dijkstra import _PLAIN, TESTED, find, has_room, send, sweep


@njit(**_PLAIN)
def push_phases(
    c, y, v, supply, demand, head, follow, source, sink, amount, loose, allowed, budget, counts
):
    """Run phases until the free supply is within what is allowed or the budget of tests is spent.

    Returns the number of phases, or minus that number minus one when the lists of flow must be
    enlarged: a phase starts only if every row and column could add an entry.
    """
    n, m = c.shape
    need = np.zeros(m, np.int64)
    is_spent, is_raised = np.zeros(m, np.bool_), np.zeros(n, np.bool_)
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
        sweep(head, follow, amount)
        if not has_room(head, follow, n_free + m):
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


@njit(**_PLAIN)
def _push(
    c, y, v, supply, demand, head, follow, source, sink, amount, loose, need, is_spent, is_raised,
    counts,
):  # fmt: skip
    """Push the supply of every free row; mark rows that keep some and columns that are spent."""
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


@njit(**_PLAIN)
def _release(c, y, v, supply, head, follow, source, amount, need, counts):
    """Give the promised flow back to rows whose arc is tight."""
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


@njit(**_PLAIN)
def _find_loose(c, y, v, demand, head, follow, source, amount, loose, counts):
    """loose_j = the flow into a full column j that may be released at the new duals."""
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
