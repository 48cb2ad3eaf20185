"""Write the benchmark's report, table and figure."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from epsilot.display.text import clock

from .. import document
from ..environment import machine, versions
from ..figures import Panel, draw_panels, write_figure
from ..fitting import NO_FIT, Curve
from ..instances import FAMILIES
from ..report import publish
from ..store import Line
from .analysis import FEASIBLE, Cell, Cells, accuracy_text, soundness
from .selection import PATIENCE, Selection, entropic_aims
from .solvers import OURS, SOLVERS

# -- summary -----------------------------------------------------------------------------------

HEADLINE_RTOL = 0.01
ENVIRONMENT = "environment.json"


def write_summary(out: Path, lines: Sequence[Line], selection: Selection, command: str) -> None:
    """Write everything from the lines alone."""
    cells = Cells(lines)
    shown = HEADLINE_RTOL if HEADLINE_RTOL in cells.rtols else cells.rtols[0]
    blocks: list[document.Block] = [
        document.Paragraph(_method(selection)),
        document.Command(command),
        document.Paragraph(soundness(lines)),
        document.Heading("Time against n"),
        document.Picture(
            write_times(cells, shown, out),
            f"Seconds to a verified {accuracy_text(shown)} against n. Solvers that failed or "
            "exceeded their time have no point.",
        ),
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
        "imported, warmed up and compiled beforehand; solvers take turns. Seconds are of the "
        "processor, all threads of a solver together, and medians count. Every answer is audited "
        "by `epsilot.certify`: the plan is rounded to feasibility before it is priced; its cost "
        "must be within rtol of the optimum that `ot.emd2` found. Our own results must in addition "
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
    shown = [name for name in cells.solvers if not name.startswith(f"{OURS}-")]
    panels = []
    for family in cells.families:
        curves = [_curve(cells, family, name, rtol) for name in shown]
        known = [k for k, found in enumerate(curves) if found.x]
        panels.append(
            Panel(
                FAMILIES[family].label,
                "n",
                "processor seconds",
                tuple(curves[k] for k in known),
                styles=tuple(known),
            )
        )
    rows = [panels[k : k + COLUMNS] for k in range(0, len(panels), COLUMNS)]
    figure = draw_panels(rows, f"Seconds to a verified {accuracy_text(rtol)}, dense costs")
    return write_figure(figure, folder, "times")


def _curve(cells: Cells, family: str, solver: str, rtol: float) -> Curve:
    """Return the times of a solver where it has some."""
    found = [cells.cell(family, size, rtol, solver) for size in cells.sizes(family)]
    known = [cell for cell in found if not cell.failure]
    seconds = tuple(cell.seconds for cell in known)
    places = tuple(float(cell.n) for cell in known)
    return Curve(SOLVERS[solver].label, places, seconds, seconds, seconds, NO_FIT, len(known))
