"""Passes over a cost in blocks of rows and, for very wide costs, in tiles of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from .. import parallel
from .._types import Array, FloatArray, Vector
from ..kernels.vectors import logaddexp
from .tuning import TUNING

#: Sums between 1 / MAX_SAFE_SUM and this have lost nothing to under- or overflow.
MAX_SAFE_SUM = 1e250

#: First row, the one after the last, and the costs between them.
Block = tuple[int, int, FloatArray]


def row_blocks(n: int, m: int, n_entries: int = TUNING.block_entries) -> Iterator[slice]:
    """Yield slices of the rows of an n x m array, of about ``n_entries`` entries each."""
    step = max(1, n_entries // m)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def n_chunks(n_entries: int, n_rows: int = TUNING.max_chunks) -> int:
    """Return the number of chunks of a pass, which does not depend on the number of threads."""
    return min(
        TUNING.max_chunks, n_rows, max(1, n_entries // parallel.TUNING.min_entries_per_thread)
    )


class ByRow:
    """An argument with one entry per row of the cost: a kernel gets those of its block."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array


class ColumnSums:
    """An argument that a kernel adds column sums to, in one row per chunk of a block.

    The kernel's ``start:stop`` then counts chunks, so that sums do not depend on threads.
    """

    __slots__ = ("dtype", "parts", "total")

    def __init__(self, m: int, dtype: DTypeLike = np.float64) -> None:
        self.total, self.dtype = np.zeros(m), dtype
        self.parts: Array = np.zeros((0, m), dtype)

    def cut(self, n_chunks: int) -> Array:
        """Return zeros for the sums of all chunks."""
        self.parts = np.zeros((n_chunks, self.total.size), self.dtype)
        return self.parts

    def add(self) -> None:
        """Add the sums of all chunks to the total."""
        if len(self.parts) == 1:
            self.total += self.parts[0]
        else:
            self.total += self.parts.sum(axis=0, dtype=np.float64)


def sweep(blocks: Iterable[Block], kernel: Callable[..., None], args: tuple[object, ...]) -> None:
    """Call ``kernel(C, *args, start, stop)`` on every block, shared among threads."""
    sums = [x for x in args if type(x) is ColumnSums]
    for start, stop, C in blocks:
        n_items = n_chunks(C.size, stop - start) if sums else stop - start
        mine: list[object] = []
        for x in args:  # inline: a function call costs as much as a pass over a small cost
            if type(x) is ByRow:
                mine.append(x.array[start:stop])
            else:
                mine.append(x.cut(n_items) if type(x) is ColumnSums else x)
        parallel.share(kernel, n_items, C.size, C, *mine)
        for x in sums:
            x.add()


def fold(
    blocks: Iterable[Block],
    kernel: Callable[..., None],
    combine: Callable[[Vector, Vector], Vector],
    m: int,
    args: tuple[object, ...],
) -> Vector:
    """Combine the m column values that ``kernel(C, *args, out, start, stop)`` writes per block."""
    total: Vector | None = None
    for start, stop, C in blocks:
        out = np.empty(m)
        mine = [x.array[start:stop] if type(x) is ByRow else x for x in args]
        parallel.share(kernel, m, C.size, C, *mine, out)
        total = out if total is None else combine(total, out)
    return np.empty(m) if total is None else total


# -- tiles of columns ------------------------------------------------------------------------------
#
# Row passes over two clouds know which arguments go along rows, which along columns, and how to
# combine tiles of columns. Threads and workers of a cluster use the same table.


#: Combines the row values of two tiles of columns.
Combine: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
#: An argument of a kernel: a number, or an array along rows or columns.
Argument: TypeAlias = Any


def _log_sum(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray(logaddexp(x.astype(np.float64), y.astype(np.float64)), x.dtype)


class KernelForm(NamedTuple):
    """The arguments of a kernel of ``kernels.points``, after clouds, metric and shift."""

    rows: tuple[int, ...]  # places of arguments with one entry per row
    cols: tuple[int, ...]  # places of arguments with one entry per column
    n_out: int  # output vectors along rows, which are the last arguments
    combine: Combine


FORMS = {
    "lse_rows": KernelForm((), (0,), 1, _log_sum),
    "ctransform_rows": KernelForm((), (0,), 1, np.minimum),
    "matvec": KernelForm((), (0,), 1, np.add),
    "apply_rows": KernelForm((0,), (1, 3), 1, np.add),
    "price_rows": KernelForm((0,), (1, 3, 4), 3, np.add),
}


def spans(size: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of pieces of at most ``step``."""
    return ((start, min(start + step, size)) for start in range(0, size, step))


def share_tiles(
    kernel: Callable[..., None],
    clouds: Sequence[Argument],
    inputs: Sequence[Argument],
    outs: Sequence[Argument],
) -> None:
    """Run a row pass over very many columns, tile by tile."""
    X, Y, metric, shift = clouds
    form = FORMS[kernel.__name__]
    for lo, hi in spans(Y.shape[1], TUNING.max_tile_columns):
        tile: Array = np.ascontiguousarray(Y[:, lo:hi])
        ins = [x[lo:hi] if place in form.cols else x for place, x in enumerate(inputs)]
        parts = outs if lo == 0 else [np.empty_like(x) for x in outs]
        entries = X.shape[0] * (hi - lo)
        parallel.share(kernel, X.shape[0], entries, X, tile, metric, shift, *ins, *parts)
        if lo > 0:
            for out, part in zip(outs, parts, strict=True):
                out[:] = form.combine(out, part)
