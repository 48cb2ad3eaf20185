"""Time against n, one panel for each family, with the sizes from which on we are faster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from epsilot.display.plotting import COLOURS, MARKERS, new_figure

from ..figures import log_axes, write_figure
from ..instances import FAMILIES
from .analysis import Cells
from .entrants import ENTRANTS, OURS, REFERENCE
from .targets import accuracy_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


COLUMNS = 4


def write_times(cells: Cells, rtol: float, folder: Path) -> str:
    """Draw the times to an accuracy, and return the name of the picture."""
    families = cells.families
    n_columns = min(COLUMNS, len(families))
    n_rows = -(-len(families) // n_columns)
    figure = new_figure(max(7.0, 4.2 * n_columns), 3.6 * n_rows + 1.1)
    figure.suptitle(
        f"Seconds to a verified {accuracy_text(rtol)}, dense costs", x=0.01, ha="left", fontsize=14
    )
    handles: dict[str, Line2D] = {}
    for k, family in enumerate(families):
        ax = figure.add_subplot(n_rows, n_columns, k + 1)
        handles |= _draw(ax, cells, family, rtol)
    order = [name for name in ENTRANTS if name in handles]
    figure.legend(
        [handles[name] for name in order],
        [ENTRANTS[name].label for name in order],
        loc="outside lower center",
        ncols=min(5, len(order)),
        frameon=False,
        fontsize=10,
    )
    return write_figure(figure, folder, "times")


def _draw(ax: Axes, cells: Cells, family: str, rtol: float) -> dict[str, Line2D]:
    """Draw one family, and return the curves by solver."""
    handles: dict[str, Line2D] = {}
    places: set[float] = set()
    for name in cells.solvers:
        style = ENTRANTS[name].style
        found = [cells.cell(family, size, rtol, name) for size in cells.sizes(family)]
        points = [(cell.n, cell.seconds) for cell in found if not cell.failure]
        if style is None or not points:
            continue
        n, seconds = zip(*points, strict=True)
        places.update(n)
        colour, dashes = style
        is_main = name in (OURS, REFERENCE)
        (handles[name],) = ax.plot(
            n,
            seconds,
            color=COLOURS[colour],
            ls=dashes,
            marker=MARKERS[colour],
            ms=5 if is_main else 3.5,
            lw=2.2 if is_main else 1.2,
            zorder=3 if is_main else 2,
        )
    log_axes(ax, sorted(places))
    _label_seconds(ax)
    ax.set_title(FAMILIES[family].label, loc="left", fontsize=11)
    ax.set_xlabel("n")
    ax.set_ylabel("seconds")
    _mark(ax, cells.crossover(family, rtol), min(places, default=0))
    return handles


def _label_seconds(ax: Axes) -> None:
    """Label decades, and parts of them where there are few."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = ax.get_ylim()
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0,) if high > 100 * low else (1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _mark(ax: Axes, crossing: float | None, least: float) -> None:
    """Mark the n from which on we beat the network simplex."""
    if crossing is None:
        text = "ot.emd2 is faster at the largest n"
    elif crossing <= least:
        text = "faster than ot.emd2 at every n"
    else:
        ax.axvline(crossing, color="0.45", ls=":", lw=1.4, zorder=1)
        text = f"faster than ot.emd2 from n ≈ {crossing:.0f}"
    ax.text(
        0.03,
        0.97,
        text,
        transform=ax.transAxes,
        va="top",
        fontsize=8.5,
        color="0.25",
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5},
        zorder=4,
    )
