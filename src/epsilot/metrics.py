"""The table of named metrics: one row per metric holds everything the package knows about it.

To add a metric, add a row to :data:`METRICS`, and above it the functions that no other row has.
They are plain functions of numbers, which :mod:`epsilot.kernels.metrics` compiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._types import Matrix, Vector

#: A function of numbers and arrays that is compiled.
Compiled = Callable[..., Any]
#: Computes the costs when called.
Costs = Callable[[], Matrix]
#: Computes derivatives from flows or from differences, and from the costs.
Slope = Callable[[Matrix, Costs], Matrix]
#: Takes the largest |coordinate| along each axis of centred points. Returns a bound of all costs,
#: and a bound of the error of costs computed from coordinates rounded to float32.
Float32Error = Callable[[Matrix], tuple[float, float]]
#: The name of a metric, or a function of a source and all targets.
MetricLike = str | Callable[[Vector, Matrix], ArrayLike]
#: Half a unit in the last place of float32.
HALF_ULP = 2.0**-24


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A cost between points, computed on the fly.

    The cost is ``finish(total)``, where ``join`` adds the ``term`` of each axis to the total. Terms
    depend on the difference along their axis. Term, join and finish never decrease as it grows.
    """

    code: int  # names the metric in compiled code
    degree: int  # scaling points by t scales costs by t**degree; 0: only directions count
    power: int  # no term exceeds this power of the difference along its axis
    term: Compiled  # (x, y): the term of one axis
    join: Compiled  # (total, term): the total with the term of one axis more
    finish: Compiled  # (total): the cost
    bound: Compiled | None = None  # lower bound of a tree node (kernels.metrics); None: by its box
    float32_error: Float32Error | None = None  # None: float32 never prunes columns
    is_separable: bool = False  # geometry.grid has passes for it along each axis
    is_convex: bool = False  # in the points, so that costs are largest between extreme points
    is_distance: bool = False  # on a line, the distance itself
    square: float = 0.0  # costs are this multiple of squared Euclidean distances; 0: they are not
    has_ties: bool = False  # points on a lattice have many equal costs
    # Derivatives: one of the two, unless the degree is 0 (half a square between unit vectors).
    tension: Slope | None = None  # (flow, cost): W whose slopes are Σ_j W_ij (x_i - y_j)
    slope: Slope | None = None  # (x_k - y_k, cost): the derivative of the cost in x_k

    def __post_init__(self) -> None:
        if self.degree > 0 and self.tension is None and self.slope is None:
            raise ValueError("a metric needs its derivative: give tension or slope.")
        if self.degree == 0 and self.square != 0.5:
            raise ValueError("a metric of directions must be half the square between unit vectors.")

    def cost(self, x: Sequence[float], y: Sequence[float]) -> float:
        """Return the cost of two points, by plain Python."""
        terms = [self.term(x_k, y_k) for x_k, y_k in zip(x, y, strict=True)]
        return float(self.finish(reduce(self.join, terms)))

    @property
    def is_root(self) -> bool:
        """Whether the cost is a root of the total of its terms."""
        return self.degree == 1 < self.power

    @property
    def is_on_line(self) -> bool:
        """Whether costs on a line are the distance, or a multiple of its square."""
        return self.is_distance or self.square > 0


# -- terms, totals and costs -----------------------------------------------------------------


def _squared(x: float, y: float) -> float:
    return (x - y) * (x - y)


def _absolute(x: float, y: float) -> float:
    return abs(x - y)


def _add(total: float, term: float) -> float:
    return total + term


def _same(total: float) -> float:
    return total


def _half(total: float) -> float:
    return 0.5 * total


def _root(total: float) -> float:
    return math.sqrt(total)


# -- bounds of trees: see kernels.metrics ------------------------------------------------------


def _square_bound(weight: float) -> Compiled:
    """Return the lower bound of weight |x - y|² - s·(y - c), the minimum of a parabola per axis."""

    def bound(low, size, x, node, axes):  # type: ignore[no-untyped-def]
        d = len(axes)
        for a in range(d):
            left, right, slope = node[a] - x[a], x[a] - node[d + a], node[2 * d + a]
            h = slope * (0.5 / weight)
            t = max(left - h, right + h, 0.0)
            reach = max(abs(left), abs(right)) + abs(h)
            middle = 0.5 * (node[a] + node[d + a])
            low += weight * (t * t - h * h) - slope * (x[a] - middle)
            size += reach * reach
        return low, size

    return bound


def _euclidean_bound(low, size, x, node, axes):  # type: ignore[no-untyped-def]
    """Bound |x - y| - s·(y - c) by the tangent at the box's centre, and by its nearest point."""
    d = len(axes)
    square = outside = 0.0
    for a in range(d):
        away = 0.5 * (node[a] + node[d + a]) - x[a]
        square += away * away
        t = max(node[a] - x[a], x[a] - node[d + a], 0.0)
        outside += t * t
    distance = math.sqrt(square)
    inverse = 1 / distance if distance > 0 else 0.0
    tangent, nearest = distance, math.sqrt(outside)
    size += distance
    for a in range(d):
        middle, slope = 0.5 * (node[a] + node[d + a]), node[2 * d + a]
        radius = max(node[d + a] - middle, middle - node[a])
        tangent -= abs((middle - x[a]) * inverse - slope) * radius
        nearest -= abs(slope) * radius
        size += (1 + abs(slope)) * radius
    return low + max(tangent, nearest), size


def _cityblock_bound(low, size, x, node, axes):  # type: ignore[no-untyped-def]
    """Bound Σ |x_a - y_a| - s·(y - c), minimal at an end of each axis or at its kink."""
    d = len(axes)
    for a in range(d):
        left, right, slope = node[a] - x[a], node[d + a] - x[a], node[2 * d + a]
        middle = 0.5 * (node[a] + node[d + a])
        value = min(
            abs(left) - slope * (node[a] - middle), abs(right) - slope * (node[d + a] - middle)
        )
        if left < 0 < right:
            value = min(value, -slope * (x[a] - middle))
        low += value
        size += (1 + abs(slope)) * max(abs(left), abs(right))
    return low, size


# -- errors of float32 ----------------------------------------------------------------------------
#
# With r_k the largest coordinate along an axis and u the unit of rounding, the error of coordinates
# is u r_k, of differences 4 u r_k and of squares 21 u r_k². A sum of d squares, each up to 4 r_k²,
# adds an error of 4 d u Σ r_k². Roots differ by at most the root of the difference of squares.


def _cityblock_error(reach: Matrix) -> tuple[float, float]:
    size = float(reach.sum())
    return 2 * size, HALF_ULP * (4 + 2 * reach.size) * size


def _square_error(reach: Matrix) -> tuple[float, float]:
    size = float((reach * reach).sum())
    return 4 * size, HALF_ULP * (21 + 4 * reach.size) * size


def _euclidean_error(reach: Matrix) -> tuple[float, float]:
    largest, error = map(math.sqrt, _square_error(reach))
    return largest, error + 2 * HALF_ULP * largest


# -- derivatives: ``cost`` is a function, called only where costs are needed ---------------------


def _twice(flow: Matrix, cost: Costs) -> Matrix:
    return 2 * flow


def _over_cost(flow: Matrix, cost: Costs) -> Matrix:
    """Return flow / cost, and 0 between coincident points."""
    distance = cost()
    return np.divide(flow, distance, out=np.zeros_like(distance), where=distance > 0)


def _sign(difference: Matrix, cost: Costs) -> Matrix:
    return np.asarray(np.sign(difference))


# -- the table -----------------------------------------------------------------------------------

#: All metrics, the default of points first. Cosine is half the square between unit vectors.
METRICS = {
    "sqeuclidean": Metric(
        code=0,
        degree=2,
        power=2,
        term=_squared,
        join=_add,
        finish=_same,
        bound=_square_bound(1.0),
        float32_error=_square_error,
        is_separable=True,
        is_convex=True,
        square=1.0,
        tension=_twice,
    ),
    "euclidean": Metric(
        code=1,
        degree=1,
        power=2,
        term=_squared,
        join=_add,
        finish=_root,
        bound=_euclidean_bound,
        float32_error=_euclidean_error,
        is_convex=True,
        is_distance=True,
        tension=_over_cost,
    ),
    "cityblock": Metric(
        code=2,
        degree=1,
        power=1,
        term=_absolute,
        join=_add,
        finish=_same,
        bound=_cityblock_bound,
        float32_error=_cityblock_error,
        is_separable=True,
        is_convex=True,
        is_distance=True,
        has_ties=True,
        slope=_sign,
    ),
    "cosine": Metric(
        code=3,
        degree=0,
        power=2,
        term=_squared,
        join=_add,
        finish=_half,
        bound=_square_bound(0.5),
        float32_error=_square_error,
        is_convex=True,
        square=0.5,
    ),
}


def metric_of(code: int) -> Metric:
    """Return the metric of a code; raise ValueError for an unknown code."""
    for metric in METRICS.values():
        if metric.code == code:
            return metric
    raise ValueError(f"no metric has the code {code}; see epsilot.metrics.METRICS.")


def _default_first(default: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return names with the default first."""
    return default, *(name for name in names if name != default)


#: Names of the metrics for points, grids and pixels; the first of each is the default.
POINT_METRICS = tuple(METRICS)
GRID_METRICS = _default_first("cityblock", (name for name, x in METRICS.items() if x.is_separable))
PIXEL_METRICS = _default_first("cityblock", (name for name, x in METRICS.items() if x.degree > 0))


def listed(names: tuple[str, ...]) -> str:
    """Return names as a list for help texts."""
    return ", ".join([f"{names[0]} (default)", *names[1:]])
