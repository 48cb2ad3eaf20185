"""k-d trees over the points of a cloud: find the cheapest columns of a row without a full pass.

A :class:`Tree` holds the points of one side in the order of median splits. With prices it becomes
a :class:`PricedTree`, which finds the columns of least cost plus price for any point.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, Self

import numpy as np

from .. import parallel
from .._types import Index, Integers, Matrix, Vector
from ..kernels import points as point_kernels
from ..kernels import tree as kernels
from ..metrics import MetricKey
from .tuning import TUNING

#: Dimensions for which kernels are compiled; other points are padded with zero coordinates.
COMPILED_DIMENSIONS = (2, 3, 4, 8, 16)


class LeastColumns(NamedTuple):
    """The columns of least cost + price of some rows, as the kernel writes them."""

    cols: Integers
    costs: Matrix
    leasts: Vector
    thresholds: Vector

    @classmethod
    def empty(cls, n: int, k: int) -> Self:
        """Return arrays for k columns of n rows."""
        cols = np.zeros((n, k), dtype=np.int32)
        return cls(cols, np.empty((n, k)), np.empty(n), np.empty(n))


class SearchBackend(Protocol):
    """Searches trees for many points outside this process."""

    def least_columns(
        self, priced: PricedTree, X: Matrix, rows: Integers, out: LeastColumns
    ) -> None:
        """Write the columns of least cost + price of some rows."""

    def ctransform(self, priced: PricedTree, X: Matrix) -> Vector:
        """Return min_j C_ij + price_j for points."""


class Embedding(NamedTuple):
    """A cost that is a metric of points in few dimensions, plus a shift."""

    X: Matrix
    Y: Matrix
    metric: MetricKey
    shift: float
    backend: SearchBackend | None = None  # None: the threads of this process
    trees: TreePair | None = None  # of the cost's own points, which X and Y may be a part of

    @property
    def is_searched(self) -> bool:
        """Whether c-transforms search trees; a full pass is faster if the cost is small."""
        is_large = len(self.X) * len(self.Y) >= TUNING.min_searched_entries
        return is_large and self.X.shape[1] <= TUNING.max_searched_axes

    def tree_of(self, points: Matrix) -> Tree:
        """Return the tree of points; trees of the cost's own points are built once."""
        if self.trees is not None and points is self.trees.X:
            return self.trees.rows
        if self.trees is not None and points is self.trees.Y:
            return self.trees.cols
        return Tree.of(points)

    def least_columns(
        self, priced: PricedTree, X: Matrix, rows: Integers, out: LeastColumns
    ) -> None:
        """Write the columns of least cost + price of some rows."""
        if self.backend is None:
            priced.least_columns(X, rows, out)
        else:
            self.backend.least_columns(priced, X, rows, out)

    def ctransform(self, priced: PricedTree, X: Matrix) -> Vector:
        """Return min_j C_ij + price_j for points."""
        backend = self.backend
        return priced.ctransform(X) if backend is None else backend.ctransform(priced, X)


@dataclass(frozen=True)
class Tree:
    """Points in the order of a balanced k-d tree, with the boxes of its nodes."""

    order: Index
    points: Matrix
    boxes: Matrix

    @classmethod
    def of(cls, points: Matrix) -> Tree:
        """Build the tree of points."""
        n, d = points.shape
        X = np.zeros((n, width_of(d)))
        X[:, :d] = points
        order = _order(X)
        return cls.ordered(X[order], order)

    @classmethod
    def ordered(cls, points: Matrix, order: Index | None = None) -> Tree:
        """Return the tree of points that are already in tree order."""
        n, d = points.shape
        depth = (-(-n // kernels.MAX_LEAF_POINTS) - 1).bit_length()
        boxes = np.zeros((2 << depth, 3 * d + 1))
        kernels.boxes(points, depth, boxes)
        return cls(np.arange(n) if order is None else order, points, boxes)

    def priced(self, prices: Vector, metric: MetricKey, shift: float) -> PricedTree:
        """Fit slopes to prices in tree order; a price of +inf excludes a column."""
        nodes = self.boxes.copy()
        d = self.points.shape[1]
        moments = np.empty((len(nodes), d + 2 + d * (d + 3) // 2))
        finite = prices
        if not prices.max() < np.inf:
            seen = prices[prices < np.inf]
            finite = np.where(prices < np.inf, prices, seen.max() if seen.size else 0.0)
        priced = PricedTree(self.points, prices, metric, shift, nodes)
        kernels.slopes(self.points, finite, priced.depth, nodes, moments)
        priced.refresh()
        return priced


def width_of(dimension: int) -> int:
    """Return the least dimension with compiled kernels that holds the points."""
    return next(size for size in COMPILED_DIMENSIONS if size >= dimension)


def _order(X: Matrix) -> Index:
    """Return the order of points by median splits along the longest sides."""
    n = len(X)
    order, keys = np.arange(n), np.empty(n)
    highest = (n - 1).bit_length()
    top = min(TUNING.thread_depth, highest)
    kernels.split(X, order, keys, 0, top, 0, 1)
    parallel.share(kernels.split, 1 << top, 64 * n, X, order, keys, top, highest)
    return order


class TreePair:
    """The trees of both sides of a cost, each built on first use.

    Methods, certificates and copies of a cost with the same points share them.
    """

    def __init__(self, X: Matrix, Y: Matrix) -> None:
        self.X, self.Y = X, Y

    @cached_property
    def rows(self) -> Tree:
        """The tree of the sources."""
        return Tree.of(self.X)

    @cached_property
    def cols(self) -> Tree:
        """The tree of the targets."""
        return Tree.of(self.Y)


@dataclass(frozen=True)
class PricedTree:
    """A tree of columns with their prices, in tree order."""

    points: Matrix
    prices: Vector
    metric: MetricKey
    shift: float
    nodes: Matrix

    @property
    def depth(self) -> int:
        """Depth of the leaves."""
        return len(self.nodes).bit_length() - 2

    @property
    def axes(self) -> tuple[float, ...]:
        """A tuple whose length tells kernels the dimension."""
        return (0.0,) * int(self.points.shape[1])

    @property
    def args(self) -> tuple[object, ...]:
        """Arguments of kernels after points and prices."""
        return self.shift, self.metric, self.nodes, self.depth, self.axes

    def refresh(self) -> None:
        """Update the bounds of the nodes after prices have risen."""
        args = self.points, self.prices, self.shift
        top = min(TUNING.thread_depth, self.depth)
        entries = self.points.size * self.depth
        parallel.share(kernels.leasts, 1 << top, entries, *args, self.depth, self.nodes, top)
        kernels.leasts(*args, top, self.nodes, 0, 0, 1)

    def least_columns(self, X: Matrix, rows: Integers, out: LeastColumns) -> None:
        """Write the columns of least cost + price of some rows."""
        parallel.share(
            kernels.least_columns, rows.size, TUNING.entries_per_search * rows.size,
            X, rows, self.points, self.prices, *self.args, *out,
        )  # fmt: skip

    def within(
        self, X: Matrix, most: float, starts: Index, counts: Index, cols: Index, costs: Vector
    ) -> None:
        """Write the columns of cost at most ``most``; see the kernel for the outputs."""
        parallel.share(
            kernels.within, len(X), TUNING.entries_per_search * len(X),
            X, self.points, *self.args, most, starts, counts, cols, costs,
        )  # fmt: skip

    def ctransform(self, X: Matrix) -> Vector:
        """Return min_j C_ij + price_j for points."""
        out = LeastColumns.empty(len(X), 1)
        self.least_columns(X, np.arange(len(X), dtype=np.int32), out)
        return out.leasts

    def visits(self, X: Matrix) -> int:
        """Return the number of nodes that a c-transform at points visits."""
        rows, out = np.arange(len(X), dtype=np.int32), LeastColumns.empty(len(X), 1)
        args = rows, self.points, self.prices, *self.args, *out
        return int(kernels.least_columns(X, *args, 0, len(X)))


@dataclass(frozen=True)
class TreeIndex:
    """The points of one side in tree order, where equal neighbours are one point of the tree.

    Bounds cannot tell equal points apart, which have equal distances to everything.
    """

    order: Index
    starts: Index
    tree: Tree

    @classmethod
    def of(cls, tree: Tree) -> TreeIndex:
        """Group the equal points of a tree."""
        is_new = (tree.points[1:] != tree.points[:-1]).any(axis=1)
        starts = np.flatnonzero(np.concatenate([[True], is_new]))
        if starts.size < len(tree.points):
            return cls(tree.order, starts, Tree.ordered(tree.points[starts]))
        return cls(tree.order, starts, tree)

    def least(self, prices: Vector) -> Vector:
        """Return the least price among the equal points of each tree point."""
        return np.minimum.reduceat(prices[self.order], self.starts)

    def spread(self, values: Vector) -> Vector:
        """Return the values of tree points for every point, in the user's order."""
        out = np.empty(self.order.size)
        out[self.order] = np.repeat(values, np.diff(self.starts, append=self.order.size))
        return out


@dataclass(frozen=True)
class TreeSearch:
    """Trees of both sides of a large cost in few dimensions, for c-transforms."""

    rows: TreeIndex
    cols: TreeIndex
    embedding: Embedding

    @classmethod
    def of(cls, embedding: Embedding) -> TreeSearch:
        """Return the trees of an embedding."""
        rows, cols = (TreeIndex.of(embedding.tree_of(Z)) for Z in (embedding.X, embedding.Y))
        return cls(rows, cols, embedding)

    def error(self, f: Vector, g: Vector) -> float:
        """Return 0: a search has the bits of a full pass."""
        return 0.0

    def ctransform(self, swap: bool, prices: Vector) -> Vector | None:
        """Return min_j C_ij + price_j, or with ``swap`` over rows; None if a pass is faster.

        A sample of rows decides. Prices that do not vary smoothly with the points prevent pruning.
        """
        rows, cols = (self.cols, self.rows) if swap else (self.rows, self.cols)
        least = cols.least(prices)
        priced = cols.tree.priced(least, self.embedding.metric, self.embedding.shift)
        points = rows.tree.points
        sample = np.ascontiguousarray(points[:: max(1, len(points) // TUNING.sample_rows)])
        if priced.visits(sample) * TUNING.entries_per_visit > len(sample) * cols.order.size:
            return None
        return rows.spread(self.embedding.ctransform(priced, points))


def cells(points: Matrix, weights: Vector, depth: int) -> tuple[Matrix, Vector]:
    """Return centroids and masses of the nodes of a depth, or all points if they are few."""
    if 2 << depth > len(points):
        return points, weights
    centres, masses = np.empty((1 << depth, points.shape[1])), np.empty(1 << depth)
    kernels.cells(points, weights, depth, centres, masses)
    return centres, masses


def clusters(points: Matrix, weights: Vector, n_cells: int) -> tuple[Matrix, Vector]:
    """Return weighted centroids and masses of at least ``n_cells`` cells of equal count.

    The number of cells is the next power of two. Points that are hardly more are all returned.
    """
    order = _order(points)
    return cells(points[order], weights[order], (n_cells - 1).bit_length())


def pair_costs(embedding: Embedding, rows: Index, cols: Index) -> Vector:
    """Return the costs of single pairs of points."""
    X, Y, metric, shift, *_ = embedding
    out, Y = np.empty(rows.size), np.ascontiguousarray(Y.T)
    rows, cols = (np.ascontiguousarray(x, dtype=np.int64) for x in (rows, cols))
    entries = TUNING.entries_per_pair * rows.size
    parallel.share(
        point_kernels.pair_costs, rows.size, entries, X, Y, metric, shift, rows, cols, out
    )
    return out
