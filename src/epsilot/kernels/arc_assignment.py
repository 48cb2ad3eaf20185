"""Assignments of least cost on given arcs, by shortest paths (Jonker and Volgenant 1987).

Arcs are stored by rows, as in :mod:`.arcs`. Column prices v are kept such that the arc of every
matched row has the least C_ij - v_j of that row. ``matched`` holds the arc of each row and
``owners`` the row of each column, or -1.
"""

from __future__ import annotations

import numpy as np

from .arrays import empty
from .compiling import KERNEL, njit


@njit(**KERNEL)
def least_costs(others, costs, v):
    """Write the least cost of every column, inf without arcs."""
    v[:] = np.inf
    for arc in range(others.size):
        v[others[arc]] = min(v[others[arc]], costs[arc])


@njit(**KERNEL)
def bid(starts, others, costs, v, matched, owners, queue, head, length, eps, enough, most):
    """Let the rows of a queue bid until at most ``enough`` are left or ``most`` bids are made.

    A bid lowers the price of the cheapest column until the second cheapest is better by ε. Return
    the head and the length of the ring buffer ``queue``, and the number of bids.
    """
    n, bids = queue.size, 0
    while length > enough and bids < most:
        i = queue[head]
        head = head + 1 if head + 1 < n else 0
        length -= 1
        bids += 1
        least, second, best = np.inf, np.inf, -1
        for arc in range(starts[i], starts[i + 1]):
            x = costs[arc] - v[others[arc]]
            if x < second:
                if x < least:
                    least, second, best = x, least, arc
                else:
                    second = x
        if best < 0:
            continue
        j = others[best]
        if second < np.inf:
            v[j] -= second - least + eps
        loser = owners[j]
        matched[i], owners[j] = best, i
        if loser >= 0:
            matched[loser] = -1
            place = head + length
            queue[place if place < n else place - n] = loser
            length += 1
    return head, length, bids


@njit(**KERNEL)
def reduce(starts, others, costs, v, matched, owners, waiting, passes, evictions):
    """Match rows to their cheapest columns, and lower the price to that of the second cheapest.

    A row that loses its column is next, ``evictions`` times per row and pass. Return the number of
    rows that stay unmatched, which ``waiting`` lists, and the number of arcs read.
    """
    matched[:] = -1
    owners[:] = -1
    tail, read = matched.size, 0
    for i in range(tail):
        waiting[i] = i
    for _ in range(passes):
        n_rows, tail = tail, 0
        k, left = 0, evictions * n_rows
        while k < n_rows:
            i = waiting[k]
            k += 1
            least, second, best, other = np.inf, np.inf, -1, -1
            for arc in range(starts[i], starts[i + 1]):
                x = costs[arc] - v[others[arc]]
                if x < second:
                    if x < least:
                        least, second, best, other = x, least, arc, best
                    else:
                        second, other = x, arc
            read += starts[i + 1] - starts[i]
            loser = -1 if best < 0 else owners[others[best]]
            if least < second < np.inf:
                v[others[best]] -= second - least
            elif best < 0 or loser >= 0:
                if other < 0 or second > least or owners[others[other]] >= 0:
                    waiting[tail] = i
                    tail += 1
                    continue
                best, loser = other, -1
            matched[i], owners[others[best]] = best, i
            if loser >= 0:
                matched[loser] = -1
                left -= 1
                if left > 0 and second > least:
                    k -= 1
                    waiting[k] = loser
                else:
                    waiting[tail] = loser
                    tail += 1
    return tail, read


@njit(**KERNEL)
def _rise(heap, places, distances, k):
    """Move a column towards the top of the heap, to its place."""
    j = heap[k]
    while k > 0:
        above = heap[(k - 1) >> 1]
        if distances[above] <= distances[j]:
            break
        heap[k], places[above] = above, k
        k = (k - 1) >> 1
    heap[k], places[j] = j, k


@njit(**KERNEL)
def _remove_top(heap, places, distances, size):
    """Remove the nearest column from a heap of ``size`` columns."""
    size -= 1
    j, k = heap[size], 0
    while 2 * k + 1 < size:
        below = 2 * k + 1
        if below + 1 < size and distances[heap[below + 1]] < distances[heap[below]]:
            below += 1
        if distances[heap[below]] >= distances[j]:
            break
        heap[k], places[heap[below]] = heap[below], k
        k = below
    heap[k], places[j] = j, k


@njit(**KERNEL)
def augment(starts, others, costs, v, matched, owners, waiting, first, stop, most):
    """Match the rows ``waiting[first:stop]`` along shortest paths, and keep the prices feasible.

    No search begins after ``most`` arcs were read. Return the number of rows that were matched and
    of arcs read; the first one is -1 if no path leads from a row to an unmatched column.
    """
    m = v.size
    distances, places, befores = empty(m), empty(m, np.int32), empty(m, np.int64)
    heap, reached, lengths = empty(m, np.int32), empty(m, np.int32), empty(m)
    distances[:] = np.inf
    read = 0
    for k in range(first, stop):
        if read >= most:
            return k - first, read
        # Dijkstra's search. Columns that were reached have the distance -inf.
        row = i = waiting[k]
        base, bound, end, size, n_reached = 0.0, np.inf, -1, 0, 0
        while True:
            for arc in range(starts[i], starts[i + 1]):
                j = others[arc]
                x = base + costs[arc] - v[j]
                if x < bound and x < distances[j]:
                    befores[j] = arc
                    if owners[j] < 0:
                        bound, end = x, j
                        continue
                    if distances[j] == np.inf:
                        heap[size], places[j] = j, size
                        size += 1
                    distances[j] = x
                    _rise(heap, places, distances, places[j])
            read += starts[i + 1] - starts[i]
            if size == 0 or distances[heap[0]] >= bound:
                break
            j = heap[0]
            _remove_top(heap, places, distances, size)
            size -= 1
            reached[n_reached], lengths[n_reached] = j, distances[j]
            i = owners[j]
            base = distances[j] - (costs[matched[i]] - v[j])
            distances[j] = -np.inf
            n_reached += 1
        for s in range(size):
            distances[heap[s]] = np.inf
        for s in range(n_reached):
            distances[reached[s]] = np.inf
        if end < 0:
            return -1, read
        for s in range(n_reached):
            v[reached[s]] += lengths[s] - bound
        while True:
            arc = befores[end]
            i = row_of(starts, arc)
            owners[end] = i
            before = matched[i]
            matched[i] = arc
            if i == row:
                break
            end = others[before]
    return stop - first, read


@njit(**KERNEL)
def row_of(starts, arc):
    """Return the row of an arc."""
    low, high = 0, starts.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if starts[middle] <= arc:
            low = middle
        else:
            high = middle
    return low
