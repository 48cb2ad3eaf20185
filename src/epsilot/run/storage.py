"""The one file format: named arrays and a JSON header, with a digest of both.

A reader gets what was written or one sentence: a file that is cut, changed or of another kind is
refused, and so is an array of another shape or type than the problem asks for.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from typing import Any

import numpy as np

from .._types import Vector
from ..errors import InvalidProblem
from ..files import StrPath, check_own, read_archive, write_atomically
from ..transport.plan import Arcs, Core, Explicit, Gibbs, Plan
from ..transport.problem import Problem

Arrays = dict[str, Any]
SCALINGS = ("s", "t", "e", "d")


def save(path: StrPath, kind: str, header: dict[str, Any], arrays: Arrays) -> None:
    """Write a file of a kind, atomically; a file of another kind is not replaced."""
    check_own(path, kind.rpartition("-")[0])
    text = json.dumps({"format": kind, **header}, default=_plain)
    arrays = {name: np.asarray(value) for name, value in arrays.items()}
    parts = {"header": np.array(text), "digest": np.array(_digest(text, arrays)), **arrays}
    write_atomically(path, lambda file: np.savez(file, **parts))


def load(path: StrPath, kind: str, remedy: str) -> tuple[dict[str, Any], Arrays]:
    """Return header and arrays of a file of a kind, or say in one sentence what is wrong."""
    name = os.fspath(path)
    arrays = read_archive(path)
    try:
        text, digest = str(arrays.pop("header")), str(arrays.pop("digest"))
        header: dict[str, Any] = json.loads(text)
        if header["format"] != kind:
            raise KeyError(kind)
    except (KeyError, TypeError, ValueError):
        raise InvalidProblem(f"{name} is not an {kind} file; {remedy}.") from None
    if digest != _digest(text, arrays):
        raise InvalidProblem(f"{name} was changed since it was written; {remedy}.")
    return header, arrays


def _digest(text: str, arrays: Arrays) -> str:
    """Return a hash of everything in a file."""
    h = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        value = np.ascontiguousarray(arrays[name])
        h.update(f"{name} {value.dtype.str} {value.shape}".encode())
        h.update(value.data if value.size else b"")
    return h.hexdigest()


def _plain(value: Any) -> Any:
    """Turn NumPy scalars and arrays into JSON."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


# -- plans -----------------------------------------------------------------------------------


def pack_plan(plan: Plan) -> Arrays:
    """Return the arrays of a plan."""
    core: Any = plan.core
    arrays = {f"plan.{name}": getattr(plan, name) for name in SCALINGS}
    if isinstance(core, Gibbs):
        return arrays | {"plan.f": core.f, "plan.g": core.g, "plan.eta": core.eta}
    if isinstance(core, Arcs):
        return arrays | {"plan.i": core.i, "plan.j": core.j, "plan.flow": core.flow}
    return arrays | {"plan.X": core.X}


def unpack_plan(arrays: Arrays, problem: Problem) -> Plan:
    """Return the plan of a problem from its arrays, which may be anybody's."""
    n, m = problem.shape
    core: Core
    if "plan.X" in arrays:
        core = Explicit(masses(arrays, "plan.X", (n, m)))
    elif "plan.flow" in arrays:
        size = (np.size(arrays["plan.flow"]),)
        i, j = (indices(arrays, f"plan.{name}", size, end) for name, end in (("i", n), ("j", m)))
        core = Arcs((n, m), i, j, masses(arrays, "plan.flow", size))
    else:
        f, g = vector(arrays, "plan.f", (n,)), vector(arrays, "plan.g", (m,))
        eta = float(vector(arrays, "plan.eta", ()))
        if not 0 < eta < math.inf:
            raise InvalidProblem(f"the saved plan has η = {eta}; it must be positive and finite.")
        core = Gibbs(problem.geometry, f, g, eta)
    s, t, e, d = (
        masses(arrays, f"plan.{name}", (size,))
        for name, size in zip(SCALINGS, (n, m, n, m), strict=True)
    )
    return Plan(core, s, t, e, d)


def vector(arrays: Arrays, name: str, shape: tuple[int, ...]) -> Vector:
    """Return a float64 array of a shape, without NaN."""
    x = checked(arrays, name, shape, np.dtype(np.float64))
    if np.isnan(x).any():
        raise InvalidProblem(f"the saved array {name} holds NaN; write the file again.")
    return np.asarray(x)


def masses(arrays: Arrays, name: str, shape: tuple[int, ...]) -> Vector:
    """Return a float64 array of finite, nonnegative numbers."""
    x = vector(arrays, name, shape)
    if x.size and not (x.min() >= 0 and x.max() < math.inf):
        raise InvalidProblem(f"the saved array {name} holds negative or infinite numbers.")
    return x


def indices(arrays: Arrays, name: str, shape: tuple[int, ...], end: int) -> Any:
    """Return int64 indices below ``end``."""
    x = checked(arrays, name, shape, np.dtype(np.int64))
    if x.size and not (x.min() >= 0 and x.max() < end):
        raise InvalidProblem(f"the saved array {name} points beyond its {end} places.")
    return x


def checked(arrays: Arrays, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return a saved array if it has the shape and type that are asked for."""
    if name not in arrays:
        raise InvalidProblem(f"the file has no array {name}; write it again.")
    x = arrays[name]
    if x.shape != shape or x.dtype != dtype:
        raise InvalidProblem(
            f"the saved array {name} is {x.dtype} of shape {x.shape}; it must be {dtype} of shape "
            f"{shape} (was the file changed?)."
        )
    return x
