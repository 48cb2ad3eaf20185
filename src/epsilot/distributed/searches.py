"""Searches in trees by workers: the tree and its prices come from this process, rows are shared.

So the pricing of the multiscale simplex and the c-transforms of certificates are spread, while all
that is bid and pivoted stays here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import parallel
from .._types import Integers, Matrix, Vector
from ..geometry.sweeps import spans
from ..geometry.tree_index import PricedTree
from ..version import __version__
from . import tasks
from .cluster import Cluster

if TYPE_CHECKING:
    from distributed import Future
else:
    Future = Any

#: Rows from which a search takes longer than sending a tree, and rows of a task at most.
MANY_ROWS, TASK_ROWS = 1 << 16, 1 << 18

#: Columns, their costs, the least value of each row, and what no other column is below.
Found: TypeAlias = tuple[NDArray[np.int32], Matrix, Vector, Vector]


@dataclass(frozen=True)
class Searches:
    """Searches for many rows go to a cluster; the results are those of one process."""

    cluster: Cluster

    def least_columns(
        self,
        priced: PricedTree,
        X: Matrix,
        rows: Integers,
        cols: Integers,
        costs: Matrix,
        leasts: Vector,
        thresholds: Vector,
    ) -> None:
        """Write the columns of least cost + price of some rows."""
        here = rows if rows.size < MANY_ROWS else rows[:1]  # which compiles the search
        priced.least_columns(X, here, cols, costs, leasts, thresholds)
        if here.size == rows.size:
            return
        pieces = self._pieces(rows.size)
        k = cols.shape[1]
        found = self._ask(priced, [X[rows[lo:hi]] for lo, hi in pieces], least_there, k)
        for (lo, hi), part in zip(pieces, found, strict=True):
            own = rows[lo:hi]
            cols[own], costs[own], leasts[own], thresholds[own] = part

    def ctransform(self, priced: PricedTree, X: Matrix) -> Vector:
        """Return min_j C_ij + price_j for points."""
        if len(X) < MANY_ROWS:
            return priced.ctransform(X)
        priced.ctransform(X[:1])  # which compiles the search
        parts = [X[lo:hi] for lo, hi in self._pieces(len(X))]
        return np.concatenate(self._ask(priced, parts, ctransform_there, 1))

    def _pieces(self, n: int) -> list[tuple[int, int]]:
        return list(spans(n, min(TASK_ROWS, -(-n // (2 * self.cluster.slots)))))

    def _ask(self, priced: PricedTree, parts: list[Matrix], function: Any, k: int) -> list[Any]:
        cluster, n = self.cluster, len(parts)

        def ask() -> list[Future]:
            points = [cluster.send(part) for part in parts]
            tree = [cluster.send(x) for x in (priced.points, priced.prices, priced.nodes)]
            same = [[x] * n for x in (tree, priced.metric, priced.shift, k)]
            return cluster.map(function, [__version__] * n, points, *same)

        return cluster.gather(ask)


# -- what workers do ---------------------------------------------------------------------------


def _priced(tree: list[Any], metric: int, shift: float) -> PricedTree:
    points, prices, nodes = map(tasks.keep, tree)
    return PricedTree(points, prices, metric, shift, nodes)


def least_there(
    version: str, X: Matrix, tree: list[Any], metric: int, shift: float, k: int
) -> Found:
    """Search the k least columns of some points."""
    tasks.check_version(version)
    n = len(X)
    rows, cols = np.arange(n, dtype=np.int32), np.zeros((n, k), np.int32)
    costs, leasts, thresholds = np.empty((n, k)), np.empty(n), np.empty(n)
    with parallel.limit(1):
        _priced(tree, metric, shift).least_columns(
            tasks.keep(X), rows, cols, costs, leasts, thresholds
        )
    return cols, costs, leasts, thresholds


def ctransform_there(
    version: str, X: Matrix, tree: list[Any], metric: int, shift: float, k: int
) -> Vector:
    """Return the least values of some points."""
    tasks.check_version(version)
    with parallel.limit(1):
        return _priced(tree, metric, shift).ctransform(tasks.keep(X))
