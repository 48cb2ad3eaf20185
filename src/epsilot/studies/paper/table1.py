"""Table 1, measured: how the operations of every method grow with n and with 1/ε."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ... import methods
from ...errors import InvalidProblem
from ...solvers import Method, solver_class
from ...solvers.about import About
from ..lab.document import (
    Block,
    Claim,
    Command,
    Heading,
    Paragraph,
    Picture,
    Table,
    claim_table,
    environment_table,
    judge,
    tally,
    to_markdown,
    write_text,
)
from ..lab.figures import write_figure
from ..lab.fitting import Curve, curve, select
from ..lab.report import publish
from ..lab.runner import in_processes, run_tasks
from ..lab.store import Line, Store
from .exponents import draw_exponents
from .image_tasks import KEY, source_name
from .measures import STOPS, operations, soundness
from .table1_tasks import AXES, Scale, tasks_of

if TYPE_CHECKING:
    from rich.console import Console


#: A measured exponent agrees with a published one, an upper bound, if it is at most this above.
SLACK = 0.15


def published() -> dict[str, About]:
    """Return the methods of the paper's Table 1, with what is proved of them."""
    records = {method.name: solver_class(method.name).about for method in methods()}
    return {name: about for name, about in records.items() if about.is_in_table1}


def any_cost() -> list[Method]:
    """Return the methods that take any cost: no others solve the paper's matrices."""
    return [method for method in methods() if method.costs == "any"]


def run(
    out: Path,
    quick: bool,
    seeds: int | None,
    jobs: int,
    console: Console,
    data: Sequence[str] = ("synthetic",),
    panel: Sequence[str] = AXES,
    scale: Scale | None = None,
) -> None:
    """Solve what is missing, then fit, tabulate and draw."""
    scale = scale or Scale.of(quick)
    if unknown := [axis for axis in panel if axis not in AXES]:
        raise InvalidProblem(f"panel is {unknown[0]!r}; it must be n or eps.")
    tasks = [
        task
        for each in data
        for method in any_cost()
        for stop in STOPS
        for task in tasks_of(scale, each, method.name, stop, panel, seeds or scale.seeds)
    ]
    store = Store(out / "solves.jsonl", KEY)
    lines = run_tasks(tasks, store, console, in_processes(jobs))
    arguments = "".join(
        [" --quick" if quick else " --full"]
        + ([f" --data {','.join(Path(d).name for d in data)}"] if data != ("synthetic",) else [])
        + ([f" --panel {','.join(panel)}"] if panel != AXES else [])
        + ([f" --seeds {seeds}"] if seeds else [])
    )
    write(out, lines, data, f"epsilot reproduce table1{arguments}")


# -- what was found --------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A method under a stop: its two curves, and the constants they belong to.

    Where operations are not counted (a simplex in foreign code), the curves are of seconds.
    """

    data: str
    method: str
    stop: str
    n: Curve
    eps: Curve
    base_eps: float
    base_n: float
    is_counted: bool


def rows_of(lines: Sequence[Line], data: Sequence[str]) -> list[Row]:
    """Return the rows of the table, methods in the registry's order."""
    rows = []
    for each in data:
        for method in any_cost():
            for stop in STOPS:
                own = select(lines, data=source_name(each), method=method.name, stop=stop)
                if own:
                    rows.append(_row(source_name(each), method.name, stop, own))
    return rows


def _row(data: str, method: str, stop: str, own: list[Line]) -> Row:
    base_eps = _most_varied(own, "eps", "n")
    base_n = _most_varied(own, "n", "eps")
    is_counted = any(line["operations"] is not None for line in own)
    measure = operations if is_counted else _seconds
    sizes = curve(method, select(own, eps=base_eps), lambda line: line["n"], measure)
    accuracies = curve(method, select(own, n=base_n), lambda line: 1 / line["eps"], measure)
    return Row(
        data=data,
        method=method,
        stop=stop,
        n=sizes,
        eps=accuracies,
        base_eps=base_eps,
        base_n=base_n,
        is_counted=is_counted,
    )


def _seconds(line: Line) -> float:
    return float(line["seconds"])


def _most_varied(own: list[Line], fixed: str, varied: str) -> float:
    """Return the value of one field at which the other takes the most values."""
    values = sorted({line[fixed] for line in own})
    return float(max(values, key=lambda v: len({x[varied] for x in own if x[fixed] == v})))


def _typical(row: Row) -> str:
    """Return median and range at the largest n."""
    sizes = row.n
    if not sizes.x:
        return "–"
    unit = "" if row.is_counted else " s"
    return (
        f"{sizes.median[-1]:.2g}{unit} ({sizes.low[-1]:.2g}–{sizes.high[-1]:.2g}) "
        f"at n = {sizes.x[-1]:g}"
    )


COLUMNS = (
    "method", "stop", "published", "exponent of n", "at ε", "n", "exponent of 1/ε", "at n", "ε",
    "operations: median (range)", "solves ended",
)  # fmt: skip


def table(rows: Sequence[Row], lines: Sequence[Line]) -> Table:
    """Return the measured table."""
    complexity = {method.name: f"({method.complexity})" for method in methods()}
    complexity |= {name: about.printed for name, about in published().items()}
    several = len({row.data for row in rows}) > 1
    cells = []
    for row in rows:
        own = select(lines, data=row.data, method=row.method, stop=row.stop)
        ended = sum(line["has_ended"] for line in own)
        unit = "" if row.is_counted else " (time)"
        cells.append(
            (
                f"{row.method} ({row.data})" if several else row.method,
                row.stop,
                complexity[row.method],
                f"{row.n.fit}{unit}",
                f"{row.base_eps:g}",
                _span(row.n.x),
                f"{row.eps.fit}{unit}",
                f"{row.base_n:g}",
                _span(sorted(1 / x for x in row.eps.x)),
                _typical(row),
                f"{ended} of {len(own)}",
            )
        )
    return Table(COLUMNS, tuple(cells))


def _span(values: Sequence[float]) -> str:
    if not values:
        return "–"
    return f"{values[0]:.3g}" if len(values) == 1 else f"{values[0]:.3g}–{values[-1]:.3g}"


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Return whether the measured exponents stay within the published bounds."""
    found, known = [], published()
    for row in rows:
        if row.method not in known:
            continue
        bound = known[row.method].orders[0]
        for name, measured, limit in (("n", row.n, bound.n), ("1/ε", row.eps, bound.eps)):
            found.append(
                Claim(
                    f"{row.method}: at most ({name})^{limit:.3g}",
                    f"({STOPS[row.stop]})",
                    str(measured.fit),
                    judge(measured.fit, limit, SLACK),
                )
            )
    return found


def write(out: Path, lines: Sequence[Line], data: Sequence[str], command: str) -> None:
    """Write the table in three forms, the figure, summary and report from the lines alone."""
    rows = rows_of(lines, data)
    found = claims(rows)
    measured = table(rows, lines)
    write_text(out / "table1.md", to_markdown("Table 1, measured", [measured]))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([measured.columns, *measured.rows])
    write_text(out / "table1.csv", text.getvalue())
    file = write_figure(draw_exponents(rows, published()), out, "table1")
    blocks: list[Block] = [
        Paragraph(_INTRODUCTION),
        Command(command),
        Heading("Table"),
        measured,
        Paragraph(_READING),
        Heading("Figure"),
        Picture(file, "Exponents of n and of 1/ε with 95 % intervals, beside the published ones."),
        Heading("Claims of the paper"),
        Paragraph(_first_order(rows)),
        Paragraph(_BOUNDS),
        Paragraph(tally(found)),
        claim_table(found, "Published bounds beside fitted exponents."),
        Paragraph(soundness(lines)),
        Heading("Environment"),
        environment_table(lines),
    ]
    publish(out, "Table 1 of the paper, measured", blocks)


def _first_order(rows: Sequence[Row]) -> str:
    """Say how the methods published with n^2.5 behave."""
    names = {name for name, about in published().items() if about.orders[0].n == 2.5}
    slopes = {
        row.method: row.n.fit.slope
        for row in rows
        if row.stop == "paper" and row.method in names and not math.isnan(row.n.fit.slope)
    }
    if not slopes:
        return "No method published with n^2.5 was measured."
    named = ", ".join(f"{name} {slope:.2f}" for name, slope in slopes.items())
    return (
        "The paper sets PDASMD's n² against n^2.5 of the other accelerated methods, and remarks "
        "that some of them show n² in practice. Measured under the paper's stop: "
        f"{named}; {sum(np.array(list(slopes.values())) < 2.3)} of {len(slopes)} are nearer to 2 "
        "than their bound says."
    )


_INTRODUCTION = (
    "Operations of every method in the registry until an ε-solution of optimal transport between "
    "two images is found, fitted as n^a and as (1/ε)^b by least squares on logarithms. Each "
    "method takes the largest sizes that fit a budget of time, so ranges differ. Made from "
    "`solves.jsonl`, one line a solve, by"
)
_BOUNDS = (
    f"A bound holds if the fitted exponent is at most {SLACK} above it, and is undecided if only "
    "the interval reaches down to it. Published bounds leave out logarithms: at the sizes "
    "measured here a factor log n alone adds 1 / log n, which is 0.2 to 0.4, to the exponent of "
    "n. They are also proved for the papers' subroutines; where the specifications replace one "
    "(a dense factorisation in the box-constrained Newton method), the bound is not that of the "
    "code."
)
_READING = (
    "Published complexities are those of the paper's Table 1, logarithms left out; in brackets "
    "those of methods that it does not list. Under `paper` a method follows its published "
    "procedure; under `certificate` it stops at a proved gap, and the operations of the proofs "
    "are included. Intervals are at 95 %, over all pairs of marginals. Methods that solve by "
    "foreign code report no operations; their rows are of running time."
)
