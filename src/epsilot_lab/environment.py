"""Record versions, machine and numerics of a measurement."""

from __future__ import annotations

import ast
import hashlib
import os
import platform
from functools import cache
from importlib import metadata
from pathlib import Path

import epsilot
from epsilot.version import __version__

#: Files of the library that decide numbers of a result.
COMPUTING = (
    *(f"{folder}/**/*.py" for folder in ("kernels", "geometry", "problems", "solvers", "engine")),
    *("barycenters/*.py", "finite_sum/*.py", "metrics.py"),
)
PACKAGES = ("numpy", "scipy", "numba", "POT")


@cache
def versions(*more: str) -> dict[str, str]:
    """Return the versions of Python, epsilot, its numerics and the packages that compute."""
    found = {"python": platform.python_version(), "epsilot": __version__, "numerics": numerics()}
    for name in (*PACKAGES, *more):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


@cache
def numerics() -> str:
    """Return a fingerprint of the code that computes, without comments and docstrings.

    Lines with equal fingerprints were computed by the same code. Lines with different ones may
    differ in their last bits, in operations or in time.
    """
    digest = hashlib.sha256()
    root = Path(epsilot.__file__).parent
    for path in sorted(path for name in COMPUTING for path in root.glob(name)):
        tree = ast.parse(path.read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (
                ast.get_docstring(node, clean=False) is not None
            ):
                del node.body[0]
        digest.update(ast.dump(tree).encode())
    return digest.hexdigest()[:12]


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
