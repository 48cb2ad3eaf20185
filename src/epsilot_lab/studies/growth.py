"""Measure how the time of exact solves grows with n, up to a hundred thousand points.

    python -m epsilot_lab growth docs/results/growth    # what is missing, then the page
    python -m epsilot_lab growth OUT --sizes 1000 3000 --rivals 1000 --seeds 1

Families as in ``large``, solved to 1e-9 by "auto" from points or images alone, and by
``ot.emd2`` from the stored matrix (which is made off the clock) up to a size. Every solve is a
process of its own, whose kernels are compiled before the clock starts. Processor seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import ot
from rich.console import Console

import epsilot

from .. import document
from ..environment import machine, versions
from ..figures import Panel, draw_panels, write_figure
from ..fitting import Curve, curve
from ..measuring import peak, timed
from ..runner import in_own_processes, run_tasks
from ..store import KeyedTask, Line, Store

#: family -> kind, dimension, metric, whether weights are random
FAMILIES: dict[str, tuple[str, int, str, bool]] = {
    "2-d squared": ("points", 2, "sqeuclidean", False),
    "2-d squared, weights": ("points", 2, "sqeuclidean", True),
    "2-d Euclidean": ("points", 2, "euclidean", False),
    "3-d squared, weights": ("points", 3, "sqeuclidean", True),
    "white noise, squared l2": ("image", 2, "sqeuclidean", True),
    "white noise, l1": ("image", 2, "cityblock", True),
}
SIZES = (1000, 3000, 10_000, 30_000, 100_000)
#: Points up to which POT is given the matrix.
RIVALS = 10_000
RTOL, N_SEEDS = 1e-9, 3
KEY = ("family", "n", "seed", "solver")


@dataclass(frozen=True)
class GrowthTask(KeyedTask):
    """One solve."""

    KEY = KEY
    family: str
    n: int
    seed: int
    solver: str

    def line(self) -> Line:
        """Solve an instance, after a small one by the same method, and return its line."""
        geometry, a, b = draw(self.family, self.n, self.seed)
        small, *masses = draw(self.family, 300, self.seed)
        if self.solver == "emd2":
            C = geometry.block(0, geometry.shape[0])
            seconds, value = timed(lambda: ot.emd2(a, b, C, numItermax=10**9))
            gap, method = 0.0, "emd2"
        else:
            method = epsilot.solve(geometry, a, b, max_iter=0, on_limit="ignore").method
            limits: dict[str, Any] = {"rtol": RTOL, "on_limit": "ignore"}
            epsilot.solve(small, *masses, method=method, **limits)
            seconds, result = timed(lambda: epsilot.solve(geometry, a, b, **limits))
            value, gap = result.value, result.gap / result.value
        return {
            **self.identity, "points": geometry.shape[0], "has_ended": True, "method": method,
            "value": float(value), "gap": float(gap),
            "seconds": seconds.processor, "wall": seconds.wall, "MiB": peak() / 2**20,
            "versions": versions(), "machine": machine(),
        }  # fmt: skip


def unit(x: Any) -> Any:
    """Return masses of total one."""
    return x / x.sum()


def draw(family: str, n: int, seed: int) -> tuple[epsilot.Geometry, Any, Any]:
    """Return the cost and the masses of an instance."""
    kind, d, metric, has_weights = FAMILIES[family]
    rng = np.random.default_rng([seed, n, d])
    if kind == "image":
        side = round(n**0.5)
        a, b = (unit(rng.random(side * side)) for _ in "ab")
        return epsilot.Grid((side, side), metric=metric), a, b
    X, Y = rng.random((2, n, d))
    a, b = (unit(rng.random(n) + 0.01) if has_weights else np.full(n, 1 / n) for _ in "ab")
    return epsilot.PointCloud(X, Y, metric), a, b


def curves(lines: Sequence[Line], kind: str) -> list[Curve]:
    """Return the curves of a kind of family, ours and POT's."""
    found = []
    for solver in ("epsilot", "emd2"):
        for family, (own, *_) in FAMILIES.items():
            mine = [x for x in lines if (x["family"], x["solver"]) == (family, solver)]
            if own == kind and mine:
                label = family if solver == "epsilot" else f"`ot.emd2`, {family}".replace("`", "")
                found.append(curve(label, mine, lambda x: x["points"], lambda x: x["seconds"]))
    return found


def table(lines: Sequence[Line]) -> document.Table:
    """Return the medians by family and size."""
    sizes = sorted({line["n"] for line in lines})
    rows = []
    for family in FAMILIES:
        for solver in ("epsilot", "emd2"):
            cells = []
            for n in sizes:
                key = (family, n, solver)
                mine = [x for x in lines if (x["family"], x["n"], x["solver"]) == key]
                cells.append(f"{np.median([x['seconds'] for x in mine]):.3g}" if mine else "")
            if any(cells):
                rows.append((family, solver, *cells))
    return document.Table(("family", "solver", *(f"{n:,}" for n in sizes)), tuple(rows))


def page(lines: Sequence[Line], folder: Path, command: str) -> str:
    """Draw the picture and return the page."""
    points, images = (tuple(curves(lines, kind)) for kind in ("points", "image"))
    axes = "points (or pixels) on each side", "processor seconds, exact to 1e-9"
    panels = [Panel("Points", *axes, points, 1.0), Panel("Images", *axes, images, 1.0)]
    figure = draw_panels([panels], "Exact transport without the matrix, beside POT with it", True)
    name = write_figure(figure, folder, "growth")
    worst = max((x["gap"] for x in lines if x["solver"] == "epsilot"), default=0.0)
    blocks: list[document.Block] = [
        document.Command(command),
        document.Paragraph(
            "Processor seconds, medians over the seeds that were run; ours with the certificate, "
            f"`ot.emd2` without its matrix. The largest relative gap of ours is {worst:.0e}."
        ),
        document.Picture(
            name, "time of exact solves against n, by family; slopes of fitted powers"
        ),
        table(lines),
        document.Heading("Environment"),
        document.environment_table(lines),
    ]
    return document.to_markdown("Growth of exact solves", blocks)


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is missing, or be the process of one solve."""
    argv = sys.argv[1:] if argv is None else list(argv)
    if argv[:1] == ["--child"]:
        print(json.dumps(GrowthTask(*json.loads(argv[1])).line()))
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--rivals", type=int, default=RIVALS, help="points that POT is given")
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    parser.add_argument("--families", nargs="*", default=list(FAMILIES), choices=list(FAMILIES))
    options = parser.parse_args(argv)
    tasks = [
        GrowthTask(family, n, seed, solver)
        for n in options.sizes
        for family in options.families
        for seed in range(options.seeds)
        for solver in (("epsilot", "emd2") if n <= options.rivals else ("epsilot",))
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    store = Store(options.out / "solves.jsonl", KEY)
    lines = run_tasks(tasks, store, Console(stderr=True), in_own_processes("growth"))
    words = " ".join(["python -m epsilot_lab growth", *argv])
    text = page(lines, options.out, words)
    document.write_text(options.out / "summary.md", text)
    print(text)
