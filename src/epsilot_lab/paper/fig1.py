"""Figure 1: operations against n and B, running time against B (Section 5 and Appendix G)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..document import (
    Block,
    Command,
    Heading,
    Paragraph,
    Picture,
    claim_table,
    environment_table,
)
from ..figures import Panel, draw_panels, write_figure
from ..judging import Statement, count, statement_table, table_of_tests
from ..report import Page, publish
from ..runner import in_processes, run_tasks
from ..store import Line, Store
from .fig1_claims import certificate_claims, directions, loop_claims, slope_table, statements
from .fig1_curves import batch_curves, batch_lines, certified_eps, seconds, size_curves
from .fig1_panels import (
    CONSTANTS,
    LETTERS,
    NAMES,
    ONE_CRITERION,
    OWN_RULES,
    PRINTED,
    SHARP,
    Scale,
    Series,
    certified_series,
    chosen_panels,
    kind_of,
    tasks_of,
)
from .fig1_reference import reference_table
from .fig1_words import (
    BATCHES,
    CERTIFICATE,
    CONSTANTS_EXPLAINED,
    DIRECTIONS,
    INTRODUCTION,
    REFERENCE,
    RULES,
    TIMES,
    accuracies,
)
from .image_tasks import KEY, source_name
from .measures import operations, soundness

if TYPE_CHECKING:
    from rich.console import Console


def run(
    out: Path,
    quick: bool,
    seeds: int | None,
    jobs: int,
    console: Console,
    data: Sequence[str] = ("synthetic", "mnist"),
    panel: Sequence[str] = (),
    scale: Scale | None = None,
) -> Page:
    """Solve what is missing, then draw and summarise."""
    scale = scale or Scale.of(quick)
    panels = chosen_panels(data, panel)
    tasks = list(tasks_of(scale, panels, seeds or scale.seeds))
    store = Store(out / "solves.jsonl", KEY)
    lines = run_tasks(tasks, store, console, in_processes(jobs))
    arguments = "".join(
        [" --quick" if quick else " --full"]
        + ([f" --data {','.join(Path(d).name for d in data)}"] if len(data) == 1 else [])
        + ([f" --panel {','.join(panel)}"] if panel else [])
        + ([f" --seeds {seeds}"] if seeds else [])
    )
    return write(out, lines, panels, f"epsilot reproduce fig1{arguments}")


def write(out: Path, lines: Sequence[Line], panels: dict[str, str], command: str) -> Page:
    """Write figures, summary and report from the lines alone."""
    pictures: list[Block] = []
    for data in dict.fromkeys(panels.values()):
        kinds = {kind_of(letter) for letter, own in panels.items() if own == data}
        pictures += _pictures(out, lines, data, kinds)
    found = statements(lines, panels)
    blocks: list[Block] = [
        Paragraph(INTRODUCTION),
        Command(command),
        Heading("Claims of the paper"),
        Paragraph(count(found)),
        statement_table(found),
        *_tests(lines, panels, found),
        Heading("Slopes of all methods"),
        slope_table(lines, panels, certified_eps(lines)),
        Heading("The same under our certificate"),
        Paragraph(CERTIFICATE + accuracies(lines)),
        *_certificates(lines, panels),
        Heading("Figures"),
        *pictures,
        Heading("Beside the numbers of the specifications"),
        Paragraph(REFERENCE),
        reference_table(lines),
        Heading("Environment"),
        environment_table(lines),
    ]
    title = "Figure 1 of the paper, reproduced"
    publish(out, title, blocks)
    return Page(title, tuple(blocks), tuple(found))


def _tests(
    lines: Sequence[Line], panels: dict[str, str], found: Sequence[Statement]
) -> Iterator[Block]:
    """Yield every test, and what it takes to read them."""
    yield Heading("Every test", 3)
    yield table_of_tests(found, "Under the stops of the papers.")
    yield Paragraph(CONSTANTS_EXPLAINED)
    yield Paragraph(RULES)
    if others := directions(lines, panels):
        yield Paragraph(DIRECTIONS)
        yield claim_table(others, "Of the methods that the paper compares in the figure only.")
    if grown := loop_claims(lines, panels):
        yield Paragraph(BATCHES)
        yield claim_table(grown, "Outer loops, which the paper does not plot.")
        yield Paragraph(TIMES)
    yield Paragraph(soundness(lines))


def _certificates(lines: Sequence[Line], panels: dict[str, str]) -> Iterator[Block]:
    for eps in certified_eps(lines):
        if claims := certificate_claims(lines, panels, eps):
            yield claim_table(claims, f"Under our certificate, ε = {eps:g}.")


# -- pictures ------------------------------------------------------------------------------------


def _pictures(out: Path, lines: Sequence[Line], data: str, kinds: set[str]) -> Iterator[Picture]:
    """Draw what was asked for of one data set: against n, against B, under the certificate."""
    group = "synthetic" if data == "synthetic" else "mnist"
    name = NAMES.get(data, source_name(data))
    eps = ", ".join(f"{e:g}" for e in sorted({x["eps"] for x in lines if x["stop"] == "paper"}))
    drawn = (
        ("n", size_panels(lines, data, kinds), f"operations against n, ε = {eps}"),
        ("B", batch_panels(lines, data, kinds), f"PDASMD-B against B, ε = {eps}"),
        ("certificate", certificate_panels(lines, data, kinds), "under our certificate"),
    )
    for suffix, rows, what in drawn:
        if rows:
            figure = draw_panels(rows, f"Figure 1: {name}, {what}", suffix == "n")
            file = write_figure(figure, out, f"fig1-{group}-{suffix}")
            yield Picture(
                file,
                f"{name[0].upper()}{name[1:]}, {what}. Medians over the pairs of marginals with "
                "their range; slopes with 95 % intervals; ε in units of the largest cost.",
            )


_TITLES = {"a": "PDASMD and deterministic methods", "b": "PDASMD and stochastic methods"}
_NUMBER = "n (pixels of an image)"
_COUNT = "arithmetic operations"


def size_panels(lines: Sequence[Line], data: str, kinds: set[str]) -> list[list[Panel]]:
    """Return the panels against n: under one criterion, and a under the methods' own rules."""
    rows = []
    for kind in sorted(kinds & {"a", "b"}):
        title = f"({_letter(data, kind)}) {_TITLES[kind]}"
        row = [_against_n(lines, f"{title}: one criterion", ONE_CRITERION[kind], data)]
        if kind == "a":
            row.append(_against_n(lines, f"{title}: own rules", OWN_RULES, data))
        rows.append(row)
    return rows


def _against_n(lines: Sequence[Line], title: str, shown: Sequence[Series], data: str) -> Panel:
    curves = size_curves(lines, shown, data, "paper")
    return Panel(title, _NUMBER, _COUNT, curves, 2.0, tuple(series.style for series in shown))


def _letter(data: str, kind: str) -> str:
    return LETTERS["synthetic" if data == "synthetic" else "mnist"]["abcd".index(kind)]


def batch_panels(lines: Sequence[Line], data: str, kinds: set[str]) -> list[list[Panel]]:
    """Return the panels against B: operations for both constants, times for both codes."""
    rows = []
    if "c" in kinds:
        rows.append(
            [
                Panel(
                    f"({_letter(data, 'c')}) operations, {constant}",
                    "batch size B",
                    _COUNT,
                    batch_curves(batch_lines(lines, data, "paper", options), operations),
                    0.5,
                )
                for constant, options in CONSTANTS.items()
            ]
        )
    if "d" in kinds:
        letter = _letter(data, "d")
        rows.append(
            [
                _times(
                    f"({letter}) {what}, L̄ = 1/η", batch_lines(lines, data, "paper", SHARP, code)
                )
                for what, code in (("compiled kernel", False), ("vectorised NumPy", True))
            ]
        )
    return rows


def _times(title: str, own: Sequence[Line]) -> Panel:
    curves = batch_curves(own, seconds)
    return Panel(title, "batch size B", "running time (seconds)", curves)


def certificate_panels(lines: Sequence[Line], data: str, kinds: set[str]) -> list[list[Panel]]:
    """Return the panels under the certificate: against n for each ε, and against B."""
    rows = []
    proved = f"{_COUNT}, certificates included"
    for kind in sorted(kinds & {"a", "b"}):
        shown = certified_series(kind)
        title = f"({_letter(data, kind)}) {_TITLES[kind]}"
        rows.append(
            [
                Panel(
                    f"{title}: ε = {eps:g}",
                    _NUMBER,
                    proved,
                    size_curves(lines, shown, data, "certificate", eps),
                    2.0,
                    tuple(series.style for series in shown),
                )
                for eps in certified_eps(lines)
            ]
        )
    own = batch_lines(lines, data, "certificate", PRINTED)
    if kinds & {"c", "d"}:
        title = f"({_letter(data, 'c')}) PDASMD-B"
        work = batch_curves(own, operations)
        rows.append([Panel(f"{title}, operations", "batch size B", proved, work, 0.5)])
        rows[-1].append(_times(f"({_letter(data, 'd')}) PDASMD-B, compiled", own))
    return [row for row in rows if row]
