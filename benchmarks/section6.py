"""Two suggestions of the paper's Section 6: Sinkhorn with Katyusha momentum, and batches that pay.

    python benchmarks/section6.py docs/results/section6    # what is missing, then the page
    python benchmarks/section6.py OUT --toy                # seconds, to see that it runs

Operations, which no load of the machine changes, to a certified ε (a share of the largest cost),
and for batches also with the paper's stop; medians over seeds. Batches are those of PDASMD-B in the
Euclidean norm (``pdasgd``) with its constants, and with steps as long as the batch allows.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import epsilot
from epsilot_lab.document import (
    Block,
    Command,
    Heading,
    Paragraph,
    Picture,
    Table,
    environment_table,
    to_markdown,
    write_text,
)
from epsilot_lab.environment import machine, versions
from epsilot_lab.figures import Panel, draw_panels, write_figure
from epsilot_lab.fitting import Curve, curve, select
from epsilot_lab.instances import Instance, images, points, random
from epsilot_lab.measuring import timed
from epsilot_lab.store import Line, Store

FAMILIES: dict[str, Callable[[int, int], Instance]] = {
    "images": lambda n, seed: images(math.isqrt(n), seed),
    "points": points,
    "random": random,
}
#: What Katyusha Sinkhorn is compared with.
METHODS: dict[str, dict[str, Any]] = {
    "sinkhorn": {"method": "sinkhorn"},
    "stochastic_sinkhorn": {"method": "stochastic_sinkhorn"},
    "accelerated_sinkhorn": {"method": "accelerated_sinkhorn"},
    "pdasmd": {"method": "pdasmd"},
    "pdasmd, hybrid": {"method": "pdasmd", "hybrid": "sinkhorn"},
    "katyusha_sinkhorn": {"method": "katyusha_sinkhorn"},
}
BATCHINGS = {
    "paper": "PDASMD-B, as printed",
    "long": "long steps, independent rows",
    "strata": "long steps, a row a stratum",
}
KEY = ("part", "family", "n", "eps", "variant", "batch", "stop", "seed")
MOST = 20_000


class Scale(NamedTuple):
    """How much is run: sizes with accuracies, batches, and cases (n, ε, stop) of batches."""

    methods: tuple[tuple[int, float], ...]
    batches: tuple[int, ...]
    cases: tuple[tuple[int, float, str], ...]
    seeds: int


FULL = Scale(
    ((64, 0.01), (256, 0.01), (1024, 0.01), (64, 0.001), (256, 0.001)),
    (1, 2, 4, 8, 16, 32, 64),
    ((256, 0.01, "certificate"), (1024, 0.01, "certificate"), (64, 0.1, "paper")),
    3,
)
TOY = Scale(((16, 0.05),), (1, 4), ((16, 0.05, "certificate"), (16, 0.5, "paper")), 1)


class Task(NamedTuple):
    """One solve."""

    part: str
    family: str
    n: int
    eps: float
    variant: str
    batch: int
    stop: str
    seed: int

    @property
    def identity(self) -> Line:
        """What tells its line from all others."""
        return dict(zip(KEY, self, strict=True))

    @property
    def options(self) -> dict[str, Any]:
        """The method and its options."""
        if self.part == "methods":
            return METHODS[self.variant]
        return {"method": "pdasgd", "batching": self.variant, "batch_size": self.batch}


def tasks_of(scale: Scale) -> Iterator[Task]:
    """Yield all solves."""
    seeds = range(scale.seeds)
    for family in FAMILIES:
        for n, eps in scale.methods:
            for name in METHODS:
                for seed in seeds:
                    yield Task("methods", family, n, eps, name, 0, "certificate", seed)
        for n, eps, stop in scale.cases:
            for batching in BATCHINGS:
                for batch in scale.batches:
                    for seed in seeds:
                        yield Task("batches", family, n, eps, batching, batch, stop, seed)


def solve(task: Task) -> Line:
    """Return the line of a solve."""
    M, a, b = FAMILIES[task.family](task.n, task.seed)
    wish = {"eps": task.eps * M.max(), "stop": task.stop, "seed": task.seed, "n_threads": 1}
    limits = {"max_iter": MOST, "on_limit": "ignore"}
    clock, result = timed(lambda: epsilot.solve(M, a, b, **wish, **limits, **task.options))
    return {
        **task.identity, "has_ended": bool(result.n_iter < MOST), "loops": result.n_iter,
        "operations": result.work.operations, "gap": result.gap / wish["eps"],
        "processor": clock.processor, "versions": versions(), "machine": machine(),
    }  # fmt: skip


def run(store: Store, tasks: Sequence[Task]) -> list[Line]:
    """Solve what the store lacks, and return all lines."""
    for k, task in enumerate(tasks):
        if task not in store:
            store.append(solve(task))
            print(f"{k + 1} of {len(tasks)}: {task}", file=sys.stderr, flush=True)
    return store.lines(tasks)


def median(lines: Sequence[Line], field: str) -> float:
    return float(np.median([line[field] for line in lines]))


def cell(lines: Sequence[Line]) -> str:
    """Return loops / operations in n², with a star where a run did not end."""
    star = "" if all(line["has_ended"] for line in lines) else "*"
    operations = median(lines, "operations") / lines[0]["n"] ** 2
    return f"{median(lines, 'loops'):.0f} / {operations:.0f}{star}"


def methods_table(lines: Sequence[Line], scale: Scale) -> Table:
    """Return the comparison of methods."""
    rows = []
    for family in FAMILIES:
        for n, eps in scale.methods:
            own = select(lines, part="methods", family=family, n=n, eps=eps)
            cells = (cell(select(own, variant=name)) for name in METHODS)
            rows.append((family, f"{n}", f"{eps:g}", *cells))
    return Table(("problem", "n", "ε / max C", *METHODS), tuple(rows))


def batches_table(lines: Sequence[Line], scale: Scale, case: tuple[int, float, str]) -> Table:
    """Return loops and operations against B."""
    n, eps, stop = case
    rows = []
    for family in FAMILIES:
        for name, words in BATCHINGS.items():
            wanted = {"part": "batches", "family": family, "n": n, "eps": eps, "stop": stop}
            own = select(lines, variant=name, **wanted)
            cells = (cell(select(own, batch=batch)) for batch in scale.batches)
            rows.append((family, words, *cells))
    caption = f"n = {n}, ε = {eps:g} max C, `stop={stop!r}`"
    return Table(("problem", "batches", *(f"B = {b}" for b in scale.batches)), tuple(rows), caption)


def panels(lines: Sequence[Line], scale: Scale) -> list[Panel]:
    """Return what is drawn: images, loops and operations against B, operations against n."""

    def against_batch(case: tuple[int, float, str], field: str) -> tuple[Curve, ...]:
        n, eps, stop = case
        own = select(lines, part="batches", family="images", n=n, eps=eps, stop=stop)
        return tuple(
            curve(words, select(own, variant=name), lambda x: x["batch"], lambda x: x[field])
            for name, words in BATCHINGS.items()
        )

    smallest = scale.methods[0][1]
    own = select(lines, part="methods", family="images", eps=smallest)
    by_method = tuple(
        curve(name, select(own, variant=name), lambda x: x["n"], lambda x: x["operations"])
        for name in METHODS
    )
    certified = [case for case in scale.cases if case[2] == "certificate"][-1]
    paper = next(case for case in scale.cases if case[2] == "paper")
    return [
        Panel(f"Outer loops, n = {paper[0]}, paper's stop", "rows B of a batch", "outer loops",
              against_batch(paper, "loops"), 0.5),
        Panel(f"Operations to {certified[1]:g}, n = {certified[0]}", "rows B of a batch",
              "operations", against_batch(certified, "operations"), 0.5),
        Panel(f"Operations to {smallest:g}", "pixels n", "operations", by_method, 2.0),
    ]  # fmt: skip


def page(lines: Sequence[Line], folder: Path, scale: Scale, command: str) -> str:
    """Draw the picture and return the page."""
    figure = draw_panels([panels(lines, scale)], "Section 6 of the paper, tried (images)")
    name = write_figure(figure, folder, "section6")
    blocks: list[Block] = [
        Command(command),
        Paragraph(
            "Outer loops (sweeps, iterations) / operations in n² to a certified ε, medians over "
            f"{scale.seeds} seeds; a star marks settings in which a run was stopped at "
            f"{MOST:,} loops. What it means: [Section 6](../../section6.md)."
        ),
        Picture(name, "outer loops and operations against the batch; operations against n"),
        Heading("Katyusha Sinkhorn beside what it combines"),
        methods_table(lines, scale),
        Heading("Batches"),
        *(batches_table(lines, scale, case) for case in scale.cases),
        Heading("Environment"),
        environment_table(lines),
    ]
    return to_markdown("Section 6", blocks)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--toy", action="store_true", help="seconds, to see that it runs")
    asked = parser.parse_args(argv)
    scale = TOY if asked.toy else FULL
    asked.out.mkdir(parents=True, exist_ok=True)
    lines = run(Store(asked.out / "solves.jsonl", KEY), list(tasks_of(scale)))
    toy = " --toy" if asked.toy else ""
    words = f"python benchmarks/section6.py docs/results/section6{toy}"
    text = page(lines, asked.out, scale, words)
    write_text(asked.out / "summary.md", text)
    print(text)


if __name__ == "__main__":
    main()
