"""SciPy's Wasserstein distances, with SciPy's signatures, from certified solutions.

>>> from epsilot.scipy import wasserstein_distance_nd
>>> wasserstein_distance_nd([[0, 2, 3], [1, 2, 5]], [[3, 2, 3], [4, 2, 5]])
3.0
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import wasserstein_distance as theirs  # for values that are not finite

from ._types import Array, Vector
from .api.sample import solve_sample

__all__ = ["wasserstein_distance", "wasserstein_distance_nd"]

#: Certified relative gap; most answers are exact up to round-off.
RTOL = 1e-11


def wasserstein_distance(
    u_values: ArrayLike,
    v_values: ArrayLike,
    u_weights: ArrayLike | None = None,
    v_weights: ArrayLike | None = None,
) -> float:
    """Return the Wasserstein-1 distance of two distributions on a line.

    Arguments and errors are those of ``scipy.stats.wasserstein_distance``.

    Examples
    --------
    >>> from epsilot.scipy import wasserstein_distance
    >>> wasserstein_distance([0, 1, 3], [5, 6, 8])
    5.0
    """
    x, a = _distribution(u_values, u_weights)
    y, b = _distribution(v_values, v_weights)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return float(theirs(x, y, a, b))
    return _distance(x.reshape(-1, 1), y.reshape(-1, 1), a, b)


def wasserstein_distance_nd(
    u_values: ArrayLike,
    v_values: ArrayLike,
    u_weights: ArrayLike | None = None,
    v_weights: ArrayLike | None = None,
) -> float:
    """Return the Wasserstein-1 distance of two distributions, with Euclidean costs.

    Arguments and errors are those of ``scipy.stats.wasserstein_distance_nd``, which solves a linear
    program with n m variables.

    Examples
    --------
    >>> from epsilot.scipy import wasserstein_distance_nd
    >>> wasserstein_distance_nd([[0, 0], [1, 0]], [[0, 1], [1, 1]], [1, 3], [3, 1]).__round__(6)
    1.207107
    """
    x, y = np.asarray(u_values), np.asarray(v_values)
    if x.ndim > 2 or y.ndim > 2:
        raise ValueError(
            "Invalid input values. The inputs must have either one or two dimensions; they have "
            f"{x.ndim} and {y.ndim}."
        )
    if x.ndim != y.ndim:
        raise ValueError(
            f"Invalid input values. Dimensions of inputs must be equal; they are {x.ndim} and "
            f"{y.ndim}."
        )
    if x.ndim == 1:
        return wasserstein_distance(x, y, u_weights, v_weights)
    (x, a), (y, b) = _distribution(x, u_weights), _distribution(y, v_weights)
    if x.shape[1] != y.shape[1]:
        raise ValueError(
            "Invalid input values. If two-dimensional, `u_values` and `v_values` must have the "
            f"same number of columns; they have {x.shape[1]} and {y.shape[1]}."
        )
    return _distance(x, y, a, b)


def _distribution(values: ArrayLike, weights: ArrayLike | None) -> tuple[Array, Vector | None]:
    """Return checked values and weights."""
    x = np.asarray(values, np.float64)
    if len(x) == 0:
        raise ValueError("Distribution can't be empty.")
    if weights is None:
        return x, None
    w = np.asarray(weights, np.float64)
    if len(w) != len(x):
        raise ValueError(
            f"There are {len(x)} values and {len(w)} weights. Value and weight array-likes for the "
            "same empirical distribution must be of the same size."
        )
    if np.any(w < 0):
        raise ValueError(f"A weight is {w.min():g}. All weights must be non-negative.")
    if not 0 < w.sum() < np.inf:
        raise ValueError(
            f"The weights sum to {w.sum():g}. Weight array-like sum must be positive and finite "
            "(None weighs all values equally)."
        )
    return x, w


def _distance(x: Array, y: Array, a: Vector | None, b: Vector | None) -> float:
    """Return the distance; infinite values are infinitely far away, or their distance is NaN."""
    if np.isnan(x).any() or np.isnan(y).any():
        return float("nan")
    is_far = [bool(np.isinf(z).any()) for z in (x, y)]
    if any(is_far):
        return float("nan") if all(is_far) else float("inf")
    metric = "cityblock" if x.shape[1] == 1 else "euclidean"
    a, b = (w if w is None else w / w.max() for w in (a, b))
    found = solve_sample(x, y, a, b, metric=metric, rtol=RTOL, normalize=True, on_limit="ignore")
    return float(found.value)
