"""Time exact transport between images, class by class (DOTmark)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from epsilot import solve_grid
from epsilot._types import Matrix
from epsilot.errors import InvalidProblem
from epsilot.geometry import Grid
from epsilot.version import __version__

from ..document import Block, Command, Heading, Paragraph, Table, environment_table
from ..dotmark import CLASSES, PICTURES, pair, read_pair
from ..environment import machine, versions
from ..measuring import repeated
from ..report import publish
from ..runner import in_processes, run_tasks
from ..store import Line, Store, refuse_interrupted

if TYPE_CHECKING:
    from rich.console import Console

METRICS = {"sqeuclidean": "squared l2", "cityblock": "l1"}
EXACT, LOOSE = 1e-9, 0.01
#: Seconds that a solve of ours may take, and that repeats of one share.
LIMIT, REPEATS = 60.0, 0.5
KEY = ("images", "class", "side", "pair", "metric", "solver", "version")


@dataclass(frozen=True)
class ImageScale:
    """The size of a run: sides of the images, and the longest side that peers get."""

    sides: tuple[int, ...]
    longest_of_peers: int
    n_pairs: int


QUICK, FULL = ImageScale((32, 64), 32, 1), ImageScale((32, 64, 128, 256, 512), 64, 3)


def _ours(A: Matrix, B: Matrix, metric: str, rtol: float) -> Line:
    with refuse_interrupted():
        result = solve_grid(
            A,
            B,
            metric=metric,
            rtol=rtol,
            normalize=True,
            max_seconds=LIMIT,
            on_limit="ignore",
        )
    relative = result.gap / max(abs(result.lower_bound), 1e-300)
    return {"value": result.value, "gap": relative, "method": result.method}


def _emd2(A: Matrix, B: Matrix, metric: str) -> Callable[[], Line]:
    from ot.lp import emd2

    M = Grid((A.shape[0], A.shape[1]), None, metric).block(0, A.size)
    a, b = (x.ravel() / x.sum() for x in (A, B))
    return lambda: {"value": float(emd2(a, b, M, numItermax=10**9))}


def _emd2_lazy(A: Matrix, B: Matrix, metric: str) -> Callable[[], Line]:
    from ot.lp import emd2_lazy

    options = {"numItermax": 10**9, "return_matrix": False}
    X = np.indices(A.shape).reshape(2, -1).T.astype(np.float64)
    a, b = (x.ravel() / x.sum() for x in (A, B))
    return lambda: {"value": float(emd2_lazy(X, X, a, b, metric=metric, **options))}


def _call(solver: str, A: Matrix, B: Matrix, metric: str) -> Callable[[], Line]:
    """Return the call to be timed; the inputs of peers are made beforehand."""
    if solver == "emd2":
        return _emd2(A, B, metric)
    if solver == "emd2_lazy":
        return _emd2_lazy(A, B, metric)
    rtol = EXACT if solver == "epsilot" else LOOSE
    return lambda: _ours(A, B, metric, rtol)


#: Solver -> its name in tables.
IMAGE_SOLVERS = {
    "epsilot": "epsilot, exact",
    "epsilot 1 %": "epsilot, to 1 %",
    "emd2": "`ot.emd2`",
    "emd2_lazy": "`ot.emd2_lazy`",
}
PEERS = ("emd2", "emd2_lazy")


@dataclass(frozen=True)
class PairTask:
    """A solver on a pair of images with a cost."""

    folder: str | None  # of the benchmark's files; None: drawn
    name: str  # of the class
    side: int
    pair: int
    metric: str
    solver: str

    @property
    def identity(self) -> Line:
        """The fields that distinguish its line from all others."""
        return {
            "images": "drawn" if self.folder is None else "DOTmark",
            "class": self.name,
            "side": self.side,
            "pair": self.pair,
            "metric": self.metric,
            "solver": self.solver,
            "version": __version__,
        }

    @property
    def seconds(self) -> float:
        """Expected time."""
        return 0.05 + 5 * math.pow(self.side / (64 if self.solver in PEERS else 512), 4)

    @property
    def label(self) -> str:
        """A few words for the progress line."""
        return f"{self.solver}, {self.name}, {self.side} x {self.side}, {METRICS[self.metric]}"

    @property
    def is_timed(self) -> bool:
        """Tell that its time counts."""
        return True

    @property
    def variant(self) -> str:
        """The choices that decide which kernels are compiled."""
        return f"{self.solver} {self.metric}"

    def warm_up(self) -> None:
        """Solve a pair of tiny images."""
        _call(self.solver, *pair("GRFsmooth", 16), self.metric)()

    def line(self) -> Line:
        """Solve and return the line."""
        images = (self.name, self.side, self.pair)
        A, B = pair(*images) if self.folder is None else read_pair(Path(self.folder), *images)
        self.warm_up()
        # the first call may compile what large images need
        runs = repeated(_call(self.solver, A, B, self.metric), REPEATS, least=2, most=5)
        least = runs.least
        return {
            **self.identity,
            "seconds": least.wall,
            "processor": least.processor,
            **(runs.result or {}),
            "versions": versions(),
            "machine": machine(),
        }


def tasks_of(
    scale: ImageScale, sides: Sequence[int] | None, folder: Path | None
) -> Iterator[PairTask]:
    """Yield all solves of a run."""
    names = tuple(CLASSES) if folder is None else (*CLASSES, *PICTURES)
    where = None if folder is None else str(folder)
    for side in sides or scale.sides:
        for name in names:
            for number in range(scale.n_pairs):
                for metric in METRICS:
                    for solver in IMAGE_SOLVERS:
                        if solver not in PEERS or side <= scale.longest_of_peers:
                            yield PairTask(where, name, side, number, metric, solver)


def run_images(
    out: Path,
    scale: ImageScale,
    sides: Sequence[int] | None,
    folder: Path | None,
    command: str,
    console: Console,
) -> None:
    """Solve what is missing in a folder, then write the tables."""
    for side in sides or ():
        if not 8 <= side <= 4096:
            raise InvalidProblem(
                f"the size is {side}; with --images it is the pixels along a side and must be "
                "between 8 and 4096 (choose another)"
            )
    if folder is not None and not folder.is_dir():
        raise InvalidProblem(
            f"--dotmark is {str(folder)!r}, which is no folder; it must hold the folders of the "
            "classes with files such as ClassicImages/data32_1001.csv"
        )
    out.mkdir(parents=True, exist_ok=True)
    tasks = list(tasks_of(scale, sides, folder))
    lines = run_tasks(tasks, Store(out / "solves.jsonl", KEY), console, in_processes(1))
    publish(out, "Exact transport between images", blocks_of(lines, command))


def blocks_of(lines: Sequence[Line], command: str) -> list[Block]:
    """Return the tables of a run: per class, both costs, beside others."""
    drawn = "drawn in the manner of" if lines[0]["images"] == "drawn" else "of"
    found: list[Block] = [
        Paragraph(
            f"Images {drawn} DOTmark (Schrieber, Schuhmacher, Gottschlich 2017). Processor seconds "
            "of a call, the least of up to five, medians over the pairs of a class; ours include "
            "the certificate, and * marks what was not certified to its target within "
            f"{LIMIT:g} s. `ot.emd2` is given the stored cost matrix."
        ),
        Command(command),
    ]
    for metric, title in METRICS.items():
        ours = {x["method"] for x in lines if x["metric"] == metric and "method" in x}
        names = " or ".join(f"`{name}`" for name in sorted(ours))
        found += [Heading(f"Cost {title}"), Paragraph(f'`method="auto"` took {names}.')]
        for side in sorted({line["side"] for line in lines}):
            own = [x for x in lines if x["side"] == side and x["metric"] == metric]
            found.append(_table(own, side))
    found += [
        Paragraph(_agreement(lines)),
        Heading("Environment"),
        environment_table(lines),
    ]
    return found


def _agreement(lines: Sequence[Line]) -> str:
    """Say how far our exact values and those of the peers are apart."""
    by_problem: dict[tuple[object, ...], list[float]] = {}
    for line in lines:
        if line["solver"] in PEERS or (line["solver"] == "epsilot" and line["gap"] <= EXACT):
            key = tuple(line[name] for name in KEY if name != "solver")
            by_problem.setdefault(key, []).append(line["value"])
    spans = [(max(x) - min(x)) / max(x) for x in by_problem.values() if len(x) > 1 and max(x) > 0]
    if not spans:
        return "No problem was solved exactly by two solvers."
    return (
        f"On {len(spans)} problems that more than one solved exactly, values differ by at most "
        f"{max(spans):.1g} (relative)."
    )


def _table(lines: Sequence[Line], side: int) -> Table:
    solvers = [name for name in IMAGE_SOLVERS if any(x["solver"] == name for x in lines)]
    names = dict.fromkeys(x["class"] for x in lines)
    rows = [
        (
            name,
            *(_cell([x for x in lines if (x["class"], x["solver"]) == (name, s)]) for s in solvers),
        )
        for name in names
    ]
    columns = ("class", *(IMAGE_SOLVERS[name] for name in solvers))
    return Table(columns, tuple(rows), f"{side} x {side}, processor seconds.")


def _cell(lines: Sequence[Line]) -> str:
    """Return the median seconds, with a star if a target was missed."""
    if not lines:
        return ""
    goals = {"epsilot": EXACT, "epsilot 1 %": LOOSE}
    is_missed = any(x.get("gap", 0.0) > goals.get(x["solver"], math.inf) for x in lines)
    return f"{statistics.median(x['processor'] for x in lines):.3g}{'*' if is_missed else ''}"
