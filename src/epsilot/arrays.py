"""What every array of the user's must be: real numbers, none of them masked."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._types import Vector
from .errors import InvalidProblem


def numeric(x: Any, name: str) -> Vector:
    """Return ``x`` as a float64 array without copying one that already is."""
    if np.ma.is_masked(x):
        raise InvalidProblem(
            f"{name} has masked entries; every entry must be a number (fill or remove them)."
        )
    if hasattr(x, "toarray"):
        raise InvalidProblem(
            f"{name} is a sparse matrix; it must be dense, since a missing entry need not be zero "
            f"(pass {name}.toarray() if zeros are meant)."
        )
    try:
        array = np.asarray(x)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
        if array.dtype.kind not in "biuf":
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, AttributeError):
        kind = getattr(x, "dtype", type(x).__name__)
        raise InvalidProblem(
            f"{name} is of type {kind}; it must be a rectangular array of real numbers "
            "(convert it with numpy.asarray(..., dtype=float))."
        ) from None


def cost_matrix(M: Any) -> Vector:
    """Return a cost as an (n, m) array of float64, or say why it is none."""
    C = numeric(M, "M")
    if C.ndim != 2 or C.size == 0:
        raise InvalidProblem(
            f"M has shape {C.shape}; a cost must be a matrix with at least one row and one "
            "column (n sources by m targets)."
        )
    return C
