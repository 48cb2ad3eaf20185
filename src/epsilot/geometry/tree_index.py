"""Which columns are cheapest for a row, without a pass over all: trees over the points of a cloud.

A :class:`Tree` holds the points of one side in the order of median splits; with prices it becomes
a :class:`Priced` tree, which says for any point which columns are least in cost plus price.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from .. import parallel
from .._types import Index, Integers, Matrix, Vector
from ..kernels import points as point_kernels
from ..kernels import tree as kernels

#: Dimensions for which kernels are compiled; points of others get coordinates that are all 0.
DIMENSIONS = (2, 3, 4, 8, 16)
#: Depth at which nodes are handed to threads.
SHARED_DEPTH = 5
#: Entries of a pass over all columns that a search takes as long as.
SEARCH_ENTRIES = 2048
#: Entries from which, and dimension up to which, c-transforms search trees.
SEARCHED_ENTRIES, SEARCHED_AXES = 1 << 23, 8
#: Rows of a sample, and entries of a pass that take as long as visiting a node.
SAMPLE, VISIT_ENTRIES = 64, 32
#: Entries of a row that take as long as a single pair.
PAIR_ENTRIES = 16


class Searchers(Protocol):
    """Who searches a tree for many points: the threads of this process, or others."""

    def least_columns(
        self,
        priced: Priced,
        X: Matrix,
        rows: Integers,
        cols: Integers,
        costs: Matrix,
        leasts: Vector,
        thresholds: Vector,
    ) -> None:
        """Write the columns of least cost + price of some rows."""

    def ctransform(self, priced: Priced, X: Matrix) -> Vector:
        """Return min_j C_ij + price_j for points."""


class Embedding(NamedTuple):
    """A cost that is a metric of points in few dimensions, plus a shift."""

    X: Matrix
    Y: Matrix
    metric: int
    shift: float
    searchers: Searchers | None = None  # None: this process
    trees: Trees | None = None  # of the points of the cost, which may be others than these

    def tree_of(self, points: Matrix) -> Tree:
        """Return the tree of points, which is built once for those of the cost."""
        if self.trees is not None and points is self.trees.X:
            return self.trees.rows
        if self.trees is not None and points is self.trees.Y:
            return self.trees.cols
        return Tree.of(points)

    def least_columns(
        self,
        priced: Priced,
        X: Matrix,
        rows: Integers,
        cols: Integers,
        costs: Matrix,
        leasts: Vector,
        thresholds: Vector,
    ) -> None:
        """Write the columns of least cost + price of some rows, whoever looks for them."""
        room = cols, costs, leasts, thresholds
        if self.searchers is None:
            priced.least_columns(X, rows, *room)
        else:
            self.searchers.least_columns(priced, X, rows, *room)

    def ctransform(self, priced: Priced, X: Matrix) -> Vector:
        """Return min_j C_ij + price_j for points, whoever looks for it."""
        searchers = self.searchers
        return priced.ctransform(X) if searchers is None else searchers.ctransform(priced, X)


@dataclass(frozen=True)
class Tree:
    """Points in the order of a balanced tree, with the boxes of its nodes."""

    order: Index
    points: Matrix
    boxes: Matrix

    @classmethod
    def of(cls, points: Matrix) -> Tree:
        """Put points in order."""
        n, d = points.shape
        X = np.zeros((n, width_of(d)))
        X[:, :d] = points
        order = _order(X)
        return cls.ordered(X[order], order)

    @classmethod
    def ordered(cls, points: Matrix, order: Index | None = None) -> Tree:
        """Return the tree of points that are in such an order already."""
        n, d = points.shape
        depth = (-(-n // kernels.LEAF) - 1).bit_length()
        boxes = np.zeros((2 << depth, 3 * d + 1))
        kernels.boxes(points, depth, boxes)
        return cls(np.arange(n) if order is None else order, points, boxes)

    def priced(self, prices: Vector, metric: int, shift: float) -> Priced:
        """Fit slopes to prices in tree order; +inf keeps a column away from all rows."""
        nodes = self.boxes.copy()
        d = self.points.shape[1]
        moments = np.empty((len(nodes), d + 2 + d * (d + 3) // 2))
        finite = prices
        if not prices.max() < np.inf:
            seen = prices[prices < np.inf]
            finite = np.where(prices < np.inf, prices, seen.max() if seen.size else 0.0)
        priced = Priced(self.points, prices, metric, shift, nodes)
        kernels.slopes(self.points, finite, priced.depth, nodes, moments)
        priced.refresh()
        return priced


def width_of(dimension: int) -> int:
    """Return the dimension for which kernels are compiled."""
    return next(size for size in DIMENSIONS if size >= dimension)


def _order(X: Matrix) -> Index:
    """Return the order of median splits along the longest sides."""
    n = len(X)
    order, keys = np.arange(n), np.empty(n)
    highest = (n - 1).bit_length()
    top = min(SHARED_DEPTH, highest)
    kernels.split_top(X, order, keys, top)
    parallel.share(kernels.split_rest, 1 << top, 64 * n, X, order, keys, top, highest)
    return order


class Trees:
    """The trees of both sides of a cost, each built when it is first asked for.

    Methods and certificates share them, and so do copies of a cost that have the same points.
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
class Priced:
    """A tree of columns with their prices, in tree order, ready to be searched."""

    points: Matrix
    prices: Vector
    metric: int
    shift: float
    nodes: Matrix

    @property
    def depth(self) -> int:
        """Depth of the leaves."""
        return len(self.nodes).bit_length() - 2

    @property
    def axes(self) -> tuple[float, ...]:
        """A tuple that tells kernels the dimension."""
        return (0.0,) * int(self.points.shape[1])

    @property
    def args(self) -> tuple[object, ...]:
        """What kernels take of the tree, after points and prices."""
        return self.shift, self.metric, self.nodes, self.depth, self.axes

    def refresh(self) -> None:
        """Raise the bounds to prices that have risen."""
        args = self.points, self.prices, self.shift
        top = min(SHARED_DEPTH, self.depth)
        entries = self.points.size * self.depth
        parallel.share(kernels.leasts, 1 << top, entries, *args, self.depth, self.nodes, top)
        kernels.leasts(*args, top, self.nodes, 0, 0, 1)

    def least_columns(
        self,
        X: Matrix,
        rows: Integers,
        cols: Integers,
        costs: Matrix,
        leasts: Vector,
        thresholds: Vector,
    ) -> None:
        """Write the columns of least cost + price of some rows; see the kernel."""
        parallel.share(
            kernels.least_columns, rows.size, SEARCH_ENTRIES * rows.size,
            X, rows, self.points, self.prices, *self.args, cols, costs, leasts, thresholds,
        )  # fmt: skip

    def ctransform(self, X: Matrix) -> Vector:
        """Return min_j C_ij + price_j for points."""
        out = np.empty(len(X))
        parallel.share(
            kernels.ctransform, len(X), SEARCH_ENTRIES * len(X),
            X, self.points, self.prices, *self.args, out,
        )  # fmt: skip
        return out


@dataclass(frozen=True)
class TreeIndex:
    """The points of one side in tree order; neighbours that are equal are one point of its tree.

    Equal points are equally far from everything: no bound would tell them apart.
    """

    order: Index
    starts: Index
    tree: Tree

    @classmethod
    def of(cls, tree: Tree) -> TreeIndex:
        """Find the points of a tree that are equal."""
        is_new = (tree.points[1:] != tree.points[:-1]).any(axis=1)
        starts = np.flatnonzero(np.concatenate([[True], is_new]))
        if starts.size < len(tree.points):
            return cls(tree.order, starts, Tree.ordered(tree.points[starts]))
        return cls(tree.order, starts, tree)

    def least(self, prices: Vector) -> Vector:
        """Return the least price of every point of the tree."""
        return np.minimum.reduceat(prices[self.order], self.starts)

    def spread(self, values: Vector) -> Vector:
        """Return what the points of the tree have, for every point in the user's order."""
        out = np.empty(self.order.size)
        out[self.order] = np.repeat(values, np.diff(self.starts, append=self.order.size))
        return out


@dataclass(frozen=True)
class Searched:
    """Trees of both sides of a cost that is large, and of few dimensions."""

    rows: TreeIndex
    cols: TreeIndex
    embedding: Embedding

    @classmethod
    def of(cls, embedding: Embedding | None) -> Searched | None:
        """Return trees of points, or None where a pass over all columns is quick."""
        if embedding is None or embedding.X.shape[1] > SEARCHED_AXES:
            return None
        X, Y = embedding.X, embedding.Y
        is_large = len(X) * len(Y) >= SEARCHED_ENTRIES
        if not is_large:
            return None
        rows, cols = (TreeIndex.of(embedding.tree_of(Z)) for Z in (X, Y))
        return cls(rows, cols, embedding)

    def error(self, f: Vector, g: Vector) -> float:
        """Return what searching adds to the rounding of a pass: nothing."""
        return 0.0

    def ctransform(self, swap: bool, prices: Vector) -> Vector | None:
        """Return min_j C_ij + price_j (or over rows), or None if a pass would be quicker.

        A few rows tell: prices that have nothing to do with the points leave little to prune.
        """
        rows, cols = (self.cols, self.rows) if swap else (self.rows, self.cols)
        least = cols.least(prices)
        priced = cols.tree.priced(least, self.embedding.metric, self.embedding.shift)
        points = rows.tree.points
        sample = np.ascontiguousarray(points[:: max(1, len(points) // SAMPLE)])
        visits = kernels.visits(sample, priced.points, priced.prices, *priced.args)
        if visits * VISIT_ENTRIES > len(sample) * cols.order.size:
            return None
        return rows.spread(self.embedding.ctransform(priced, points))


def cells(points: Matrix, weights: Vector, depth: int) -> tuple[Matrix, Vector]:
    """Return centroids and masses of the nodes of a depth, or the points if hardly more."""
    if 2 << depth > len(points):
        return points, weights
    centres, masses = np.empty((1 << depth, points.shape[1])), np.empty(1 << depth)
    kernels.cells(points, weights, depth, centres, masses)
    return centres, masses


def clusters(points: Matrix, weights: Vector, n_cells: int) -> tuple[Matrix, Vector]:
    """Return weighted centroids and masses of at least ``n_cells`` cells of equal count.

    There are less than twice as many: a power of two; all points, if they are hardly more.
    """
    order = _order(points)
    return cells(points[order], weights[order], (n_cells - 1).bit_length())


def pair_costs(embedding: Embedding, rows: Index, cols: Index) -> Vector:
    """Return the costs of single pairs of points."""
    X, Y, metric, shift, *_ = embedding
    out, Y = np.empty(rows.size), np.ascontiguousarray(Y.T)
    rows, cols = (np.ascontiguousarray(x, dtype=np.int64) for x in (rows, cols))
    entries = PAIR_ENTRIES * rows.size
    parallel.share(
        point_kernels.pair_costs, rows.size, entries, X, Y, metric, shift, rows, cols, out
    )
    return out
