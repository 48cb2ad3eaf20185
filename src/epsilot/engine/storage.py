"""The file format of results and checkpoints: named arrays and a JSON header, with a digest.

A truncated, changed or foreign file is rejected in one sentence. So is an array of another shape
or type than the problem requires.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._types import Fields, Json
from ..errors import InvalidProblem, UnsavedWarning
from ..files import StrPath, check_own, read_archive, write_atomically
from ..files.arrays import Arrays, SavedArrays
from ..problems.plan import Plan
from ..problems.problem import Problem
from ..wording import named


def save(path: StrPath, kind: str, header: Mapping[str, object], arrays: Arrays) -> None:
    """Write a file of a kind, atomically; a file of another kind is not replaced."""
    check_own(path, kind.rpartition("-")[0])
    text = json.dumps({"format": kind, **header}, default=_plain)
    arrays = {name: np.asarray(value) for name, value in arrays.items()}
    digest = _digest(text, arrays)
    parts: dict[str, Any] = {"header": np.array(text), "digest": np.array(digest), **arrays}
    write_atomically(path, lambda file: np.savez(file, **parts))


def save_or_warn(path: StrPath, write: Callable[[StrPath], None]) -> None:
    """Write a file, or warn if that fails (the disk may be full); the run goes on."""
    try:
        write(path)
    except (OSError, InvalidProblem) as error:
        reason = getattr(error, "strerror", None) or str(error)
        warnings.warn(
            f"{named(path)} could not be written ({reason}). The run goes on and returns its "
            "answer; the previous content of the file is unchanged.",
            UnsavedWarning,
            stacklevel=2,
        )


def load(path: StrPath, kind: str, remedy: str) -> tuple[Fields, Arrays]:
    """Return header and arrays of a file of a kind, or reject it in one sentence."""
    name = named(path)
    arrays = read_archive(path)
    try:
        text, digest = str(arrays.pop("header")), str(arrays.pop("digest"))
        header: Fields = json.loads(text)
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


def _plain(value: object) -> Json:
    """Turn NumPy scalars and arrays into JSON."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


# -- plans -----------------------------------------------------------------------------------


def pack_plan(plan: Plan) -> Arrays:
    """Return the arrays of a plan, by the names they have in a file."""
    return {f"plan.{name}": x for name, x in plan.arrays().items()}


def unpack_plan(arrays: Arrays, problem: Problem) -> Plan:
    """Return the plan of a problem from the untrusted arrays of a file."""
    return Plan.from_arrays(SavedArrays(arrays).under("plan"), problem.geometry)
