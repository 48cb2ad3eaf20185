"""Solving on point clouds, whose cost has structure and need not be stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from ..arguments import check_flag, is_of_dask
from ..engine.result import Result
from ..errors import InvalidProblem
from ..geometry import Geometry
from ..geometry.clouds import cloud_geometry
from ..metrics import MetricLike
from .solve import solve

if TYPE_CHECKING:
    from distributed import Client


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
    **keywords: Any,
) -> Result:
    """Solve optimal transport between two weighted point clouds.

    Parameters
    ----------
    X_a, X_b : (n, d), (m, d) array-like
        Points; a vector is points on a line.
    a, b : optional
        Weights, uniform if None.
    metric : str or callable
        A name of ``epsilot.metrics.POINT_METRICS``: "sqeuclidean" (default), "euclidean" or
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
