"""What a run found: Markdown, a web page, a table for other programs and a figure."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from epsilot.display.text import clock

from ..document import (
    Block,
    Command,
    Heading,
    Paragraph,
    Picture,
    Table,
    claim_table,
    environment_table,
    tally,
    write_text,
)
from ..environment import machine, versions
from ..instances import FAMILIES
from ..report import publish
from ..store import Line
from .analysis import FEASIBLE, Cell, Cells
from .entrants import ENTRANTS, OURS
from .figure import write_times
from .selection import PATIENCE, Selection, entropic_aims
from .targets import accuracy_text, judged

HEADLINE_RTOL = 0.01
ENVIRONMENT = "environment.json"


def write_summary(out: Path, lines: Sequence[Line], selection: Selection, command: str) -> None:
    """Write everything from the lines alone."""
    cells = Cells(lines)
    shown = HEADLINE_RTOL if HEADLINE_RTOL in cells.rtols else cells.rtols[0]
    claims = judged(cells, lines)
    blocks: list[Block] = [
        Paragraph(_method(selection)),
        Command(command),
        Heading("Targets"),
        claim_table(claims, "Ratios of times to `ot.emd2`, medians over the problems of a kind."),
        Paragraph(tally(claims)),
        Heading("Time against n"),
        Picture(
            write_times(cells, shown, out),
            f"Seconds to a verified {accuracy_text(shown)} against n. Solvers that failed or "
            "exceeded their time have no point.",
        ),
        Heading("From which n on we are faster than ot.emd2"),
        _crossovers(cells),
        Heading("Where we lose"),
        *_losses(cells),
        *(block for rtol in cells.rtols for block in _times(cells, rtol)),
        Heading(f"Peak memory to {accuracy_text(shown)}"),
        Paragraph("MiB beyond what the process held before the solve, its cost matrix among it."),
        _memory(cells, shown),
        Heading("Feasibility before rounding"),
        _feasibility(cells),
        Heading("Environment"),
        environment_table([_environment(out)]),
    ]
    _write_csv(out / "times.csv", cells.all)
    publish(out, "epsilot beside its peers", blocks)


def write_environment(out: Path) -> None:
    """Note what this run is made with, peers included."""
    peers = {entrant.distribution: entrant.version for entrant in ENTRANTS.values()}
    found = {"versions": {**versions(), **peers}, "machine": machine()}
    write_text(out / ENVIRONMENT, json.dumps(found, indent=2) + "\n")


def _environment(out: Path) -> Line:
    found: Line = json.loads((out / ENVIRONMENT).read_text(encoding="utf-8"))
    return found


def _method(selection: Selection) -> str:
    tuning = selection.tuning
    aims = ", ".join(map(accuracy_text, entropic_aims(selection.rtols)))
    return (
        "Everybody gets the same dense float64 matrix. Each solver runs in a process of its own, "
        "imported, warmed up and compiled beforehand, alone on the machine, with all its threads; "
        "solvers take turns, and medians count. Every answer is audited by `epsilot.certify`: the "
        "plan is rounded onto its marginals if need be (in the peers' favour), and its cost must "
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


def _times(cells: Cells, rtol: float) -> list[Block]:
    peers = [name for name in cells.solvers if name != OURS]
    rows = []
    for family, size, n in _ordered(cells):
        ours = cells.cell(family, size, rtol, OURS)
        others = [cells.cell(family, size, rtol, name) for name in peers]
        own = ours.failure or clock_text(ours.seconds)
        rows.append((FAMILIES[family].label, str(n), own, *map(_ratio, others)))
    columns = ("problem", "n", "epsilot", *(ENTRANTS[name].label for name in peers))
    return [
        Heading(f"Time to {accuracy_text(rtol)}"),
        Table(columns, tuple(rows), "Our time, and the times of others as multiples of it."),
    ]


def _ordered(cells: Cells) -> list[tuple[str, int, int]]:
    return sorted(cells.places, key=lambda place: (cells.families.index(place[0]), place[1]))


def _ratio(cell: Cell) -> str:
    return cell.failure or f"{cell.ratio:.3g}x"


def clock_text(seconds: float) -> str:
    """Return a duration, with a digit more where milliseconds are few."""
    return f"{1000 * seconds:.1f} ms" if seconds < 0.02 else clock(seconds)


def _memory(cells: Cells, rtol: float) -> Table:
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
    labels = (ENTRANTS[name].label for name in cells.solvers)
    return Table(("problem", "n", *labels), tuple(rows))


def _crossovers(cells: Cells) -> Table:
    rows = []
    for family in cells.families:
        least = min(n for name, _, n in cells.places if name == family)
        found = [cells.crossover(family, rtol) for rtol in cells.rtols]
        texts = ["not yet" if n is None else "every n" if n <= least else f"{n:.0f}" for n in found]
        rows.append((FAMILIES[family].label, *texts))
    return Table(("problem", *map(accuracy_text, cells.rtols)), tuple(rows))


def _losses(cells: Cells) -> list[Block]:
    lost = [
        cell
        for cell in cells.all
        if cell.ratio < 1 and not cell.solver.startswith(OURS) and not cell.failure
    ]
    if not lost:
        return [Paragraph("Nowhere in this run.")]
    rows = tuple(
        (
            FAMILIES[cell.family].label,
            str(cell.n),
            accuracy_text(cell.rtol),
            ENTRANTS[cell.solver].label,
            clock_text(cell.seconds),
            f"{1 / cell.ratio:.2f}x",
        )
        for cell in sorted(lost, key=lambda cell: cell.ratio)
    )
    columns = ("problem", "n", "accuracy", "solver", "its time", "ours is longer by")
    return [Table(columns, rows)]


def _feasibility(cells: Cells) -> Table:
    rows = []
    for name in cells.solvers:
        found = [cell for cell in cells.all if cell.solver == name and not cell.failure]
        feasible = sum(cell.is_feasible for cell in found)
        rows.append((ENTRANTS[name].label, f"{feasible} of {len(found)}"))
    caption = (
        "Rows of the tables above in which the raw plan had the right marginals to "
        f"{FEASIBLE:.0e} (l1); all others were mended by rounding before they were judged."
    )
    absent = [e for e in ENTRANTS.values() if not e.is_installed and e.name not in cells.solvers]
    rows += [(entrant.label, "not installed") for entrant in absent]
    return Table(("solver", "feasible"), tuple(rows), caption)


def _write_csv(path: Path, cells: Sequence[Cell]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(Cell.__dataclass_fields__), lineterminator="\n")
    writer.writeheader()
    for cell in cells:
        row = asdict(cell)
        writer.writerow({k: "" if v != v else v for k, v in row.items()})
    write_text(path, text.getvalue())
