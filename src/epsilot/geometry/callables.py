"""Metrics of users: what may be one, what it says, and one times a power of two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._types import Matrix, Vector
from ..arguments import numeric
from ..errors import InvalidProblem
from ..metrics import METRICS, POINT_METRICS
from ..wording import shown


def check_metric(metric: object) -> None:
    """Refuse what is neither the name of a metric nor a function."""
    if not callable(metric) and (not isinstance(metric, str) or metric not in METRICS):
        raise InvalidProblem(
            f"metric is {shown(metric)}; it must be one of {', '.join(POINT_METRICS)}, or a "
            "callable (point, points) -> costs."
        )


def asked(metric: Callable[[Vector, Matrix], ArrayLike], X: Matrix, Y: Matrix, i: int) -> Vector:
    """Return the costs that a function gives of source i, or say what is wrong with them."""
    costs = numeric(metric(X[i], Y), "what the metric returned")
    if costs.shape != Y.shape[:1]:
        raise InvalidProblem(
            f"the metric returned an array of shape {costs.shape} for source {i}; it must "
            f"return one cost for each of the {Y.shape[0]} targets."
        )
    if not np.isfinite(costs).all():
        j = int(np.argmin(np.isfinite(costs)))
        raise InvalidProblem(
            f"the metric returned {costs[j]} for source {i} and target {j}; costs must be finite."
        )
    return costs


@dataclass(frozen=True)
class Scaled:
    """2**power times another metric."""

    metric: Callable[[Vector, Matrix], ArrayLike]
    power: int

    def __call__(self, x: Vector, Y: Matrix) -> Vector:
        """Return the costs of a source and all targets."""
        return np.ldexp(np.asarray(self.metric(x, Y), dtype=np.float64), self.power)
