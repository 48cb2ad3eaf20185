"""Check that memory is available before it is allocated.

An error message is better than a process that the system kills.
"""

from __future__ import annotations

import os
from pathlib import Path

from .errors import TooLarge

#: Files in which Linux reports the available memory, and the limit of a container.
_MEMINFO, _CONTAINER = Path("/proc/meminfo"), Path("/sys/fs/cgroup/memory.max")
#: Allocations below this size, in bytes, are not checked.
MIN_CHECKED_BYTES = 1 << 20


def ask(n_bytes: int, what: str, remedy: str) -> None:
    """Raise `TooLarge` if an allocation needs more memory than is available."""
    if n_bytes <= MIN_CHECKED_BYTES:
        return
    limit = available()
    if n_bytes > limit:
        raise TooLarge(
            f"{what} needs {size_text(n_bytes)} of memory and {size_text(limit)} are available; "
            f"{remedy}."
        )


def available() -> int:
    """Return the bytes of memory that can be allocated now."""
    return min(_available_to_all(), _container_limit())


def size_text(n_bytes: int) -> str:
    """Return a number of bytes in MiB or GiB."""
    if n_bytes < 2**20:
        return f"{n_bytes:,} bytes"
    unit, name = (2**30, "GiB") if n_bytes >= 2**29 else (2**20, "MiB")
    return f"{n_bytes / unit:,.1f} {name}"


def _available_to_all() -> int:
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 8 << 30  # the system does not report it


def _container_limit() -> int:
    try:
        return int(_CONTAINER.read_text())
    except (OSError, ValueError):  # no such file, or "max"
        return 1 << 62
