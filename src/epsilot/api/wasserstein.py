"""Wasserstein distances (earth mover's distances): p-th roots of transport costs, with bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from ..arguments import check_positive, is_real, numeric, plain
from ..engine.goal import EXACT_RTOL, RTOL
from ..engine.result import Result
from ..errors import InvalidProblem
from ..geometry.coordinates import as_metric
from ..metrics import CircularDistance, MetricLike, as_named
from ..wording import shown
from .grid import solve_grid
from .sample import solve_sample

#: Keywords of ``solve`` that do not make a Wasserstein distance, and what to do instead.
REJECTED = {
    "eps": "the accuracy of a distance is relative; pass rtol",
    "reg": "a Wasserstein distance has no entropy; use epsilot.solve_sample",
    "tol": "a Wasserstein distance has no entropy; pass rtol",
    "mass": "a Wasserstein distance moves all mass; use epsilot.solve_sample",
    "unbalanced": "a Wasserstein distance moves all mass; use epsilot.solve_sample",
}


class Distance(float):
    """A Wasserstein distance with a proved interval; the float is its upper bound.

    Attributes
    ----------
    lower, upper : float
        Bounds of the distance: p-th roots of the bounds of the transport cost, rounded outward.
    gap : float
        ``upper - lower``.
    p : float
        The order of the distance.
    metric : str or callable
        The metric between points.
    result : Result
        The solved transport problem, whose cost is the p-th power of the metric.

    Examples
    --------
    >>> import epsilot
    >>> distance = epsilot.wasserstein_1d([0, 1, 3], [5, 6, 8])
    >>> distance
    <epsilot.Distance W_1 = 5 (euclidean), exact to rounding: [5, 5]>
    >>> distance + 1
    6.0
    """

    lower: float
    p: float
    metric: MetricLike
    result: Result

    @classmethod
    def of(cls, result: Result, p: float, metric: MetricLike) -> Distance:
        """Return the distance of a solved problem whose cost is the p-th power of a metric."""
        upper = _root(result.value, p, is_upper=True)
        lower = _root(result.lower_bound, p, is_upper=False)
        return cls._make(upper, lower, p, metric, result)

    @classmethod
    def _make(
        cls, upper: float, lower: float, p: float, metric: MetricLike, result: Result
    ) -> Distance:
        out = cls(upper)
        out.lower, out.p, out.metric, out.result = lower, p, metric, result
        return out

    @property
    def upper(self) -> float:
        """The upper bound, which is the float itself."""
        return float(self)

    @property
    def gap(self) -> float:
        """Length of the interval."""
        return self.upper - self.lower

    def __repr__(self) -> str:
        size = self.upper or 1.0
        is_exact = self.gap <= EXACT_RTOL * size
        how = "exact to rounding" if is_exact else f"proved to {100 * self.gap / size:.2g} %"
        mark = "" if self.result.converged else ", NOT at the target"
        return (
            f"<epsilot.Distance W_{self.p:g} = {self.upper:.10g} ({as_named(self.metric)}), "
            f"{how}: [{self.lower:.10g}, {self.upper:.10g}]{mark}>"
        )

    __str__ = float.__repr__

    def _repr_html_(self) -> str:
        """Return the distance, its interval and a thumbnail of the plan for a notebook."""
        from ..display.notebook import distance_card

        return distance_card(self, self.result, f"W_{self.p:g} ({as_named(self.metric)})")

    def __reduce__(self) -> tuple[object, ...]:
        return Distance._make, (self.upper, self.lower, self.p, self.metric, self.result)


def _root(value: float, p: float, *, is_upper: bool) -> float:
    """Return a bound of the p-th root of a number; 0 for negative numbers."""
    if value <= 0 or p == 1:
        return max(float(value), 0.0)
    root = float(value ** (1 / p))
    outward, inward = (math.inf, 0.0) if is_upper else (0.0, math.inf)
    # Roots of larger or fractional orders are not checked in fractions. They are moved by 8 units,
    # and by the rounding of 1/p, which counts as often as the logarithm is large; that is at most
    # log 2 times the exponent and one.
    if p != int(p) or p > 64:
        for _ in range(8 + math.ceil(0.7 * (abs(math.frexp(value)[1]) + 1) / p)):
            root = math.nextafter(root, outward)
        return root
    exact, order = Fraction(value), int(p)

    def holds(x: float) -> bool:
        power = Fraction(x) ** order
        return power >= exact if is_upper else power <= exact

    while not holds(root):
        root = math.nextafter(root, outward)
    while holds(nearer := math.nextafter(root, inward)):
        root = nearer
    return root


def wasserstein(
    X: ArrayLike,
    Y: ArrayLike,
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    p: float = 2.0,
    metric: MetricLike = "euclidean",
    metric_params: Mapping[str, Any] | None = None,
    **keywords: Any,
) -> Distance:
    r"""Return the Wasserstein distance W_p between two weighted point clouds, with its bounds.

    .. math:: W_p = \Big(\min_X \sum_{ij} X_{ij}\, d(x_i, y_j)^p\Big)^{1/p}

    W_1 is the earth mover's distance.

    Parameters
    ----------
    X, Y : (n, d), (m, d) array-like
        Points as rows; a vector holds points on a line.
    a, b : optional
        Weights with equal totals, uniform if None. ``normalize=True`` divides both by their totals.
    p : float
        The order, at least 1.
    metric, metric_params
        The distance d between points, as in :func:`solve_sample`.
    **keywords
        As in :func:`solve_sample`. ``rtol`` (default 0.01) bounds the relative gap of the distance
        itself; ``rtol=1e-9`` asks for the exact distance.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> distance = epsilot.wasserstein(X, X + [3.0, 4.0])
    >>> distance
    <epsilot.Distance W_2 = 5 (euclidean), exact to rounding: [5, 5]>
    >>> print(distance, distance.gap)
    5.0 0.0
    """
    named = as_metric(metric, 1.0, metric_params)
    call = partial(solve_sample, X, Y, a, b, metric=named)
    return _distance(p, named, keywords, call)


def wasserstein_1d(
    x: ArrayLike,
    y: ArrayLike,
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    p: float = 1.0,
    period: float | None = None,
    **keywords: Any,
) -> Distance:
    """Return the Wasserstein distance W_p between values on a line, exactly, by sorting.

    Parameters
    ----------
    x, y : (n,), (m,) array-like
        Values.
    a, b : optional
        Weights with equal totals, uniform if None. ``normalize=True`` divides both by their totals.
    p : float
        The order, at least 1; 1 is the earth mover's distance of histograms.
    period : float, optional
        Values repeat with this period, as angles or hours do: distances are those on a circle. The
        costs of all pairs are then stored, and exact methods for such costs used.
    **keywords
        As in :func:`solve_sample`.

    Examples
    --------
    >>> import epsilot
    >>> epsilot.wasserstein_1d([0, 1, 3], [5, 6, 8], p=2)
    <epsilot.Distance W_2 = 5 (euclidean), exact to rounding: [5, 5]>
    >>> epsilot.wasserstein_1d([23, 22], [1, 2], period=24)  # hours
    <epsilot.Distance W_1 = 3 (circle of length 24), exact to rounding: [3, 3]>
    """
    values = numeric(x, "x"), numeric(y, "y")
    for given, name in zip(values, "xy", strict=True):
        if given.ndim != 1:
            raise InvalidProblem(
                f"{name} has shape {given.shape}; it must be a vector of values (use "
                "epsilot.wasserstein for points)."
            )
    if "metric" in keywords:
        raise InvalidProblem(
            "metric was given to wasserstein_1d, which measures |x - y| (use epsilot.wasserstein)."
        )
    if period is not None:
        keywords["metric"] = CircularDistance(check_positive("period", period))
    keywords = {"rtol": EXACT_RTOL} | keywords
    return wasserstein(*values, a, b, p=p, **keywords)


def wasserstein_grid(
    A: ArrayLike,
    B: ArrayLike,
    *,
    p: float = 1.0,
    metric: str = "euclidean",
    spacing: float | Sequence[float] = 1.0,
    **keywords: Any,
) -> Distance:
    """Return the Wasserstein distance W_p between masses on two grids, such as images.

    Parameters
    ----------
    A, B : d-dimensional array-like, d = 1, 2, 3
        Masses with equal totals. ``normalize=True`` divides both by their totals.
    p : float
        The order, at least 1; 1 is the earth mover's distance.
    metric : str
        The distance between cell centres, as in :func:`solve_grid`.
    spacing : float or sequence of float
        Distance of neighbouring centres along each axis.
    **keywords
        As in :func:`solve_grid`; ``rtol`` as in :func:`wasserstein`.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> A, B = np.zeros((8, 8)), np.zeros((8, 8))
    >>> A[1, 1] = B[4, 5] = 1.0
    >>> epsilot.wasserstein_grid(A, B)
    <epsilot.Distance W_1 = 5 (euclidean), exact to rounding: [5, 5]>
    """
    named = as_metric(metric)
    call = partial(solve_grid, A, B, metric=named, spacing=spacing)
    return _distance(p, named, keywords, call)


def _distance(
    p: object, metric: MetricLike, keywords: dict[str, Any], solve: Callable[..., Result]
) -> Distance:
    """Solve the problem whose cost is the p-th power of a metric, to the accuracy of the root."""
    order = plain(p)
    if not is_real(order) or not 1 <= float(order) < math.inf:
        raise InvalidProblem(
            f"p is {shown(order)}; the order of a Wasserstein distance is a finite number of at "
            "least 1 (epsilot.solve_sample takes other powers of a metric)."
        )
    for name, why in REJECTED.items():
        if keywords.get(name) is not None:
            raise InvalidProblem(f"{name} was given for a Wasserstein distance; {why}.")
    order, rest = float(order), dict(keywords)
    rtol = plain(RTOL if rest.get("rtol") is None else rest["rtol"])
    if is_real(rtol) and EXACT_RTOL < rtol < math.inf and order != 1:
        rest["rtol"] = math.expm1(order * math.log1p(rtol))  # U <= (1 + rtol)**p L
    return Distance.of(solve(p=order, **rest), order, metric)
