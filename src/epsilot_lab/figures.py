"""Draw curves on logarithmic axes, several panels per figure."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from epsilot._types import Vector
from epsilot.display.plotting import COLOURS, MARKERS, new_figure
from epsilot.files import write_atomically

from .fitting import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


DPI = 130
#: Text becomes outlines: the same picture on every machine.
_SVG = {"svg.fonttype": "path", "svg.hashsalt": "epsilot"}


@dataclass(frozen=True)
class Panel:
    """Axes: what they show, with a line of slope ``guide`` for the eye if there is one."""

    title: str
    xlabel: str
    ylabel: str
    curves: tuple[Curve, ...]
    guide: float | None = None
    styles: tuple[int, ...] = ()


def draw_panels(rows: Sequence[Sequence[Panel]], title: str, is_shared: bool = False) -> Figure:
    """Return a figure of panels, those of a row with one vertical scale if it is shared."""
    n_columns = max(len(row) for row in rows)
    figure: Figure = new_figure(6.2 * n_columns, 5.2 * len(rows))
    figure.suptitle(title, x=0.01, ha="left", fontsize=14)
    for k, row in enumerate(rows):
        first = None
        for j, panel in enumerate(row):
            place = k * n_columns + j + 1
            ax = figure.add_subplot(
                len(rows), n_columns, place, sharey=first if is_shared else None
            )
            first = first or ax
            _draw(ax, panel)
    return figure


def _draw(ax: Axes, panel: Panel) -> None:
    styles = panel.styles or tuple(range(len(panel.curves)))
    for k, curve in zip(styles, panel.curves, strict=True):
        colour, marker = COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]
        if not curve.x:
            what = f"{curve.label}: not measured yet"
            ax.plot([], [], color=colour, marker=marker, ls="", label=what)
            continue
        middle = np.array(curve.median)
        ax.errorbar(
            curve.x,
            middle,
            yerr=[middle - curve.low, curve.high - middle],
            color=colour,
            marker=marker,
            ls=("-", "--")[k // len(COLOURS) % 2],
            ms=5,
            lw=1.5,
            capsize=3,
            elinewidth=1,
            label=curve.label if np.isnan(curve.fit.slope) else f"{curve.label}: slope {curve.fit}",
        )
    places = sorted({x for curve in panel.curves for x in curve.x})
    if not places:
        ax.text(0.5, 0.5, "not measured yet", transform=ax.transAxes, ha="center", color="0.4")
    if panel.guide is not None and len(places) > 1:
        _guide(ax, panel, np.array([places[0], places[-1]]))
    log_axes(ax, places)
    ax.set_title(panel.title, loc="left", fontsize=11)
    ax.set_xlabel(panel.xlabel)
    ax.set_ylabel(panel.ylabel)
    handles, labels = ax.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda k: labels[k].startswith("slope"))
    if not labels:
        return
    ax.legend(
        [handles[k] for k in order],
        [labels[k] for k in order],
        loc="upper left",
        bbox_to_anchor=(0.0, -0.14),
        frameon=False,
        fontsize=9,
    )


def log_axes(ax: Axes, places: list[float]) -> None:
    """Make both axes logarithmic, with ticks at the abscissae and a light grid."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    ax.set_xscale("log")
    ax.set_yscale("log")
    if places:
        ax.xaxis.set_major_locator(FixedLocator(_spaced(places)))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    low, high = ax.get_ylim()
    levels = log_levels(low, high)
    ax.yaxis.set_major_locator(FixedLocator(levels))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: plain(y)))
    ax.grid(True, which="major", color="0.9", lw=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def log_levels(low: float, high: float) -> list[float]:
    """Return round numbers between two limits: few per decade where there are many decades.

    >>> log_levels(0.8, 12), log_levels(90, 4e6)
    ([1.0, 2.0, 3.0, 5.0, 10.0], [100.0, 1000.0, 10000.0, 100000.0, 1000000.0])
    """
    if not 0 < low < high:
        return []
    decades = float(np.log10(high / low))
    steps = (1, 2, 3, 5) if decades < 1.3 else (1, 2, 5) if decades < 2.2 else (1,)
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    found = [float(f"{m}e{k}") for k in range(first, last + 1) for m in steps]
    return [level for level in found if low <= level <= high]


def plain(value: float) -> str:
    """Return a tick as it is read: digits below 100,000, else a power of ten.

    >>> plain(0.05), plain(20000), plain(3e8), plain(1e6)
    ('0.05', '20,000', '3·10⁸', '10⁶')
    """
    if value < 1e5:
        return f"{value:,g}"
    power = int(np.floor(np.log10(value) + 1e-9))
    digits = f"{value / 10**power:g}"
    raised = str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return ("" if digits == "1" else f"{digits}·") + f"10{raised}"


def _guide(ax: Axes, panel: Panel, ends: Vector) -> None:
    """Draw the slope that the paper's theory gives, through the first curve's middle."""
    curve = next((c for c in panel.curves if c.x), None)
    if curve is None or panel.guide is None:
        return
    centre = float(np.exp(np.log(curve.x).mean()))
    level = float(np.exp(np.log(curve.median).mean()))
    ax.plot(
        ends,
        level * (ends / centre) ** panel.guide,
        color="0.55",
        ls=":",
        lw=1.5,
        zorder=0,
        label=f"slope {panel.guide:g}, for the eye",
    )


def _spaced(places: list[float]) -> list[float]:
    """Return the abscissae that can be labelled without touching each other, the last among them.

    A character is about 1/60 of the width of a panel, and labels stand two of them apart.
    """
    kept: list[float] = []
    width = np.log(places[-1] / places[0]) or 1.0
    for x in reversed(places):
        if not kept or np.log(kept[-1] / x) > width * (len(f"{x:g}{kept[-1]:g}") / 2 + 2) / 60:
            kept.append(x)
    return kept[::-1]


def write_figure(figure: Figure, folder: Path, name: str) -> str:
    """Write a figure as SVG and as PNG, and return the name of the first."""
    import matplotlib as mpl

    options: dict[str, dict[str, Any]] = {
        "svg": {"metadata": {"Date": None}},
        "png": {"dpi": DPI},
    }
    with mpl.rc_context(_SVG):
        for kind, chosen in options.items():
            picture = io.BytesIO()
            figure.savefig(picture, format=kind, **chosen)
            write_atomically(folder / f"{name}.{kind}", partial(_copy, picture.getvalue()))
    return f"{name}.svg"


def _copy(content: bytes, file: BinaryIO) -> None:
    file.write(content)
