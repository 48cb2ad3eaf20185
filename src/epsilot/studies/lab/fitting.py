"""Power laws through measurements, with the uncertainty of their exponents."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..._types import Vector
from .store import Line

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Fit:
    """y ≈ exp(intercept) x^slope, with an interval for the slope; NaN where nothing is known."""

    slope: float
    low: float
    high: float
    intercept: float

    def __str__(self) -> str:
        if math.isnan(self.slope):
            return "–"
        if math.isnan(self.low):
            return f"{self.slope:.2f}"
        return f"{self.slope:.2f} [{self.low:.2f}, {self.high:.2f}]"

    def at(self, x: ArrayLike) -> Vector:
        """Return the fitted values."""
        places = np.asarray(x, dtype=np.float64)
        return np.asarray(np.exp(self.intercept + self.slope * np.log(places)))


NO_FIT = Fit(math.nan, math.nan, math.nan, math.nan)


def fit_power(x: ArrayLike, y: ArrayLike) -> Fit:
    r"""Fit a power law by least squares of log y on log x, all points alike.

    The interval is Student's, :math:`\hat a \pm t_{N-2}\, s / \sqrt{\sum (\log x_i - m)^2}`, at
    95 %; it needs three points, the slope two different abscissae.

    Examples
    --------
    >>> print(fit_power([1, 2, 4, 8], [3, 12, 48, 192]))
    2.00 [2.00, 2.00]
    """
    from scipy.stats import t as student

    u, v = np.log(np.asarray(x, dtype=np.float64)), np.log(np.asarray(y, dtype=np.float64))
    if u.size == 0 or np.ptp(u) == 0:
        return NO_FIT
    spread = float(((u - u.mean()) ** 2).sum())
    slope = float(((u - u.mean()) * (v - v.mean())).sum()) / spread
    intercept = float(v.mean() - slope * u.mean())
    if u.size < 3:
        return Fit(slope, math.nan, math.nan, intercept)
    residual = float(((v - intercept - slope * u) ** 2).sum()) / (u.size - 2)
    reach = float(student.ppf((1 + CONFIDENCE) / 2, u.size - 2)) * math.sqrt(residual / spread)
    return Fit(slope, slope - reach, slope + reach, intercept)


@dataclass(frozen=True)
class Curve:
    """A quantity against another: median and range over the pairs of marginals, and a fit."""

    label: str
    x: tuple[float, ...]
    median: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    fit: Fit
    n_lines: int

    def median_at(self, x: float) -> float:
        """Return the median at an abscissa, NaN where nothing was measured."""
        return dict(zip(self.x, self.median, strict=True)).get(x, math.nan)


def curve(
    label: str,
    lines: Iterable[Line],
    x: Callable[[Line], float],
    y: Callable[[Line], float | None],
) -> Curve:
    """Return the curve of those lines that ended as they should and have both numbers."""
    points: dict[float, list[float]] = {}
    for line in lines:
        value = y(line)
        if line["has_ended"] and value is not None and value > 0:
            points.setdefault(float(x(line)), []).append(float(value))
    places = sorted(points)
    pairs = [(place, value) for place in places for value in points[place]]
    fit = fit_power(*zip(*pairs, strict=True)) if pairs else NO_FIT
    return Curve(
        label,
        tuple(places),
        tuple(float(np.median(points[place])) for place in places),
        tuple(min(points[place]) for place in places),
        tuple(max(points[place]) for place in places),
        fit,
        len(pairs),
    )


def ratios(curve: Curve, reference: Curve) -> list[float]:
    """Return the ratios of two curves' medians where both have one."""
    found = [m / reference.median_at(x) for x, m in zip(curve.x, curve.median, strict=True)]
    return [ratio for ratio in found if not math.isnan(ratio)]


def select(lines: Sequence[Line], **wanted: object) -> list[Line]:
    """Return the lines whose fields have the wanted values."""
    return [line for line in lines if all(line[name] == value for name, value in wanted.items())]
