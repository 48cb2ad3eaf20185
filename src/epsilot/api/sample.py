"""Solve transport between point clouds, whose costs need not be stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from ..arguments import check_flag, is_of_dask
from ..engine.result import Result
from ..errors import InvalidProblem
from ..geometry import Geometry
from ..geometry.coordinates import as_metric
from ..geometry.inputs import cloud_geometry
from ..geometry.near_pairs import near_geometry
from ..labels import columns_like
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
    p: float = 1.0,
    metric_params: Mapping[str, Any] | None = None,
    lazy: bool | None = None,
    multiscale: bool | None = None,
    client: Client | None = None,
    max_distance: float | None = None,
    k_neighbors: int | None = None,
    **keywords: Any,
) -> Result:
    """Solve optimal transport between two weighted point clouds.

    Parameters
    ----------
    X_a, X_b : (n, d), (m, d) array-like
        Points as rows; a vector holds points on a line.
    a, b : optional
        Weights, uniform if None.
    metric : str or callable
        A name of ``epsilot.metrics.POINT_METRICS``, such as "sqeuclidean" (default) or
        "euclidean": all names of SciPy's ``cdist``. A callable f(u, v) returns the cost of two
        points. If v may also hold all targets, with one cost for each as the result, it is called
        once per source. Its costs are computed once and stored unless ``lazy`` is True.
    p : float
        Costs are this power of the metric, such as 3 for the Wasserstein distance W_3.
    metric_params : dict, optional
        Parameters of the metric, as ``cdist`` takes them: ``{"p": 3}`` of "minkowski", ``{"VI":
        ...}`` of "mahalanobis".
    lazy : bool, optional
        Compute costs on the fly in O(n + m) memory (True), store them (False), or decide by
        size (None).
    multiscale : bool, optional
        Start from the potentials of coarser clouds. Default: True for lazy clouds of at least
        5000 points in up to three dimensions.
    client : distributed.Client, optional
        Compute on the workers of a Dask cluster, with the same bits as ``lazy=True``. See
        :class:`epsilot.distributed.PointCloud` for the types of X_a and X_b. For Dask arrays, the
        default is the current client of Dask, if there is one.
    max_distance : float, optional
        Forbid pairs of points that are farther apart. For "sqeuclidean", costs are compared with
        its square, and powers of a metric with its power. A problem without a feasible plan raises
        :class:`epsilot.Infeasible`.
    k_neighbors : int, optional
        Forbid pairs where neither point is among the k nearest to the other.
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
    X_b = columns_like(X_b, X_a, "X_b", "X_a")
    metric = as_metric(metric, p, metric_params)
    if max_distance is not None or k_neighbors is not None:
        if client is not None:
            raise InvalidProblem(
                "max_distance or k_neighbors was given with a cluster; near pairs are found on one "
                "machine (pass NumPy arrays, without client)."
            )
        geometry: Geometry = near_geometry(X_a, X_b, metric, max_distance, k_neighbors)
    elif client is None:
        geometry = cloud_geometry(X_a, X_b, metric, lazy)
    else:
        geometry = _remote_cloud(X_a, X_b, metric, lazy, client)
    return solve(geometry, a, b, multiscale=multiscale, **keywords)


def _dask_client(*clouds: object) -> Client | None:
    """Return the current client of Dask if a cloud is a Dask array, or None."""
    if not any(map(is_of_dask, clouds)):
        return None
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


def _remote_cloud(
    X_a: ArrayLike, X_b: ArrayLike, metric: MetricLike, lazy: bool | None, client: Client
) -> Geometry:
    """Return the cost between two clouds, computed by the workers of a cluster."""
    from ..distributed import PointCloud

    check_flag("lazy", lazy)
    if lazy is False:
        raise InvalidProblem(
            "lazy=False was given with a cluster, whose workers store no costs; leave lazy out."
        )
    return PointCloud(X_a, X_b, metric, client, single=True)
