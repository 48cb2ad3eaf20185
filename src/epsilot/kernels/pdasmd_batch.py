"""The inner loop of PDASMD-B, which other threads may help with.

A batch is cut into chunks of rows, whose sums are added in their order, so that it does not
matter who computes them. ``counters`` holds the number of chunks that are ready to be taken,
taken, and done; chunk c belongs to step c // n_chunks. The leader advances the sequences and
takes chunks like everybody else, so it never waits for a helper that has not taken one.
"""

from __future__ import annotations

from numba import njit

from . import atomics
from .dense import SUM
from .pdasmd import (
    SAFE,
    SAFE_SINGLE,
    add,
    correct,
    couple,
    descend,
    direct,
    exponentiate,
    exponents,
    mirror,
    snapshot_row,
)

READY, TAKEN, DONE = 0, 1, 2


@njit(**SUM)
def _chunk(c, C, rows, sample, snap, inv_unit, lse, inv_eta, v, E, S, parts):
    """Add up the gradient differences of one chunk of a batch (step 9)."""
    n_batch, n_chunks = sample.shape[1], parts.shape[0]
    t, k = c // n_chunks, c % n_chunks
    number = C.dtype.type
    scale, safe = number(inv_eta / inv_unit), SAFE_SINGLE if C.itemsize == 4 else SAFE
    part = parts[k]
    part[:] = 0
    for b in range(n_batch * k // n_chunks, n_batch * (k + 1) // n_chunks):
        row = C[rows[t, b]]
        total, mass = snapshot_row(row, snap, number(lse[sample[t, b]]), scale, E, S)
        if total > safe:
            correct(S, E, mass / total, 1 / (n_batch * mass), part)
        else:
            direct(row, v, inv_unit, inv_eta / inv_unit, S, mass, 1 / n_batch, part)


@njit(**SUM)
def help_inner_loop(C, rows, sample, snap, inv_unit, lse, inv_eta, v, E, S, parts, counters):
    """Take chunks as they become ready, until all of them are taken."""
    n_all = sample.shape[0] * parts.shape[0]
    n_looks = 0
    while True:
        c = atomics.load(counters, TAKEN)
        if c >= n_all:
            return
        if c < atomics.load(counters, READY) and atomics.swap_if(counters, TAKEN, c, c + 1):
            _chunk(c, C, rows, sample, snap, inv_unit, lse, inv_eta, v, E, S, parts)
            atomics.add(counters, DONE, 1)
            n_looks = 0
        else:
            n_looks += 1
            if n_looks > atomics.PATIENCE:
                atomics.give_way()


@njit(**SUM)
def lead_inner_loop(
    C, rows, sample, snap, inv_unit, lse, mu, v_snap, inv_eta, tau1, tau2, alpha, h, is_linf,
    selected, z, y, y_sum, y_selected, work, pair, parts, counters,
):  # fmt: skip
    """Do :func:`inner_loop` for batches: ``rows`` and ``sample`` are (l, B).

    Helpers read ``work`` and E, the first line of ``pair``, and write lines of ``parts``.
    """
    v, g, E, S = work[0], work[1], pair[0], pair[1]
    n_chunks = parts.shape[0]
    for t in range(sample.shape[0]):
        couple(z, v_snap, y, tau1, tau2, v)
        exponents(v, v_snap, inv_eta, E)
        exponentiate(E)
        until = (t + 1) * n_chunks
        atomics.store(counters, READY, until)
        while True:
            c = atomics.load(counters, TAKEN)
            if c >= until:
                break
            if atomics.swap_if(counters, TAKEN, c, c + 1):
                _chunk(c, C, rows, sample, snap, inv_unit, lse, inv_eta, v, E, S, parts)
                atomics.add(counters, DONE, 1)
        n_looks = 0
        while atomics.load(counters, DONE) < until:
            n_looks += 1
            if n_looks > atomics.PATIENCE:
                atomics.give_way()
        g[:] = mu
        for k in range(n_chunks):
            add(g, 1.0, parts[k])
        norm = mirror(g, alpha, z)
        descend(v, g, is_linf, h * norm if is_linf else h, y, y_sum)
        if t == selected:
            y_selected[:] = y
