"""Table 1, measured: how the operations of every method grow with n and with 1/ε."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from epsilot import methods
from epsilot.errors import InvalidProblem

from ..document import (
    Block,
    Command,
    Heading,
    Paragraph,
    Picture,
    Table,
    claim_table,
    environment_table,
    to_markdown,
    write_text,
)
from ..figures import write_figure
from ..fitting import select
from ..judging import count, statement_table, table_of_tests
from ..report import Page, publish
from ..runner import in_processes, run_tasks
from ..store import Line, Store
from .exponents import draw_exponents
from .image_tasks import KEY
from .measures import STOPS, soundness
from .table1_claims import SLACK, bounds, statements
from .table1_rows import Row, any_cost, published, rows_of
from .table1_tasks import AXES, Scale, tasks_of

if TYPE_CHECKING:
    from rich.console import Console


def run(
    out: Path,
    quick: bool,
    seeds: int | None,
    jobs: int,
    console: Console,
    data: Sequence[str] = ("synthetic",),
    panel: Sequence[str] = AXES,
    scale: Scale | None = None,
) -> Page:
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
    return write(out, lines, data, f"epsilot reproduce table1{arguments}")


def write(out: Path, lines: Sequence[Line], data: Sequence[str], command: str) -> Page:
    """Write the table in three forms, the figure, summary and report from the lines alone."""
    rows = rows_of(lines, data)
    found = statements(rows)
    measured = table(rows, lines)
    write_text(out / "table1.md", to_markdown("Table 1, measured", [measured]))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([measured.columns, *measured.rows])
    write_text(out / "table1.csv", text.getvalue())
    file = write_figure(draw_exponents(rows, published()), out, "table1")
    beside = [
        b
        for row in rows
        if row.stop == "certificate" and row.method in published()
        for b in bounds(row)
    ]
    blocks: list[Block] = [
        Paragraph(_INTRODUCTION),
        Command(command),
        Heading("Table"),
        measured,
        Paragraph(_READING),
        _what_was_run(rows),
        Heading("Figure"),
        Picture(file, "Exponents of n and of 1/ε with 95 % intervals, beside the published ones."),
        Heading("Claims of the paper"),
        Paragraph(_BOUNDS),
        Paragraph(count(found)),
        statement_table(found),
        table_of_tests(found, "Published bounds beside fitted exponents, under the papers' stops."),
        claim_table(beside, "The same under our certificate, of which nothing is published."),
        Paragraph(soundness(lines)),
        Heading("Environment"),
        environment_table(lines),
    ]
    title = "Table 1 of the paper, measured"
    publish(out, title, blocks)
    return Page(title, tuple(blocks), tuple(found))


COLUMNS = (
    "method", "stop", "published", "exponent of n", "without logarithms", "at ε", "n",
    "exponent of 1/ε", "at n", "ε", "operations: median (range)", "solves ended",
)  # fmt: skip


def table(rows: Sequence[Row], lines: Sequence[Line]) -> Table:
    """Return the measured table."""
    complexity = {method.name: f"({method.complexity})" for method in methods()}
    complexity |= {name: about.complexity for name, about in published().items()}
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
                f"{row.without_logs}{unit}",
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


def _what_was_run(rows: Sequence[Row]) -> Table:
    """Return what ends each method under its paper's stop, and what its paper does not print."""
    known = published()
    shown = dict.fromkeys(row.method for row in rows if row.method in known)
    return Table(
        ("method", "ends by", "departs from the paper in"),
        tuple((name, known[name].rule, known[name].departure or "–") for name in shown),
        "What was run under `paper`.",
    )


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


def _span(values: Sequence[float]) -> str:
    if not values:
        return "–"
    return f"{values[0]:.3g}" if len(values) == 1 else f"{values[0]:.3g}–{values[-1]:.3g}"


_INTRODUCTION = (
    "Operations of every method in the registry until an ε-solution of optimal transport between "
    "two images is found, fitted as n^a and as (1/ε)^b by least squares on logarithms. Each "
    "method takes the largest sizes that fit a budget of time, so ranges differ; ε is at most "
    "0.2, since the independent plan is within about 0.3 of the optimum, and nearly any plan "
    "solves easier problems. Made from `solves.jsonl`, one line a solve, by"
)
_BOUNDS = (
    "The paper's Table 1 leaves logarithms out; the papers' bounds have them. At these sizes a "
    "factor log n adds 1 / log n, which is 0.15 to 0.4, to the exponent of n. Operations are "
    "therefore also fitted after division by the power of log n that the bound has, and that "
    f"exponent is judged. A bound holds if the 95 % interval is at most {SLACK} above it, does "
    "not hold if all of the interval is, and is undecided else. The exponent of 1/ε is at one n, "
    "where log n is a constant. Bounds are proved for the papers' subroutines; where the "
    "specifications replace one (a dense factorisation in the box-constrained Newton method), "
    "the bound is not that of the code."
)
_READING = (
    "Published complexities are those behind the paper's Table 1, with their logarithms; in "
    "brackets those of methods that it does not list. Under `paper` a method follows its "
    "published procedure; under `certificate` it stops at a proved gap, and the operations of "
    "the proofs are included. Intervals are at 95 %, over all pairs of marginals. Methods that "
    "solve by foreign code report no operations; their rows are of running time."
)
