"""Solve transport between masses on grids, whose costs are not stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import as_numpy, numeric
from ..engine.result import Result
from ..errors import InvalidProblem
from ..geometry.coordinates import as_metric
from ..geometry.inputs import grid_geometry
from ..metrics import MetricLike
from .solve import solve


def solve_grid(
    A: ArrayLike,
    B: ArrayLike,
    *,
    metric: MetricLike = "cityblock",
    p: float = 1.0,
    metric_params: Mapping[str, Any] | None = None,
    spacing: float | Sequence[float] = 1.0,
    **keywords: Any,
) -> Result:
    """Solve optimal transport between masses on two grids.

    With "cityblock" and "sqeuclidean" it takes O(cells) memory. Other metrics are those of the
    centres of occupied cells, as points.

    Parameters
    ----------
    A, B : d-dimensional array-like, d = 1, 2, 3
        Masses; the two shapes may differ, the origin is shared.
    metric, p, metric_params
        Cost between cell centres, as in :func:`solve_sample`, "cityblock" by default.
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
    if given := {"a", "b"} & keywords.keys():
        raise InvalidProblem(
            f"{min(given)} was given; the masses of a grid are A and B (leave it out)."
        )
    fields = numeric(A, "A"), numeric(B, "B")
    for field, name in zip(fields, "AB", strict=True):
        if not 1 <= field.ndim <= 3 or field.size == 0:
            raise InvalidProblem(
                f"{name} has shape {field.shape}; masses on a grid have one to three axes."
            )
    named = as_metric(metric, p, metric_params)
    geometry = grid_geometry(fields[0].shape, fields[1].shape, named, spacing)
    # Weights keep their dtype, which determines the tolerance for unequal totals.
    a, b = (np.ravel(np.asarray(as_numpy(X, name))) for X, name in ((A, "A"), (B, "B")))
    return solve(geometry, a, b, **keywords)
