"""Solving on point clouds and grids, where the cost has structure and need not be stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .approximate import solve
from .errors import InvalidProblem
from .geometry import Dense, Geometry, Grid, PointCloud
from .geometry.points import Metric
from .problem import numeric
from .result import Result

#: Entries up to which a cloud's cost is stored: beyond, recomputing it beats reading it.
DENSE_ENTRIES = 1 << 24


def solve_sample(
    X_a: ArrayLike,
    X_b: ArrayLike,
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    metric: Metric = "sqeuclidean",
    lazy: bool | None = None,
    multiscale: bool | None = None,
    **keywords: Any,
) -> Result:
    """Solve optimal transport between two weighted point clouds.

    Parameters
    ----------
    X_a, X_b : (n, d), (m, d) array-like
        Points; a vector is points on a line.
    a, b : optional
        Weights, uniform if None.
    metric : {"sqeuclidean", "euclidean", "cityblock", "cosine"} or callable
        A callable takes one source and all targets and returns their costs.
    lazy : bool, optional
        Compute costs on the fly in O(n + m) memory (True), store them (False), or decide by
        size (None).
    multiscale : bool, optional
        Start from the potentials of a coarse version of the clouds; by default for lazy clouds
        of 5000 points and more in up to three dimensions.
    **keywords
        As in :func:`solve`.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> x = np.linspace(0, 1, 50)
    >>> round(epsilot.solve_sample(x, x + 0.5, eps=1e-3).value, 2)
    0.25
    """
    lazy = True if lazy is None and multiscale else lazy
    geometry = cloud_geometry(X_a, X_b, metric, lazy)
    return solve(geometry, a, b, multiscale=multiscale, **keywords)


def cloud_geometry(
    X_a: ArrayLike, X_b: ArrayLike, metric: Metric = "sqeuclidean", lazy: bool | None = None
) -> Geometry:
    """Return the cost between two clouds: stored when small, computed on the fly when large."""
    cloud = PointCloud(X_a, X_b, metric, single=True)
    n, m = cloud.shape
    if lazy is None:
        lazy = n * m > DENSE_ENTRIES
    return cloud if lazy else Dense(cloud.block(0, n))


def solve_grid(
    A: ArrayLike,
    B: ArrayLike,
    *,
    metric: str = "cityblock",
    spacing: float | Sequence[float] = 1.0,
    **keywords: Any,
) -> Result:
    """Solve optimal transport between masses on two grids, in O(cells) memory.

    Parameters
    ----------
    A, B : d-dimensional array-like, d = 1, 2, 3
        Masses; the two shapes may differ, the origin is shared.
    metric : {"cityblock", "sqeuclidean"}
        Cost between cell centres.
    spacing : float or sequence of float
        Distance of neighbouring centres along each axis.
    **keywords
        As in :func:`solve`.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> A, B = np.zeros((8, 8)), np.zeros((8, 8))
    >>> A[1, 1] = B[4, 5] = 1.0
    >>> round(epsilot.solve_grid(A, B, eps=0.1).value, 6)
    7.0
    """
    fields = numeric(A, "A"), numeric(B, "B")
    for field, name in zip(fields, "AB", strict=True):
        if not 1 <= field.ndim <= 3 or field.size == 0:
            raise InvalidProblem(
                f"{name} has shape {field.shape}; masses on a grid have one to three axes."
            )
    geometry = Grid(fields[0].shape, fields[1].shape, metric, spacing)
    return solve(geometry, np.ravel(fields[0]), np.ravel(fields[1]), **keywords)
