"""Vector passes of the rounding onto the transport polytope."""

from __future__ import annotations

from .compiling import njit

#: No fast mathematics: what two specialisations of a kernel may fuse or reorder differs, and the
#: last digit of a certificate must not depend on which of them runs.
EXACT = {"cache": True, "nogil": True, "error_model": "numpy"}


@njit(**EXACT)
def shrink(mass, wanted, out):
    """out = min(1, wanted / mass), dividing only where it is below 1; return ‖mass - wanted‖₁."""
    error = 0.0
    for i in range(mass.size):
        error += abs(mass[i] - wanted[i])
        out[i] = wanted[i] / mass[i] if mass[i] > wanted[i] else 1.0
    return error


@njit(**EXACT)
def shortfall(mass, scaling, wanted, out):
    """out = max(wanted - scaling mass, 0); return its sum."""
    total = 0.0
    for i in range(mass.size):
        missing = wanted[i] - scaling[i] * mass[i]
        out[i] = missing if missing > 0 else 0.0
        total += out[i]
    return total
