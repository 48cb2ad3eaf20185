"""Validate the input of geometries: points, metrics, grid shapes, ranges of costs."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from .._types import Matrix, Vector
from ..arguments import check_positive, numeric, plain
from ..errors import InvalidProblem
from ..labels import columns_like
from ..metrics import METRICS, POINT_METRICS, MetricLike, NamedMetric, as_named, nearest_name
from ..wording import shown
from .tuning import TUNING


def as_points(X: ArrayLike, name: str) -> Matrix:
    """Return a copy of a cloud as (n, d) finite coordinates; a vector means points on a line."""
    points = np.array(numeric(X, name))
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2 or points.size == 0:
        raise InvalidProblem(
            f"{name} has shape {points.shape}; it must be (n, d): n >= 1 points of d >= 1 numbers."
        )
    if not np.isfinite(points).all():
        i = int(np.argwhere(~np.isfinite(points))[0, 0])
        raise InvalidProblem(
            f"{name}[{i}] has a coordinate that is not finite; remove or repair that point."
        )
    return points


def as_pair(X_a: ArrayLike, X_b: ArrayLike) -> tuple[Matrix, Matrix]:
    """Return copies of two clouds; the columns of data frames are matched by their names."""
    return as_points(X_a, "X_a"), as_points(columns_like(X_b, X_a, "X_b", "X_a"), "X_b")


def check_space(shape_a: tuple[int, ...], shape_b: tuple[int, ...]) -> None:
    """Reject clouds whose points have different numbers of coordinates."""
    if shape_a[1] != shape_b[1]:
        raise InvalidProblem(
            f"X_a has {shape_a[1]} coordinates per point and X_b {shape_b[1]}; both clouds must "
            "live in one space."
        )


def box(X: Matrix, Y: Matrix) -> tuple[Vector, Vector]:
    """Return the lowest and the highest corner of the box around two clouds."""
    low = np.minimum(X.min(axis=0), Y.min(axis=0))
    return low, np.maximum(X.max(axis=0), Y.max(axis=0))


def extreme(X: Matrix) -> Matrix:
    """Return the corners of the convex hull, or all points where finding them is slow."""
    if X.shape[1] == 1:
        return np.array([X.min(axis=0), X.max(axis=0)])
    if X.shape[1] > TUNING.max_hull_dimension:
        return X
    from scipy.spatial import ConvexHull, QhullError  # slow to import, rarely needed

    try:
        return np.asarray(X[ConvexHull(X).vertices])
    except QhullError:  # a flat cloud
        return X


def directions(X: Matrix, name: str) -> Matrix:
    """Return the points divided by their lengths, at any scale."""
    size = np.abs(X).max(axis=1)
    if not size.all():
        raise InvalidProblem(
            f"{name}[{int(np.argmin(size))}] is the zero vector, which has no direction; the "
            "cosine metric needs nonzero points."
        )
    X = np.ldexp(X, -np.frexp(size)[1][:, None])  # exactly, so that squares are in range
    return np.asarray(X / np.linalg.norm(X, axis=1)[:, None])


# -- sizes and ranges ------------------------------------------------------------------------------
#
# Grids need whole cells and positive spacing, and all costs must fit float64.

#: Range of the largest cost in which no significant digit under- or overflows.
SMALLEST_COST, LARGEST_COST = 1e-290, 1e300


def check_range(largest: float, power: float, n_axes: int, what: str) -> None:
    """Reject distances whose power, summed over the axes, float64 cannot hold."""
    least, most = SMALLEST_COST ** (1 / power), (LARGEST_COST / n_axes) ** (1 / power)
    if largest != 0 and not least <= largest <= most:
        raise InvalidProblem(
            f"{what} lie up to {largest:.3g} apart along an axis, which leaves float64 no digits "
            f"for the costs; it must be between {least:.0e} and {most:.0e} (multiply all of them "
            "by one factor)."
        )


def reach(X: Matrix, Y: Matrix) -> float:
    """Return the largest distance along one axis between any two points."""
    low, high = np.minimum(X.min(axis=0), Y.min(axis=0)), np.maximum(X.max(axis=0), Y.max(axis=0))
    with np.errstate(over="ignore"):
        return float((high - low).max())


def grid_shape(shape: ArrayLike, name: str) -> tuple[int, ...]:
    """Return the cells along each axis of a grid."""
    cells = numeric(_plain(shape, name), name)
    is_whole = ((cells >= 1) & (cells <= 2**53) & (cells % 1 == 0)).all()
    if cells.ndim > 1 or not 1 <= cells.size <= 3 or not is_whole:
        raise InvalidProblem(
            f"{name} is {shown(shape)}; a grid has one to three axes of at least one cell each."
        )
    return tuple(int(c) for c in np.atleast_1d(cells))


def grid_spacing(spacing: ArrayLike, n_axes: int) -> tuple[float, ...]:
    """Return the distance of neighbouring cells along each axis."""
    steps = numeric(_plain(spacing, "spacing"), "spacing")
    if steps.shape not in ((), (1,), (n_axes,)) or not ((steps > 0) & (steps < math.inf)).all():
        raise InvalidProblem(
            f"spacing is {shown(spacing)}; it must be a positive finite number, or one for each of "
            f"the {n_axes} axes."
        )
    return tuple(float(h) for h in np.broadcast_to(steps, n_axes))


def _plain(given: object, name: str) -> object:
    """Convert a number or a sequence of numbers to Python numbers; reject booleans."""
    values = list(map(plain, given)) if isinstance(given, (list, tuple)) else [plain(given)]
    if any(isinstance(value, bool) for value in values):
        raise InvalidProblem(
            f"{name} is {shown(given)}; it must be a number, or one for each axis."
        )
    return values if isinstance(given, (list, tuple)) else values[0]


# -- metrics of users ------------------------------------------------------------------------------
#
# A metric is a name, one with parameters or a power, or a Python function.


def as_metric(metric: object, p: object = 1.0, params: object = None) -> MetricLike:
    """Check a metric, the power of it that costs are, and its parameters; return it simplified."""
    if isinstance(metric, NamedMetric):
        given, metric = metric, metric.name
        p, params = (given.p if p == 1 else p), params or (dict(given.params) or None)
    if getattr(metric, "__module__", None) == "scipy.spatial.distance":
        metric = getattr(metric, "__name__", metric)
    power = check_positive("p", p)
    if params is not None and not (isinstance(params, Mapping) and isinstance(metric, str)):
        raise InvalidProblem(
            f"metric_params is {shown(params)} and metric {shown(metric)}; metric_params must be a "
            'dict of parameters of a metric that has a name, such as {"p": 3} of "minkowski".'
        )
    params = {} if params is None else dict(params)
    if callable(metric):
        _check_takes_two_points(metric)
        return metric if power == 1 else NamedMetric(metric, power)
    if not isinstance(metric, str) or metric not in POINT_METRICS:
        near = nearest_name(metric, POINT_METRICS) if isinstance(metric, str) else None
        hint = f" (did you mean {near}?)" if near else ""
        raise InvalidProblem(
            f"metric is {shown(metric)}; it must be one of {', '.join(METRICS)}, another name of "
            f"scipy's cdist, or a callable f(u, v) -> cost{hint}."
        )
    if metric == "minkowski" and "p" in params:
        params["p"] = _order(params["p"])
    elif metric == "minkowski" and power != 1:
        raise InvalidProblem(
            f"p={power:g} was given with metric='minkowski', whose order is metric_params="
            f"{{'p': {power:g}}}; p is the power of the metric (give the order too)."
        )
    return metric if power == 1 and not params else NamedMetric(metric, power, params)


def _check_takes_two_points(metric: Callable[..., object]) -> None:
    """Reject functions that cannot be called with a source and a target."""
    try:
        signature = inspect.signature(metric)
    except ValueError:  # some functions written in C have none
        return
    try:
        signature.bind(None, None)
    except TypeError:
        name = getattr(metric, "__name__", "a callable")
        raise InvalidProblem(
            f"metric is {name}{signature}, which cannot be called with two points; it must "
            "take a source and a target and return their cost: f(u, v) -> cost."
        ) from None


def _order(order: object) -> float:
    """Return the order of a Minkowski metric."""
    return math.inf if order == math.inf else check_positive("the order p of minkowski", order)


def metric_keywords(metric: MetricLike) -> dict[str, str]:
    """Return the keywords that name a metric in a call, as source code."""
    named = as_named(metric)
    keywords = {"metric": repr(named.name) if isinstance(named.name, str) else "metric"}
    if named.p != 1:
        keywords["p"] = f"{named.p:g}"
    if named.params:
        keywords["metric_params"] = repr(dict(named.params))
    return keywords
