"""Sparse costs between points that are near each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .. import memory
from .._types import Index, Matrix, Vector
from ..arguments import is_integer, is_real
from ..errors import InvalidProblem
from ..metrics import MetricLike, as_named, compiled_metric
from ..wording import shown
from .base import Geometry
from .inputs import cloud_geometry
from .sparse import Sparse
from .tree_index import Embedding, LeastColumns

#: Rows, columns and costs of arcs.
ArcArrays = tuple[Index, Index, Vector]


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
    if k_neighbors is None:
        assert max_distance is not None
        row, named = compiled_metric(metric), as_named(metric)
        degree = named.p if row is None else row.degree or 1
        return _within(geometry, float(max_distance) ** degree)
    k = int(k_neighbors)
    i, j, costs = _nearest(geometry, min(k, m), False)
    cols, rows, others = _nearest(geometry, min(k, n), True)
    found = [(i, j, costs), (rows, cols, others)]
    i, j, costs = (np.concatenate([part[x] for part in found]) for x in range(3))
    return Sparse(i, j, costs, geometry.shape)


def _searched(embedding: Embedding, k: int, swap: bool) -> tuple[Index, Index, Matrix]:
    """Return the points of one side, the k nearest of the other for each, and their costs."""
    X, Y, metric, shift, *_ = embedding
    X, Y = (Y, X) if swap else (X, Y)
    own, others = embedding.tree_of(X), embedding.tree_of(Y)
    n = own.order.size
    _ask(n * k)
    found = LeastColumns.empty(n, k)
    priced = others.priced(np.zeros(len(others.points)), metric, shift)
    embedding.least_columns(priced, own.points, np.arange(n, dtype=np.int32), found)
    return own.order, others.order[found.cols], found.costs


def _nearest(geometry: Geometry, k: int, swap: bool) -> ArcArrays:
    """Return the arcs to the k nearest targets of every source, or with ``swap`` the reverse."""
    if geometry.embedding is not None:
        points, others, costs = _searched(geometry.embedding, k, swap)
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


def _within(geometry: Geometry, most: float) -> Sparse:
    """Return the arcs whose cost is at most a number."""
    if geometry.embedding is not None:
        return _within_of_trees(geometry.shape, geometry.embedding, most)
    found: list[ArcArrays] = []
    for start, _, C in geometry.blocks():
        i, j = np.nonzero(most >= C)
        _ask(sum(part[0].size for part in found) + i.size)
        found.append((i + start, j, C[i, j]))
    i, j, costs = (np.concatenate([part[x] for part in found]) for x in range(3))
    return Sparse(i, j, costs, geometry.shape)


def _within_of_trees(shape: tuple[int, int], embedding: Embedding, most: float) -> Sparse:
    """Return the same arcs by two searches: one counts them, and one writes them."""
    own, others = embedding.tree_of(embedding.X), embedding.tree_of(embedding.Y)
    priced = others.priced(np.zeros(len(others.points)), embedding.metric, embedding.shift)
    X = own.points[np.argsort(own.order, kind="stable")]
    n = len(X)
    starts, counts = np.zeros(n + 1, dtype=np.int64), np.empty(n, dtype=np.int64)
    priced.within(X, most, starts, counts, np.empty(0, dtype=np.int64), np.empty(0))
    np.cumsum(counts, out=starts[1:])
    _ask(int(starts[-1]))
    cols, costs = np.empty(starts[-1], dtype=np.int64), np.empty(starts[-1])
    priced.within(X, most, starts, counts, cols, costs)
    return Sparse.of_rows(shape, starts, others.order[cols], costs)


def _ask(n_arcs: int) -> None:
    """Check the memory for a number of arcs."""
    what = f"{n_arcs:,} arcs between near points"
    # Each arc takes 96 bytes: its ends, its cost, and copies while they are sorted.
    memory.ask(96 * n_arcs, what, "use a smaller max_distance or k_neighbors")
