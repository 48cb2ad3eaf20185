"""Pictures of many answers: a matrix of costs, or the values of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._types import Matrix, Vector
from ..files import StrPath
from .plotting import COLOURS, new_figure, written

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_matrix(D: Matrix, path: StrPath | None = None) -> Figure:
    """Draw a matrix of transport costs as a heat map.

    Parameters
    ----------
    D
        Costs of pairs; NaN stays white.
    path
        File to write, of any type matplotlib knows; None to write none.

    Returns
    -------
    figure
        The matplotlib figure.
    """
    figure = new_figure(6.0, 5.0)
    ax = figure.add_subplot()
    image = ax.imshow(D, cmap="cividis", interpolation="nearest")
    figure.colorbar(image, ax=ax, label="transport cost (units of M)")
    ax.set_xlabel("histogram j")
    ax.set_ylabel("histogram i")
    n, m = D.shape
    ax.set_title(f"{n} × {m} certified transport costs", fontsize=11)
    return written(figure, path)


def plot_values(value: Vector, gap: Vector, path: StrPath | None = None) -> Figure:
    """Draw the values of many problems as a distribution, beside that of their gaps.

    Parameters
    ----------
    value, gap
        One number for each problem; NaN is left out.
    path
        File to write, of any type matplotlib knows; None to write none.

    Returns
    -------
    figure
        The matplotlib figure.
    """
    figure = new_figure(9.0, 3.8)
    left, right = figure.subplots(1, 2)
    known = np.isfinite(value)
    least = np.finfo(float).tiny
    for ax, numbers, label in (
        (left, value[known], "transport cost (units of M)"),
        (right, np.log10(np.maximum(np.abs(gap[known]), least)), "certified gap (power of ten)"),
    ):
        ax.hist(numbers, bins=min(60, max(1, numbers.size)), color=COLOURS[0])
        ax.set_xlabel(label)
    left.set_ylabel("problems")
    left.set_title(f"{int(known.sum()):,} problems", fontsize=11)
    return written(figure, path)
