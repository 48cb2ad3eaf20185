"""Metrics: those with compiled kernels, one row of a table each, and all names of SciPy.

To add a compiled metric, add a row to :data:`METRICS`, and above it the functions that no other
row has. They are plain functions of numbers, which :mod:`epsilot.kernels.metrics` compiles. Every
other metric is computed in blocks by :mod:`epsilot.geometry.metric_costs`.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._types import Matrix, Vector
from .wording import LONGEST_SHOWN

#: A function of numbers and arrays that is compiled.
Compiled = Callable[..., Any]
#: Computes the costs when called.
Costs = Callable[[], Matrix]
#: Computes derivatives from flows or from differences, and from the costs.
Slope = Callable[[Matrix, Costs], Matrix]
#: Takes the largest |coordinate| along each axis of centred points. Returns a bound of all costs,
#: and a bound of the error of costs computed from coordinates rounded to float32.
Float32Error = Callable[[Matrix], tuple[float, float]]
#: A cost of two points, f(u, v), as SciPy takes it; it may also take all targets at once.
MetricFunction = Callable[[Vector, Any], ArrayLike]
#: What names a metric in compiled code: a tuple of as many zeros as its code, the exponent of terms
#: (or none), and the exponent and the factor of the cost (or none). Kernels are compiled for the
#: type of this tuple, and so for one metric.
MetricKey = tuple[tuple[float, ...], ...]
#: Half a unit in the last place of float32.
HALF_ULP = 2.0**-24


def _add(total: float, term: float) -> float:
    return total + term


def _same(total: float) -> float:
    return total


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A cost between points, computed on the fly.

    The cost is ``factor * finish(total) ** outer``, where ``join`` adds ``term ** inner`` of each
    axis to the total. Terms depend on the difference along their axis. Term, join and finish never
    decrease as it grows.
    """

    code: int  # names the metric in compiled code
    degree: float  # scaling points by t scales costs by t**degree; 0: only directions count
    power: float  # no term, nor the cost, exceeds this power of the difference along its axis
    term: Compiled  # (x, y): the term of one axis
    join: Compiled = _add  # (total, term): the total with the term of one axis more
    finish: Compiled = _same  # (total): the cost
    bound: Compiled | None = None  # lower bound of a tree node (kernels.metrics); None: by its box
    float32_error: Float32Error | None = None  # None: float32 never prunes columns
    is_separable: bool = False  # geometry.grid has passes for it along each axis
    is_convex: bool = False  # in the points, so that costs are largest between extreme points
    is_distance: bool = False  # on a line, a power of the distance: that of its degree
    square: float = 0.0  # costs are this multiple of squared Euclidean distances; 0: they are not
    # Derivatives: one of the two, unless the degree is 0 (half a square between unit vectors), or
    # none for metrics that losses reject.
    tension: Slope | None = None  # (flow, cost): W whose slopes are Σ_j W_ij (x_i - y_j)
    slope: Slope | None = None  # (x_k - y_k, cost): the derivative of the cost in x_k
    inner: float = 1.0  # exponent of terms
    outer: float = 1.0  # exponent of the cost
    factor: float = 1.0  # of the cost
    # Whether points may have a negative first coordinate, and then stand for the boundary, where
    # the first coordinate is 0: the cost of such a point is that of its nearest point.
    has_boundary: bool = False

    def __post_init__(self) -> None:
        if self.degree == 0 and self.square != 0.5:
            raise ValueError("a metric of directions must be half the square between unit vectors.")

    def cost(self, x: Sequence[float], y: Sequence[float]) -> float:
        """Return the cost of two points, by plain Python."""
        terms = [self.term(x_k, y_k) ** self.inner for x_k, y_k in zip(x, y, strict=True)]
        return float(self.factor * self.finish(reduce(self.join, terms)) ** self.outer)

    @property
    def has_slope(self) -> bool:
        """Whether the derivative in the points is known."""
        return self.degree == 0 or self.tension is not None or self.slope is not None

    @property
    def key(self) -> MetricKey:
        """What kernels take: see :data:`MetricKey`."""
        inner = () if self.inner == 1 else (float(self.inner),)
        is_plain = self.outer == self.factor == 1
        outer = () if is_plain else (float(self.outer), float(self.factor))
        key = (0.0,) * self.code, inner, outer
        return (*key, (0.0,)) if self.has_boundary else key

    @property
    def is_root(self) -> bool:
        """Whether the cost is a root of the total of its terms."""
        return self.degree == 1 < self.power

    @property
    def is_on_line(self) -> bool:
        """Whether costs on a line are convex: a multiple of a power >= 1 of the distance."""
        return self.square > 0 or (self.is_distance and self.degree >= 1)

    @property
    def line_cost(self) -> tuple[float, float]:
        """Factor and exponent of the cost on a line."""
        return (self.square, 2.0) if self.square > 0 else (self.factor, float(self.degree))

    def on_line(self) -> Metric:
        """Return the metric of points with one coordinate: one that has no exponents, if it can."""
        is_whole = self.is_distance and self.factor == 1 and self.key[2] != ()
        named = {1.0: "euclidean", 2.0: "sqeuclidean"}.get(self.degree) if is_whole else None
        return self if named is None else METRICS[named]

    def of_order(self, order: float) -> Metric:
        """Return the Minkowski metric of another order."""
        return replace(
            self, inner=order, outer=1 / order, power=max(order, 1.0), is_convex=order >= 1,
            tension=None,
        )  # fmt: skip

    def raised(self, p: float) -> Metric:
        """Return the p-th power of a metric that has a degree."""
        return replace(
            self, outer=p * self.outer, degree=p * self.degree,
            power=max(self.power, p * self.degree), is_convex=self.is_convex and p >= 1,
            float32_error=None, is_separable=False, square=0.0, tension=None, slope=None,
        )  # fmt: skip

    def scaled(self, factor: float) -> Metric:
        """Return a multiple of the metric."""
        return replace(
            self, factor=factor * self.factor, float32_error=None, is_separable=False, square=0.0,
            tension=None, slope=None,
        )  # fmt: skip

    def to_boundary(self) -> Metric:
        """Return the metric of points of which some may stand for a boundary."""
        return replace(
            self, has_boundary=True, is_convex=False, float32_error=None, is_separable=False,
            square=0.0, tension=None, slope=None,
        )  # fmt: skip


# -- terms, totals and costs -----------------------------------------------------------------


def _squared(x: float, y: float) -> float:
    return (x - y) * (x - y)


def _absolute(x: float, y: float) -> float:
    return abs(x - y)


def _larger(total: float, term: float) -> float:
    return max(total, term)


def _half(total: float) -> float:
    return 0.5 * total


def _root(total: float) -> float:
    return math.sqrt(total)


# -- bounds of trees: see kernels.metrics ------------------------------------------------------


def _square_bound(factor: float) -> Compiled:
    """Return the bound of a multiple of |x - y|², by the minimum of a parabola per axis."""

    def bound(weight, low, size, x, node, axes):  # type: ignore[no-untyped-def]
        d, weight = len(axes), factor * weight
        for a in range(d):
            left, right, slope = node[a] - x[a], x[a] - node[d + a], node[2 * d + a]
            h = slope * (0.5 / weight)
            t = max(left - h, right + h, 0.0)
            reach = max(abs(left), abs(right)) + abs(h)
            middle = 0.5 * (node[a] + node[d + a])
            low += weight * (t * t - h * h) - slope * (x[a] - middle)
            size += weight * reach * reach
        return low, size

    return bound


def _euclidean_bound(weight, low, size, x, node, axes):  # type: ignore[no-untyped-def]
    """Bound weight |x - y| - s·(y - c) by the tangent at the centre, and by the nearest point."""
    d = len(axes)
    square = outside = 0.0
    for a in range(d):
        away = 0.5 * (node[a] + node[d + a]) - x[a]
        square += away * away
        t = max(node[a] - x[a], x[a] - node[d + a], 0.0)
        outside += t * t
    distance = math.sqrt(square)
    inverse = weight / distance if distance > 0 else 0.0
    tangent, nearest = weight * distance, weight * math.sqrt(outside)
    size += tangent
    for a in range(d):
        middle, slope = 0.5 * (node[a] + node[d + a]), node[2 * d + a]
        radius = max(node[d + a] - middle, middle - node[a])
        tangent -= abs((middle - x[a]) * inverse - slope) * radius
        nearest -= abs(slope) * radius
        size += (weight + abs(slope)) * radius
    return low + max(tangent, nearest), size


def _cityblock_bound(weight, low, size, x, node, axes):  # type: ignore[no-untyped-def]
    """Bound weight Σ |x_a - y_a| - s·(y - c), minimal at an end of each axis or at its kink."""
    d = len(axes)
    for a in range(d):
        left, right, slope = node[a] - x[a], node[d + a] - x[a], node[2 * d + a]
        middle = 0.5 * (node[a] + node[d + a])
        value = min(
            weight * abs(left) - slope * (node[a] - middle),
            weight * abs(right) - slope * (node[d + a] - middle),
        )
        if left < 0 < right:
            value = min(value, -slope * (x[a] - middle))
        low += value
        size += (weight + abs(slope)) * max(abs(left), abs(right))
    return low, size


def _chebyshev_bound(weight, low, size, x, node, axes):  # type: ignore[no-untyped-def]
    """Bound weight max |x_a - y_a| - s·(y - c) by the tangents of each axis at the centre."""
    d = len(axes)
    slack = nearest = best = 0.0
    for a in range(d):
        middle, slope = 0.5 * (node[a] + node[d + a]), node[2 * d + a]
        radius = max(node[d + a] - middle, middle - node[a])
        slack += abs(slope) * radius
        nearest = max(nearest, weight * max(node[a] - x[a], x[a] - node[d + a], 0.0))
        size += (2 * weight + abs(slope)) * radius + weight * abs(middle - x[a])
    best = nearest - slack
    for a in range(d):
        middle, slope = 0.5 * (node[a] + node[d + a]), node[2 * d + a]
        radius = max(node[d + a] - middle, middle - node[a])
        way = weight if middle > x[a] else -weight
        tangent = way * (middle - x[a]) - slack + (abs(slope) - abs(way - slope)) * radius
        best = max(best, tangent)
    return low + best, size


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

#: Metrics with compiled kernels, the default of points first. Cosine is half the square between
#: unit vectors; Minkowski has order 2 unless another is given.
METRICS = {
    "sqeuclidean": Metric(
        code=0,
        degree=2,
        power=2,
        term=_squared,
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
        bound=_cityblock_bound,
        float32_error=_cityblock_error,
        is_separable=True,
        is_convex=True,
        is_distance=True,
        slope=_sign,
    ),
    "cosine": Metric(
        code=3,
        degree=0,
        power=2,
        term=_squared,
        finish=_half,
        bound=_square_bound(0.5),
        float32_error=_square_error,
        is_convex=True,
        square=0.5,
    ),
    "minkowski": Metric(
        code=4,
        degree=1,
        power=2,
        term=_absolute,
        is_convex=True,
        is_distance=True,
        inner=2.0,
        outer=0.5,
        tension=_over_cost,
    ),
    "chebyshev": Metric(
        code=5,
        degree=1,
        power=1,
        term=_absolute,
        join=_larger,
        bound=_chebyshev_bound,
        is_convex=True,
        is_distance=True,
    ),
}


@lru_cache(maxsize=256)
def metric_of(key: MetricKey) -> Metric:
    """Return the metric of a key; raise ValueError for an unknown one."""
    code, inner, outer, *boundary = key
    if boundary:
        return metric_of((code, inner, outer)).to_boundary()
    for metric in METRICS.values():
        if metric.code == len(code):
            metric = metric.of_order(*inner) if inner else metric
            if not outer:
                return metric
            exponent, factor = outer
            metric = metric if exponent == metric.outer else metric.raised(exponent / metric.outer)
            metric = metric if factor == 1 else metric.scaled(factor)
            return replace(metric, outer=exponent)
    raise ValueError(f"no metric has the code {len(code)}; see epsilot.metrics.METRICS.")


def _default_first(default: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return names with the default first."""
    return default, *(name for name in names if name != default)


#: Names of :func:`scipy.spatial.distance.cdist` without compiled kernels; the second need 0 and 1.
CDIST_METRICS = (
    "braycurtis", "canberra", "correlation", "hamming", "jensenshannon", "mahalanobis",
    "seuclidean",
)  # fmt: skip
BOOLEAN_METRICS = ("dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule")

#: Names of the metrics for points, grids, losses and pixels; the first of each is the default.
POINT_METRICS = (*METRICS, *CDIST_METRICS, *BOOLEAN_METRICS)
GRID_METRICS = _default_first("cityblock", (name for name, x in METRICS.items() if x.is_separable))
LOSS_METRICS = tuple(name for name, x in METRICS.items() if x.has_slope)
PIXEL_METRICS = _default_first("cityblock", (name for name, x in METRICS.items() if x.degree > 0))
#: Names of metrics in other libraries.
OTHER_NAMES = {
    **dict.fromkeys(("l1", "manhattan", "taxicab"), "cityblock"),
    "l2": "euclidean",
    "squared_euclidean": "sqeuclidean",
    **dict.fromkeys(("linf", "max", "maximum", "infinity"), "chebyshev"),
}


def nearest_name(metric: str, known: Iterable[str]) -> str | None:
    """Return the known name of a metric that is meant by another name or misspelt."""
    known, metric = tuple(known), metric[:LONGEST_SHOWN].lower()
    near = [OTHER_NAMES[metric]] if metric in OTHER_NAMES else []
    near += difflib.get_close_matches(metric, known, n=1)
    return next((name for name in near if name in known), None)


# -- circles -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CircularDistance:
    """The shorter way around a circle between values that repeat with a period."""

    period: float

    def __call__(self, u: Vector, v: Vector | Matrix) -> Vector:
        """Return the distance of two values, or of one and many."""
        apart = np.abs(u[..., 0] - v[..., 0]) % self.period
        return np.minimum(apart, self.period - apart)

    def __str__(self) -> str:
        return f"circle of length {self.period:g}"


# -- named metrics with parameters -------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NamedMetric:
    """A power of a metric: a name with the parameters that SciPy takes for it, or a function."""

    name: str | MetricFunction
    p: float = 1.0
    params: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        given = ", ".join(f"{key}={_short(value)}" for key, value in self.params.items())
        called = f"callable {getattr(self.name, '__name__', '')}".strip()
        name = str(self.name) if isinstance(self.name, str | CircularDistance) else called
        name = f"{name}({given})" if given else name
        return name if self.p == 1 else f"{name} ** {self.p:g}"

    def compiled(self) -> Metric | None:
        """Return the row of the table, raised to the power; None if there is none."""
        name, p, params = self.name, self.p, dict(self.params)
        if not isinstance(name, str) or name not in METRICS:
            return None
        order = float(params.pop("p", 2.0)) if name == "minkowski" else 0.0
        if params:
            return None
        name = {1.0: "cityblock", 2.0: "euclidean", math.inf: "chebyshev"}.get(order, name)
        if (name, p) == ("euclidean", 2):
            return METRICS["sqeuclidean"]
        row = METRICS[name].of_order(order) if name == "minkowski" else METRICS[name]
        if p == 1:
            return row
        if row.degree == 0:
            return None
        return METRICS["euclidean"].raised(2 * p) if name == "sqeuclidean" else row.raised(p)

    @property
    def words(self) -> str:
        """The cost in words."""
        is_square = (self.name, self.p) == ("euclidean", 2)
        if is_square or (self.name, self.p) == ("sqeuclidean", 1):
            return "squared Euclidean cost"
        if isinstance(self.name, CircularDistance):
            return f"cost on a {self.name}" + ("" if self.p == 1 else f", to the power {self.p:g}")
        if not isinstance(self.name, str):
            return "cost by a function" + ("" if self.p == 1 else f", to the power {self.p:g}")
        name = WORDS.get(self.name, self.name)
        given = ", ".join(f"{key}={_short(value)}" for key, value in self.params.items())
        name = f"{name} ({given})" if given else name
        return f"{name} cost" if self.p == 1 else f"{name} distance to the power {self.p:g}"

    @property
    def order(self) -> float | None:
        """The order p of the Wasserstein distance whose p-th power is the cost, if there is one."""
        if self.name == "sqeuclidean":
            return 2 * self.p if self.p >= 0.5 else None
        is_distance = self.name in DISTANCES and self.params.get("p", 2) >= 1
        is_distance |= isinstance(self.name, CircularDistance)
        return self.p if is_distance and self.p >= 1 else None


#: Metrics in words, where the name is not the usual one.
WORDS = {
    "sqeuclidean": "squared Euclidean", "euclidean": "Euclidean", "cityblock": "city-block",
    "minkowski": "Minkowski", "chebyshev": "Chebyshev", "mahalanobis": "Mahalanobis",
    "hamming": "Hamming", "jaccard": "Jaccard", "seuclidean": "standardised Euclidean",
    "jensenshannon": "Jensen-Shannon", "braycurtis": "Bray-Curtis", "canberra": "Canberra",
}  # fmt: skip
#: Names that satisfy the triangle inequality, so that powers of them make Wasserstein distances.
DISTANCES = (
    "euclidean", "cityblock", "minkowski", "chebyshev", "canberra", "hamming", "jaccard",
    "jensenshannon", "mahalanobis", "seuclidean",
)  # fmt: skip


def _short(value: object) -> str:
    """Return a number as text, or a word for an array."""
    return f"{value:g}" if isinstance(value, (int, float)) else "..."


#: The name of a metric, one with parameters or a power, or a function of points.
MetricLike = str | NamedMetric | MetricFunction


def as_named(metric: MetricLike) -> NamedMetric:
    """Return a metric as one with parameters and a power."""
    return metric if isinstance(metric, NamedMetric) else NamedMetric(metric)


def compiled_metric(metric: MetricLike) -> Metric | None:
    """Return the row of a metric with compiled kernels, or None."""
    if isinstance(metric, str):
        return METRICS.get(metric)
    return metric.compiled() if isinstance(metric, NamedMetric) else None


def listed(names: tuple[str, ...]) -> str:
    """Return names as a list for help texts."""
    return ", ".join([f"{names[0]} (default)", *names[1:]])
