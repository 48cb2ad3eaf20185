"""The least columns of rows of a cost that is at hand."""

from __future__ import annotations

import numpy as np

from .compiling import njit
from .dense import SUM
from .sinkhorn32 import LANES, _bar, _group_minima, _keep_least


@njit(**SUM)
def least_columns(C, prices, cols, costs, thresholds, start, stop):
    """Write the k least columns of every row by cost + price, in rising order, and their costs.

    ``thresholds`` gets the k-th value, below which no other column is, or +inf if there is none.
    """
    m, k = C.shape[1], cols.shape[1]
    g, minima = -prices, np.empty(min(m, max(LANES, 8 * k)))
    values, found = np.empty(k), np.empty(k, np.int64)
    for i in range(start, stop):
        values[:] = np.inf
        found[:] = 0
        _group_minima(C[i], g, minima)
        bar = np.nextafter(_bar(minima, k), np.inf)
        _keep_least(i, C[i], 0.0, g, bar, minima, values, found)
        for s in range(k):
            value, j, place = values[s], found[s], s
            while place > 0 and values[place - 1] > value:
                values[place], found[place] = values[place - 1], found[place - 1]
                place -= 1
            values[place], found[place] = value, j
        for s in range(k):
            cols[i, s], costs[i, s] = found[s], C[i, found[s]]
        thresholds[i] = values[k - 1] if k < m else np.inf
