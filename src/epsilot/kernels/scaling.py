"""Sinkhorn's updates of scalings, from the first to the last in one call."""

from __future__ import annotations

import numpy as np

from .compiling import KERNEL, njit
from .dense import scaling_sweep
from .exp_log import log

#: Sweeps between two looks at the rate at which the violation falls, and before the first one.
WINDOW_SWEEPS, SETTLING_SWEEPS = 8, 64


@njit(**KERNEL)
def scale(K, p, q, error, max_sweeps, u, v):
    """Update scalings until the columns of diag(u) K diag(v) err by at most ``error`` in l1.

    Its rows are right. Return the number of sweeps and the error. The updates end early where they
    are too slow to reach the error within ``max_sweeps``.
    """
    errors, sums = np.empty(1), np.empty((1, v.size))
    missed, before = np.inf, np.inf
    for k in range(max_sweeps):
        scaling_sweep(K, v, p, u, 1.0, np.inf, errors, sums, 0, 1)
        missed = 0.0
        for j in range(v.size):
            missed += abs(v[j] * sums[0, j] - q[j])
        if not missed > error:
            return k + 1, missed
        if k % WINDOW_SWEEPS == WINDOW_SWEEPS - 1:
            n_windows = (max_sweeps - k) / WINDOW_SWEEPS
            is_slow = not n_windows * log(before / missed) >= log(missed / error)
            if is_slow and k >= SETTLING_SWEEPS:
                return k + 1, missed
            before = missed
        for j in range(v.size):
            v[j] = q[j] / sums[0, j]
    return max_sweeps, missed
