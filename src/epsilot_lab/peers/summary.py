"""Compare the benchmark's lines in pairs, and write its report, table and figure."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from epsilot.display.text import clock

from .. import document
from ..environment import machine, versions
from ..figures import Panel, draw_panels, write_figure
from ..fitting import NO_FIT, Curve, select
from ..instances import FAMILIES
from ..report import publish
from ..store import Line
from .selection import PATIENCE, Selection, entropic_aims, fastest_accurate, spent
from .solvers import OURS, SOLVERS

# -- cells -------------------------------------------------------------------------------------

#: A plan whose marginals are off by more, in l1 and relative to the mass, is not a plan.
FEASIBLE = 1e-6
#: Round-off allowed in a recomputed relative gap.
ROUND_OFF = 1e-10


@dataclass(frozen=True)
class Cell:
    """A solver on the problems of one family and size, to one accuracy.

    ``ratio`` is its time over ours, the median of the ratios problem by problem. ``failure``
    tells why there are no numbers.
    """

    family: str
    size: int
    n: int
    rtol: float
    solver: str
    n_problems: int = 0
    seconds: float = math.nan
    ratio: float = math.nan
    peak_mib: float = math.nan
    error: float = math.nan  # the largest
    is_feasible: bool = False  # before rounding
    settings: str = ""
    failure: str = ""


class Cells:
    """All cells of a run, and the solvers that took part."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines: dict[tuple[str, int, str], list[Line]] = {}
        for line in lines:
            place = line["family"], line["size"], line["solver"]
            self._lines.setdefault(place, []).append(line)
        self.places = list(
            dict.fromkeys((line["family"], line["size"], line["n"]) for line in lines)
        )
        self.rtols = sorted({line["rtol"] for line in lines if line["rtol"]}, reverse=True)
        known = {line["solver"] for line in lines}
        self.solvers = [name for name in SOLVERS if name in known]

    @property
    def families(self) -> list[str]:
        """The families, in the order of the problems."""
        return list(dict.fromkeys(family for family, _, _ in self.places))

    @cached_property
    def all(self) -> list[Cell]:
        """Every cell."""
        return [
            self.cell(family, size, rtol, solver)
            for family, size, _ in self.places
            for rtol in self.rtols
            for solver in self.solvers
        ]

    def sizes(self, family: str) -> list[int]:
        """Return the sizes of a family."""
        return sorted(size for name, size, _ in self.places if name == family)

    def cell(self, family: str, size: int, rtol: float, solver: str) -> Cell:
        """Return one cell."""
        n = next(n for f, s, n in self.places if (f, s) == (family, size))
        lines = self._lines.get((family, size, solver), [])
        seeds = sorted({line["seed"] for line in lines})
        chosen = {seed: _chosen(select(lines, seed=seed), rtol) for seed in seeds}
        runs = [run for run in chosen.values() if run]
        failure = self._failure(family, size, rtol, solver, len(runs), len(seeds))
        if failure:
            return Cell(family, size, n, rtol, solver, len(seeds), failure=failure)
        ours = self._lines.get((family, size, OURS), [])
        ratios = [
            _seconds(run) / _seconds(mine)
            for seed, run in chosen.items()
            if run and (mine := _chosen(select(ours, seed=seed), rtol))
        ]
        everything = [line for run in runs for line in run]
        peaks = [line["peak_mib"] for line in everything if line["peak_mib"] is not None]
        return Cell(
            family,
            size,
            n,
            rtol,
            solver,
            len(seeds),
            seconds=float(np.median([_seconds(run) for run in runs])),
            ratio=float(np.median(ratios)) if ratios else math.nan,
            peak_mib=float(np.median(peaks)) if peaks else math.nan,
            error=max(line["error"] for line in everything),
            is_feasible=all(line["marginal_error"] <= FEASIBLE for line in everything),
            settings="; ".join(dict.fromkeys(_setting(run[0]) for run in runs)),
        )

    def _failure(
        self, family: str, size: int, rtol: float, solver: str, n_good: int, n_seeds: int
    ) -> str:
        """Return why a solver has no time here, or nothing if it has one."""
        if n_seeds and n_good == n_seeds:
            return ""
        some = f" on {n_seeds - n_good} of {n_seeds}" if 0 < n_good < n_seeds else ""
        lines = _eligible(self._lines.get((family, size, solver), []), rtol)
        if late := [line for line in lines if line["status"] == "timeout"]:
            return f"timed out at {max(line['limit'] for line in late):.3g} s{some}"
        for smaller in reversed([s for s in self.sizes(family) if s < size]):
            before = _eligible(self._lines.get((family, smaller, solver), []), rtol)
            if any(line["status"] == "timeout" for line in before):
                return f"–, timed out at n = {before[0]['n']}"
            if any(line["status"] == "error" for line in before) and not lines:
                return f"–, failed at n = {before[0]['n']}"
        if done := [line["error"] for line in lines if line["status"] == "done"]:
            return f"inaccurate ({min(done):.1e}){some}"
        if broken := [line for line in lines if line["status"] == "error"]:
            return f"failed: {broken[0]['message']}"
        return "not run"


def _eligible(lines: Sequence[Line], rtol: float) -> list[Line]:
    """Return the lines that may serve an accuracy: a certified solver's own, or any."""
    return [line for line in lines if line["rtol"] in (None, rtol)]


def _chosen(lines: Sequence[Line], rtol: float) -> list[Line]:
    """Return the repetitions of the fastest accurate setting on one problem, if there is one.

    Of a certified solver the certificate counts as well: its own gap must be within rtol.
    """
    eligible = _eligible(lines, rtol)
    best = fastest_accurate([line for line in eligible if line["repeat"] == 0], rtol)
    if best is None or (best["rtol"] is not None and not is_certified(best)):
        return []
    same = select(eligible, reg=best["reg"], tol=best["tol"])
    return [line for line in same if line["status"] == "done"]


def is_certified(line: Line) -> bool:
    """Tell whether a run proved its target, and its value agrees."""
    allowed = line["rtol"] + ROUND_OFF
    return bool(line["status"] == "done" and max(line["gap"], line["error"]) <= allowed)


def _seconds(run: Sequence[Line]) -> float:
    return float(np.median([spent(line) for line in run]))


def _setting(line: Line) -> str:
    if line["reg"] is None:
        return ""
    return f"reg {line['reg']:g}, tol {line['tol']:g}"


def accuracy_text(rtol: float) -> str:
    """Return an accuracy as it is said.

    Examples
    --------
    >>> accuracy_text(0.001), accuracy_text(1e-6)
    ('0.1 %', '1e-6 (exact)')
    """
    return f"{100 * rtol:g} %" if rtol > 1e-5 else f"{rtol:.0e} (exact)".replace("e-0", "e-")


def soundness(lines: Sequence[Line]) -> str:
    """Return how many of our results prove their target and agree with the exact value."""
    ours = [line for line in lines if line["solver"] == OURS]
    ended = [line for line in ours if line["status"] == "done"]
    good = sum(map(is_certified, ended))
    worst = max((line["error"] / line["rtol"] for line in ended), default=0.0)
    return (
        f"{good} of {len(ours)} solves of ours are certified and within rtol of the exact value; "
        f"their largest error is {worst:.2g} rtol."
    )


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
