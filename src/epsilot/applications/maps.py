"""From a plan to a map: where each fitted point goes, and where points in between go."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .._types import Matrix


class Multiplies(Protocol):
    """What a matrix can be multiplied by, without being one itself."""

    def __matmul__(self, V: Matrix, /) -> Matrix: ...


def barycentric(plan: Multiplies, Y: Matrix) -> Matrix:
    r"""Return the mean destination of each source under a plan.

    .. math:: T(x_i) = \sum_j X_{ij} y_j \Big/ \sum_j X_{ij}

    Parameters
    ----------
    plan : Plan, or its transpose
        Every row has positive mass.
    Y : (m, d) array
        Destinations.

    References
    ----------
    Ferradans, Papadakis, Peyré and Aujol (2014), "Regularized discrete optimal transport".
    """
    table = np.column_stack([Y, np.ones(len(Y))])
    image = np.asarray(plan @ table)
    moved: Matrix = image[:, :-1] / image[:, -1:]
    return moved


def shepard_weights(distance: Matrix) -> Matrix:
    r"""Return weights with which values at the nearest points are interpolated.

    With :math:`d_1 \le \dots \le d_{k+1}` the distances of a place to its nearest points,

    .. math:: w_i \propto \big((d_{k+1} - d_i) / (d_{k+1} d_i)\big)^2, \qquad i \le k

    A point leaves the neighbourhood with weight zero, so that the interpolant has no jumps;
    a place that is one of the points takes its value.

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
    # All neighbours at the same distance: the limit is their mean.
    weights[(d >= reach).all(axis=1)] = 1.0
    hit = is_here.any(axis=1)
    weights[hit] = is_here[hit]
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def interpolate(distance: Matrix, index: Matrix, values: Matrix) -> Matrix:
    """Return values at places from those of their nearest points.

    Parameters
    ----------
    distance, index : (n, k + 1) arrays
        The nearest points of each place, the last one only for its distance.
    values : (m, d) array
        Values at the points.
    """
    if distance.shape[1] == 1:
        return np.asarray(values[index[:, 0]])
    weights = shepard_weights(distance)
    return np.asarray(np.einsum("nk,nkd->nd", weights, values[index[:, :-1]]))
