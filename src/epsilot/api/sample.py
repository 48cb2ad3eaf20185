"""Solving on point clouds, whose cost has structure and need not be stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .. import memory
from .._types import Matrix, Passed
from ..arguments import check_flag, is_of_dask
from ..errors import InvalidProblem
from ..geometry import Dense, Geometry, PointCloud
from ..geometry.coordinates import as_points
from ..geometry.points import MetricLike
from ..geometry.ranges import reach
from ..geometry.stored import StoredCloud
from ..metrics import METRICS
from ..run.result import Result
from .solve import solve

if TYPE_CHECKING:
    from distributed import Client

#: Entries up to which a cloud's cost is stored: beyond, recomputing it beats reading it.
DENSE_ENTRIES = 1 << 24
#: Powers of two of which squares, and sums of them, are well inside the range of floats.
SAFE_EXPONENT = 450


def solve_sample(
    X_a: ArrayLike,
    X_b: ArrayLike,
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    metric: MetricLike = "sqeuclidean",
    lazy: bool | None = None,
    multiscale: bool | None = None,
    client: Client | None = None,
    **keywords: Passed,
) -> Result:
    """Solve optimal transport between two weighted point clouds.

    Parameters
    ----------
    X_a, X_b : (n, d), (m, d) array-like
        Points; a vector is points on a line.
    a, b : optional
        Weights, uniform if None.
    metric : str or callable
        A name of :data:`epsilot.metrics.POINT_METRICS`: "sqeuclidean" (default), "euclidean" or
        another. A callable takes one source and all targets and returns their costs; unless
        ``lazy`` is True, they are computed once and stored.
    lazy : bool, optional
        Compute costs on the fly in O(n + m) memory (True), store them (False), or decide by
        size (None).
    multiscale : bool, optional
        Start from the potentials of a coarse version of the clouds; by default for lazy clouds
        of 5000 points and more in up to three dimensions.
    client : distributed.Client, optional
        Compute on the workers of a Dask cluster, to the same bits as with ``lazy=True``; see
        :class:`epsilot.distributed.PointCloud` for what X_a and X_b may then be. Dask arrays go to
        Dask's own client, if there is one.
    **keywords
        As in :func:`solve`.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> x = np.linspace(0, 1, 50)
    >>> round(epsilot.solve_sample(x, x + 0.5, eps=1e-3).value, 2)
    0.25
    """
    check_flag("multiscale", multiscale)
    lazy = True if lazy is None and multiscale else lazy
    client = client or _dask_client(X_a, X_b)
    if client is None:
        geometry = cloud_geometry(X_a, X_b, metric, lazy)
    else:
        geometry = _spread(X_a, X_b, metric, lazy, client)
    return solve(geometry, a, b, multiscale=multiscale, **keywords)


def _dask_client(*clouds: object) -> Client | None:
    """Return the client that Dask would use, if there is one and a cloud is a Dask array."""
    if not any(map(is_of_dask, clouds)):
        return None
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


def _spread(
    X_a: ArrayLike, X_b: ArrayLike, metric: MetricLike, lazy: bool | None, client: Client
) -> Geometry:
    """Return the cost between two clouds that workers compute."""
    from ..distributed import PointCloud

    check_flag("lazy", lazy)
    if lazy is False:
        raise InvalidProblem(
            "lazy=False was given with a cluster, whose workers store no costs; leave it out."
        )
    return PointCloud(X_a, X_b, metric, client, single=True)


def cloud_geometry(
    X_a: ArrayLike, X_b: ArrayLike, metric: MetricLike = "sqeuclidean", lazy: bool | None = None
) -> Geometry:
    """Return the cost between two clouds: stored when small, computed on the fly when large."""
    check_flag("lazy", lazy)
    X, Y = as_points(X_a, "X_a"), as_points(X_b, "X_b")
    n, m = len(X), len(Y)
    is_stored = (callable(metric) or n * m <= DENSE_ENTRIES) if lazy is None else not lazy
    if not is_stored:
        return PointCloud(X, Y, metric, single=True)
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
        cloud = PointCloud(np.ldexp(X, -exponent), np.ldexp(Y, -exponent), metric)
        return Dense(np.ldexp(cloud.block(0, len(X)), exponent))
    cloud = PointCloud(X, Y, metric)
    return Dense(cloud.block(0, len(X))) if callable(metric) else StoredCloud(cloud)
