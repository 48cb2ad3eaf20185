"""Draw figures with matplotlib: convergence, comparisons and batches."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .._types import Matrix, Vector
from ..errors import InvalidProblem, MissingExtra
from ..files import StrPath, check_writable, write_atomically
from .text import is_counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure, SubFigure

    from .results import CertifiedResult

#: Okabe and Ito's palette, which is safe for all common kinds of colour blindness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "os^Dv<>"
AXES = {"operations": "arithmetic operations", "seconds": "solver time (seconds)"}
#: Resolution of bitmap files, in dots per inch.
DPI = 160
#: Columns of the legend below a comparison.
LEGEND_COLUMNS = 4
#: Width and height of the convergence figure, in inches.
CONVERGENCE_SIZE = 7.0, 4.3


def plot_convergence(result: CertifiedResult, ax: Axes | None = None) -> Figure | SubFigure:
    """Draw the certified bounds of a run against the operations spent.

    A dashed line marks the target: the final lower bound plus the tolerance.

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
    target = result.lower_bound + result.target
    ax.axhline(target, color="0.35", ls="--", lw=1, label="lower bound + target")
    ax.set_xscale("log")
    ax.set_xlabel(AXES[axis])
    label_decades(ax.xaxis)
    ax.set_ylabel(f"{result.quantity} (units of M)")
    headed(ax, f"{result.method}: gap {result.gap:.3g} certified")
    lighten(ax)
    return ax.figure


def plot_compare(results: Mapping[str, CertifiedResult], path: StrPath | None = None) -> Figure:
    """Draw the certified gap of several runs against operations and against seconds.

    Parameters
    ----------
    results
        Results by label.
    path
        File to write, of any type that matplotlib writes; None to write none.

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


def save_convergence(result: CertifiedResult, path: StrPath) -> None:
    """Write the figure of `plot_convergence` to a file of any type that matplotlib writes."""
    figure = new_figure(*CONVERGENCE_SIZE)
    plot_convergence(result, figure.add_subplot())
    written(figure, path)


def check_picture(path: StrPath) -> None:
    """Raise before the run if a figure cannot be written to the path."""
    figure = new_figure(1.0, 1.0)
    check_writable(path)
    _figure_format(figure, path)


def new_figure(width: float, height: float) -> Figure:
    """Return a figure without a window, independent of pyplot's global state."""
    try:
        from .notebook_figure import NotebookFigure
    except ImportError as error:
        raise MissingExtra("drawing a figure", "matplotlib", "plot") from error
    return NotebookFigure(figsize=(width, height), layout="constrained")


def _figure_format(figure: Figure, path: StrPath) -> str:
    """Return the file type of a path, and reject types that matplotlib cannot write."""
    suffix = Path(path).suffix.lower().removeprefix(".")
    known = figure.canvas.get_supported_filetypes()
    if suffix not in known:
        raise InvalidProblem(
            f"{path} has the file type {suffix or '(none)'}; a figure must be one of "
            f"{', '.join(sorted(known))} (use .png)"
        )
    return suffix


def written(figure: Figure, path: StrPath | None) -> Figure:
    """Write the figure if a path is given, and return it."""
    if path is not None:
        kind = _figure_format(figure, path)
        write_atomically(path, lambda file: figure.savefig(file, format=kind, dpi=DPI))
    return figure


def headed(ax: Axes, text: str) -> None:
    """Set a title, with the legend between it and the axes."""
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


def label_decades(axis: Axis) -> None:
    """Label powers of ten on a logarithmic axis; on a short one also 2 and 5 times them."""
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    subs = (1.0, 2.0, 5.0) if high < 100 * low else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(LogFormatterSciNotation(minor_thresholds=(np.inf, np.inf)))
    axis.set_minor_formatter(NullFormatter())


def lighten(ax: Axes) -> None:
    """Draw a light grid, and no frame at the top and the right."""
    ax.grid(True, which="major", color="0.9", lw=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def history_columns(result: CertifiedResult, *names: str) -> list[Matrix]:
    """Return columns of the history, without rows that are not finite or start at zero."""
    table = np.array(
        [[float(getattr(record, name)) for name in names] for record in result.history]
    ).reshape(-1, len(names))
    table = table[np.isfinite(table).all(axis=1) & (table[:, 0] > 0)]
    return [np.asarray(column) for column in table.T]


def gap_floor(result: CertifiedResult) -> float:
    """Return the smallest gap that float64 tells from zero, where gaps of rounding are drawn."""
    size = max(abs(result.lower_bound), abs(result.lower_bound + result.gap), result.target)
    return max(float(np.finfo(np.float64).eps) * size, float(np.finfo(np.float64).tiny))


def gap_curves(ax: Axes, results: Mapping[str, CertifiedResult], axis: str) -> None:
    """Draw each run's gap on logarithmic axes; gaps of rounding are drawn at its size."""
    target = max(result.target for result in results.values())
    floor = min(map(gap_floor, results.values()))
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
    ax.axhline(max(target, floor), color="0.35", ls="--", lw=1, label="target")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(AXES[axis])
    label_decades(ax.xaxis)
    label_decades(ax.yaxis)
    lighten(ax)


# -- many problems ---------------------------------------------------------------------------


def plot_matrix(D: Matrix, path: StrPath | None = None) -> Figure:
    """Draw a matrix of transport costs as a heat map.

    Parameters
    ----------
    D
        Transport costs of pairs; NaN is left white.
    path
        File to write, of any type that matplotlib writes; None to write none.

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
    """Draw histograms of the values and of the gaps of many problems.

    Parameters
    ----------
    value, gap
        One number per problem; NaN is left out.
    path
        File to write, of any type that matplotlib writes; None to write none.

    Returns
    -------
    figure
        The matplotlib figure.
    """
    figure = new_figure(9.0, 3.8)
    left, right = figure.subplots(1, 2)
    known = np.isfinite(value)
    size = float(np.abs(value[known]).max(initial=0.0))
    least = max(np.finfo(float).eps * size, np.finfo(float).tiny)  # gaps below are rounding
    for ax, numbers, label in (
        (left, value[known], "transport cost (units of M)"),
        (right, np.log10(np.maximum(gap[known], least)), "certified gap (power of ten)"),
    ):
        ax.hist(numbers, bins=min(60, max(1, numbers.size)), color=COLOURS[0])
        ax.set_xlabel(label)
    left.set_ylabel("problems")
    left.set_title(f"{int(known.sum()):,} problems", fontsize=11)
    return written(figure, path)
