"""The memory of this process."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path


def peak() -> int:
    """Return the most memory this process has held, in bytes."""
    import resource  # not on Windows

    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def forget_peak() -> int | None:
    """Let :func:`recent_peak` begin anew; return the bytes held now, where Linux tells.

    Freed memory is given back first, so that a solve cannot hide in what an earlier one left.
    """
    try:
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError, TypeError):
        return None
    return recent_peak()


def recent_peak() -> int | None:
    """Return the most bytes held since the peak was forgotten, where Linux tells."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    peaks = (int(row.split()[1]) for row in status.splitlines() if row.startswith("VmHWM"))
    return 1024 * next(peaks)
