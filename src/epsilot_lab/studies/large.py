"""Solve large problems exactly and to 1 %: seconds, peak memory and certified gap.

    python -m epsilot_lab large docs/results/large/solves.jsonl           # what is missing
    python -m epsilot_lab large docs/results/large/solves.jsonl --show    # medians of what is there

Every solve is a process of its own, whose kernels are compiled before the clock starts; a line of
the file is one solve, and lines that are there are not run again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from PIL import Image
from rich.console import Console

import epsilot
from epsilot._types import Array

from .. import document
from ..dotmark import CLASSES, pair
from ..environment import machine, versions
from ..instances import SHAPES, images, unit
from ..measuring import peak, timed
from ..paper import color_transfer
from ..runner import in_own_processes, run_tasks
from ..store import KeyedTask, Line, Store

TARGETS = (1e-2, 1e-9)


class LargeProblem(NamedTuple):
    """A problem, and the wall seconds aimed at: to 1 % and to 1e-9."""

    kind: str  # a shape of clouds, or weighted; a class of images, or two photographs; or stored
    size: int  # points, or pixels a side
    d: int
    metric: str
    aims: tuple[float | None, float | None] = (None, None)
    is_loose: bool = False  # to 1 % only

    @property
    def is_image(self) -> bool:
        """Whether the sides are images."""
        return self.kind in (*CLASSES, "photographs", "stored")

    @property
    def targets(self) -> tuple[float, ...]:
        """The relative gaps to reach."""
        return TARGETS[:1] if self.is_loose else TARGETS


def _images(
    name: str, metric: str, aims: dict[int, tuple[float, float]]
) -> dict[str, LargeProblem]:
    short = {"sqeuclidean": "squared", "cityblock": "l1"}[metric]
    return {
        f"{name} {side} x {side}, {short}": LargeProblem(name, side, 2, metric, aim)
        for side, aim in aims.items()
    }


SQUARED = {64: (0.1, 0.2), 128: (0.8, 1.5), 256: (5.0, 10.0)}
L1 = {64: (0.01, 0.01), 128: (0.1, 0.1), 256: (0.5, 0.5), 512: (4.0, 4.0), 1024: (10.0, 30.0)}
L1_NOISE = {64: (0.03, 0.03), 128: (0.2, 0.2), 256: (2.0, 2.0), 512: (25.0, 25.0)}
CASES = {
    "2-d squared, uniform": LargeProblem("uniform", 100_000, 2, "sqeuclidean", (3, 6)),
    "2-d squared, random weights": LargeProblem("weighted", 100_000, 2, "sqeuclidean", (8, 15)),
    "2-d Euclidean, uniform": LargeProblem("uniform", 100_000, 2, "euclidean", (10, 20)),
    "3-d squared, random weights": LargeProblem("weighted", 100_000, 3, "sqeuclidean", (6, 12)),
    "2-d squared, Gaussians": LargeProblem("Gaussians", 100_000, 2, "sqeuclidean"),
    "2-d squared, 20 clusters": LargeProblem("clusters", 100_000, 2, "sqeuclidean"),
    "3-d squared, Gaussians": LargeProblem("Gaussians", 100_000, 3, "sqeuclidean"),
    "2-d Euclidean, circle to Gaussian": LargeProblem(
        "circle to Gaussian", 100_000, 2, "euclidean"
    ),
    "10-d squared, uniform, 20,000": LargeProblem("uniform", 20_000, 10, "sqeuclidean"),
    "64-d squared, uniform, 10,000": LargeProblem("uniform", 10_000, 64, "sqeuclidean"),
    **_images("GRFmoderate", "sqeuclidean", SQUARED),
    **_images("WhiteNoise", "sqeuclidean", SQUARED),
    **_images("GRFmoderate", "cityblock", L1),
    **_images("WhiteNoise", "cityblock", L1_NOISE),
    "photographs 512 x 512, squared": LargeProblem("photographs", 512, 2, "sqeuclidean"),
    "photographs 1024 x 1024, squared": LargeProblem(
        "photographs", 1024, 2, "sqeuclidean", is_loose=True
    ),
    "GRFmoderate 1024 x 1024, squared": LargeProblem(
        "GRFmoderate", 1024, 2, "sqeuclidean", is_loose=True
    ),
    "the paper's images 100 x 100, l1, stored": LargeProblem("stored", 100, 2, "cityblock"),
    "2-d squared, uniform, a million": LargeProblem(
        "uniform", 1_000_000, 2, "sqeuclidean", (120, 300)
    ),
}
N_SEEDS = 3
#: Seconds of a solve that is run twice.
SHORT = 3.0


def drawn(case: LargeProblem, seed: int, rtol: float, scale: float) -> Callable[[], epsilot.Result]:
    """Draw an instance of a share of the size; return its solve, by the method that a user gets."""
    size = max(2, round(scale * case.size))
    keywords = {"metric": case.metric, "rtol": rtol, "on_limit": "ignore"}
    if case.kind == "stored":
        return partial(epsilot.solve, *images(size, seed), rtol=rtol, on_limit="ignore")
    if case.is_image:
        both = photographs(size) if case.kind == "photographs" else pair(case.kind, size, seed)
        return partial(epsilot.solve_grid, *map(unit, both), **keywords)
    rng = np.random.default_rng([seed, size, case.d])
    has_weights = case.kind == "weighted"
    X, Y = SHAPES["uniform" if has_weights else case.kind](rng, size, size, case.d)
    a, b = (unit(rng.random(size) + 0.01) if has_weights else None for _ in "ab")
    return partial(epsilot.solve_sample, X, Y, a, b, **keywords)


def photographs(side: int) -> list[Array]:
    """Return scikit-learn's two photographs in grey, the middle square resized to ``side``."""
    grey = (x.mean(axis=2).astype(np.float32) for x in color_transfer.photographs())
    squares = (Image.fromarray(x[:, 106:533]) for x in grey)  # 427 x 427 of 427 x 640 pixels
    return [1.0 + np.asarray(x.resize((side, side), Image.Resampling.BILINEAR)) for x in squares]


@dataclass(frozen=True)
class LargeTask(KeyedTask):
    """A case to an accuracy, at a share of its size."""

    KEY = ("case", "seed", "rtol")
    case: str
    seed: int
    rtol: float
    scale: float = 1.0

    def line(self) -> Line:
        """Solve it, after a small one that compiles."""
        case = CASES[self.case]
        drawn(case, 0, self.rtol, self.scale * (0.2 if case.is_image else 0.05))()
        call = drawn(case, self.seed, self.rtol, self.scale)
        seconds, result = timed(call)
        if seconds.wall < SHORT:  # much of which may have been loading kernels
            seconds, result = timed(call)
        return {
            **self.identity, "gap": result.gap / result.value, "cpu": seconds.processor,
            "wall": seconds.wall, "MiB": peak() / 2**20, "converged": result.converged,
            "value": result.value, "method": result.method, "versions": versions(),
            "machine": machine(),
        }  # fmt: skip


def table(lines: Sequence[Line]) -> document.Table:
    """Return the medians over seeds, a row for each problem and target."""
    rows = []
    for case, described in CASES.items():
        for rtol, aim in zip(TARGETS, described.aims, strict=True):
            mine = [x for x in lines if (x["case"], x["rtol"]) == (case, rtol)]
            if mine:
                cpu, wall, size = (median(x[key] for x in mine) for key in ("cpu", "wall", "MiB"))
                gap = max(x["gap"] for x in mine)
                rows.append(
                    (
                        *(case, mine[-1]["method"], f"{rtol:g}", f"{wall:.2f}"),
                        *("" if aim is None else f"{aim:g}", f"{cpu:.2f}", f"{size:.0f}"),
                        *(f"{gap:.0e}", str(len(mine))),
                    )
                )
    columns = (
        *("problem", "method", "to", "wall s", "aim", "processor s"),
        *("peak MiB", "largest gap", "runs"),
    )  # fmt: skip
    return document.Table(columns, tuple(rows))


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is missing and write the page, or be the process of one solve."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["--child"]:
        print(json.dumps(LargeTask(*json.loads(argv[1])).line()))
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the sizes, for a trial")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args(argv)
    store = Store(options.path, LargeTask.KEY)
    if not options.show:
        tasks = [
            LargeTask(case, seed, rtol, options.scale)
            for seed in range(options.seeds)
            for case in options.cases
            for rtol in CASES[case].targets
        ]
        run_tasks(tasks, store, Console(stderr=True), in_own_processes("large"))
    blocks = [
        document.Command(f"python -m epsilot_lab large {options.path}"),
        table(list(store)),
        document.environment_table(list(store)),
    ]
    text = document.to_markdown("Large problems", blocks)
    document.write_text(options.path.with_name("summary.md"), text)
    print(text)
