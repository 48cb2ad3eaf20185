"""What row passes over two clouds have in common, wherever they run.

Which arguments go along rows, which along columns, and how tiles of columns are put together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .. import parallel
from .._types import Array, FloatArray
from ..kernels.vectors import logaddexp

#: Columns of a tile: a worker holds so many points, and a task carries so many numbers, at most.
WIDE = 1 << 20

#: Puts together what two tiles of columns say of each row.
Combine: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
#: An argument of a kernel: a number, or an array along rows or columns.
Argument: TypeAlias = Any


def _log_sum(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray(logaddexp(x.astype(np.float64), y.astype(np.float64)), x.dtype)


class Form(NamedTuple):
    """The arguments of a kernel of ``kernels.points``, after clouds, metric and shift."""

    rows: tuple[int, ...]  # those with an entry for every row
    cols: tuple[int, ...]  # those with an entry for every column
    n_out: int  # vectors along rows that it writes, the last arguments
    combine: Combine


FORMS = {
    "lse_rows": Form((), (0,), 1, _log_sum),
    "ctransform_rows": Form((), (0,), 1, np.minimum),
    "matvec": Form((), (0,), 1, np.add),
    "apply_rows": Form((0,), (1, 3), 1, np.add),
    "price_rows": Form((0,), (1, 3, 4), 3, np.add),
}


def spans(size: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of pieces of at most ``step``."""
    return ((start, min(start + step, size)) for start in range(0, size, step))


def share_wide(
    kernel: Callable[..., None],
    clouds: Sequence[Argument],
    inputs: Sequence[Argument],
    outs: Sequence[Argument],
) -> None:
    """Run a row pass over very many columns, tile by tile."""
    X, Y, metric, shift = clouds
    form = FORMS[kernel.__name__]
    for lo, hi in spans(Y.shape[1], WIDE):
        tile: Array = np.ascontiguousarray(Y[:, lo:hi])
        ins = [x[lo:hi] if place in form.cols else x for place, x in enumerate(inputs)]
        parts = outs if lo == 0 else [np.empty_like(x) for x in outs]
        entries = X.shape[0] * (hi - lo)
        parallel.share(kernel, X.shape[0], entries, X, tile, metric, shift, *ins, *parts)
        if lo > 0:
            for out, part in zip(outs, parts, strict=True):
                out[:] = form.combine(out, part)
