"""Show where the time of the auction goes: bids per row and phase, pivots, seconds per stage.

    python -m epsilot_lab auction-stages [--case "2-d squared, random weights"] [--scale 0.3]
        [--seed 0] [--rtol 1e-9] [--set unsold_early=5e-4 min_phase_ratio=1]
    python -m epsilot_lab auction-stages --shapes --points 20000 [--method auto]

The cases are those of large.py; ``--set`` changes fields of AuctionTuning. ``--shapes`` prints a
table of clouds of many shapes instead, with ratios to the processor seconds of uniform points in
the plane with squared distances; each is solved by one thread.
Counts do not depend on how busy the machine is.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import epsilot
from epsilot.engine import driver
from epsilot.kernels import auction as kernels
from epsilot.kernels import network
from epsilot.solvers import auction
from epsilot.solvers.auction import LevelState

from ..document import markdown_row
from .large import CASES, drawn
from .regret import SHAPES, WEIGHTS

STAGES: dict[str, tuple[Any, str]] = {
    "auction": (auction.AuctionLevels, "step"),
    "set-up of rounds": (auction.Auction, "_open"),
    "pivots": (auction, "pivot"),
    "certificates": (driver.Driver, "_evaluate"),
}


class ShapedCloud(NamedTuple):
    """Clouds of a shape, and the ratio to uniform points that is aimed at."""

    shape: str
    d: int
    metric: str
    weights: str = "equal"
    aim: float | None = None

    def solve(self, n: int, seed: int, rtol: float) -> Callable[..., epsilot.Result]:
        """Draw clouds of n points; return their solve."""
        rng = np.random.default_rng([seed, n])
        X, Y = SHAPES[self.shape](rng, n, n, self.d)
        a, b = (WEIGHTS[self.weights](rng, n) for _ in "ab")
        keywords = {"metric": self.metric, "rtol": rtol, "on_limit": "ignore", "n_threads": 1}
        return partial(epsilot.solve_sample, X, Y, a, b, **keywords)


#: The first one is what the others are compared with.
SHAPED = {
    "2-d squared, uniform": ShapedCloud("uniform", 2, "sqeuclidean"),
    "Gaussians": ShapedCloud("Gaussians", 2, "sqeuclidean", aim=1.5),
    "clusters": ShapedCloud("clusters", 2, "sqeuclidean", aim=2),
    "3-d Gaussians": ShapedCloud("Gaussians", 3, "sqeuclidean", aim=3.5),
    "heavy-tailed weights": ShapedCloud("uniform", 2, "sqeuclidean", "heavy", aim=3),
    "Euclidean, uniform": ShapedCloud("uniform", 2, "euclidean"),
    "Euclidean, circle to Gaussian": ShapedCloud("circle to Gaussian", 2, "euclidean", aim=5),
    "Euclidean, squares apart": ShapedCloud("apart", 2, "euclidean", aim=5),
}


class Log:
    """The work of a run: bids of phases by level, pivots, and seconds by stage."""

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}
        self.bids: dict[int, list[int]] = {}
        self.spent: Counter[str] = Counter()
        self.pivots = self.walked = 0

    def phase(self, state: LevelState) -> None:
        """Note a phase that has ended."""
        self.rows[state.level] = state.leasts.size
        self.bids.setdefault(state.level, []).append(int(state.counts[kernels.BIDS]))

    def lines(self) -> Iterator[str]:
        """Yield what is known, a level or a sum a line."""
        for level, ends in self.bids.items():
            n, begins = self.rows[level], [0, *ends[:-1]]
            parts = ", ".join(f"{(y - x) / n:.1f}" for x, y in zip(begins, ends, strict=True))
            yield f"{n} rows: {parts} bids a row"
        yield f"{self.pivots} pivots, {self.walked / max(self.pivots, 1):.0f} nodes each"
        yield ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in self.spent.items())


@contextmanager
def watched(log: Log) -> Iterator[None]:
    """Let a log see phases, pivots and stages inside the block."""
    end, pivots = auction.AuctionLevels._end, network.pivots

    def ended(self: auction.AuctionLevels, state: LevelState) -> None:
        end(self, state)
        log.phase(state)

    def pivoted(*arguments: Any) -> Any:
        found = pivots(*arguments)
        log.pivots, log.walked = log.pivots + found[0], log.walked + found[3]
        return found

    with ExitStack() as stack:
        stack.enter_context(patch.object(auction.AuctionLevels, "_end", ended))
        stack.enter_context(patch.object(network, "pivots", pivoted))
        for stage, (owner, name) in STAGES.items():
            call = _counted(getattr(owner, name), stage, log.spent)
            stack.enter_context(patch.object(owner, name, call))
        yield


def _counted(function: Callable[..., Any], stage: str, spent: Counter[str]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        began = time.process_time()
        found = function(*arguments)
        spent[stage] += time.process_time() - began
        return found

    return call


def shapes(n: int, seed: int, rtol: float, method: str, limit: float) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a table: seconds of each shape, their ratio, and where they go."""
    yield ("clouds", "method", "seconds", "ratio", "aim", "gap", "certificates made", *STAGES)
    unit = None
    for name, cloud in SHAPED.items():
        cloud.solve(300, seed, rtol)(method="auction")  # compile
        call, log = cloud.solve(n, seed, rtol), Log()
        began = time.process_time()
        with watched(log):
            result = call(method=method, max_seconds=limit)
        seconds = time.process_time() - began
        unit = unit or seconds
        yield (
            name,
            result.method + ("" if result.converged else f" ({result.status.name})"),
            f"{seconds:.2f}",
            f"{seconds / unit:.1f}",
            "" if cloud.aim is None else f"{cloud.aim:g}",
            f"{result.gap / result.value:.0e}",
            str(len(result.history)),
            *(f"{log.spent[stage]:.2f}" for stage in STAGES),
        )


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study with the words of a command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", default="2-d squared, random weights", choices=list(CASES))
    parser.add_argument("--scale", type=float, default=0.3, help="share of the case's size")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rtol", type=float, default=1e-9)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", dest="settings")
    parser.add_argument("--shapes", action="store_true", help="clouds of many shapes")
    parser.add_argument("--points", type=int, default=20_000, help="points of --shapes")
    parser.add_argument("--method", default="auto", help="method of --shapes")
    parser.add_argument("--limit", type=float, default=600.0, help="wall seconds of one shape")
    options = parser.parse_args(argv)
    with ExitStack() as stack:
        for setting in options.settings:
            name, _, value = setting.partition("=")
            kept = type(getattr(auction.TUNING, name))(float(value))
            changed = replace(auction.TUNING, **{name: kept})
            stack.enter_context(patch.object(auction, "TUNING", changed))
        if options.shapes:
            args = options.points, options.seed, options.rtol, options.method, options.limit
            for k, row in enumerate(shapes(*args)):
                print(markdown_row(row), flush=True)
                if k == 0:
                    print(markdown_row(("---",) * len(row)))
            return
        case = CASES[options.case]
        drawn(case, options.seed, options.rtol, 1e-4)(method="auction")  # compile
        call = drawn(case, options.seed, options.rtol, options.scale)
        log = Log()
        began = time.process_time()
        with watched(log):
            result = call(method="auction")
    print("\n".join(log.lines()))
    print(f"{time.process_time() - began:.2f} s in all, gap {result.gap / result.value:.1e}")
