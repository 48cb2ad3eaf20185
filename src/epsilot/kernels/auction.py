"""The auction algorithm for transport: rows with unassigned mass bid for columns.

Every row has a short list of columns and a threshold: no other column's cost + price is below it.
Prices only rise, so a list stays valid until its best entry exceeds the threshold; the row then
waits for a new list. A bid buys a piece of a column, up to a price limit at which the row's second
choice is better by ε. The price of a column is the lowest limit of its pieces, or its initial price
while part of it is unsold. So every piece satisfies ε-complementary slackness,
C_ij + price_j <= min over all columns + ε, and the plan is optimal to ε once all mass is assigned.

The pieces of a column are nodes of a pairing heap, with the lowest limit at its root.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._types import Index, Matrix, Vector
from .arrays import accumulate, copy_to, empty, zeros
from .compiling import KERNEL, njit
from .tree import MAX_DEPTH, search

#: Places in ``counts``: head and length of the queue, rows left in this turn, rows waiting for a
#: list, first free piece, bids made, list entries read, searches since bounds were updated.
HEAD, LENGTH, TURN, WAITING, FREE, BIDS, READ, SEARCHED = range(8)
N_COUNTS = 8
#: Why bidding stopped: all mass assigned, rows wait for lists, no free piece, or bid limit reached.
PLACED, WAIT, FULL, ENOUGH = range(4)
#: Value of ``is_queued`` for a row whose bids were interrupted by a limit.
UNDER_WAY = -1
#: Fraction of the mean excess below which a row bids last.
SMALL_EXCESS_SHARE = 0.25
#: Fewest searches that are shared among threads.
MIN_THREADED_SEARCHES = 1024


#: Numbers of rows, columns and pieces, in 32 bits for speed.
Places: TypeAlias = NDArray[np.int32]


class AuctionArrays(NamedTuple):
    """The arrays of an auction between n rows and m columns."""

    prices: Vector  # (m,)
    base: Vector  # (m,) prices when the phase began
    unsold: Vector  # (m,) mass that no row holds
    specks: Vector  # (m,) unsold mass that is rounded to 0
    heads: Places  # (m,) piece of the lowest limit, or -1
    excess: Vector  # (n,) unassigned mass
    dust: Vector  # (n,) excess too small for a bid
    child: Places  # pieces: first child and next sibling in the heap, or the next free piece
    sibling: Places
    piece_row: Places
    piece_col: Places
    piece_cost: Vector
    mass: Vector
    limit: Vector  # price above which the row gives it up
    cols: Places  # (n, k) lists
    costs: Matrix
    thresholds: Vector  # (n,) no other column's cost + price is below
    queue: Places  # (n,) ring buffer of rows
    is_queued: Places
    waiting: Places  # (n,) rows that wait for a list
    counts: Index  # (N_COUNTS,)

    # Arguments of kernels that need few of the arrays: each argument takes time to compile.

    @property
    def for_arcs(self) -> tuple[Places, Places, Places, Vector]:
        """The arguments of ``arcs``."""
        return self.cols, self.piece_row, self.piece_col, self.mass

    @property
    def for_stale_rows(self) -> tuple[Vector, Places, Matrix, Vector]:
        """The first arguments of ``stale_rows``."""
        return self.prices, self.cols, self.costs, self.thresholds


@njit(**KERNEL)
def _linked(a, b, child, sibling, limit):
    """Merge two heaps and return the root."""
    if limit[b] < limit[a]:
        a, b = b, a
    sibling[b] = child[a]
    child[a] = b
    return a


@njit(**KERNEL)
def _popped(root, child, sibling, limit):
    """Remove the root of a heap and return the new root."""
    c, pairs = child[root], -1
    while c >= 0:
        a, b = c, sibling[c]
        if b < 0:
            sibling[a] = pairs
            pairs = a
            break
        c = sibling[b]
        a = _linked(np.int32(a), np.int32(b), child, sibling, limit)
        sibling[a] = pairs
        pairs = a
    if pairs < 0:
        return pairs
    root, pairs = pairs, sibling[pairs]
    while pairs >= 0:
        following = sibling[pairs]
        root = _linked(np.int32(root), np.int32(pairs), child, sibling, limit)
        pairs = following
    sibling[root] = -1
    return root


@njit(**KERNEL)
def _add(piece, column, heads, child, sibling, limit):
    """Put a piece into the heap of its column."""
    child[piece] = sibling[piece] = -1
    if heads[column] < 0:
        heads[column] = piece
    else:
        heads[column] = _linked(heads[column], piece, child, sibling, limit)


@njit(**KERNEL)
def stale_rows(prices, cols, costs, thresholds, leasts, stale):
    """Write the least value of every list, and the rows whose list is out of date."""
    n, k = cols.shape
    count = 0
    for i in range(n):
        least = np.inf
        for s in range(k):
            least = min(least, costs[i, s] + prices[cols[i, s]])
        leasts[i] = least
        if least > thresholds[i]:
            stale[count] = i
            count += 1
    return count


@njit(**KERNEL)
def keep(
    prices, unsold, heads, excess, child, sibling, piece_row, piece_col, piece_cost, mass, limit,
    leasts, eps,
):  # fmt: skip
    """Release the pieces that violate ε-complementary slackness; return the number of the others.

    ``leasts`` are the rows' least values under the prices. Pieces are moved to the front, and the
    heaps are built anew.
    """
    kept = 0
    for a in range(mass.size):
        amount = mass[a]
        if not amount > 0:
            continue
        i, j, cost = piece_row[a], piece_col[a], piece_cost[a]
        mass[a] = 0.0
        if cost + prices[j] > leasts[i] + eps:
            excess[i] += amount
            unsold[j] += amount
            continue
        piece_row[kept], piece_col[kept], piece_cost[kept] = i, j, cost
        mass[kept], limit[kept] = amount, prices[j]
        _add(np.int32(kept), j, heads, child, sibling, limit)
        kept += 1
    return kept


def begin(arrays: AuctionArrays, leasts: Vector, eps: float) -> None:
    """Release the pieces that violate ε-complementary slackness, and queue rows with excess."""
    x, size = arrays, arrays.mass.size
    x.base[:] = x.prices
    x.heads[:] = -1
    kept = keep(
        x.prices, x.unsold, x.heads, x.excess, x.child, x.sibling, x.piece_row, x.piece_col,
        x.piece_cost, x.mass, x.limit, leasts, eps,
    )  # fmt: skip
    x.counts[FREE] = -1
    if kept < size:
        x.counts[FREE] = kept
        x.sibling[kept:-1] = np.arange(kept + 1, size)
        x.sibling[-1] = -1
    x.is_queued[:] = x.excess > x.dust
    queued = np.flatnonzero(x.is_queued)
    x.queue[: queued.size] = queued
    x.counts[[HEAD, LENGTH, TURN, WAITING]] = 0, queued.size, 0, 0


@njit(**KERNEL)
def rejoin(queue, waiting, counts):
    """Queue the rows that waited for a list."""
    for s in range(counts[WAITING]):
        place = counts[HEAD] + counts[LENGTH]
        queue[place if place < queue.size else place - queue.size] = waiting[s]
        counts[LENGTH] += 1
    counts[WAITING] = 0


@njit(**KERNEL)
def _left(arrays):
    """Return the excess of all queued and waiting rows."""
    excess, queue, waiting, counts = arrays.excess, arrays.queue, arrays.waiting, arrays.counts
    total, at = 0.0, counts[HEAD]
    for _ in range(counts[LENGTH]):
        total += excess[queue[at]]
        at = at + 1 if at + 1 < queue.size else 0
    for s in range(counts[WAITING]):
        total += excess[waiting[s]]
    return total


@njit(**KERNEL)
def bid(arrays, eps, enough, most, small):
    """Let rows bid until the excess is at most ``enough``, lists run out or ``most`` bids are made.

    Return the reason, and the excess below which rows bid last in this turn.
    """
    (
        prices, _, unsold, specks, heads, excess, dust, child, sibling, piece_row, piece_col,
        piece_cost, mass, limit, cols, costs, thresholds, queue, is_queued, waiting, counts,
    ) = arrays  # fmt: skip
    k, size = cols.shape[1], queue.size
    while True:
        if counts[TURN] == 0:
            if counts[WAITING] > 0:
                return WAIT, small
            left = _left(arrays)
            if counts[LENGTH] == 0 or left <= enough:
                return PLACED, small
            if counts[BIDS] >= most:
                return ENOUGH, small
            counts[TURN] = counts[LENGTH]
            small = SMALL_EXCESS_SHARE * left / counts[LENGTH]
        if counts[BIDS] >= most:
            return ENOUGH, small
        i = queue[counts[HEAD]]
        counts[HEAD] = counts[HEAD] + 1 if counts[HEAD] + 1 < size else 0
        counts[TURN] -= 1
        if excess[i] < small and is_queued[i] != UNDER_WAY:  # go to the end of the queue
            place = counts[HEAD] + counts[LENGTH] - 1
            queue[place if place < size else place - size] = i
            continue
        counts[LENGTH] -= 1
        is_queued[i] = False
        while excess[i] > dust[i]:
            is_full = counts[FREE] < 0
            if is_full or counts[BIDS] >= most:  # the next call continues with this row
                counts[HEAD] = counts[HEAD] - 1 if counts[HEAD] > 0 else size - 1
                queue[counts[HEAD]] = i
                counts[LENGTH] += 1
                counts[TURN] += 1
                is_queued[i] = UNDER_WAY
                return (FULL if is_full else ENOUGH), small
            best, second, s1 = np.inf, np.inf, 0
            for s in range(k):
                value = costs[i, s] + prices[cols[i, s]]
                if value < second:
                    if value < best:
                        best, second, s1 = value, best, s
                    else:
                        second = value
            counts[READ] += k
            if best > thresholds[i]:
                waiting[counts[WAITING]] = i
                counts[WAITING] += 1
                is_queued[i] = True
                break
            second = min(second, thresholds[i])
            j = cols[i, s1]
            rise = second - best + eps if second < np.inf else eps
            offer = max(prices[j] + rise, np.nextafter(prices[j], np.inf))
            counts[BIDS] += 1
            wanted, got = excess[i], 0.0
            if unsold[j] > 0:
                got = min(wanted, unsold[j])
                unsold[j] = unsold[j] - got if unsold[j] - got > specks[j] else 0.0
                wanted -= got
            a = heads[j]
            while wanted > 0 and a >= 0 and limit[a] < offer:
                r = piece_row[a]
                if r != i and mass[a] > wanted:
                    mass[a] -= wanted
                    excess[r] += wanted
                    got += wanted
                    wanted = 0.0
                else:
                    got += mass[a]
                    if r != i:
                        wanted -= mass[a]
                        excess[r] += mass[a]
                    mass[a] = 0.0
                    heads[j] = _popped(np.int32(a), child, sibling, limit)
                    sibling[a] = counts[FREE]
                    counts[FREE] = a
                    a = heads[j]
                if r != i and not is_queued[r] and excess[r] > dust[r]:
                    place = counts[HEAD] + counts[LENGTH]
                    queue[place if place < size else place - size] = r
                    counts[LENGTH] += 1
                    is_queued[r] = True
            if got > 0:
                a = counts[FREE]
                counts[FREE] = sibling[a]
                piece_row[a], piece_col[a], piece_cost[a] = i, j, costs[i, s1]
                mass[a], limit[a] = got, offer
                _add(np.int32(a), j, heads, child, sibling, limit)
            excess[i] = wanted
            if not unsold[j] > 0 and heads[j] >= 0:
                prices[j] = limit[heads[j]]


@njit(**KERNEL)
def bid_and_search(arrays, eps, enough, most, small, X, Y, shift, metric, nodes, depth, axes):
    """Let rows bid, and search new lists in a tree of the columns while few rows wait."""
    cols, costs, waiting, counts = arrays.cols, arrays.costs, arrays.waiting, arrays.counts
    k = cols.shape[1]
    values, bounds, stack = empty(k), empty(MAX_DEPTH), empty(MAX_DEPTH, np.int64)
    while True:
        why, small = bid(arrays, eps, enough, most, small)
        many = counts[WAITING] >= MIN_THREADED_SEARCHES or counts[SEARCHED] > X.shape[0] // 2
        if why != WAIT or many:
            return why, small
        for s in range(counts[WAITING]):
            i = waiting[s]
            search(
                X[i], Y, arrays.prices, shift, metric, nodes, depth, axes, stack, bounds, cols[i],
                costs[i], values,
            )  # fmt: skip
            arrays.thresholds[i] = values[k - 1] if k < Y.shape[0] else np.inf
        counts[SEARCHED] += counts[WAITING]
        rejoin(arrays.queue, waiting, counts)


@njit(**KERNEL)
def arcs(cols, piece_row, piece_col, mass):
    """Return rows, columns and flow of every listed and every held arc, each once, by rows."""
    n, k = cols.shape
    starts = zeros(n + 1, np.int64)
    for a in range(mass.size):
        if mass[a] > 0:
            starts[piece_row[a] + 1] += 1
    accumulate(starts)
    free, held = empty(n, np.int64), empty(starts[n], np.int64)
    copy_to(starts, free)
    for a in range(mass.size):
        if mass[a] > 0:
            held[free[piece_row[a]]] = a
            free[piece_row[a]] += 1
    i, j = empty(n * k + held.size, np.int64), empty(n * k + held.size, np.int64)
    flow = zeros(n * k + held.size)
    size = 0
    for r in range(n):
        first = size
        for s in range(k):
            i[size], j[size] = r, cols[r, s]
            size += 1
        for place in range(starts[r], starts[r + 1]):
            a, at = held[place], first
            while at < size and j[at] != piece_col[a]:
                at += 1
            if at == size:
                i[size], j[size] = r, piece_col[a]
                size += 1
            flow[at] += mass[a]
    return i[:size], j[:size], flow[:size]


@njit(**KERNEL)
def corner(left, right, least):
    """Return arcs and flow of the north-west corner plan of residual masses.

    Masses up to ``least`` are ignored.
    """
    n, m = left.size, right.size
    i, j = empty(n + m, np.int64), empty(n + m, np.int64)
    flow = empty(n + m)
    r, c, size = 0, 0, 0
    a, b = 0.0, 0.0
    while True:
        while r < n and not a > least:
            a = max(left[r], 0.0)
            r += 1
        while c < m and not b > least:
            b = max(right[c], 0.0)
            c += 1
        if not (a > least and b > least):
            return i[:size], j[:size], flow[:size]
        moved = min(a, b)
        i[size], j[size], flow[size] = r - 1, c - 1, moved
        size += 1
        a -= moved
        b -= moved


@njit(**KERNEL)
def divided(i, j, flow, row_edges, col_edges, left, right, least):
    """Divide flows between cells among their points, in the order of the points.

    Cell t of the rows has the points ``row_edges[t]`` to ``row_edges[t + 1]``. ``left`` and
    ``right`` hold the masses of the points. The kernel subtracts what it assigns.
    """
    row_at, col_at = empty(row_edges.size, np.int64), empty(col_edges.size, np.int64)
    copy_to(row_edges, row_at)
    copy_to(col_edges, col_at)
    capacity = left.size + right.size + i.size
    rows, cols, moved = empty(capacity, np.int64), empty(capacity, np.int64), empty(capacity)
    size = 0
    for a in range(i.size):
        r, c, rest = row_at[i[a]], col_at[j[a]], flow[a]
        row_end, col_end = row_edges[i[a] + 1], col_edges[j[a] + 1]
        while rest > least:
            while r < row_end and not left[r] > least:
                r += 1
            while c < col_end and not right[c] > least:
                c += 1
            if r == row_end or c == col_end:
                break
            mass = min(left[r], right[c], rest)
            rows[size], cols[size], moved[size] = r, c, mass
            size += 1
            left[r] -= mass
            right[c] -= mass
            rest -= mass
        row_at[i[a]], col_at[j[a]] = r, c
    return rows[:size], cols[:size], moved[:size]
