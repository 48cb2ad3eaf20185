"""Memory is asked for before it is allocated: a sentence beats a process that is killed."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import TooLarge

#: Where Linux says how much memory is available, and how much a container may use.
_MEMINFO, _CONTAINER = Path("/proc/meminfo"), Path("/sys/fs/cgroup/memory.max")
#: Bytes that are there.
SMALL = 1 << 20
#: What is assumed where the system does not say.
_UNKNOWN = 8 << 30


def ask(n_bytes: int, what: str, remedy: str) -> None:
    """Refuse in one sentence what needs more memory than is available."""
    if n_bytes <= SMALL:
        return
    room = available()
    if n_bytes > room:
        raise TooLarge(
            f"{what} needs {size_text(n_bytes)} of memory and {size_text(room)} are available; "
            f"{remedy}."
        )


def available() -> int:
    """Return the bytes of memory that can be allocated now."""
    return min(_available_to_all(), _container_limit())


def size_text(n_bytes: int) -> str:
    """Return a number of bytes for people to read."""
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
        return _UNKNOWN


def _container_limit() -> int:
    try:
        return int(_CONTAINER.read_text())
    except (OSError, ValueError):  # no such file, or "max"
        return 1 << 62
