"""Pictures of runs: certified bounds, and comparisons of methods."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .._types import Matrix
from ..errors import InvalidProblem
from ..files import StrPath, check_writable, write_atomically
from .drawable import Drawable
from .text import is_counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure, SubFigure

# Okabe and Ito's palette, told apart by all common kinds of colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "os^Dv<>"
AXES = {"operations": "arithmetic operations", "seconds": "solver time (seconds)"}
DPI = 160
LEGEND_COLUMNS = 4
CONVERGENCE_SIZE = 7.0, 4.3  # inches


def plot_convergence(result: Drawable, ax: Axes | None = None) -> Figure | SubFigure:
    """Draw the certified bounds of a run against the operations spent.

    The gap asked for is drawn above the final lower bound.

    Parameters
    ----------
    result
        A result with its history.
    ax
        Matplotlib axes to draw on; a new figure when None.

    Returns
    -------
    figure
        The matplotlib figure, ready to be shown or saved.
    """
    ax = new_figure(*CONVERGENCE_SIZE).add_subplot() if ax is None else ax
    axis = "operations" if is_counted(result.work) else "seconds"
    position, upper, lower = history_columns(result, axis, "upper", "lower")
    marker = "o" if position.size < 40 else ""
    ax.fill_between(position, lower, upper, color=COLOURS[0], alpha=0.15, linewidth=0)
    ax.plot(position, upper, marker, linestyle="-", color=COLOURS[1], ms=3.5, label="upper bound")
    ax.plot(position, lower, marker, linestyle="-", color=COLOURS[0], ms=3.5, label="lower bound")
    aim = result.lower_bound + result.target
    ax.axhline(aim, color="0.35", ls="--", lw=1, label="lower bound + target")
    ax.set_xscale("log")
    ax.set_xlabel(AXES[axis])
    _label_decades(ax.xaxis)
    ax.set_ylabel(f"{result.quantity} (units of M)")
    headed(ax, f"{result.method}: gap {result.gap:.3g} certified")
    _lighten(ax)
    return ax.figure


def plot_compare(results: Mapping[str, Drawable], path: StrPath | None = None) -> Figure:
    """Draw the certified gap of several runs against operations and against seconds.

    Parameters
    ----------
    results
        Results by the label they are to carry.
    path
        File to write, of any type matplotlib knows; None to write none.

    Returns
    -------
    figure
        The matplotlib figure.
    """
    figure = new_figure(11.0, 4.2 + 0.2 * math.ceil(len(results) / LEGEND_COLUMNS))
    left, right = figure.subplots(1, 2, sharey=True)
    labelled = {f"{label}: {result.gap:.2g}": result for label, result in results.items()}
    gap_curves(left, labelled, "operations")
    gap_curves(right, labelled, "seconds")
    left.set_ylabel("certified gap (units of M)")
    handles, labels = right.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=min(LEGEND_COLUMNS, len(labels)),
        frameon=False,
        fontsize=9,
    )
    return written(figure, path)


def save_convergence(result: Drawable, path: StrPath) -> None:
    """Write the picture of `plot_convergence` to a file of any type matplotlib knows."""
    figure = new_figure(*CONVERGENCE_SIZE)
    plot_convergence(result, figure.add_subplot())
    written(figure, path)


def check_picture(path: StrPath) -> None:
    """Raise at once when a picture could not be written to a path."""
    figure = new_figure(1.0, 1.0)
    check_writable(path)
    _picture_format(figure, path)


def new_figure(width: float, height: float) -> Figure:
    """Return a figure that belongs to no window and no global state."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InvalidProblem(
            "a picture was asked for, and drawing requires matplotlib "
            "(run: pip install epsilot[plot])"
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def _picture_format(figure: Figure, path: StrPath) -> str:
    """Return the file type a picture's name asks for."""
    suffix = Path(path).suffix.lower().removeprefix(".")
    known = figure.canvas.get_supported_filetypes()
    if suffix not in known:
        raise InvalidProblem(
            f"{path} has the file type {suffix or '(none)'}; a picture must be one of "
            f"{', '.join(sorted(known))} (use .png)"
        )
    return suffix


def written(figure: Figure, path: StrPath | None) -> Figure:
    """Write a figure when a path is given, and return it."""
    if path is not None:
        kind = _picture_format(figure, path)
        write_atomically(path, lambda file: figure.savefig(file, format=kind, dpi=DPI))
    return figure


def headed(ax: Axes, text: str) -> None:
    """Put a title above axes, and the legend between the two."""
    ax.set_title(text, loc="left", pad=24)
    legend = ax.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2,
        ncols=3,
        frameon=False,
        fontsize=9,
        columnspacing=1.2,
        handlelength=1.6,
    )
    legend.set_in_layout(False)


def _label_decades(axis: Axis) -> None:
    """Label a logarithmic axis at powers of ten, and at 2 and 5 times them where it is short."""
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    subs = (1.0, 2.0, 5.0) if high < 100 * low else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(LogFormatterSciNotation(minor_thresholds=(np.inf, np.inf)))
    axis.set_minor_formatter(NullFormatter())


def _lighten(ax: Axes) -> None:
    """Give axes a light grid and no box."""
    ax.grid(True, which="major", color="0.9", lw=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def history_columns(result: Drawable, *names: str) -> list[Matrix]:
    """Return columns of the history where they are finite and the first is positive."""
    table = np.array(
        [[float(getattr(record, name)) for name in names] for record in result.history]
    ).reshape(-1, len(names))
    table = table[np.isfinite(table).all(axis=1) & (table[:, 0] > 0)]
    return [np.asarray(column) for column in table.T]


def gap_curves(ax: Axes, results: Mapping[str, Drawable], axis: str) -> None:
    """Draw each run's gap on logarithmic axes, those too small to compare at the foot."""
    target = max(result.target for result in results.values())
    floor = max(0.05 * target, 1e-300)
    for k, (label, result) in enumerate(results.items()):
        if axis == "operations" and not is_counted(result.work):
            continue
        position, gap = history_columns(result, axis, "gap")
        ax.plot(
            position,
            np.maximum(gap, floor),
            marker=MARKERS[(k + k // len(COLOURS)) % len(MARKERS)],
            color=COLOURS[k % len(COLOURS)],
            linestyle=("-", "--", ":")[k // len(COLOURS) % 3],
            ms=4,
            lw=1.4,
            label=label,
        )
        if gap.size and gap[-1] < floor:
            ax.annotate(
                f"{gap[-1]:.1g}",
                (position[-1], floor),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
    ax.axhline(max(target, floor), color="0.35", ls="--", lw=1, label="target")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(AXES[axis])
    _label_decades(ax.xaxis)
    _label_decades(ax.yaxis)
    _lighten(ax)
