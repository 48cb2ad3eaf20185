"""The inner loop of Katyusha Sinkhorn: Sinkhorn's column update with estimated column sums.

Softmax rows come from those of the snapshot as in :mod:`.pdasmd`; z, y and v are relative to it.
"""

from __future__ import annotations

from .arrays import copy_to
from .compiling import INLINE, KERNEL, njit
from .exp_log import log, wide_vectors
from .pdasmd import MIN_NORMALISER, correct, couple, direct, exponentiate
from .sums import snapshot_row

#: Largest ratio of an estimated column sum to its mass; larger and smaller ones are clipped.
MAX_SUM_RATIO = 2.0


@njit(**INLINE)
def _advance(sums, q, metric, alpha, eta, v, z, y, y_sum):
    """Take the mirror step, and update the columns at v as Sinkhorn does."""
    for j in range(v.size):
        z[j] -= alpha * ((sums[j] - q[j]) / metric[j])
        ratio = min(max(sums[j] / q[j], 1 / MAX_SUM_RATIO), MAX_SUM_RATIO)
        y[j] = v[j] - eta * log(ratio)
        y_sum[j] += y[j]


@njit(**KERNEL)
def inner_loop(
    C, rows, sample, snap, lse, columns, q, metric, inv_eta, tau1, tau3, alpha, z, y, y_sum, work
):
    """Run one inner step for each batch of sampled rows, in place.

    Parameters
    ----------
    C, rows, sample : (k, m), (l, B) and (l, B) arrays
        Row ``rows[t, b]`` of C is the cost row of component ``sample[t, b]``.
    snap, columns : (m,) arrays
        The snapshot, and the column sums of its plan.
    lse
        Log-normalisers at the snapshot.
    metric : (m,) array
        Masses by which the mirror step divides.
    work : (4, m) array
        Scratch.
    """
    wide_vectors()
    v, E, S, sums = work[0], work[1], work[2], work[3]
    n_batch = sample.shape[1]
    for t in range(sample.shape[0]):
        best = couple(z, y, tau1, tau3, v)
        exponentiate(v, best, inv_eta, E)
        copy_to(columns, sums)
        for b in range(n_batch):
            row = C[rows[t, b]]
            moved, mass = snapshot_row(row, snap, E, S, lse[sample[t, b]], inv_eta)
            if moved > MIN_NORMALISER:
                correct(S, E, mass / moved, 1 / (n_batch * mass), sums)
            else:
                direct(row, snap, v, inv_eta, S, mass, 1 / n_batch, sums)
        _advance(sums, q, metric, alpha, 1 / inv_eta, v, z, y, y_sum)
