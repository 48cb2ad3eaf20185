"""Figure 1: operations against n and B, running time against B (Section 5 and Appendix G)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..lab.document import (
    Block,
    Command,
    Heading,
    Paragraph,
    Picture,
    claim_table,
    environment_table,
    tally,
)
from ..lab.figures import Panel, draw_panels, write_figure
from ..lab.report import publish
from ..lab.runner import in_processes, run_tasks
from ..lab.store import Line, Store
from .fig1_claims import claims, reference_table
from .fig1_panels import (
    LETTERS,
    NAMES,
    Scale,
    batch_curves,
    chosen_panels,
    series_of,
    size_curves,
    tasks_of,
)
from .image_tasks import KEY, source_name
from .measures import STOPS, operations, soundness

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
) -> None:
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
    write(out, lines, panels, f"epsilot reproduce fig1{arguments}")


def write(out: Path, lines: Sequence[Line], panels: dict[str, str], command: str) -> None:
    """Write figures, summary and report from the lines alone."""
    pictures: list[Block] = []
    for data in dict.fromkeys(panels.values()):
        letters = [letter for letter, own in panels.items() if own == data]
        pictures += _pictures(out, lines, data, letters)
    found = {stop: claims(lines, panels, stop) for stop in STOPS}
    blocks: list[Block] = [
        Paragraph(_INTRODUCTION),
        Command(command),
        Heading("Claims of the paper"),
        Paragraph(tally(found["paper"])),
        claim_table(found["paper"], "Under the paper's stop, as in the paper."),
        Paragraph(_BATCHES),
        Paragraph(soundness(lines)),
        Heading("The same under our certificate"),
        Paragraph(_CERTIFICATE),
        claim_table(found["certificate"], "Under our certificate."),
        Heading("Figures"),
        *pictures,
        Heading("Beside the numbers of the specifications"),
        Paragraph(_REFERENCE),
        reference_table(lines),
        Heading("Environment"),
        environment_table(lines),
    ]
    publish(out, "Figure 1 of the paper, reproduced", blocks)


def _pictures(
    out: Path, lines: Sequence[Line], data: str, letters: Sequence[str]
) -> Iterator[Picture]:
    """Draw what was asked for of one data set: against n, and against B."""
    group = "synthetic" if data == "synthetic" else "mnist"
    name = NAMES.get(data, source_name(data))
    eps = ", ".join(f"{eps:g}" for eps in sorted({line["eps"] for line in lines}))
    for axis, kinds in (("n", "ab"), ("B", "cd")):
        wanted = [(LETTERS[group]["abcd".index(kind)], kind) for kind in kinds]
        rows = [
            [_panel(lines, letter, kind, data, stop) for stop in STOPS]
            for letter, kind in wanted
            if letter in letters
        ]
        if rows:
            shown = ", ".join(letter for letter, _ in wanted if letter in letters)
            figure = draw_panels(rows, f"Figure 1 ({shown}): {name}, ε = {eps}", axis == "n")
            file = write_figure(figure, out, f"fig1-{group}-{axis}")
            yield Picture(
                file,
                f"Panels {shown}: {name}, ε = {eps} of the largest cost. Medians over the pairs of "
                "marginals with their range; slopes with 95 % intervals. Left: the paper's stop; "
                "right: the certificate.",
            )


_TITLES = {
    "a": "PDASMD and deterministic methods",
    "b": "PDASMD and stochastic methods",
    "c": "PDASMD-B, operations",
    "d": "PDASMD-B, running time",
}


def _panel(lines: Sequence[Line], letter: str, kind: str, data: str, stop: str) -> Panel:
    title = f"({letter}) {_TITLES[kind]}: {STOPS[stop]}"
    count = "arithmetic operations" + (", certificates included" if stop == "certificate" else "")
    if kind in "ab":
        curves = size_curves(lines, kind, data, stop)
        styles = tuple(series.style for series in series_of(kind, stop))
        return Panel(title, "n (pixels of an image)", count, curves, 2.0, styles)
    if kind == "c":
        return Panel(title, "batch size B", count, batch_curves(lines, data, stop, operations), 0.5)
    curves = batch_curves(lines, data, stop, lambda line: line["seconds"])
    return Panel(title, "batch size B", "running time (seconds)", curves)


_INTRODUCTION = (
    "Optimal transport between pairs of images under the l1 distance of pixels over its maximum: "
    "operations until an ε-solution is found, against the number n of pixels and the batch size "
    "B. Everything is measured twice: under the stop of each method's paper, which waits for a "
    "small marginal violation, and under the certificate, which stops as soon as the plan is "
    "proved to be within ε of the optimum. This page was made from `solves.jsonl`, one line a "
    "solve, by"
)
_BATCHES = (
    "The work of an outer loop falls with B: per inner step a part of it is paid once for the "
    "whole batch, so that a loop of n/B steps costs between 41 n² operations (B = 1) and 27 n² "
    "(B large). Operations therefore grow more slowly with B than outer loops do."
)
_CERTIFICATE = (
    "The paper makes no claim for this stop. The same statements are tested, since this is what "
    "a user of the library pays: a method chooses its η, starts warm, takes the constants that "
    "are proved to be sharp, and stops as soon as the gap is proved to be within ε. The "
    "operations of the proofs are included."
)
_REFERENCE = (
    "Medians of operations on the synthetic images under the paper's stop beside those of "
    "verified prototypes (3 or 5 pairs of images, ε = 0.05)."
)
