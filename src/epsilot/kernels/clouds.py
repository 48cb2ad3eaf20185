"""Costs between the points of many pairs of small clouds."""

from __future__ import annotations

import numpy as np

from .compiling import njit
from .dense import SUM
from .points import cost_rows

#: Distances along an axis between which squares, and sums of them, lose nothing.
NEAREST, FARTHEST = 2.0**-450, 2.0**450


@njit(**SUM)
def _is_ordinary(X, Y):
    """Tell whether distances along each axis leave all digits to their squares."""
    reach = 0.0
    for k in range(X.shape[1]):
        low, high = np.inf, -np.inf
        for i in range(X.shape[0]):
            low, high = min(low, X[i, k]), max(high, X[i, k])
        for j in range(Y.shape[0]):
            low, high = min(low, Y[j, k]), max(high, Y[j, k])
        reach = max(reach, high - low)
    return reach == 0 or NEAREST <= reach <= FARTHEST


@njit(**SUM)
def cloud_costs(X, Y, metric, sizes, out):
    """Write the cost matrices of pairs of clouds one after the other.

    ``sizes`` holds the points of both clouds and their coordinates, which X and Y hold one after
    the other. Costs that squares would spoil are NaN.
    """
    x, y, at = 0, 0, 0
    for k in range(sizes.shape[0]):
        n, m, d = sizes[k]
        sources, targets = X[x : x + n * d].reshape(n, d), Y[y : y + m * d].reshape(m, d)
        costs = out[at : at + n * m].reshape(n, m)
        if _is_ordinary(sources, targets):
            along = np.empty((d, m))
            for j in range(m):
                for c in range(d):
                    along[c, j] = targets[j, c]
            cost_rows(sources, along, metric, 0.0, costs, 0, n)
        else:
            costs[:] = np.nan
        x, y, at = x + n * d, y + m * d, at + n * m
