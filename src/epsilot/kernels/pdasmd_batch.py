"""The inner loop of PDASMD-B, which other threads may help with.

A batch is cut into chunks of rows, whose sums are added in their order, so that it does not
matter who computes them. ``counters`` holds the number of chunks that are ready to be taken,
taken, and done; chunk c belongs to step c // n_chunks. The leader takes chunks like everybody
else, and advances the sequences when a step is done, so it never waits for a helper that has not
taken a chunk. All run the same compiled code, so that not even the rounding depends on them.
"""

from __future__ import annotations

from . import atomics
from .compiling import njit
from .dense import INLINE, SUM
from .fused import snapshot_row
from .pdasmd import (
    SAFE,
    SAFE_SINGLE,
    advance,
    correct,
    couple,
    descend,
    direct,
    exponentiate,
    join,
)
from .sums import l1
from .vexp import wide_vectors

READY, TAKEN, DONE = 0, 1, 2


@njit(**INLINE)
def _chunk(c, C, rows, sample, snap, lse, inv_eta, v, E, S, parts):
    """Add up the gradient differences of one chunk of a batch (step 9)."""
    n_batch, n_chunks = sample.shape[1], parts.shape[0]
    t, k = c // n_chunks, c % n_chunks
    number = C.dtype.type
    scale, safe = number(inv_eta), SAFE_SINGLE if C.itemsize == 4 else SAFE
    part = parts[k]
    part[:] = 0
    for b in range(n_batch * k // n_chunks, n_batch * (k + 1) // n_chunks):
        row = C[rows[t, b]]
        moved, mass = snapshot_row(row, snap, E, S, number(lse[sample[t, b]]), scale)
        if moved > safe:
            correct(S, E, mass / moved, number(1 / (n_batch * mass)), part)
        else:
            direct(row, snap, v, scale, S, mass, 1 / n_batch, part)


@njit(**SUM)
def inner_loop(
    C, rows, sample, snap, lse, mu, inv_eta, tau1, tau3, alpha, h, is_linf, selected, z, y, y_sum,
    y_selected, work, parts, counters, S, is_leader,
):  # fmt: skip
    """Do ``pdasmd.inner_loop`` for batches: ``rows`` and ``sample`` are (l, B).

    Threads share all arguments but the scratch ``S`` and ``is_leader``, true for one of them.
    Helpers read v and E, the first lines of ``work``, and write lines of ``parts``; they leave
    when all chunks are taken.
    """
    wide_vectors()
    v, E, g = work[0], work[1], work[2]
    n_chunks = parts.shape[0]
    n_all = sample.shape[0] * n_chunks
    scale = C.dtype.type(inv_eta)
    best = couple(z, y, tau1, tau3, v) if is_leader else scale
    until = n_looks = 0
    while True:
        c = atomics.load(counters, TAKEN)
        if c < atomics.load(counters, READY):
            if atomics.swap_if(counters, TAKEN, c, c + 1):
                _chunk(c, C, rows, sample, snap, lse, inv_eta, v, E, S, parts)
                atomics.add(counters, DONE, 1)
                n_looks = 0
        elif not is_leader and c >= n_all:
            return
        elif not is_leader or atomics.load(counters, DONE) < until:
            n_looks += 1
            if n_looks > atomics.PATIENCE:
                atomics.give_way()
        else:
            if until > 0:
                t = until // n_chunks - 1
                g[:] = mu
                for k in range(n_chunks):
                    join(g, parts[k])
                size = h * l1(g) if is_linf else h
                if t == selected:
                    descend(v, g, is_linf, size, y_selected)
                if until == n_all:
                    descend(v, g, is_linf, size, y)
                best = advance(g, alpha, is_linf, size, tau1, tau3, z, v, y_sum)
                if until == n_all:
                    return
            exponentiate(v, best, scale, E)
            until += n_chunks
            atomics.store(counters, READY, until)
