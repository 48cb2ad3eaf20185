"""Make a geometry of any cost that a user may pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .base import Geometry
from .dense import Dense
from .sparse import Sparse, least_forbidden


def as_geometry(M: ArrayLike | Geometry) -> Geometry:
    """Return a geometry unchanged; wrap a cost in :class:`Dense`, or in :class:`Sparse`.

    Sparse costs are SciPy's sparse arrays, and matrices with forbidden entries: inf, the largest
    float, or masked ones.
    """
    if isinstance(M, Geometry):
        return M
    given: Any = M
    if hasattr(given, "tocsr"):
        return Sparse.of_scipy(given)
    if np.ma.isMaskedArray(given) and np.ma.is_masked(given):
        return Sparse.of_array(given)
    stored = Dense(given)
    is_sparse = stored.bounds[1] >= least_forbidden(getattr(given, "dtype", None))
    return Sparse.of_array(given) if is_sparse else stored
