"""Sparse costs between points that are near each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import memory
from .._types import Index, Matrix, Vector
from ..arguments import is_integer, is_real
from ..errors import InvalidProblem
from ..metrics import MetricLike, as_named, compiled_metric
from ..wording import shown
from .base import Geometry
from .clouds import cloud_geometry
from .sparse import Sparse
from .tree_index import Embedding

#: Columns per point that a first search of the trees lists, and their growth for points with more.
FIRST_LISTED, GROWTH = 16, 4

#: Rows, columns and costs of arcs.
ArcArrays = tuple[Index, Index, Vector]


class ListArrays(NamedTuple):
    """Points of one side, the nearest points of the other, and their costs."""

    points: Index
    others: Index  # (points, k)
    costs: Matrix
    thresholds: Vector  # no point outside a list costs less


def check_near(max_distance: object, k_neighbors: object) -> None:
    """Reject a radius or a number of neighbours that is not positive, and both together."""
    if max_distance is not None and k_neighbors is not None:
        raise InvalidProblem(
            "max_distance and k_neighbors were both given; each chooses the allowed pairs (leave "
            "one out)."
        )
    if max_distance is not None and not (is_real(max_distance) and max_distance >= 0):
        raise InvalidProblem(
            f"max_distance is {shown(max_distance)}; it must be a number of at least 0, the "
            "largest distance of an allowed pair."
        )
    if k_neighbors is not None and not (is_integer(k_neighbors) and k_neighbors >= 1):
        raise InvalidProblem(
            f"k_neighbors is {shown(k_neighbors)}; it must be a whole number of at least 1."
        )


def near_geometry(
    X_a: ArrayLike,
    X_b: ArrayLike,
    metric: MetricLike,
    max_distance: float | None,
    k_neighbors: int | None,
) -> Sparse:
    """Return the costs of near pairs of two clouds, without a matrix of all costs."""
    check_near(max_distance, k_neighbors)
    geometry = cloud_geometry(X_a, X_b, metric, None if callable(as_named(metric).name) else True)
    return near_pairs(geometry, metric, max_distance, k_neighbors)


def near_pairs(
    geometry: Geometry, metric: MetricLike, max_distance: float | None, k_neighbors: int | None
) -> Sparse:
    """Return the costs of near pairs of points only; all others are forbidden.

    Parameters
    ----------
    geometry : Geometry
        The cost of all pairs.
    metric : str or callable
        Its metric. Squares and other powers of a distance are compared with the power of
        ``max_distance``.
    max_distance : float, optional
        Largest distance of an allowed pair.
    k_neighbors : int, optional
        Allow a pair if one of its points is among the k nearest to the other.
    """
    n, m = geometry.shape
    if k_neighbors is not None:
        k = int(k_neighbors)
        i, j, costs = _nearest(geometry, min(k, m), False)
        cols, rows, others = _nearest(geometry, min(k, n), True)
        found = [(i, j, costs), (rows, cols, others)]
    else:
        assert max_distance is not None
        row, named = compiled_metric(metric), as_named(metric)
        degree = named.p if row is None else row.degree or 1
        found = _within(geometry, float(max_distance) ** degree)
    i, j, costs = (np.concatenate([part[x] for part in found]) for x in range(3))
    return Sparse(i, j, costs, geometry.shape)


def _searched(embedding: Embedding, k: int, swap: bool, of: Index | None = None) -> ListArrays:
    """Return the k nearest of points of one side: indices of the points, lists and thresholds.

    ``of`` are places in the order of the side's tree; by default all of them.
    """
    X, Y, metric, shift, *_ = embedding
    X, Y = (Y, X) if swap else (X, Y)
    own, others = embedding.tree_of(X), embedding.tree_of(Y)
    points, order = own.points, own.order
    if of is not None:
        points, order = np.ascontiguousarray(points[of]), order[of]
    n = order.size
    _ask(n * k)
    cols, costs = np.zeros((n, k), dtype=np.int32), np.empty((n, k))
    leasts, thresholds = np.empty(n), np.empty(n)
    priced = others.priced(np.zeros(len(others.points)), metric, shift)
    rows = np.arange(n, dtype=np.int32)
    embedding.least_columns(priced, points, rows, cols, costs, leasts, thresholds)
    return ListArrays(order, others.order[cols], costs, thresholds)


def _nearest(geometry: Geometry, k: int, swap: bool) -> ArcArrays:
    """Return the arcs to the k nearest targets of every source, or with ``swap`` the reverse."""
    if geometry.embedding is not None:
        points, others, costs, _ = _searched(geometry.embedding, k, swap)
    elif not swap:
        points = np.arange(geometry.shape[0])
        _ask(points.size * k)
        others, costs, _ = geometry.k_least(points, np.zeros(geometry.shape[1]), k)
    else:
        points, m = np.arange(geometry.shape[1]), geometry.shape[1]
        _ask(m * k)
        others, costs = np.zeros((0, m), dtype=np.int64), np.zeros((0, m))
        for start, stop, C in geometry.blocks():
            rows = np.broadcast_to(np.arange(start, stop)[:, None], C.shape)
            others, costs = np.concatenate([others, rows]), np.concatenate([costs, C])
            if len(costs) > k:
                best = np.argsort(costs, axis=0, kind="stable")[:k]
                others = np.take_along_axis(others, best, 0)
                costs = np.take_along_axis(costs, best, 0)
        others, costs = others.T, costs.T
    return np.repeat(points, k), others.ravel().astype(np.int64), costs.ravel()


def _within(geometry: Geometry, most: float) -> list[ArcArrays]:
    """Return the arcs whose cost is at most a number."""
    found: list[ArcArrays] = []
    if geometry.embedding is None:
        for start, _, C in geometry.blocks():
            i, j = np.nonzero(most >= C)
            _ask(sum(arcs[0].size for arcs in found) + i.size)
            found.append((i + start, j, C[i, j]))
        return found
    (n, m), k = geometry.shape, FIRST_LISTED
    open_rows = np.arange(n)
    while open_rows.size:
        k = min(k, m)
        points, others, costs, thresholds = _searched(geometry.embedding, k, False, open_rows)
        is_whole = (thresholds > most) | (k == m)
        s, place = np.nonzero((costs <= most) & is_whole[:, None])
        found.append((points[s], others[s, place].astype(np.int64), costs[s, place]))
        open_rows, k = open_rows[~is_whole], GROWTH * k
    return found


def _ask(n_arcs: int) -> None:
    """Check the memory for a number of arcs."""
    what = f"{n_arcs:,} arcs between near points"
    # Each arc takes 96 bytes: its ends, its cost, and copies while they are sorted.
    memory.ask(96 * n_arcs, what, "use a smaller max_distance or k_neighbors")
