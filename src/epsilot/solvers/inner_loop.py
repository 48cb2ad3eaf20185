"""The inner loop of PDASMD: which rows of C it reads, and who runs it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import parallel
from .._types import FloatArray, Index
from ..geometry import Geometry
from ..kernels import pdasmd as kernels
from ..kernels import pdasmd_batch as batch_kernels

#: Chunks of a batch, which as many threads may share if it has enough entries.
BATCH_CHUNKS = 4
HELPED_ENTRIES = 1 << 12
#: Entries of gathered rows held at once where C is not stored.
GATHERED_ENTRIES = 1 << 18


def run_inner_loop(C: FloatArray, rows: Index, sample: Index, *args: object) -> None:
    """Run the inner steps of a sample, with helpers where a batch is large enough."""
    n_batch, m = sample.shape[1], C.shape[1]
    work = np.empty((4, m), dtype=C.dtype)
    if n_batch == 1:
        kernels.inner_loop(C, rows.ravel(), sample.ravel(), *args, work)
        return
    parts = np.empty((min(n_batch, BATCH_CHUNKS), m))
    own = np.empty((len(parts), m), dtype=C.dtype)
    shared = C, rows, sample, *args, work[:3], parts, np.zeros(3, dtype=np.int64)

    def leader() -> None:
        batch_kernels.inner_loop(*shared, work[3], True)

    def helper(k: int) -> None:
        batch_kernels.inner_loop(*shared, own[k], False)

    is_worth_it = (
        n_batch * m >= HELPED_ENTRIES and sample.size * m >= 2 * parallel.MIN_ENTRIES_PER_THREAD
    )
    parallel.lead(leader, helper, len(parts) - 1, is_worth_it)


def sampled_rows(
    geometry: Geometry, sample: Index, unit: float, dtype: type[np.floating]
) -> Iterator[tuple[int, FloatArray, Index, Index]]:
    """Yield (first step, rows of C / unit, their places, components) for all of the sample."""
    n, m = geometry.shape
    if dtype is np.float32:
        ((_, _, C),) = geometry.single_blocks(unit)
        yield 0, C, sample, sample
        return
    if geometry.is_dense:
        yield 0, geometry.block(0, n), sample, sample
        return
    n_steps, batch_size = sample.shape
    step = max(1, GATHERED_ENTRIES // (batch_size * m))
    for first in range(0, n_steps, step):
        part = sample[first : first + step]
        C = np.stack([geometry.row(int(i)) for i in part.ravel()])
        C.setflags(write=False)  # as stored costs are: one compiled kernel for both
        yield first, C, np.arange(part.size).reshape(part.shape), part
