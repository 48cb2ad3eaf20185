"""Shared type names."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.intp]
Integers: TypeAlias = NDArray[np.integer[Any]]
Potentials: TypeAlias = tuple[Vector, Vector]
FloatArray: TypeAlias = NDArray[np.floating[Any]]
