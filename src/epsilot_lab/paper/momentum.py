"""Count the steps in which accelerated Sinkhorn uses its momentum, over problems and accuracies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from epsilot.problems.problem import make_problem
from epsilot.solvers.accelerated_sinkhorn import AcceleratedSinkhorn
from epsilot.solvers.base import published_parameters
from epsilot.version import __version__

from ..document import Table
from ..environment import machine, versions
from ..store import KeyedTask, Line
from .method_map import ACCURACIES, PROBLEMS

#: The name of these tasks among the variants of the ablation.
MOMENTUM = "momentum of accelerated Sinkhorn: "
#: Problems that all have 64 points; the refined image is one of the others at this size.
FAMILIES = tuple(name for name in PROBLEMS if name != "refined")
SIDE, MAX_STEPS = 8, 40_000


@dataclass(frozen=True)
class MomentumTask(KeyedTask):
    """Accelerated Sinkhorn under the paper's stop, on the first problems of a family."""

    family: str
    eps: float
    pairs: int
    max_steps: int = MAX_STEPS
    side: int = SIDE

    @property
    def identity(self) -> Line:
        """The fields that distinguish its line from all others."""
        return {
            "variant": MOMENTUM + self.family,
            "side": self.side,
            "eps": self.eps,
            "pairs": self.pairs,
            "version": __version__,
        }

    @classmethod
    def of_line(cls, line: Line) -> Self:
        """Return the task of a line."""
        family = line["variant"].removeprefix(MOMENTUM)
        return cls(family, line["eps"], line["pairs"], side=line["side"])

    @property
    def label(self) -> str:
        """A few words for the progress line."""
        return f"momentum, {self.family}, ε = {self.eps:g}"

    @property
    def seconds(self) -> float:
        """Expected time."""
        return 2e-4 * self.pairs * min(self.max_steps, 50 / self.eps)

    @property
    def variant(self) -> tuple[str, ...]:
        """The choices that decide which kernels are compiled."""
        return ("momentum",)

    def warm_up(self) -> None:
        """Compile the passes."""
        MomentumTask("random", 0.2, 1, 2, 3).line()

    def line(self) -> Line:
        """Run the problems, and count the steps that kept the extrapolated point."""
        runs = [self._run(seed) for seed in range(self.pairs)]
        steps, kept, ended = zip(*runs, strict=True)
        return self.identity | {
            "n": self.side**2,
            "steps": list(steps),
            "kept": list(kept),
            "has_ended": list(ended),
            "max_steps": self.max_steps,
            "versions": versions(),
            "machine": machine(),
        }

    def _run(self, seed: int) -> tuple[int, int, bool]:
        """Return steps, those that kept the extrapolated point, and whether the run ended.

        The first step is left out: its start has no exact block yet, so that any update wins.
        """
        M, a, b = PROBLEMS[self.family][1](self.side**2, seed)
        goal, tolerance = published_parameters(make_problem(M / M.max(), a, b), self.eps)
        solver, rng = AcceleratedSinkhorn(), np.random.default_rng(0)
        state, _ = solver.init(goal, rng)
        kept = 0
        while state.violation > tolerance and state.n_steps < self.max_steps:
            main = state.main
            solver.step(goal, state, rng)
            kept += state.n_steps > 1 and state.z is not main
        return state.n_steps, kept, state.violation <= tolerance


def tasks_of(eps: Sequence[float], pairs: int) -> Iterator[MomentumTask]:
    """Yield every family at every accuracy."""
    for e in eps or ACCURACIES:
        for family in FAMILIES:
            yield MomentumTask(family, e, pairs)


def table(lines: Sequence[Line]) -> Table:
    """Return the share of steps that kept the extrapolated point, by family and accuracy."""
    accuracies = sorted({line["eps"] for line in lines}, reverse=True)
    rows = []
    for family in FAMILIES:
        cells = [PROBLEMS[family][0]]
        for eps in accuracies:
            own = [x for x in lines if (x["variant"], x["eps"]) == (MOMENTUM + family, eps)]
            cells.append("; ".join(map(_cell, own)) or "–")
        rows.append(tuple(cells))
    columns = ("problem", *(f"ε = {e:g}" for e in accuracies))
    first = lines[0]
    caption = (
        f"Steps that kept the extrapolated point, of all steps after the first (n = {first['n']}, "
        f"{first['pairs']} problems per cell)."
    )
    return Table(columns, tuple(rows), caption)


def _cell(line: Line) -> str:
    steps, kept = sum(line["steps"]) - len(line["steps"]), sum(line["kept"])
    star = "" if all(line["has_ended"]) else "*"
    if not kept:
        return f"**0** of {steps:,}{star}"
    share = kept / steps
    return f"{share:.{0 if share >= 0.01 else 2}%} of {steps:,}{star}"


def summary(lines: Sequence[Line]) -> str:
    """Return in how many problems the momentum was idle."""
    kept = [count for line in lines for count in line["kept"]]
    idle = sum(count == 0 for count in kept)
    cells = sum(not any(line["kept"]) for line in lines)
    return (
        "Accelerated Sinkhorn keeps the extrapolated point of a step only where the dual value "
        "falls below that of the main point; else the step is one of Sinkhorn, at 17/5 of its "
        f"price. Under the paper's stop no extrapolated point is kept in {idle} of {len(kept)} "
        f"problems ({cells} of {len(lines)} cells): there its momentum is idle. A star marks cells "
        "in which a run reached its limit of steps."
    )
