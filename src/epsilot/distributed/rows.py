"""A row pass on workers: each task computes some rows, and nothing is added up between workers.

Only clouds of more than :data:`epsilot.geometry.sweeps.MAX_TILE_COLUMNS` columns are tiled both
ways; the tiles
of a row are then put together from the first to the last, as they are in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import parallel
from .._types import FloatArray, Vector
from ..geometry.sweeps import FORMS, Argument, spans
from ..kernels import points as kernels
from ..version import __version__
from . import tasks
from .cluster import Ask
from .tiles import Tile, Tiles

if TYPE_CHECKING:
    from distributed import Future
else:
    Future = Any

#: Entries of a pass that are worth a task, and tasks for each slot at most.
TASK_ENTRIES, TASKS = 1 << 25, 4

#: Kernels that are compiled in this process, by their types of numbers.
_compiled: set[tuple[str, str]] = set()


class Call(NamedTuple):
    """What a task calls: a kernel by its name, for some rows of a tile."""

    kernel: str
    dtype: type[np.floating]
    metric: int
    shift: float
    centre: Vector | None
    numbers: list[Argument]  # arguments, None where an array goes
    lo: int = 0
    hi: int = 0


def run(
    sources: Tiles,
    targets: Tiles,
    kernel: Callable[..., None],
    call: Call,
    inputs: Sequence[Argument],
    outs: Sequence[FloatArray],
) -> None:
    """Compute all rows of a pass, and write them."""
    _compile(kernel, call, sources.shape[1], inputs, outs)
    pieces, ask = asked(sources, targets, call, inputs)
    for (_, lo, hi), found in zip(pieces, sources.cluster.gather(ask), strict=True):
        for out, part in zip(outs, found, strict=True):
            out[lo:hi] = part


def asked(
    sources: Tiles, targets: Tiles, call: Call, inputs: Sequence[Argument]
) -> tuple[list[tuple[int, int, int]], Ask]:
    """Return the pieces of a pass (tile, first row, last row) and what submits them."""
    cluster, form = sources.cluster, FORMS[call.kernel]
    pieces = _pieces(sources, targets)

    def ask() -> list[Future]:
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
            across = targets.future(k)
            before = cluster.map(
                compute, [__version__] * n, before, tiles, [across] * n, calls, rows, [cols] * n
            )
        return before

    return pieces, ask


def _pieces(sources: Tiles, targets: Tiles) -> list[tuple[int, int, int]]:
    """Return what tasks compute: rows of a tile, about as many for each."""
    n, m, slots = sources.shape[0], targets.shape[0], sources.cluster.slots
    n_tasks = min(n, max(slots, min(TASKS * slots, n * m // TASK_ENTRIES)))
    step = -(-n // n_tasks)
    return [
        (k, start + lo, start + hi)
        for k, (start, stop) in enumerate(sources.spans)
        for lo, hi in spans(stop - start, step)
    ]


def _compile(
    kernel: Callable[..., None],
    call: Call,
    dimension: int,
    inputs: Sequence[Argument],
    outs: Sequence[FloatArray],
) -> None:
    """Compile a kernel here: workers that did it at the same time would spoil numba's cache."""
    key = call.kernel, np.dtype(call.dtype).name
    if key in _compiled:
        return
    X, Y = np.zeros((1, dimension), call.dtype), np.zeros((dimension, 1), call.dtype)
    given = [np.array(x[:1]) if isinstance(x, np.ndarray) else x for x in inputs]
    room = [np.empty_like(x[:1]) for x in outs]
    kernel(X, Y, call.metric, call.dtype(call.shift), *given, *room, 0, 0)
    _compiled.add(key)


def compute(
    version: str,
    before: list[FloatArray] | None,
    sources: Tile,
    targets: Tile,
    call: Call,
    rows: Sequence[Vector],
    cols: Sequence[Vector],
) -> list[FloatArray]:
    """Compute some rows on a worker; what tiles of columns before these said is put together."""
    tasks.check_version(version)
    form = FORMS[call.kernel]
    X = sources.layout(call.dtype, call.centre, False)[call.lo : call.hi]
    Y = targets.layout(call.dtype, call.centre, True)
    inputs = list(call.numbers)
    for places, arrays in ((form.rows, rows), (form.cols, cols)):
        for place, x in zip(places, arrays, strict=True):
            inputs[place] = tasks.keep(x)
    outs = [np.empty(len(X), call.dtype) for _ in range(form.n_out)]
    with parallel.limit(1):
        getattr(kernels, call.kernel)(
            X, Y, call.metric, call.dtype(call.shift), *inputs, *outs, 0, len(X)
        )
        if before is not None:
            outs = [form.combine(x, y) for x, y in zip(before, outs, strict=True)]
    return outs


def only(found: list[FloatArray]) -> FloatArray:
    """Return the vector that a pass with one output has found."""
    return found[0]
