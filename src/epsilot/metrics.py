"""The metrics that have a name: what each is, and where it serves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A cost between points that is computed without being stored."""

    code: int  # what kernels.points knows it by
    degree: int  # the power of the points' scale by which costs grow; 0: only directions count
    power: int  # of the differences along an axis, which must stay in the range of floats
    is_separable: bool  # a sum over the axes, which grids need
    square: float = 0.0  # the multiple of squared Euclidean distances that it is, if it is one

    @property
    def is_root(self) -> bool:
        """Whether the sum over the axes goes under a square root."""
        return 0 < self.degree < self.power


#: Every metric, the default of points first. Cosine is half the square between unit vectors.
METRICS = {
    "sqeuclidean": Metric(code=0, degree=2, power=2, is_separable=True, square=1.0),
    "euclidean": Metric(code=1, degree=1, power=2, is_separable=False),
    "cityblock": Metric(code=2, degree=1, power=1, is_separable=True),
    "cosine": Metric(code=3, degree=0, power=2, is_separable=False, square=0.5),
}


def _led(default: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return names with the default first."""
    return default, *(name for name in names if name != default)


#: Names of the metrics of points, grids and pixels; the first of each is the default.
POINT_METRICS = tuple(METRICS)
GRID_METRICS = _led("cityblock", (name for name, x in METRICS.items() if x.is_separable))
PIXEL_METRICS = _led("cityblock", (name for name, x in METRICS.items() if x.degree > 0))


def listed(names: tuple[str, ...]) -> str:
    """Return names as a sentence of help lists them."""
    return ", ".join([f"{names[0]} (default)", *names[1:]])
