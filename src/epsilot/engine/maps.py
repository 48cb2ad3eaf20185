r"""Maps and potentials of a result at new points.

A potential extends by its c-transform, :math:`f(x) = \min_j c(x, y_j) - g_j`, or with an entropy by
its logarithmic mean. The map sends a new point x to the y_j that attain it; for squared distances
that is :math:`x - \nabla f(x) / 2`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._types import Matrix, Vector
from ..errors import InvalidProblem
from ..geometry import Geometry
from ..geometry.base import Places
from ..geometry.coordinates import as_points
from ..geometry.inputs import cloud_geometry
from ..kernels.vectors import log

if TYPE_CHECKING:
    from .result import Result


class MappedPoints(NamedTuple):
    """Images of points under a result.

    ``error`` is the root mean square distance, over the mass of the plan, between where the plan
    sends the sources and where the map sends them: by the rule of the new points if there are any.
    """

    points: Matrix
    is_seen: NDArray[np.bool_]  # sources, which go to the mean of their destinations
    error: float


class LinearOperator(Protocol):
    """An object that multiplies matrices, such as a plan or its transpose."""

    def __matmul__(self, V: Matrix, /) -> Matrix: ...


def barycentric(plan: LinearOperator, Y: Matrix) -> Matrix:
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


def potential(result: Result, X_new: ArrayLike) -> Vector:
    """Return the row potential at new points; see ``Result.potential``."""
    places = _places(result)
    kinds = [name for name in ("mass", "unbalanced") if name in result.asked]
    if result.is_entropic and kinds:
        raise InvalidProblem(
            f"the result is of {kinds[0]} with reg, where the potential of a point depends on its "
            "mass and penalty; potential takes results without reg, or balanced ones."
        )
    return _extended(result, _new_cloud(places, X_new))


def mapped(result: Result, X_new: ArrayLike | None) -> MappedPoints:
    """Return the images of points; see ``Result.map``."""
    places = _places(result)
    X, Y = places.X, places.Y
    means = _means(result, Y)
    if X_new is None:
        return MappedPoints(means, np.ones(len(X), dtype=bool), _rms_distance(result, Y, means))
    cloud = _new_cloud(places, X_new)
    given = as_points(X_new, "X_new")
    known = {row.tobytes(): i for i, row in enumerate(X + 0.0)}
    index = np.array([known.get(row.tobytes(), -1) for row in given + 0.0], dtype=np.int64)
    is_seen = index >= 0
    is_seen[is_seen] = np.isfinite(means[index[is_seen]]).all(axis=1)
    out = np.where(is_seen[:, None], means[np.maximum(index, 0)], 0.0)
    if is_seen.all():
        return MappedPoints(out, is_seen, _rms_distance(result, Y, means))
    out[~is_seen] = _destinations(result, cloud, Y)[~is_seen]
    sources = _destinations(result, _new_cloud(places, X), Y)
    return MappedPoints(out, is_seen, _rms_distance(result, Y, sources))


# -- points ---------------------------------------------------------------------------------------


def _places(result: Result) -> Places:
    """Return the points of a result, or reject one without points."""
    places = result.problem.geometry.places
    if places is None or places.metric is None or result.problem.unit != 1:
        raise InvalidProblem(
            "the result has no points, or points of an extreme size; map and potential need a "
            "result of solve_sample with a metric that has a name (and points of ordinary size)."
        )
    return places


def _new_cloud(places: Places, X_new: ArrayLike) -> Geometry:
    """Return the costs from new points to the targets."""
    given = as_points(X_new, "X_new")
    if given.shape[1] != places.X.shape[1]:
        raise InvalidProblem(
            f"X_new has points of {given.shape[1]} coordinates; they must have "
            f"{places.X.shape[1]}, as the sources of the result."
        )
    assert places.metric is not None
    return cloud_geometry(given, places.Y, places.metric, lazy=True).exact


# -- rules ----------------------------------------------------------------------------------------


def _column_potential(result: Result) -> Vector:
    """Return g, to which a divergence from a bᵀ adds reg log b."""
    g, problem = result.potentials[1], result.problem
    if result.is_entropic and result.asked.get("reg_type") == "'kl'":
        return g + result.reg * log(problem.mass * problem.q)
    return g


def _extended(result: Result, cloud: Geometry) -> Vector:
    """Return the extension of the row potential to the sources of a cost."""
    g = _column_potential(result)
    if result.is_entropic:
        return -result.reg * cloud.lse_rows(g, result.reg)
    f = cloud.ctransform_rows(g)
    return f if result.mass_price is None else np.minimum(f - result.mass_price, 0.0)


def _destinations(result: Result, cloud: Geometry, Y: Matrix) -> Matrix:
    """Return the targets that attain the potential, or their mean with an entropy."""
    g = _column_potential(result)
    if not result.is_entropic:
        best = cloud.k_least(np.arange(cloud.shape[0]), -g, 1)[0][:, 0]
        return np.asarray(Y[best], dtype=np.float64)
    f = -result.reg * cloud.lse_rows(g, result.reg)
    total = cloud.apply_rows(f, g, result.reg, np.ones(len(Y)))
    columns = [cloud.apply_rows(f, g, result.reg, np.ascontiguousarray(y)) for y in Y.T]
    return np.column_stack(columns) / total[:, None]


def _means(result: Result, Y: Matrix) -> Matrix:
    """Return the mean destination of each source, NaN where it has no mass."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return barycentric(result.plan_operator, Y)


def _rms_distance(result: Result, Y: Matrix, images: Matrix) -> float:
    """Return the root mean square distance of the plan's destinations from images of sources."""
    plan = result.plan_operator
    r, c = plan.marginals()
    used = r > 0
    centre = Y.mean(axis=0)
    Y, T = Y - centre, np.where(used[:, None], images - centre, 0.0)
    moved = np.asarray(plan @ Y)
    total = float(c @ (Y**2).sum(axis=1)) - 2 * float((T * moved).sum())
    total += float(r @ (T**2).sum(axis=1))
    return math.sqrt(max(total, 0.0) / float(r.sum()))
