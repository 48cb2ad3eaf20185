"""Weights of many problems: checked, without their zeros, and divided by their totals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._types import Index, Vector
from .compiling import njit
from .dense import SUM


class Histograms(NamedTuple):
    """Histogram h has the masses ``weights[starts[h] : starts[h + 1]]`` of total 1 at ``places``.

    ``totals`` are the sums of the weights as they were given: NaN if they were no weights, and 0
    for weights that take whatever total the other side has. ``sizes`` count the places there are.
    """

    starts: Index
    places: Index
    weights: Vector
    totals: Vector
    sizes: Index


@njit(**SUM)
def _keep(given, starts, empty, kept, places, weights, totals):
    """Copy the weights of each histogram that are above ``empty`` times their total."""
    size = 0
    kept[0] = 0
    for h in range(starts.size - 1):
        total, is_good = 0.0, True
        for k in range(starts[h], starts[h + 1]):
            is_good &= 0 <= given[k] < np.inf
            total += given[k]
        is_good &= 0 < total < np.inf
        totals[h] = total if is_good else np.nan
        if is_good:
            first, held = size, 0.0
            for k in range(starts[h], starts[h + 1]):
                if given[k] > empty * total:
                    places[size], weights[size] = k - starts[h], given[k]
                    held += given[k]
                    size += 1
            for k in range(first, size):
                weights[k] /= held
        kept[h + 1] = size


def kept(given: Vector, starts: Index, sizes: Index, empty: float) -> Histograms:
    """Return histograms without empty places, from weights one after the other."""
    n = starts.size - 1
    begins, totals = np.empty(n + 1, np.int64), np.empty(n)
    places, weights = np.empty(given.size, np.int64), np.empty(given.size)
    _keep(given, starts, empty, begins, places, weights, totals)
    return Histograms(begins, places, weights, totals, sizes)


def uniform(sizes: Index) -> Histograms:
    """Return equal weights on so many places each, of whatever total the other side has."""
    sizes = np.ascontiguousarray(sizes)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    places = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
    return Histograms(starts, places, np.repeat(1.0 / sizes, sizes), np.zeros(sizes.size), sizes)
