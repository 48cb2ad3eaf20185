"""Shared type names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

# An array of any data type.
Array: TypeAlias = NDArray[Any]
Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.intp]
Integers: TypeAlias = NDArray[np.integer]
Potentials: TypeAlias = tuple[Vector, Vector]
FloatArray: TypeAlias = NDArray[np.floating]
# A JSON object whose fields the reader knows.
Fields: TypeAlias = dict[str, Any]
# Any JSON value.
Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
