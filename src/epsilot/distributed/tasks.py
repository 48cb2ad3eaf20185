"""What workers do: plain functions of what they are sent."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import parallel
from .._types import Array
from ..errors import ClusterError
from ..version import __version__

#: What is wrong with a worker, and what to do.
WITHOUT = (
    f"cannot import epsilot, and this process has epsilot {__version__}; install the same version "
    "where the worker runs"
)


def other_version(worker: str, theirs: str, ours: str) -> str:
    """Say that a worker has another version."""
    return (
        f"the worker {worker} has epsilot {theirs} and this process has {ours}; install one "
        "version everywhere."
    )


def check_version(wanted: str) -> None:
    """Refuse to work for another version, whose results may have other bits."""
    if wanted != __version__:
        from distributed import get_worker

        raise ClusterError(other_version(get_worker().address, __version__, wanted))


def keep(x: Array) -> Array:
    """Return an array as kernels are compiled for."""
    return np.require(x, requirements=("C", "A", "W"))


def join(slabs: Sequence[Array]) -> Array:
    """Return one array from its slabs."""
    return np.concatenate(slabs)


class _Unpickler(pickle.Unpickler):
    """Reads a parcel: arrays that are sent once go by their place among those that came along."""

    def __init__(self, parcel: bytes, shared: Sequence[Array]) -> None:
        super().__init__(io.BytesIO(parcel))
        self.shared = shared

    def persistent_load(self, place: int) -> Array:
        return self.shared[place]


def answer(
    version: str,
    function: Callable[[Any], object],
    parcels: Sequence[tuple[bytes, Sequence[Array]]],
) -> list[object]:
    """Return what a function makes of what each parcel holds, on the one thread of a task."""
    check_version(version)
    with parallel.limit(1):
        return [function(_Unpickler(*parcel).load()) for parcel in parcels]
