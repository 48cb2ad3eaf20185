"""Write the benchmark's report, table and figure."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from epsilot.display.plotting import COLOURS, MARKERS, new_figure
from epsilot.display.text import clock

from .. import document
from ..environment import machine, versions
from ..figures import log_axes, write_figure
from ..instances import FAMILIES
from ..report import publish
from ..store import Line
from .analysis import FEASIBLE, Cell, Cells, accuracy_text, judged
from .selection import PATIENCE, Selection, entropic_aims
from .solvers import OURS, REFERENCE, SOLVERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


# -- summary -----------------------------------------------------------------------------------

HEADLINE_RTOL = 0.01
ENVIRONMENT = "environment.json"


def write_summary(out: Path, lines: Sequence[Line], selection: Selection, command: str) -> None:
    """Write everything from the lines alone."""
    cells = Cells(lines)
    shown = HEADLINE_RTOL if HEADLINE_RTOL in cells.rtols else cells.rtols[0]
    claims = judged(cells, lines)
    blocks: list[document.Block] = [
        document.Paragraph(_method(selection)),
        document.Command(command),
        document.Heading("Targets"),
        document.claim_table(
            claims, "Ratios of times to `ot.emd2`, medians over the problems of a kind."
        ),
        document.Paragraph(document.tally(claims)),
        document.Heading("Time against n"),
        document.Picture(
            write_times(cells, shown, out),
            f"Seconds to a verified {accuracy_text(shown)} against n. Solvers that failed or "
            "exceeded their time have no point.",
        ),
        document.Heading("From which n on we are faster than ot.emd2"),
        _crossovers(cells),
        document.Heading("Where we lose"),
        *_losses(cells),
        *(block for rtol in cells.rtols for block in _times(cells, rtol)),
        document.Heading(f"Peak memory to {accuracy_text(shown)}"),
        document.Paragraph(
            "MiB beyond what the process held before the solve, its cost matrix among it."
        ),
        _memory(cells, shown),
        document.Heading("Feasibility before rounding"),
        _feasibility(cells),
        document.Heading("Environment"),
        document.environment_table([_environment(out)]),
    ]
    _write_csv(out / "times.csv", cells.all)
    publish(out, "epsilot beside its peers", blocks)


def write_environment(out: Path) -> None:
    """Note what this run is made with, peers included."""
    peers = {solver.distribution: solver.version for solver in SOLVERS.values()}
    found = {"versions": {**versions(), **peers}, "machine": machine()}
    document.write_text(out / ENVIRONMENT, json.dumps(found, indent=2) + "\n")


def _environment(out: Path) -> Line:
    found: Line = json.loads((out / ENVIRONMENT).read_text(encoding="utf-8"))
    return found


def _method(selection: Selection) -> str:
    tuning = selection.tuning
    aims = ", ".join(map(accuracy_text, entropic_aims(selection.rtols)))
    return (
        "All solvers get the same dense float64 matrix. Each runs in its own process, "
        "imported, warmed up and compiled beforehand, alone on the machine, with all its threads; "
        "solvers take turns, and medians count. Every answer is audited by `epsilot.certify`: the "
        "plan is rounded to feasibility before it is priced, and its cost must "
        "be within rtol of the optimum that `ot.emd2` found. Our own results must in addition "
        "prove it by their certificate.\n\n"
        "Entropic solvers have no such target. They are tuned in hindsight, problem by problem, "
        f"for {aims}: η = {', '.join(f'{reg:g}' for reg in tuning.regs)} times the optimal cost, "
        f"marginal tolerance {', '.join(f'{tol:g}' for tol in tuning.tols)} times what costs as "
        "much as η (GeomLoss: iterations instead). The fastest run that proves accurate counts; "
        "the time spent on the others does not, although a user, who does not know the optimum, "
        "would have to spend it. Forming a plan from potentials is not timed either. A peer may "
        f"take {PATIENCE:g} times as long as we do, at least {selection.least_limit:g} s and at "
        f"most {selection.time_limit:g} s; a setting that fails is not tried on larger problems."
    )


def _times(cells: Cells, rtol: float) -> list[document.Block]:
    peers = [name for name in cells.solvers if name != OURS]
    rows = []
    for family, size, n in _ordered(cells):
        ours = cells.cell(family, size, rtol, OURS)
        others = [cells.cell(family, size, rtol, name) for name in peers]
        own = ours.failure or clock_text(ours.seconds)
        rows.append((FAMILIES[family].label, str(n), own, *map(_ratio, others)))
    columns = ("problem", "n", "epsilot", *(SOLVERS[name].label for name in peers))
    return [
        document.Heading(f"Time to {accuracy_text(rtol)}"),
        document.Table(
            columns, tuple(rows), "Our time, and the times of others as multiples of it."
        ),
    ]


def _ordered(cells: Cells) -> list[tuple[str, int, int]]:
    return sorted(cells.places, key=lambda place: (cells.families.index(place[0]), place[1]))


def _ratio(cell: Cell) -> str:
    return cell.failure or f"{cell.ratio:.3g}x"


def clock_text(seconds: float) -> str:
    """Return a duration, with a digit more where milliseconds are few."""
    return f"{1000 * seconds:.1f} ms" if seconds < 0.02 else clock(seconds)


def _memory(cells: Cells, rtol: float) -> document.Table:
    rows = [
        (
            FAMILIES[family].label,
            str(n),
            *(
                "–" if cell.failure or cell.peak_mib != cell.peak_mib else f"{cell.peak_mib:.0f}"
                for name in cells.solvers
                for cell in [cells.cell(family, size, rtol, name)]
            ),
        )
        for family, size, n in _ordered(cells)
    ]
    labels = (SOLVERS[name].label for name in cells.solvers)
    return document.Table(("problem", "n", *labels), tuple(rows))


def _crossovers(cells: Cells) -> document.Table:
    rows = []
    for family in cells.families:
        least = min(n for name, _, n in cells.places if name == family)
        found = [cells.crossover(family, rtol) for rtol in cells.rtols]
        texts = ["not yet" if n is None else "every n" if n <= least else f"{n:.0f}" for n in found]
        rows.append((FAMILIES[family].label, *texts))
    return document.Table(("problem", *map(accuracy_text, cells.rtols)), tuple(rows))


def _losses(cells: Cells) -> list[document.Block]:
    lost = [
        cell
        for cell in cells.all
        if cell.ratio < 1 and not cell.solver.startswith(OURS) and not cell.failure
    ]
    if not lost:
        return [document.Paragraph("Nowhere in this run.")]
    rows = tuple(
        (
            FAMILIES[cell.family].label,
            str(cell.n),
            accuracy_text(cell.rtol),
            SOLVERS[cell.solver].label,
            clock_text(cell.seconds),
            f"{1 / cell.ratio:.2f}x",
        )
        for cell in sorted(lost, key=lambda cell: cell.ratio)
    )
    columns = ("problem", "n", "accuracy", "solver", "its time", "ours is longer by")
    return [document.Table(columns, rows)]


def _feasibility(cells: Cells) -> document.Table:
    rows = []
    for name in cells.solvers:
        found = [cell for cell in cells.all if cell.solver == name and not cell.failure]
        feasible = sum(cell.is_feasible for cell in found)
        rows.append((SOLVERS[name].label, f"{feasible} of {len(found)}"))
    caption = (
        "Rows of the tables above in which the raw plan had the right marginals to "
        f"{FEASIBLE:.0e} (l1); all others were rounded to feasibility before they were priced."
    )
    absent = [e for e in SOLVERS.values() if not e.is_installed and e.name not in cells.solvers]
    rows += [(solver.label, "not installed") for solver in absent]
    return document.Table(("solver", "feasible"), tuple(rows), caption)


def _write_csv(path: Path, cells: Sequence[Cell]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(Cell.__dataclass_fields__), lineterminator="\n")
    writer.writeheader()
    for cell in cells:
        row = asdict(cell)
        writer.writerow({k: "" if v != v else v for k, v in row.items()})
    document.write_text(path, text.getvalue())


# -- figure ------------------------------------------------------------------------------------

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
    order = [name for name in SOLVERS if name in handles]
    figure.legend(
        [handles[name] for name in order],
        [SOLVERS[name].label for name in order],
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
        style = SOLVERS[name].style
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
