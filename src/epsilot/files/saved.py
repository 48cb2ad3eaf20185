"""Arrays read from a file, which may be anybody's: each is checked when it is taken out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from .._types import Array, Index, Vector
from ..errors import InvalidProblem

Arrays = dict[str, Array]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Saved:
    """The arrays of a file whose names begin with a prefix."""

    arrays: Mapping[str, Array]
    prefix: str = ""

    def under(self, name: str) -> Saved:
        """Return the arrays whose names begin with ``name.`` after this prefix."""
        return Saved(self.arrays, f"{self.prefix}{name}.")

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.arrays

    def size(self, name: str) -> int:
        """Return the number of entries of an array, 0 if there is none."""
        return int(np.size(self.arrays[self.prefix + name])) if name in self else 0

    def array(self, name: str, shape: Shape, dtype: DTypeLike) -> Array:
        """Return an array if it has the shape and type that are asked for."""
        full, dtype = self.prefix + name, np.dtype(dtype)
        if name not in self:
            raise InvalidProblem(f"the file has no array {full}; write it again.")
        x = self.arrays[full]
        if x.shape != shape or x.dtype != dtype:
            raise InvalidProblem(
                f"the saved array {full} is {x.dtype} of shape {x.shape}; it must be {dtype} of "
                f"shape {shape} (was the file changed?)."
            )
        return x

    def vector(self, name: str, shape: Shape) -> Vector:
        """Return a float64 array of a shape, without NaN."""
        x = self.array(name, shape, np.float64)
        if np.isnan(x).any():
            raise InvalidProblem(
                f"the saved array {self.prefix}{name} holds NaN; write the file again."
            )
        return np.asarray(x)

    def masses(self, name: str, shape: Shape) -> Vector:
        """Return a float64 array of finite, nonnegative numbers."""
        x = self.vector(name, shape)
        if x.size and not (x.min() >= 0 and x.max() < math.inf):
            raise InvalidProblem(
                f"the saved array {self.prefix}{name} holds negative or infinite numbers."
            )
        return x

    def indices(self, name: str, shape: Shape, end: int) -> Index:
        """Return int64 indices below ``end``."""
        x = self.array(name, shape, np.int64)
        if x.size and not (x.min() >= 0 and x.max() < end):
            raise InvalidProblem(
                f"the saved array {self.prefix}{name} points beyond its {end} places."
            )
        return x
