"""Whether a stored cost is that between the cells of a grid."""

from __future__ import annotations

from .compiling import njit
from .dense import SUM


@njit(**SUM)
def differs(C, first, second, third, tolerance, out, start, stop):
    """Tell of every row whether an entry is off the sum of three tables by more than a tolerance.

    The tables hold the cost of moving along each axis; a row ends at the first line of cells that
    differs.
    """
    n1, n2 = second.shape[0], third.shape[0]
    for i in range(start, stop):
        out[i] = False
        for a in range(first.shape[0]):
            for b in range(n1):
                base = first[i // (n1 * n2), a] + second[i // n2 % n1, b]
                along, lo = third[i % n2], (a * n1 + b) * n2
                line, n_off = C[i, lo : lo + n2], 0
                for c in range(n2):
                    n_off += abs(line[c] - (base + along[c])) > tolerance
                if n_off > 0:
                    out[i] = True
                    break
            if out[i]:
                break
        if out[i]:
            break
