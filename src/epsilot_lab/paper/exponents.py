"""The figure of Table 1: measured exponents beside published ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from epsilot.display.plotting import COLOURS, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from epsilot.solvers.method_info import MethodInfo

    from .table1_rows import Row

_STYLES = {
    "paper": ("the paper's stop", COLOURS[0], "o", -0.16),
    "certificate": ("our certificate", COLOURS[1], "s", 0.16),
}


def draw_exponents(rows: Sequence[Row], published: Mapping[str, MethodInfo]) -> Figure:
    """Draw one line for each method and data set, one half for n and one for 1/ε."""
    several = len({row.data for row in rows}) > 1
    names = list(dict.fromkeys(_name(row, several) for row in rows))
    figure: Figure = new_figure(11.0, 1.9 + 0.42 * len(names))
    left, right = figure.subplots(1, 2, sharey=True)
    for ax, axis, label in (
        (left, "n", "exponent of n without log factors (with them: pale)"),
        (right, "eps", "exponent of 1/ε"),
    ):
        for row in rows:
            place = names.index(_name(row, several))
            _draw_row(ax, row, axis, place)
            if row.method in published:
                bound = getattr(published[row.method].orders[0], axis)
                ax.plot(
                    [bound],
                    [place],
                    marker="D",
                    mfc="none",
                    mec="0.25",
                    ms=9,
                    mew=1.3,
                    ls="",
                    zorder=1,
                )
        low, high = ax.get_xlim()
        ax.set_xlim(max(low, -1.0), min(high, 5.0))
        ax.set_xlabel(label)
        ax.grid(True, axis="both", color="0.9", lw=0.6)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    left.set_yticks(range(len(names)), names)
    left.set_ylim(len(names) - 0.4, -0.6)
    _legend(figure, left)
    figure.suptitle("Table 1: growth of operations, measured", x=0.01, ha="left", fontsize=14)
    return figure


def _name(row: Row, several: bool) -> str:
    name = f"{row.method} ({row.data})" if several else row.method
    return name if row.is_counted else f"{name}, time"


def _draw_row(ax: Axes, row: Row, axis: str, place: int) -> None:
    """Draw an exponent with its interval; of n without logarithms, and with them, pale."""
    fit = row.without_logs if axis == "n" else row.eps.fit
    if math.isnan(fit.slope):
        return
    _, colour, marker, shift = _STYLES[row.stop]
    if axis == "n":
        raw = [row.n.fit.slope], [place + shift]
        ax.plot(*raw, color=colour, marker=marker, ms=4, alpha=0.3, ls="", zorder=1)
    reach = None
    if not math.isnan(fit.low):
        reach = [[fit.slope - fit.low], [fit.high - fit.slope]]
    ax.errorbar(
        [fit.slope],
        [place + shift],
        xerr=reach,
        color=colour,
        marker=marker,
        ms=5,
        capsize=3,
        elinewidth=1.3,
        ls="",
        zorder=2,
    )


def _legend(figure: Figure, ax: Axes) -> None:
    handles = [
        ax.plot([], [], color=colour, marker=marker, ls="", label=label)[0]
        for label, colour, marker, _ in _STYLES.values()
    ]
    handles += ax.plot([], [], marker="D", mfc="none", mec="0.25", ms=9, ls="", label="published")
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
