"""k-d trees whose nodes bound cost plus price from below, and searches through them.

Points are stored in the order of a balanced tree of median splits: node t of depth l holds the
places [n t >> l, n (t + 1) >> l). A row of ``nodes`` (numbered as in a heap, from 1) has the box
of its points, a slope s, and the minimum of price + s·(y - c) over them, where c is the centre of
the box. With a slope that fits the prices, this affine bound prunes better than a constant one.
Any slope is valid. The minimum of earlier prices is valid too, as long as prices only rise.

Bounds are lowered by more than the possible rounding error. The columns found, and c-transforms,
are therefore those of a pass over all columns, bit for bit.

``axes`` is a tuple whose length is the dimension: kernels compile for each, with loops unrolled.
"""

from __future__ import annotations

import numpy as np

from .arrays import copy_to, empty, zeros
from .compiling import INLINE, KERNEL, njit
from .metrics import node_bound, pair_cost

#: Most points per leaf.
MAX_LEAF_POINTS = 8
#: Most nodes on a path from the root.
MAX_DEPTH = 64
#: Ridge of the fit of a slope, as a fraction of the trace.
SLOPE_RIDGE = 1e-3
#: Rounding errors of a bound, besides eight per axis, in units of 2**-53.
BOUND_ROUNDINGS = 64


@njit(**KERNEL)
def _select(keys, order, lo, hi, place):
    """Partition ``order[lo:hi]`` so that the entry of rank ``place`` is in place (quickselect)."""
    while hi - lo > 1:
        a, b, c = keys[order[lo]], keys[order[(lo + hi) // 2]], keys[order[hi - 1]]
        middle = max(min(a, b), min(max(a, b), c))
        i, j = lo, hi - 1
        while i <= j:
            while keys[order[i]] < middle:
                i += 1
            while keys[order[j]] > middle:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if place <= j:
            hi = j + 1
        elif place >= i:
            lo = i
        else:
            return


@njit(**KERNEL)
def split(X, order, keys, depth, highest, start, stop):
    """Split the nodes start..stop of a depth, and all below, along their longest sides."""
    n, d = X.shape
    for level in range(depth, highest):
        for t in range(start << (level - depth), stop << (level - depth)):
            lo, hi = (n * t) >> level, (n * (t + 1)) >> level
            if hi - lo < 2:
                continue
            longest, axis = -1.0, 0
            for a in range(d):
                low = high = X[order[lo], a]
                for s in range(lo + 1, hi):
                    low, high = min(low, X[order[s], a]), max(high, X[order[s], a])
                if high - low > longest:
                    longest, axis = high - low, a
            for s in range(lo, hi):
                keys[order[s]] = X[order[s], axis]
            _select(keys, order, lo, hi, (n * (2 * t + 1)) >> (level + 1))


@njit(**KERNEL)
def boxes(Y, depth, nodes):
    """Write the boxes of all nodes."""
    m, d = Y.shape
    first = 1 << depth
    for t in range(first):
        node = nodes[first + t]
        lo, hi = (m * t) >> depth, (m * (t + 1)) >> depth
        for a in range(d):
            low = high = Y[lo, a]
            for j in range(lo + 1, hi):
                low, high = min(low, Y[j, a]), max(high, Y[j, a])
            node[a], node[d + a] = low, high
    for t in range(first - 1, 0, -1):
        for a in range(d):
            nodes[t, a] = min(nodes[2 * t, a], nodes[2 * t + 1, a])
            nodes[t, d + a] = max(nodes[2 * t, d + a], nodes[2 * t + 1, d + a])


@njit(**KERNEL)
def _merge(left, right, out, d):
    """Merge the moments of two halves: count, means, products of deviations."""
    a, b = left[0], right[0]
    total = a + b
    out[0] = total
    share = a * b / total
    for r in range(d + 1):
        out[1 + r] = left[1 + r] + (right[1 + r] - left[1 + r]) * (b / total)
    place = d + 2
    for r in range(d):
        for s in range(r, d + 1):
            by = (right[1 + r] - left[1 + r]) * (right[1 + s] - left[1 + s])
            out[place] = left[place] + right[place] + share * by
            place += 1


@njit(**KERNEL)
def _slope(moments, d, A, b, slope):
    """Fit price ~ -slope·y by ridge regression; return False if all points are equal."""
    place, trace = d + 2, 0.0
    for r in range(d):
        for s in range(r, d):
            A[r, s] = A[s, r] = moments[place]
            place += 1
        b[r] = -moments[place]
        place += 1
        trace += A[r, r]
    if not 0 < trace < np.inf:
        return False
    for r in range(d):
        A[r, r] += SLOPE_RIDGE * trace
    for r in range(d):
        for s in range(r + 1, d):
            factor = A[s, r] / A[r, r]
            for t in range(r, d):
                A[s, t] -= factor * A[r, t]
            b[s] -= factor * b[r]
    for r in range(d - 1, -1, -1):
        x = b[r]
        for s in range(r + 1, d):
            x -= A[r, s] * slope[s]
        slope[r] = x / A[r, r]
        if not abs(slope[r]) < np.inf:
            return False
    return True


@njit(**KERNEL)
def slopes(Y, prices, depth, nodes, moments):
    """Write the least-squares slope of minus the (finite) prices at every node."""
    m, d = Y.shape
    first = 1 << depth
    point = zeros(moments.shape[1])
    for t in range(first):
        lo, hi = (m * t) >> depth, (m * (t + 1)) >> depth
        for j in range(lo, hi):
            out = moments[first + t]
            point[:] = 0
            point[0], point[d + 1] = 1, prices[j]
            for a in range(d):
                point[1 + a] = Y[j, a]
            if j == lo:
                copy_to(point, out)
            else:
                _merge(out, point, out, d)
    for t in range(first - 1, 0, -1):
        _merge(moments[2 * t], moments[2 * t + 1], moments[t], d)
    A, b = empty((d, d)), empty(d)
    for t in range(1, 2 * first):
        slope = nodes[t, 2 * d : 3 * d]
        if not _slope(moments[t], d, A, b, slope):
            for a in range(d):
                slope[a] = 0.0


@njit(**KERNEL)
def leasts(Y, prices, shift, depth, nodes, top, start, stop):
    """Write the least of price + shift + s·(y - c), rounded down, for nodes below start..stop.

    These are nodes of the depth ``top``; its ancestors are written by the caller that has them
    all: ``start`` 0 and ``stop`` 1 at depth 0 mean every node.
    """
    m, d = Y.shape
    ulps = (8 * d + BOUND_ROUNDINGS) * 2.0**-53
    for level in range(top, depth + 1):
        for t in range(start << (level - top), stop << (level - top)):
            node = nodes[(1 << level) + t]
            least = np.inf
            for j in range((m * t) >> level, (m * (t + 1)) >> level):
                if prices[j] == np.inf:
                    continue
                value, size = prices[j] + shift, abs(prices[j]) + abs(shift)
                for a in range(d):
                    part = node[2 * d + a] * (Y[j, a] - 0.5 * (node[a] + node[d + a]))
                    value += part
                    size += abs(part)
                least = min(least, value - ulps * size)
            node[3 * d] = least


@njit(**INLINE)
def _bound(x, node, metric, axes):
    """Return a lower bound of the computed cost + shift + price of a node's points."""
    d = len(axes)
    low = node[3 * d]
    if low == np.inf:
        return low
    low, size = node_bound(metric, low, abs(low), x, node, axes)
    return low - (8 * d + BOUND_ROUNDINGS) * 2.0**-53 * size


@njit(**KERNEL)
def search(x, Y, prices, shift, metric, nodes, depth, axes, stack, bounds, cols, costs, values):
    """Find the columns of least cost + shift + price, in rising order; return the nodes visited.

    The results are ``cols``, their ``costs`` (with the shift) and ``values``, which are +inf where
    there are not as many columns.
    """
    k, m, first = values.size, Y.shape[0], 1 << depth
    values[:] = np.inf
    stack[0], bounds[0] = 1, _bound(x, nodes[1], metric, axes)
    top, visited = 1, 0
    while top > 0:
        top -= 1
        t = stack[top]
        if bounds[top] >= values[k - 1]:
            continue
        is_worth = True
        while t < first:
            visited += 1
            near, far = 2 * t, 2 * t + 1
            low = _bound(x, nodes[near], metric, axes)
            high = _bound(x, nodes[far], metric, axes)
            if high < low:
                near, far = far, near
                low, high = high, low
            if high < values[k - 1]:
                stack[top], bounds[top] = far, high
                top += 1
            if low >= values[k - 1]:
                is_worth = False
                break
            t = near
        if not is_worth:
            continue
        for j in range((m * (t - first)) >> depth, (m * (t - first + 1)) >> depth):
            cost = pair_cost(metric, x, Y[j], axes)
            if shift != 0:
                cost += shift
            value = cost + prices[j]
            if value < values[k - 1]:
                s = k - 1
                while s > 0 and values[s - 1] > value:
                    values[s], cols[s], costs[s] = values[s - 1], cols[s - 1], costs[s - 1]
                    s -= 1
                values[s], cols[s], costs[s] = value, j, cost
    return visited


@njit(**KERNEL)
def least_columns(
    X, rows, Y, prices, shift, metric, nodes, depth, axes, cols, costs, leasts, thresholds,
    start, stop,
):  # fmt: skip
    """Write the k least columns of the named rows at their rows of ``cols`` and ``costs``.

    ``leasts`` gets the least value of each, ``thresholds`` the k-th: no other column is below it.
    Return the number of nodes visited.
    """
    k = cols.shape[1]
    values, bounds, stack = empty(k), empty(MAX_DEPTH), empty(MAX_DEPTH, np.int64)
    count = 0
    for at in range(start, stop):
        i = rows[at]
        count += search(
            X[i], Y, prices, shift, metric, nodes, depth, axes, stack, bounds, cols[i], costs[i],
            values,
        )  # fmt: skip
        leasts[i] = values[0]
        thresholds[i] = values[k - 1] if k < Y.shape[0] else np.inf
    return count


@njit(**KERNEL)
def within(
    X, Y, shift, metric, nodes, depth, axes, most, starts, counts, cols, costs, start, stop
):  # fmt: skip
    """Count the columns of cost + shift <= ``most`` of each row, and write those that fit.

    Row i has the places ``starts[i]`` to ``starts[i + 1]`` of ``cols`` and ``costs``.
    """
    m, first = Y.shape[0], 1 << depth
    stack = empty(MAX_DEPTH, np.int64)
    for i in range(start, stop):
        place, end = starts[i], starts[i + 1]
        stack[0], top = 1, 1
        while top > 0:
            top -= 1
            t = stack[top]
            if _bound(X[i], nodes[t], metric, axes) > most:
                continue
            if t < first:
                stack[top], stack[top + 1] = 2 * t + 1, 2 * t
                top += 2
                continue
            for j in range((m * (t - first)) >> depth, (m * (t - first + 1)) >> depth):
                cost = pair_cost(metric, X[i], Y[j], axes)
                if shift != 0:
                    cost += shift
                if cost <= most:
                    if place < end:
                        cols[place], costs[place] = j, cost
                    place += 1
        counts[i] = place - starts[i]


@njit(**KERNEL)
def cells(X, weights, depth, centres, masses):
    """Write the centroids and masses of the nodes of a depth."""
    n, d = X.shape
    for t in range(1 << depth):
        lo, hi = (n * t) >> depth, (n * (t + 1)) >> depth
        total = 0.0
        for i in range(lo, hi):
            total += weights[i]
        masses[t] = total
        for a in range(d):
            moved = 0.0
            for i in range(lo, hi):
                share = weights[i] / total if total > 0 else 1.0 / (hi - lo)
                moved += share * (X[i, a] - X[lo, a])
            centres[t, a] = X[lo, a] + moved
