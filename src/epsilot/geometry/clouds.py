"""The cost between two point clouds: whether to store it or to compute it in every pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .. import memory
from .._types import Matrix
from ..arguments import check_flag
from ..metrics import METRICS, MetricLike
from .base import Geometry
from .coordinates import as_points
from .dense import Dense
from .points import PointCloud
from .ranges import reach
from .stored import StoredCloud

#: Entries up to which a cloud's cost is stored: beyond, recomputing it beats reading it.
DENSE_ENTRIES = 1 << 24
#: Powers of two of which squares, and sums of them, are well inside the range of floats.
SAFE_EXPONENT = 450


def cloud_geometry(
    X_a: ArrayLike, X_b: ArrayLike, metric: MetricLike = "sqeuclidean", lazy: bool | None = None
) -> Geometry:
    """Return the cost between two clouds: stored when small, computed on the fly when large."""
    check_flag("lazy", lazy)
    X, Y = as_points(X_a, "X_a"), as_points(X_b, "X_b")
    n, m = len(X), len(Y)
    is_stored = (callable(metric) or n * m <= DENSE_ENTRIES) if lazy is None else not lazy
    if not is_stored:
        return PointCloud.of_points(X, Y, metric, single=True)
    remedy = "use a metric that has a name" if callable(metric) else "use lazy=True"
    memory.ask(
        2 * 8 * n * m, f"a stored cost of {n:,} x {m:,} points", f"{remedy}, or fewer points"
    )
    return _stored(X, Y, metric)


def _is_root(metric: MetricLike) -> bool:
    """Tell whether the sum over the axes goes under a root."""
    return isinstance(metric, str) and metric in METRICS and METRICS[metric].is_root


def _stored(X: Matrix, Y: Matrix, metric: MetricLike) -> Dense:
    """Return all costs; roots also where the powers of distances leave float64."""
    exponent = 0
    if _is_root(metric) and X.shape[1] == Y.shape[1]:
        exponent = int(np.frexp(reach(X, Y))[1])
        exponent = 0 if abs(exponent) < SAFE_EXPONENT else exponent
    if exponent != 0:
        cloud = PointCloud.of_points(np.ldexp(X, -exponent), np.ldexp(Y, -exponent), metric)
        return Dense(np.ldexp(cloud.matrix(), exponent))
    cloud = PointCloud.of_points(X, Y, metric)
    return Dense(cloud.matrix()) if callable(metric) else StoredCloud(cloud)
