"""Run row passes and tree searches of point clouds on the workers.

Each task computes some rows, and nothing is summed across workers. Only clouds of more than
``max_tile_columns`` columns (:mod:`epsilot.geometry.tuning`) are tiled both ways; the tiles of a
row are then combined from the first to the last, as in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import parallel
from .._types import FloatArray, Integers, Matrix, Vector
from ..geometry.sweeps import FORMS, Argument, spans
from ..geometry.tree_index import LeastColumns, PricedTree
from ..kernels import points as kernels
from ..metrics import MetricKey
from ..version import __version__
from .cluster import Cluster, Submit, aligned, check_version
from .tiles import Tile, Tiles

if TYPE_CHECKING:
    from distributed import Future
else:
    Future = Any


@dataclass(frozen=True)
class TaskSizes:
    """Sizes of tasks, which balance their overhead against the number of workers."""

    entries: int = 1 << 25  # fewest matrix entries of a pass per task
    tasks_per_slot: int = 4  # most tasks of a pass per slot
    searched_rows: int = 1 << 18  # most rows of a tree search per task
    min_searched_rows: int = 1 << 16  # searches of fewer rows run in this process


SIZES = TaskSizes()
#: Kernels that this process has compiled, with their data types.
_compiled: set[tuple[str, str]] = set()

# -- row passes ---------------------------------------------------------------------------------


class KernelCall(NamedTuple):
    """A kernel by name, its arguments, and the rows of a tile that it computes."""

    kernel: str
    dtype: type[np.floating]
    metric: MetricKey
    shift: float
    centre: Vector | None
    numbers: list[Argument]  # arguments; None in place of an array
    lo: int = 0
    hi: int = 0


def run(
    sources: Tiles,
    targets: Tiles,
    kernel: Callable[..., None],
    call: KernelCall,
    inputs: Sequence[Argument],
    outs: Sequence[FloatArray],
) -> None:
    """Compute all rows of a pass on the workers, and write them to ``outs``."""
    _compile(kernel, call, sources.shape[1], inputs, outs)
    pieces, submit = row_tasks(sources, targets, call, inputs)
    for (_, lo, hi), found in zip(pieces, sources.cluster.gather(submit), strict=True):
        for out, part in zip(outs, found, strict=True):
            out[lo:hi] = part


def row_tasks(
    sources: Tiles, targets: Tiles, call: KernelCall, inputs: Sequence[Argument]
) -> tuple[list[tuple[int, int, int]], Submit]:
    """Return the pieces of a pass (tile, first row, last row) and a function that submits them."""
    cluster, form = sources.cluster, FORMS[call.kernel]
    pieces = _pieces(sources, targets)

    def submit() -> list[Future]:
        n = len(pieces)
        rows = [[inputs[place][lo:hi] for place in form.rows] for _, lo, hi in pieces]
        tiles = [sources.future(k) for k, _, _ in pieces]
        calls = [
            call._replace(lo=lo - sources.spans[k][0], hi=hi - sources.spans[k][0])
            for k, lo, hi in pieces
        ]
        before: list[Future | None] = [None] * n
        for k, (start, stop) in enumerate(targets.spans):
            cols = [cluster.send(inputs[place][start:stop]) for place in form.cols]
            columns = targets.future(k)
            before = cluster.map(
                compute, [__version__] * n, before, tiles, [columns] * n, calls, rows, [cols] * n
            )
        return before

    return pieces, submit


def _pieces(sources: Tiles, targets: Tiles) -> list[tuple[int, int, int]]:
    """Divide the rows of all tiles into pieces of about equal size, one per task."""
    n, m, slots = sources.shape[0], targets.shape[0], sources.cluster.slots
    n_tasks = min(n, max(slots, min(SIZES.tasks_per_slot * slots, n * m // SIZES.entries)))
    step = -(-n // n_tasks)
    return [
        (k, start + lo, start + hi)
        for k, (start, stop) in enumerate(sources.spans)
        for lo, hi in spans(stop - start, step)
    ]


def _compile(
    kernel: Callable[..., None],
    call: KernelCall,
    dimension: int,
    inputs: Sequence[Argument],
    outs: Sequence[FloatArray],
) -> None:
    """Compile a kernel in this process first, so that workers do not write its cache together."""
    key = call.kernel, np.dtype(call.dtype).name
    if key in _compiled:
        return
    X, Y = np.zeros((1, dimension), call.dtype), np.zeros((dimension, 1), call.dtype)
    given = [np.array(x[:1]) if isinstance(x, np.ndarray) else x for x in inputs]
    unused = [np.empty_like(x[:1]) for x in outs]
    kernel(X, Y, call.metric, call.dtype(call.shift), *given, *unused, 0, 0)
    _compiled.add(key)


# -- tree searches ------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClusterSearch:
    """Search trees on the workers for many rows; the results have the bits of one process.

    The workers price arcs of the multiscale simplex and compute c-transforms of certificates. Bids
    and pivots stay in this process.
    """

    cluster: Cluster

    def least_columns(
        self, priced: PricedTree, X: Matrix, rows: Integers, out: LeastColumns
    ) -> None:
        """Write the columns of least cost + price of some rows."""
        # One row compiles the search before workers load it.
        here = rows if rows.size < SIZES.min_searched_rows else rows[:1]
        priced.least_columns(X, here, out)
        if here.size == rows.size:
            return
        pieces = self._pieces(rows.size)
        found = self._search(
            priced, [X[rows[lo:hi]] for lo, hi in pieces], least_columns_of, out.cols.shape[1]
        )
        for (lo, hi), part in zip(pieces, found, strict=True):
            own = rows[lo:hi]
            for array, values in zip(out, part, strict=True):
                array[own] = values

    def ctransform(self, priced: PricedTree, X: Matrix) -> Vector:
        """Return min_j C_ij + price_j for points."""
        if len(X) < SIZES.min_searched_rows:
            return priced.ctransform(X)
        priced.ctransform(X[:1])  # compiles the search
        parts = [X[lo:hi] for lo, hi in self._pieces(len(X))]
        return np.concatenate(self._search(priced, parts, ctransform_of, 1))

    def _pieces(self, n: int) -> list[tuple[int, int]]:
        return list(spans(n, min(SIZES.searched_rows, -(-n // (2 * self.cluster.slots)))))

    def _search(self, priced: PricedTree, parts: list[Matrix], function: Any, k: int) -> list[Any]:
        cluster, n = self.cluster, len(parts)

        def submit() -> list[Future]:
            points = [cluster.send(part) for part in parts]
            tree = [cluster.send(x) for x in (priced.points, priced.prices, priced.nodes)]
            same = [[x] * n for x in (tree, priced.metric, priced.shift, k)]
            return cluster.map(function, [__version__] * n, points, *same)

        return cluster.gather(submit)


# -- functions that run on workers --------------------------------------------------------------


def compute(
    version: str,
    before: list[FloatArray] | None,
    sources: Tile,
    targets: Tile,
    call: KernelCall,
    rows: Sequence[Vector],
    cols: Sequence[Vector],
) -> list[FloatArray]:
    """Compute rows of a pass, and combine them with those of the previous tiles of columns."""
    check_version(version)
    form = FORMS[call.kernel]
    X = sources.layout(call.dtype, call.centre, False)[call.lo : call.hi]
    Y = targets.layout(call.dtype, call.centre, True)
    inputs = list(call.numbers)
    for places, arrays in ((form.rows, rows), (form.cols, cols)):
        for place, x in zip(places, arrays, strict=True):
            inputs[place] = aligned(x)
    outs = [np.empty(len(X), call.dtype) for _ in range(form.n_out)]
    with parallel.limit(1):
        getattr(kernels, call.kernel)(
            X, Y, call.metric, call.dtype(call.shift), *inputs, *outs, 0, len(X)
        )
        if before is not None:
            outs = [form.combine(x, y) for x, y in zip(before, outs, strict=True)]
    return outs


def only(found: list[FloatArray]) -> FloatArray:
    """Return the output of a pass that has one."""
    return found[0]


def _priced(tree: list[Any], metric: MetricKey, shift: float) -> PricedTree:
    points, prices, nodes = map(aligned, tree)
    return PricedTree(points, prices, metric, shift, nodes)


def least_columns_of(
    version: str, X: Matrix, tree: list[Any], metric: MetricKey, shift: float, k: int
) -> LeastColumns:
    """Search the k least columns of points."""
    check_version(version)
    n = len(X)
    out = LeastColumns.empty(n, k)
    with parallel.limit(1):
        _priced(tree, metric, shift).least_columns(aligned(X), np.arange(n, dtype=np.int32), out)
    return out


def ctransform_of(
    version: str, X: Matrix, tree: list[Any], metric: MetricKey, shift: float, k: int
) -> Vector:
    """Return min_j C_ij + price_j of points."""
    check_version(version)
    with parallel.limit(1):
        return _priced(tree, metric, shift).ctransform(aligned(X))
