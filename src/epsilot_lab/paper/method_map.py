"""Map which first-order method needs the fewest operations, over problems, n and ε."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from epsilot import solve
from epsilot.display.plotting import COLOURS, new_figure
from epsilot.display.text import is_counted
from epsilot.errors import InvalidProblem
from epsilot.files.images import grid_cost
from epsilot.problems.work import Record

from .. import dotmark
from ..document import Block, Command, Heading, Paragraph, Picture, Table, environment_table
from ..environment import versions
from ..figures import write_figure
from ..fitting import fit_power
from ..instances import FAMILIES, Instance, clouds, images
from ..report import Page, publish
from ..runner import ExperimentSetup
from ..store import KeyedTask, Line, refuse_interrupted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The fields that identify a line.
KEY = ("family", "n", "eps", "seed", "method", "version")
#: First-order methods of Table 1 and ours, with colours; coordinate APDRCD is left out as too slow.
METHODS = (
    "sinkhorn", "greenkhorn", "stochastic_sinkhorn", "accelerated_sinkhorn",
    "katyusha_sinkhorn", "aam", "apdagd", "apdamd", "hybrid_primal_dual", "pdasgd", "pdasmd",
)  # fmt: skip
TITLE = "Which first-order method needs the fewest operations"
#: Operations after which a solve is given up: the larger of the two, the second per entry of C.
MOST_OPERATIONS, MOST_PER_ENTRY = 1e9, 1e4
#: Side of the smallest of the images that are refined.
COARSE_SIDE = 8


def _dotmark(n: int, seed: int, name: str) -> Instance:
    side = math.isqrt(n)
    A, B = (image + 1.0 for image in dotmark.pair(name, side, seed))
    return grid_cost((side, side)), A.ravel() / A.sum(), B.ravel() / B.sum()


def _l1_points(n: int, seed: int, d: int) -> Instance:
    from scipy.spatial.distance import cdist

    equal = np.full(n, 1 / n)
    X, Y = clouds(n, np.random.default_rng(seed), d)
    return cdist(X, Y, "cityblock"), equal, equal.copy()


def _refined(n: int, seed: int) -> Instance:
    """Return one pair of 8 × 8 images, each pixel split into equal parts: only n changes."""
    side = math.isqrt(n)
    if side % COARSE_SIDE:
        raise InvalidProblem(f"n is {n}; refined images have sides that are multiples of 8.")
    times = side // COARSE_SIDE
    _, a, b = images(COARSE_SIDE, seed)
    fine = [np.kron(x.reshape(COARSE_SIDE, -1), np.ones((times, times))).ravel() for x in (a, b)]
    return grid_cost((side, side)), fine[0] / fine[0].sum(), fine[1] / fine[1].sum()


#: Name in the lines -> text and builder of (n, seed).
PROBLEMS: dict[str, tuple[str, Callable[[int, int], Instance]]] = {
    "images": ("synthetic images, l1", FAMILIES["images"].build),
    "mnist": ("digits, l1", FAMILIES["mnist"].build),
    "shapes": ("drawn Shapes, l1", partial(_dotmark, name="Shapes")),
    "cauchy": ("drawn CauchyDensity, l1", partial(_dotmark, name="CauchyDensity")),
    "points2-l1": ("2-d points, l1", partial(_l1_points, d=2)),
    "points2-squared": ("2-d points, squared", FAMILIES["points2-squared"].build),
    "points10-l1": ("10-d points, l1", partial(_l1_points, d=10)),
    "points10-squared": ("10-d points, squared", FAMILIES["points10-squared"].build),
    "random": ("random costs", FAMILIES["random"].build),
    "refined": ("one image, refined", _refined),
}


@dataclass(frozen=True)
class MapTask(KeyedTask):
    """A method on a problem, certified to ε times the largest cost."""

    KEY = KEY
    family: str
    n: int
    eps: float
    seed: int
    method: str

    @property
    def label(self) -> str:
        """A few words for the progress line."""
        return f"{self.method}, {self.family}, n = {self.n}"

    @property
    def limit(self) -> float:
        """Operations after which it is given up."""
        return max(MOST_OPERATIONS, MOST_PER_ENTRY * self.n**2)

    @property
    def seconds(self) -> float:
        """Expected time: about a thousand passes at most."""
        return 0.01 + 1e-9 * min(self.limit, 300 * self.n**2 / self.eps)

    @property
    def variant(self) -> tuple[str, ...]:
        """The choices that decide which kernels are compiled."""
        return (self.method,)

    def warm_up(self) -> None:
        """Compile the method on nine pixels."""
        solve(*images(3, 0), eps=0.05, method=self.method, max_iter=3, on_limit="ignore")

    def line(self) -> Line:
        """Solve, and return operations and processor seconds."""
        M, a, b = PROBLEMS[self.family][1](self.n, self.seed)
        M = M / M.max()

        def is_hopeless(record: Record) -> bool:
            return record.operations > self.limit

        began = time.process_time()
        with refuse_interrupted():
            result = solve(
                M, a, b, eps=self.eps, method=self.method, seed=self.seed,
                callback=is_hopeless, on_limit="ignore",
            )  # fmt: skip
        seconds = time.process_time() - began
        counted = is_counted(result.work)
        return self.identity | {
            "operations": result.work.operations + result.work.certificate if counted else None,
            "seconds": round(seconds, 5),
            "n_iter": result.n_iter,
            "gap": float(f"{result.gap:.4g}"),
            "has_ended": bool(result.gap <= self.eps),
            "versions": {name: versions()[name] for name in ("epsilot", "numerics")},
        }


def tasks_of(
    sizes: Sequence[int], accuracies: Sequence[float], pairs: int | None = None
) -> Iterator[MapTask]:
    """Yield all solves, small and easy ones first, so that a part is a map of its own."""
    for n in sorted(sizes):
        for eps in sorted(accuracies, reverse=True):
            for seed in range(pairs or PAIRS.get(n, 1)):
                for family in PROBLEMS:
                    if family == "mnist" and n > 784:
                        continue
                    for method in METHODS:
                        yield MapTask(family, n, eps, seed, method)


#: n -> pairs of the whole map: fewer where a solve takes longer.
PAIRS = {64: 20, 256: 20, 576: 3, 1024: 3, 4096: 1}
SIZES = tuple(PAIRS)
ACCURACIES = (0.2, 0.05, 0.02, 0.005, 0.002)


def run(
    setup: ExperimentSetup,
    eps: Sequence[float] = (),
    sizes: Sequence[int] = (),
) -> Page:
    """Solve what is missing, then draw the map from all lines there are."""
    sizes = tuple(sizes) or ((64,) if setup.quick else SIZES)
    accuracies = tuple(eps) or ((0.05, 0.005) if setup.quick else ACCURACIES)
    tasks = list(tasks_of(sizes, accuracies, setup.seeds or (2 if setup.quick else None)))
    store = setup.store(KEY)
    setup.solve(tasks, store)
    every = tasks_of(SIZES + tuple(set(sizes) - set(SIZES)), sorted({*ACCURACIES, *accuracies}), 20)
    lines = store.lines(every)
    return write(setup.out, lines, f"epsilot reproduce map {setup.scale}")


# -- winners read from the lines -----------------------------------------------------------------

Cell = tuple[str, int, float]


def medians(lines: Sequence[Line], what: str) -> dict[Cell, dict[str, float]]:
    """Return cell -> method -> median of a quantity, where the method ended on every pair."""
    values: dict[Cell, dict[str, list[float]]] = {}
    for line in lines:
        own = values.setdefault((line["family"], line["n"], line["eps"]), {})
        value = line[what] if line["has_ended"] else math.inf
        own.setdefault(line["method"], []).append(math.inf if value is None else float(value))
    return {
        cell: {m: float(np.median(v)) for m, v in own.items() if max(v) < math.inf}
        for cell, own in values.items()
    }


def winner(found: dict[str, float]) -> tuple[str, float]:
    """Return the method with the least median, and by what factor the next one is above it."""
    if not found:
        return "–", math.nan
    ordered = sorted(found.items(), key=lambda pair: pair[1])
    factor = ordered[1][1] / ordered[0][1] if len(ordered) > 1 else math.nan
    return ordered[0][0], factor


#: The paper's method, whose factor above the best is in every cell.
PAPERS = "pdasmd"


def draw(lines: Sequence[Line]) -> Figure:
    """Draw one square per family: n across, 1/ε up, coloured by the method that wins."""
    by_work, by_time = medians(lines, "operations"), medians(lines, "seconds")
    families = [f for f in PROBLEMS if any(cell[0] == f for cell in by_work)]
    sizes = sorted({cell[1] for cell in by_work})
    accuracies = sorted({cell[2] for cell in by_work}, reverse=True)
    columns = min(5, len(families))
    rows = -(-len(families) // columns)
    figure: Figure = new_figure(3.0 * columns + 0.4, 3.0 * rows + 0.9)
    shown: dict[str, str] = {}
    palette = [*COLOURS, "#999999", "#7f4f24", "#b5179e", "#70a000"]
    for k, family in enumerate(families):
        ax = figure.add_subplot(rows, columns, k + 1)
        for i, n in enumerate(sizes):
            for j, eps in enumerate(accuracies):
                cell = family, n, eps
                if cell not in by_work:
                    continue
                name, factor = winner(by_work[cell])
                colour = "white" if name == "–" else palette[METHODS.index(name)]
                shown[name] = colour
                ax.add_patch(_square(i, j, colour))
                text = "" if math.isnan(factor) else f"{factor:.1f}×"
                if PAPERS in by_work[cell] and name != PAPERS:
                    above = by_work[cell][PAPERS] / by_work[cell][name]
                    text += f"\n{above:.1f}×"
                ax.text(i, j, text, ha="center", va="center", fontsize=8, color="white")
                other = winner(by_time[cell])[0]
                if other not in (name, "–"):
                    shown.setdefault(other, palette[METHODS.index(other)])
                    ax.plot(
                        [i + 0.34],
                        [j + 0.32],
                        color=shown[other],
                        marker="o",
                        ms=7,
                        mec="white",
                        mew=0.8,
                    )
        ax.set_xlim(-0.5, len(sizes) - 0.5)
        ax.set_ylim(-0.5, len(accuracies) - 0.5)
        ax.set_xticks(range(len(sizes)), [f"{n:,}" for n in sizes], fontsize=8)
        ax.set_yticks(range(len(accuracies)), [f"{e:g}" for e in accuracies], fontsize=8)
        ax.set_title(PROBLEMS[family][0], loc="left", fontsize=10)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
    handles = [_square(0, 0, colour) for colour in shown.values()]
    figure.legend(
        handles, list(shown), loc="outside lower center", ncols=min(6, len(shown)), frameon=False
    )
    figure.suptitle("Fewest operations to a certified ε (up) by n (across)", x=0.01, ha="left")
    return figure


def _square(i: float, j: float, colour: str):  # type: ignore[no-untyped-def]
    from matplotlib.patches import Rectangle

    return Rectangle((i - 0.47, j - 0.47), 0.94, 0.94, facecolor=colour, edgecolor="none")


def table(lines: Sequence[Line]) -> Table:
    """Return how often each method wins, and its median factor above the winner."""
    found = medians(lines, "operations")
    seconds = medians(lines, "seconds")
    wins = Counter(winner(own)[0] for own in found.values())
    in_time = Counter(winner(own)[0] for own in seconds.values())
    rows = []
    for method in METHODS:
        above = [own[method] / min(own.values()) for own in found.values() if method in own]
        if not above:
            continue
        rows.append(
            (
                method,
                f"{wins[method]}",
                f"{in_time[method]}",
                f"{np.median(above):.1f}",
                f"{max(above):.3g}",
                f"{len(above)} of {len(found)}",
            )
        )
    columns = (
        "method", "wins in operations", "wins in seconds", "median factor above the best",
        "largest", "cells where it ended on every pair",
    )  # fmt: skip
    return Table(columns, tuple(rows))


def _refinement(lines: Sequence[Line]) -> Iterator[Block]:
    """Yield how operations grow where only n changes: one image, its pixels split."""
    own = [x for x in lines if x["family"] == "refined" and x["has_ended"] and x["operations"]]
    sizes = {eps: {x["n"] for x in own if x["eps"] == eps} for eps in {x["eps"] for x in own}}
    if not sizes or len(places := sizes[eps := max(sizes, key=lambda e: len(sizes[e]))]) < 3:
        return
    rows = []
    for method in METHODS:
        here = [x for x in own if (x["method"], x["eps"]) == (method, eps)]
        cells = [[x["operations"] / n**2 for x in here if x["n"] == n] for n in sorted(places)]
        first = [x for x in here if x["seed"] == 0]
        fit = fit_power([x["n"] for x in first], [x["operations"] for x in first])
        rows.append(
            (method, *(f"{np.median(c):.4g}" if c else "–" for c in cells), f"{fit.slope:.2f}")
        )
    yield Heading("One image, refined")
    yield Paragraph(
        "Pairs of 8 × 8 images whose pixels are split into equal parts, up to 64 × 64: the problem "
        "stays the same, and only n changes. Exponents of n are those of the first pair."
    )
    columns = ("method", *(f"n = {n}" for n in sorted(places)), "exponent of n")
    yield Table(columns, tuple(rows), f"Operations over n² (medians), ε = {eps:g}.")


def write(out: Path, lines: Sequence[Line], command: str) -> Page:
    """Write the map and the page from the lines alone."""
    if not lines:
        raise InvalidProblem("the map has no lines yet (run epsilot reproduce map)")
    file = write_figure(draw(lines), out, "map")
    pairs = {(x["family"], x["n"], x["eps"], x["seed"]) for x in lines}
    counted = ", ".join(
        f"{n} ({(most := 1 + max(x['seed'] for x in lines if x['n'] == n))} pair{'s' * (most > 1)})"
        for n in sorted({x["n"] for x in lines})
    )
    accuracies = sorted({x["eps"] for x in lines}, reverse=True)
    blocks: list[Block] = [
        Paragraph(_INTRODUCTION),
        Command(command),
        Paragraph(
            f"This page is of {len(lines):,} solves of {len(pairs)} problems: n = {counted}; ε = "
            f"{', '.join(f'{e:g}' for e in accuracies)}; blank cells were not run. Few pairs are "
            "run where n is large, since a solve of the slow methods there takes minutes. "
            "`--sizes`, `--eps` and `--pairs` add to it."
        ),
        Picture(file, _CAPTION),
        table(lines),
        *_refinement(lines),
        Heading("Environment"),
        environment_table(lines),
    ]
    publish(out, TITLE, blocks)
    return Page(TITLE, tuple(blocks))


_INTRODUCTION = (
    "First-order methods of the paper's Table 1 and ours, each certified to ε times the largest "
    "cost: operations, those of the certificates included, and processor seconds. The exact "
    "methods of the library are not in it; they are faster on most of these problems. A solve is "
    "given up after 10⁹ operations (10⁴ n², if that is more), and a method counts in a cell only "
    "if it ended on every pair. Made by"
)
_CAPTION = (
    "Colour: the method with the fewest operations in the median. Upper number: how many times as "
    "many the next one needs; lower number: how many PDASMD needs. A dot is the method that takes "
    "the fewest processor seconds, where it is another. At ε = 0.2 most starts qualify, so that "
    "methods tie."
)
