"""Shared type names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

# An array whose numbers may be of any type; which it is, is known when the program runs.
Array: TypeAlias = NDArray[Any]
Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.intp]
Integers: TypeAlias = NDArray[np.integer]
Potentials: TypeAlias = tuple[Vector, Vector]
FloatArray: TypeAlias = NDArray[np.floating]
# An object read from JSON, whose fields are known to whoever reads them.
Fields: TypeAlias = dict[str, Any]
# What JSON can say, nested as deeply as one likes.
Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
