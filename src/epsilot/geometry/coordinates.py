"""Coordinates of points: read and checked, normalised, and those at the corners of a cloud."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import ConvexHull, QhullError

from .._types import Matrix, Vector
from ..arguments import numeric
from ..errors import InvalidProblem

#: Highest dimension in which clouds have few extreme points, and those are quickly found.
HULL_DIMENSION = 3


def as_points(X: ArrayLike, name: str) -> Matrix:
    """Return a copy of a cloud as (n, d) finite coordinates; a vector is points on a line."""
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


def check_space(shape_a: tuple[int, ...], shape_b: tuple[int, ...]) -> None:
    """Refuse clouds whose points have different numbers of coordinates."""
    if shape_a[1] != shape_b[1]:
        raise InvalidProblem(
            f"X_a has {shape_a[1]} coordinates a point and X_b {shape_b[1]}; both clouds must live "
            "in one space."
        )


def box(X: Matrix, Y: Matrix) -> tuple[Vector, Vector]:
    """Return the lowest and the highest corner of the box around two clouds."""
    low = np.minimum(X.min(axis=0), Y.min(axis=0))
    return low, np.maximum(X.max(axis=0), Y.max(axis=0))


def extreme(X: Matrix) -> Matrix:
    """Return the corners of the convex hull, or all points where they are not easily found."""
    if X.shape[1] == 1:
        return np.array([X.min(axis=0), X.max(axis=0)])
    if X.shape[1] > HULL_DIMENSION:
        return X
    try:
        return np.asarray(X[ConvexHull(X).vertices])
    except QhullError:  # a flat cloud
        return X


def directions(X: Matrix, name: str) -> Matrix:
    """Return the points divided by their lengths, of whatever scale they are."""
    size = np.abs(X).max(axis=1)
    if not size.all():
        raise InvalidProblem(
            f"{name}[{int(np.argmin(size))}] is the zero vector, which has no direction; the "
            "cosine metric needs nonzero points."
        )
    X = np.ldexp(X, -np.frexp(size)[1][:, None])  # exactly, so that squares are in range
    return np.asarray(X / np.linalg.norm(X, axis=1)[:, None])
