"""Record versions, machine and numerics of a measurement."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib import metadata
from pathlib import Path

from epsilot.version import __version__

PACKAGES = ("numpy", "scipy", "numba", "POT")


@cache
def versions(*more: str) -> dict[str, str]:
    """Return the versions of Python, of epsilot and of the packages that compute."""
    found = {"python": platform.python_version(), "epsilot": __version__}
    for name in (*PACKAGES, *more):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


@cache
def machine() -> dict[str, str | int]:
    """Return processor, number of cores and operating system."""
    cores = os.cpu_count() or 1
    return {"processor": _processor(), "cores": cores, "system": platform.system()}


def _processor() -> str:
    """Return the processor's name where the system tells it."""
    table = Path("/proc/cpuinfo")
    if table.exists():
        for line in table.read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
