"""What a geometry's sizes must be: whole cells, positive steps, costs that float64 can hold."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .._types import Matrix
from ..arguments import numeric, plain
from ..errors import InvalidProblem
from ..wording import shown

#: Largest costs between which nothing that matters under- or overflows.
SMALLEST_COST, LARGEST_COST = 1e-290, 1e300


def check_range(largest: float, power: int, n_axes: int, what: str) -> None:
    """Refuse distances whose power, summed over the axes, float64 cannot hold."""
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
    """Return a number or a row of numbers of any library as Python's own; refuse truth values."""
    values = list(map(plain, given)) if isinstance(given, (list, tuple)) else [plain(given)]
    if any(isinstance(value, bool) for value in values):
        raise InvalidProblem(
            f"{name} is {shown(given)}; it must be a number, or one for each axis."
        )
    return values if isinstance(given, (list, tuple)) else values[0]
