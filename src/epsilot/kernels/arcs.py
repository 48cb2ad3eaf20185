"""Passes over a sparse cost, given by lists of arcs: by rows, or by columns.

``starts[k]:starts[k + 1]`` are the arcs of node k (a row, or a column), ``others`` their other ends
and ``costs`` their costs. The other arguments are those of :mod:`.dense`. Every node is summed in
the order of its arcs, so that results do not depend on the number of threads. A node without arcs
has the sum 0, the log-sum-exp -inf and the c-transform inf.
"""

from __future__ import annotations

import numpy as np

from .arrays import accumulate
from .compiling import KERNEL, njit
from .exp_log import exp, log


@njit(**KERNEL)
def lse(starts, others, costs, x, inv_eta, out, start, stop):
    """Write out_k = log sum_o exp((x_o - C_ko) / η)."""
    for k in range(start, stop):
        best = -np.inf
        for arc in range(starts[k], starts[k + 1]):
            best = max(best, x[others[arc]] - costs[arc])
        if best == -np.inf:
            out[k] = -np.inf
            continue
        total = 0.0
        for arc in range(starts[k], starts[k + 1]):
            total += exp((x[others[arc]] - costs[arc] - best) * inv_eta)
        out[k] = best * inv_eta + log(total)


@njit(**KERNEL)
def ctransform(starts, others, costs, x, out, start, stop):
    """Write out_k = min_o C_ko - x_o."""
    for k in range(start, stop):
        least = np.inf
        for arc in range(starts[k], starts[k + 1]):
            least = min(least, costs[arc] - x[others[arc]])
        out[k] = least


@njit(**KERNEL)
def gibbs(starts, others, costs, mine, x, inv_eta, out, start, stop):
    """Write exp((mine_k + x_o - C_ko) / η) for every arc."""
    for k in range(start, stop):
        for arc in range(starts[k], starts[k + 1]):
            out[arc] = exp((mine[k] + x[others[arc]] - costs[arc]) * inv_eta)


@njit(**KERNEL)
def apply_gibbs(starts, others, costs, mine, x, inv_eta, v, out, start, stop):
    """Write out_k = sum_o exp((mine_k + x_o - C_ko) / η) v_o."""
    for k in range(start, stop):
        total = 0.0
        for arc in range(starts[k], starts[k + 1]):
            o = others[arc]
            total += exp((mine[k] + x[o] - costs[arc]) * inv_eta) * v[o]
        out[k] = total


@njit(**KERNEL)
def price_gibbs(starts, others, costs, mine, x, inv_eta, v, out, start, stop):
    """Write out_k = sum_o C_ko exp((mine_k + x_o - C_ko) / η) v_o."""
    for k in range(start, stop):
        total = 0.0
        for arc in range(starts[k], starts[k + 1]):
            o = others[arc]
            total += costs[arc] * (exp((mine[k] + x[o] - costs[arc]) * inv_eta) * v[o])
        out[k] = total


@njit(**KERNEL)
def product(starts, others, costs, v, out, start, stop):
    """Write out_k = sum_o C_ko v_o, infinite if v is positive where there is no arc."""
    n_used = 0
    for o in range(v.size):
        n_used += v[o] != 0
    for k in range(start, stop):
        total, used = 0.0, 0
        for arc in range(starts[k], starts[k + 1]):
            weight = v[others[arc]]
            if weight != 0:
                total += costs[arc] * weight
                used += 1
        out[k] = total if used == n_used else np.inf


@njit(**KERNEL)
def find(starts, others, rows, cols, out):
    """Write the place of each arc (row, column) in lists with rising ``others``, or -1."""
    for k in range(rows.size):
        low, high = starts[rows[k]], starts[rows[k] + 1]
        end = high
        while low < high:
            middle = (low + high) // 2
            if others[middle] < cols[k]:
                low = middle + 1
            else:
                high = middle
        out[k] = low if low < end and others[low] == cols[k] else -1


@njit(**KERNEL)
def k_least(starts, others, costs, prices, nodes, ends, least, thresholds):
    """Write the arcs of least cost + price of some nodes, in rising order.

    ``ends`` and ``least`` are (nodes, k): other ends, -1 beyond the last arc, and costs, inf there.
    ``thresholds`` are the least values of the arcs left out, or inf.
    """
    k = ends.shape[1]
    values = np.empty(k)
    for s in range(nodes.size):
        size, threshold = 0, np.inf
        for arc in range(starts[nodes[s]], starts[nodes[s] + 1]):
            value = costs[arc] + prices[others[arc]]
            if size < k:
                place = size
                size += 1
            elif value < values[k - 1]:
                threshold, place = min(threshold, values[k - 1]), k - 1
            else:
                threshold = min(threshold, value)
                continue
            while place > 0 and values[place - 1] > value:
                values[place] = values[place - 1]
                ends[s, place], least[s, place] = ends[s, place - 1], least[s, place - 1]
                place -= 1
            values[place], ends[s, place], least[s, place] = value, others[arc], costs[arc]
        for place in range(size, k):
            ends[s, place], least[s, place] = -1, np.inf
        thresholds[s] = threshold


@njit(**KERNEL)
def negative(starts, others, costs, f, g, bar, k, rows, places):
    """Write rows and places of the arcs with C_ij - f_i - g_j < bar, at most the k least per row.

    Return their number; ``rows`` and ``places`` hold up to k arcs of every row.
    """
    size, values = 0, np.empty(k)
    for i in range(starts.size - 1):
        first = size
        for arc in range(starts[i], starts[i + 1]):
            value = costs[arc] - f[i] - g[others[arc]]
            if value >= bar:
                continue
            place = size - first
            if place == k:
                place -= 1
                if value >= values[place]:
                    continue
            else:
                size += 1
            while place > 0 and values[place - 1] > value:
                values[place], places[first + place] = values[place - 1], places[first + place - 1]
                place -= 1
            values[place], places[first + place] = value, arc
        for place in range(first, size):
            rows[place] = i
    return size


@njit(**KERNEL)
def are_in_order(rows, cols, costs, forbidden, starts):
    """Tell whether arcs are sorted by rows, then columns, each once, and write the first of rows.

    Costs must be finite and below ``forbidden``, too.
    """
    starts[:] = 0
    row, col = 0, -1
    for arc in range(rows.size):
        is_next = rows[arc] > row or (rows[arc] == row and cols[arc] > col)
        if not (is_next and -np.inf < costs[arc] < forbidden):
            return False
        row, col = rows[arc], cols[arc]
        starts[row + 1] += 1
    accumulate(starts)
    return True


@njit(**KERNEL)
def by_columns(starts, cols, m, places, first, rows):
    """Write the places and rows of all arcs by columns, rows rising, and the first of columns."""
    first[:] = 0
    for arc in range(cols.size):
        first[cols[arc] + 1] += 1
    for j in range(m):
        first[j + 1] += first[j]
    free = first[:-1].copy()
    for i in range(starts.size - 1):
        for arc in range(starts[i], starts[i + 1]):
            place = free[cols[arc]]
            places[place], rows[place] = arc, i
            free[cols[arc]] += 1
