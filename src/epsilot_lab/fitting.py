"""Fit power laws to measurements, with confidence intervals of their exponents."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epsilot._types import Vector

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


def fit_power(x: ArrayLike, y: ArrayLike, groups: Sequence[Hashable] | None = None) -> Fit:
    r"""Fit a power law by least squares of log y on log x, all points alike.

    The interval is Student's, :math:`\hat a \pm t_{N-2}\, s / \sqrt{\sum (\log x_i - m)^2}`, at
    95 %; it needs three points, the slope two different abscissae. Points of one group, such as
    the solves of one problem, have a factor of their own: means are then those of the groups, of
    which each but the first takes a degree of freedom.

    Examples
    --------
    >>> print(fit_power([1, 2, 4, 8], [3, 12, 48, 192]))
    2.00 [2.00, 2.00]
    """
    from scipy.stats import t as student

    u, v = np.log(np.asarray(x, dtype=np.float64)), np.log(np.asarray(y, dtype=np.float64))
    members = _members(groups if groups is not None else [0] * u.size)
    du, dv = u.copy(), v.copy()
    for own in members:
        du[own] -= u[own].mean()
        dv[own] -= v[own].mean()
    spread = float((du**2).sum())
    if u.size == 0 or spread <= 1e-20:
        return NO_FIT
    slope = float((du * dv).sum()) / spread
    intercept = float(v.mean() - slope * u.mean())
    freedom = u.size - 1 - len(members)
    if freedom < 1:
        return Fit(slope, math.nan, math.nan, intercept)
    residual = float(((dv - slope * du) ** 2).sum()) / freedom
    reach = float(student.ppf((1 + CONFIDENCE) / 2, freedom)) * math.sqrt(residual / spread)
    return Fit(slope, slope - reach, slope + reach, intercept)


def _members(groups: Sequence[Hashable]) -> list[list[int]]:
    """Return the indices of every group."""
    found: dict[Hashable, list[int]] = {}
    for k, group in enumerate(groups):
        found.setdefault(group, []).append(k)
    return list(found.values())


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
    group: str | None = None,
) -> Curve:
    """Return the curve of those lines that ended as they should and have both numbers.

    Lines with the same value of the field ``group`` have a factor of their own in the fit.
    """
    points: dict[float, list[float]] = {}
    pairs: list[tuple[float, float, Hashable]] = []
    for line in lines:
        value = y(line)
        if line["has_ended"] and value is not None and value > 0:
            place = float(x(line))
            points.setdefault(place, []).append(float(value))
            pairs.append((place, float(value), line[group] if group else 0))
    places = sorted(points)
    pairs.sort(key=lambda pair: pair[0])
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
