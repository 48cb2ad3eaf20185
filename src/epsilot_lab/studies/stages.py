"""Show where the time of method="auto" goes, stage by stage.

python -m epsilot_lab stages [--problems points2] [--sizes 256 4096] [--rtol 1e-2 1e-6] [--seeds 2]
python -m epsilot_lab stages --shapes --sizes 20000

Milliseconds of processor time beside ``ot.emd2``, medians over repeated solves of each seed;
"other" is what remains: checks of the input, the driver, the result. ``--shapes`` has clouds of
many shapes to 1e-9 instead, without their matrix and by one thread, in seconds and as ratios to the
first one.
"""

from __future__ import annotations

import argparse
import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import ot

import epsilot
from epsilot.engine import driver
from epsilot.solvers import auction, exact, restricted_simplex

from ..document import markdown_row
from ..instances import FAMILIES, Instance
from ..measuring import repeated, timed
from .regret import SHAPES, WEIGHTS

STAGES: dict[str, list[tuple[Any, str]]] = {
    "sweeps": [(restricted_simplex.RestrictedSimplex, "_sweep")],
    "auction": [(auction.AuctionLevels, "step")],
    "arcs": [(restricted_simplex.RestrictedSimplex, "_open"), (auction.Auction, "_open")],
    "simplex": [
        (restricted_simplex.RestrictedSimplex, "_pivots"),
        (auction, "pivot"),
        (exact, "simplex"),
    ],
    "certificates": [(driver.Driver, "_evaluate")],
}
#: Clouds -> shape, dimension, metric, weights; the first is what the others are compared with.
CLOUDS = {
    "2-d squared, uniform": ("uniform", 2, "sqeuclidean", "equal"),
    "Gaussians": ("Gaussians", 2, "sqeuclidean", "equal"),
    "clusters": ("clusters", 2, "sqeuclidean", "equal"),
    "3-d Gaussians": ("Gaussians", 3, "sqeuclidean", "equal"),
    "heavy-tailed weights": ("uniform", 2, "sqeuclidean", "heavy"),
    "Euclidean, uniform": ("uniform", 2, "euclidean", "equal"),
    "Euclidean, circle to Gaussian": ("circle to Gaussian", 2, "euclidean", "equal"),
    "Euclidean, squares apart": ("apart", 2, "euclidean", "equal"),
}
COLUMNS = ["n", "problem", "rtol", "emd2", "ours", "times faster", "rounds", *STAGES, "other"]


@contextmanager
def watched(spent: Counter[str]) -> Iterator[None]:
    """Let the functions of each stage add their seconds to ``spent`` inside the block."""
    with ExitStack() as stack:
        for stage, places in STAGES.items():
            for owner, name in places:
                call = _counted(getattr(owner, name), stage, spent)
                stack.enter_context(patch.object(owner, name, call))
        yield


def _counted(function: Callable[..., Any], stage: str, spent: Counter[str]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        seconds, found = timed(lambda: function(*arguments))
        spent[stage] += seconds.processor
        spent[f"calls of {stage}"] += 1
        return found

    return call


def measure(instance: Instance, rtol: float, budget: float) -> dict[str, list[float]]:
    """Return seconds of emd2, of ours and of its stages, and the rounds, of repeated solves."""
    M, a, b = instance
    samples: dict[str, list[float]] = {name: [] for name in (*STAGES, "rounds")}
    spent: Counter[str] = Counter()

    def ours() -> None:
        spent.clear()
        assert epsilot.solve(M, a, b, rtol=rtol).converged
        for stage in STAGES:
            samples[stage].append(spent[stage])
        samples["rounds"].append(max(spent["calls of certificates"], 1))

    peer = repeated(lambda: ot.emd2(a, b, M, numItermax=10**8), budget)
    with watched(spent):
        own = repeated(ours, budget, 2)
    for name, runs in (("emd2", peer), ("ours", own)):
        samples[name] = [seconds.processor for seconds in runs.seconds]
    return samples


def row(family: str, size: int, rtol: float, seeds: int, budget: float) -> list[str]:
    """Return one line of the table."""
    found = [measure(FAMILIES[family].build(size, seed), rtol, budget) for seed in range(seeds)]
    median = {
        name: statistics.median([x for samples in found for x in samples[name]])
        for name in found[0]
    }
    other = median["ours"] - sum(median[stage] for stage in STAGES)
    return [
        str(FAMILIES[family].n_points(size)),
        FAMILIES[family].label,
        f"{rtol:g}",
        *(f"{1e3 * median[name]:.3g}" for name in ("emd2", "ours")),
        f"{median['emd2'] / median['ours']:.2f}",
        f"{median['rounds']:.0f}",
        *(f"{1e3 * x:.3g}" for x in (*(median[stage] for stage in STAGES), other)),
    ]


def shapes(n: int, seed: int, limit: float) -> Iterator[list[str]]:
    """Yield the rows of a table: seconds of clouds of each shape, and where they go."""
    yield ["clouds", "method", "seconds", "ratio", "gap", "certificates made", *STAGES]
    unit = None
    for name, (shape, d, metric, weights) in CLOUDS.items():
        for size in (min(n, 300), n):  # the first solve compiles
            rng = np.random.default_rng([seed, size])
            X, Y = SHAPES[shape](rng, size, size, d)
            a, b = (WEIGHTS[weights](rng, size) for _ in "ab")
            spent: Counter[str] = Counter()
            call = partial(epsilot.solve_sample, X, Y, a, b, metric=metric, n_threads=1)
            with watched(spent):
                taken, result = timed(
                    partial(call, rtol=1e-9, max_seconds=limit, on_limit="ignore")
                )
        unit = unit or taken.processor
        yield [
            name,
            result.method + ("" if result.converged else f" ({result.status.name})"),
            f"{taken.processor:.2f}",
            f"{taken.processor / unit:.1f}",
            f"{result.gap / result.value:.0e}",
            str(len(result.history)),
            *(f"{spent[stage]:.2f}" for stage in STAGES),
        ]


def main(arguments: list[str] | None = None) -> None:
    """Run the study with the words of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--problems", nargs="+", default=["images", "points2-squared", "points2"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[256, 1024, 4096, 8192])
    parser.add_argument("--rtol", nargs="+", type=float, default=[1e-2, 1e-6])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--budget", type=float, default=0.5, help="seconds a problem is repeated")
    parser.add_argument("--shapes", action="store_true", help="clouds of many shapes")
    parser.add_argument("--limit", type=float, default=120.0, help="wall seconds of one shape")
    options = parser.parse_args(arguments)
    if options.shapes:
        for k, cells in enumerate(shapes(options.sizes[0], 0, options.limit)):
            print(markdown_row(cells), flush=True)
            if k == 0:
                print("|---" * len(cells) + "|")
        return
    for method in ("exact", "restricted_simplex"):  # compile
        epsilot.solve(*FAMILIES["points2"].build(64, 0), method=method)
    print(markdown_row(COLUMNS) + "\n" + "|---" * len(COLUMNS) + "|")
    for size in options.sizes:
        for family in options.problems:
            for rtol in options.rtol:
                cells = row(family, size, rtol, options.seeds, options.budget)
                print(markdown_row(cells), flush=True)
