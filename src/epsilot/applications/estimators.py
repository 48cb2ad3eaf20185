"""Share code between the estimators: from plans to maps, from parameters to requests."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from .._types import Matrix
from ..engine.request import KEYWORDS, Request


def shepard_weights(distance: Matrix) -> Matrix:
    r"""Return the weights that interpolate values at the k nearest points.

    With :math:`d_1 \le \dots \le d_{k+1}` the distances of a query to its nearest points,

    .. math:: w_i \propto \big((d_{k+1} - d_i) / (d_{k+1} d_i)\big)^2, \qquad i \le k

    A point leaves the neighbourhood with weight zero, so the interpolant is continuous. A query
    that coincides with a point takes its value.

    Parameters
    ----------
    distance : (n, k + 1) array
        Distances in increasing order along rows.

    Returns
    -------
    weights : (n, k) array
        Rows sum to 1.

    References
    ----------
    Franke and Nielson (1980), "Smooth interpolation of large sets of scattered data".
    """
    d, reach = distance[:, :-1], distance[:, -1:]
    is_here = d <= 1e-12 * reach
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = ((reach - d) / (reach * d)) ** 2
    # All neighbours are at the same distance: the limit is their mean.
    weights[(d >= reach).all(axis=1)] = 1.0
    hit = is_here.any(axis=1)
    weights[hit] = is_here[hit]
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def interpolate(distance: Matrix, index: Matrix, values: Matrix) -> Matrix:
    """Interpolate values at queries from those of their nearest points.

    Parameters
    ----------
    distance, index : (n, k + 1) arrays
        The k + 1 nearest points of each query; the last one only supplies its distance.
    values : (m, d) array
        Values at the points.
    """
    if distance.shape[1] == 1:
        return np.asarray(values[index[:, 0]])
    weights = shepard_weights(distance)
    return np.asarray(np.einsum("nk,nkd->nd", weights, values[index[:, :-1]]))


class Estimator(Protocol):
    """An estimator with the options of a method among its parameters."""

    @property
    def options(self) -> Mapping[str, object] | None: ...  # noqa: D102


def shared(estimator: type) -> tuple[str, ...]:
    """Return the keywords of `solve` that are parameters of an estimator class."""
    parameters = inspect.signature(estimator).parameters
    return tuple(name for name in KEYWORDS if name in parameters)


def parameters_of(request: Request, estimator: type) -> dict[str, Any]:
    """Return the fields of a request that are parameters of an estimator."""
    return {name: getattr(request, name) for name in shared(estimator)}


def request_of(estimator: Estimator) -> Request:
    """Build the request of an estimator from its parameters and its options."""
    keywords = {name: getattr(estimator, name) for name in shared(type(estimator))}
    return Request.of({**keywords, **(estimator.options or {})})
