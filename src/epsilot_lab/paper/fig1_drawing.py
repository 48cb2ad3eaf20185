"""Draw Figure 1: operations over n², outer loops and NumPy's time against B."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from epsilot.display.plotting import COLOURS, MARKERS, new_figure

from ..fitting import Curve, select
from ..instances import AUTHORS
from ..judging import interval
from ..store import Line
from . import authors
from .image_tasks import MNIST_TRAIN
from .numpy_pdasmd import NAME

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .fig1 import Series

#: Colour of each method, the same in all panels.
STYLES = {
    "PDASMD": 0,
    "PDASGD": 4,
    "APDAGD": 1,
    "AAM": 2,
    "Sinkhorn": 3,
    "Stochastic Sinkhorn": 6,
}
#: Labels of the two columns against n.
COLUMNS = (
    ("PDASMD", "APDAGD", "AAM", "Sinkhorn"),
    ("PDASMD", "PDASGD", "Stochastic Sinkhorn"),
)
#: Rows: the extended data set, and the name of the authors' one.
ROWS = (("synthetic", "synthetic images", "abcd"), ("mnist", "digits", "efgh"))
#: Ticks of operations / n².
LEVELS = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
_TITLES = (
    "deterministic methods",
    "stochastic methods",
    "PDASMD-B: work against B",
    "PDASMD-B in NumPy: time",
)


def draw(lines: Sequence[Line]) -> Figure:
    """Return the figure: the authors' settings, continued to larger n by ours."""
    figure: Figure = new_figure(17.0, 9.6)
    axes = figure.subplots(2, 4)
    for row, (data, name, letters) in zip(axes, ROWS, strict=True):
        for k, ax in enumerate(row):
            ax.set_title(f"({letters[k]}) {name}: {_TITLES[k]}", loc="left", fontsize=10.5)
        theirs = [x for x in lines if authors.is_from(x) and _is_of(x, data)]
        best = [x for x in theirs if x["data"] == AUTHORS + MNIST_TRAIN] or theirs
        for ax, labels in zip(row[:2], COLUMNS, strict=True):
            _against_n(ax, labels, lines, best, data)
        _against_b(row[2], best)
        _times(row[3], theirs, [x for x in lines if x["data"] == data and x["method"] == NAME])
    handles = [
        axes[0, 0].plot([], [], color=COLOURS[k], marker=MARKERS[k], label=label)[0]
        for label, k in STYLES.items()
    ]
    handles += axes[0, 0].plot(
        [], [], color="0.4", marker="o", mfc="white", ls="--", label="extended (medians)"
    )
    handles.append(axes[0, 0].fill_between([], [], [], color="0.94", label="the paper's range"))
    figure.legend(handles=handles, loc="outside lower center", ncols=8, frameon=False)
    return figure


def _is_of(line: Line, data: str) -> bool:
    return bool((line["data"] == AUTHORS + "synthetic") == (data == "synthetic"))


def _against_n(
    ax: Axes, labels: Sequence[str], lines: Sequence[Line], theirs: Sequence[Line], data: str
) -> None:
    """Draw operations over n²: a method that needs n² operations is a level line."""
    from . import fig1

    for name in authors.data_of(theirs):
        for label in labels:
            own = authors.method_lines(theirs, name, label)
            _band(ax, own, "n", lambda x: authors.counted(x) / x["n"] ** 2, STYLES[label])
    series: dict[str, Series] = {
        "PDASMD": fig1.PDASMD_SHARP,
        "PDASGD": fig1.PDASGD,
        "APDAGD": fig1.APDAGD,
        "AAM": fig1.AAM,
        "Sinkhorn": fig1.SINKHORN,
        "Stochastic Sinkhorn": fig1.STOCHASTIC_SINKHORN,
    }
    places = [float(x["n"]) for x in theirs]
    for label in labels:
        (found,) = fig1.size_curves(lines, (series[label],), data)
        _hollow(ax, found, STYLES[label])
        places += found.x
    ax.set_xlabel("n (pixels of an image)")
    ax.set_ylabel("operations / n²")
    _log(ax, [4, 9, 25, 64, 144, 400, 1024], places, LEVELS)
    low, _ = ax.get_xlim()
    ax.axvspan(low, 144 if data == "synthetic" else 100, color="0.94", zorder=0)
    ax.set_xlim(low, None)


def _hollow(ax: Axes, found: Curve, style: int) -> None:
    if found.x:
        middle = np.array(found.median) / np.array(found.x) ** 2
        ax.plot(
            found.x,
            middle,
            color=COLOURS[style],
            marker=MARKERS[style],
            mfc="white",
            ls="--",
            lw=1,
            ms=4,
        )


def _against_b(ax: Axes, theirs: Sequence[Line]) -> None:
    """Draw outer loops and operations relative to those at the least B, beside √B."""
    own = [x for name in authors.data_of(theirs) for x in authors.batch_lines(theirs, name)]
    if not own:
        ax.text(0.5, 0.5, "not measured yet", transform=ax.transAxes, ha="center")
        return
    batches = sorted({x["B"] for x in own})
    for k, n in enumerate(sorted({x["n"] for x in own})):
        here = select(own, n=n)
        for measure, ls, what in (
            (lambda x: float(x["n_iter"]), "-", "outer loops"),
            (authors.counted, ":", "operations"),
        ):
            means = [float(np.mean([measure(x) for x in select(here, B=B)])) for B in batches]
            ax.plot(
                [n / (n // B) for B in batches],
                np.array(means) / means[0],
                color=COLOURS[k],
                ls=ls,
                marker=MARKERS[k],
                ms=4,
                lw=1.4,
                label=f"n = {n}, {what}",
            )
    guide = np.array([batches[0], max(x["n"] / (x["n"] // x["B"]) for x in own)], dtype=float)
    ax.plot(guide, np.sqrt(guide / guide[0]), color="0.3", lw=3, alpha=0.35, label="√B", zorder=0)
    ax.set_xlabel("n / l, the batch size B but for rounding")
    ax.set_ylabel(f"relative to B = {batches[0]}")
    _log(ax, [2, 5, 10, 20, 50], list(guide), [1, 1.5, 2, 3, 4, 5])
    ax.legend(frameon=False, fontsize=8, loc="upper left")


def _times(ax: Axes, theirs: Sequence[Line], others: Sequence[Line]) -> None:
    """Draw seconds of the NumPy code, with the authors' batches or else with ours."""
    own = [x for name in authors.data_of(theirs) for x in authors.batch_lines(theirs, name, NAME)]
    own = own or list(others)
    if not own:
        ax.text(0.5, 0.5, "not measured yet", transform=ax.transAxes, ha="center")
        return
    for k, n in enumerate(sorted({x["n"] for x in own})):
        _band(ax, select(own, n=n), "B", lambda x: float(x["seconds"]), k, f"n = {n}")
    places = sorted({float(x["B"]) for x in own})
    _log(ax, [1, 2, 4, 10, 20, 42], places, [0.1, 0.2, 0.5, 1, 2, 5, 10])
    low, high = ax.get_ylim()
    ax.axvline(np.exp(2.5), color="0.5", ls=":", lw=1.2)
    ax.text(np.exp(2.5) * 1.04, high, "B = e^2.5", va="top", fontsize=8.5, color="0.35")
    ax.set_ylim(low, high)
    ax.set_xlabel("batch size B")
    ax.set_ylabel("seconds")
    ax.legend(frameon=False, fontsize=8, loc="lower left")


def _band(
    ax: Axes,
    own: Sequence[Line],
    place: str,
    measure: Callable[[Line], float],
    style: int,
    label: str = "",
) -> None:
    """Draw means with a band from the least to the largest."""
    places = sorted({x[place] for x in own})
    if not places:
        return
    values = [[measure(x) for x in own if x[place] == p] for p in places]
    colour = COLOURS[style]
    means = [float(np.mean(v)) for v in values]
    ax.plot(places, means, color=colour, marker=MARKERS[style], ms=5, lw=1.6, label=label)
    ax.fill_between(
        places, [min(v) for v in values], [max(v) for v in values], color=colour, alpha=0.15, lw=0
    )


def _log(
    ax: Axes, ticks: Sequence[float], places: Sequence[float], levels: Sequence[float] = ()
) -> None:
    """Make both axes logarithmic, with plain numbers at a few ticks."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    ax.set_xscale("log")
    ax.set_yscale("log")
    shown = [t for t in ticks if places and min(places) <= t <= max(places)]
    ax.xaxis.set_major_locator(FixedLocator(shown))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    if levels:
        ax.yaxis.set_major_locator(FixedLocator(list(levels)))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,g}"))
    ax.grid(True, which="major", color="0.9", lw=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def draw_crossover(ratios: Mapping[str, Mapping[int, Sequence[float]]]) -> Figure:
    """Draw data -> n -> operations of Stochastic Sinkhorn over PDASMD's: pairs and their mean."""
    figure: Figure = new_figure(8.0, 4.8)
    ax = figure.subplots()
    for k, (name, own) in enumerate(ratios.items()):
        colour, shift = COLOURS[k], 1 + 0.04 * k
        groups = [
            group if len(group) > 4 else [np.exp(np.log(group).mean())] for group in own.values()
        ]
        means = [interval(np.log(group)).exp for group in groups]  # no interval of a few pairs
        places = shift * np.array(list(own), dtype=float)
        for place, group in zip(places, own.values(), strict=True):
            dots = [place] * len(group)
            ax.plot(dots, group, color=colour, marker="o", ms=3, alpha=0.25, ls="", lw=0)
        middle = np.array([m.mean for m in means])
        reach = [[m.mean - m.low for m in means], [m.high - m.mean for m in means]]
        ax.errorbar(
            places,
            middle,
            yerr=np.nan_to_num(np.array(reach)),
            color=colour,
            marker=MARKERS[k],
            capsize=3,
            label=name,
        )
    ax.axhline(1.0, color="0.3", lw=1.2)
    sizes = [float(n) for own in ratios.values() for n in own]
    levels = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
    _log(ax, [16, 36, 64, 144, 400, 1024, 2304, 4096], sizes, levels)
    low_n, _ = ax.get_xlim()
    ax.axvspan(low_n, 144, color="0.94", zorder=0)
    ax.set_xlim(low_n, None)
    ax.set_xlabel("n (the paper's range is shaded)")
    ax.set_ylabel("operations over those of PDASMD, L̄ = 1/η")
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.0, -0.13), ncols=2)
    ax.set_title("Stochastic Sinkhorn beside PDASMD: pairs, means, 95 % intervals", loc="left")
    return figure


def draw_examples(pairs: Sequence[tuple[int, np.ndarray]]) -> Figure:
    """Return examples of synthetic images, as the paper's figure of them."""
    figure: Figure = new_figure(2.3 * len(pairs), 2.7)
    for k, (side, image) in enumerate(pairs):
        ax = figure.add_subplot(1, len(pairs), k + 1)
        ax.imshow(image, cmap="Blues", interpolation="nearest")
        ax.set_title(f"{side} × {side}", fontsize=11)
        ax.set_axis_off()
    return figure
