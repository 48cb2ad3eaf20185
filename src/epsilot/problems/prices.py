"""Penalties of marginals: one number per side, or one per point; ∞ requires an exact marginal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._types import Vector
from ..kernels.vectors import dot, exp, log

if TYPE_CHECKING:
    from .plan import KeptIndex

#: One penalty for all points of a side, or one per point.
Price: TypeAlias = float | Vector


def folded(price: Price) -> Price:
    """Return one number where all points of a side have the same penalty."""
    if isinstance(price, np.ndarray) and (price == price[0]).all():
        return float(price[0])
    return price


def least(price: Price) -> float:
    """Return the smallest penalty of a side."""
    return float(price.min()) if isinstance(price, np.ndarray) else price


def highest(*prices: Price) -> float:
    """Return the largest finite penalty, or 0 where all are infinite."""
    return max(float(np.max(x, where=np.isfinite(x), initial=0.0)) for x in prices)


def typical(price: Price, weights: Vector) -> float:
    """Return the mean finite penalty of a unit of mass; ∞ where all points are exact."""
    if not isinstance(price, np.ndarray):
        return price
    finite = np.isfinite(price)
    if not finite.any():
        return math.inf
    mass = float(weights[finite].sum())
    return dot(price[finite], weights[finite]) / mass if mass > 0 else float(price[finite].max())


def kept(price: Price, points: KeptIndex | NDArray[np.bool_]) -> Price:
    """Return the penalties of some points of a side."""
    return price[points] if isinstance(price, np.ndarray) else price


def per_point(price: Price, size: int) -> Vector:
    """Return the penalty of every point of a side."""
    return price if isinstance(price, np.ndarray) else np.full(size, price)


def weighed(price: Price, x: Vector) -> Vector:
    """Return λ x, or 0 where the marginal is exact."""
    if not isinstance(price, np.ndarray):
        return price * x if price < math.inf else np.zeros_like(x)
    is_exact = np.isinf(price)
    return np.where(is_exact, 0.0, np.where(is_exact, 1.0, price) * x)


def balancing_constant(x: Vector, fall: Price, y: Vector, rise: Price) -> float:
    r"""Return the t with :math:`\log \sum e^{x - t σ} = \log \sum e^{y + t τ}`.

    The slopes σ (``fall``) and τ (``rise``) are not negative. If there is one per side, t has a
    closed form. Otherwise Newton's method is safeguarded by an interval that holds the solution. If
    all slopes are 0, t changes nothing and is 0.
    """
    if not (isinstance(fall, np.ndarray) or isinstance(rise, np.ndarray)):
        return (_log_sum(x, 0.0)[0] - _log_sum(y, 0.0)[0]) / (fall + rise)
    positive = np.concatenate([np.ravel(fall), np.ravel(rise)])
    if not positive.any():
        return 0.0
    round_off = 4 * float(np.finfo(float).eps)
    longest = 10 / float(positive[positive > 0].min())
    t, low, high = 0.0, -math.inf, math.inf
    for _ in range(200):  # each doubles the digits, or halves the interval
        of_x, mean_fall = _log_sum(x - t * fall, fall)
        of_y, mean_rise = _log_sum(y + t * rise, rise)
        excess, slope = of_x - of_y, mean_fall + mean_rise
        if not math.isfinite(excess):
            return t
        low, high = (t, high) if excess > 0 else (low, t)
        step = max(-longest, min(excess / slope if slope > 0 else excess * math.inf, longest))
        following = t + step if excess else t
        if not low <= following <= high:
            following = 0.5 * (low + high)
        if abs(following - t) <= round_off * abs(t):
            return following
        t = following
    return t


def _log_sum(terms: Vector, slopes: Price) -> tuple[float, float]:
    """Return log Σ e^terms, and the mean of slopes by these weights."""
    highest_term = float(terms.max())
    weights = exp(terms - highest_term)
    total = float(weights.sum())
    mean = dot(weights, slopes) / total if isinstance(slopes, np.ndarray) else slopes
    return highest_term + float(log(total)), mean
