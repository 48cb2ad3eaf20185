"""Run the tasks that are missing, one at a time, each in the process of its solver."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from epsilot.errors import InvalidProblem

from ..instances import FAMILIES
from ..runner import Way, run_tasks
from ..store import Line, Store
from .entrants import ENTRANTS, OURS, REFERENCE, RelativeSetting
from .measuring import Bench, Job
from .selection import PeerTask, Selection, entropic_aims, is_worth_trying

if TYPE_CHECKING:
    from rich.console import Console


REFERENCE_LIMIT = 900.0


def run_contest(selection: Selection, store: Store, console: Console) -> list[Line]:
    """Solve what the store lacks, append each line as it is measured, and return all lines."""
    tasks = selection.tasks()
    return run_tasks(tasks, store, console, _one_by_one(selection, _Book(store.lines(tasks))))


def _one_by_one(selection: Selection, book: _Book) -> Way[PeerTask]:
    """Return the way that gives each solver a process, and the machine to one at a time."""

    def solved(missing: Sequence[PeerTask]) -> Generator[tuple[PeerTask, Line | None]]:
        with ExitStack() as stack:
            crew = {name: stack.enter_context(Bench(ENTRANTS[name])) for name in selection.solvers}
            for _, group in groupby(missing, key=lambda task: task.instance):
                with _stage(crew[REFERENCE]) as stage:
                    for task in group:
                        line = None
                        if is_worth_trying(task, book.of(task), selection.rtols):
                            line = _line(task, stage, crew[task.solver], book, selection)
                        yield task, line
                        if line is not None:
                            book.add(line)

    return solved


class _Book:
    """The lines by family and solver: what rules and limits are read off."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines: dict[tuple[str, str], list[Line]] = defaultdict(list)
        for line in lines:
            self.add(line)

    def add(self, line: Line) -> None:
        self._lines[line["family"], line["solver"]].append(line)

    def of(self, task: PeerTask, solver: str | None = None) -> list[Line]:
        """Return the lines of a solver on the family of a task."""
        return self._lines[task.family, solver or task.solver]

    def on_instance(self, task: PeerTask, solver: str) -> list[Line]:
        """Return the first solves of a solver on the instance of a task, as far as they ended."""
        _, size, seed = task.instance
        return [
            line
            for line in self.of(task, solver)
            if (line["size"], line["seed"], line["repeat"]) == (size, seed, 0)
            and line["status"] == "done"
        ]


class _Stage:
    """An instance in a folder for the processes to read, written when first needed."""

    def __init__(self, folder: Path, reference: Bench) -> None:
        self.folder = folder
        self._reference = reference

    def prepare(self, task: PeerTask) -> None:
        """Write the instance, and the optimal potentials unless the task is to find them."""
        if not (self.folder / "M.npy").exists():
            instance = FAMILIES[task.family].build(task.size, task.seed)
            for name, array in zip("Mab", instance, strict=True):
                np.save(self.folder / f"{name}.npy", array)
        if task.is_reference or self._is_solved:
            return
        self._reference.run(Job(self.folder, RelativeSetting(), is_reference=True), REFERENCE_LIMIT)
        if not self._is_solved:
            raise InvalidProblem(
                f"ot.emd2 did not solve {task.family} of size {task.size} within "
                f"{REFERENCE_LIMIT:.0f} s; a smaller size is required (leave it out of --sizes)"
            )

    @property
    def _is_solved(self) -> bool:
        return (self.folder / "reference.npz").exists()


@contextmanager
def _stage(reference: Bench) -> Iterator[_Stage]:
    with tempfile.TemporaryDirectory(prefix="epsilot-bench-") as folder:
        yield _Stage(Path(folder), reference)


def _line(task: PeerTask, stage: _Stage, bench: Bench, book: _Book, selection: Selection) -> Line:
    """Return the line of a task: identity, what was measured, and how far from the optimum."""
    stage.prepare(task)
    limit = _limit(task, book, selection)
    measured = bench.run(Job(stage.folder, task.setting, task.is_reference), limit)
    line = {
        **task.identity,
        "n": FAMILIES[task.family].n_points(task.size),
        "limit": round(limit, 3),
        **measured,
    }
    if line["status"] == "done":
        known = book.on_instance(task, REFERENCE)
        exact = known[0]["value"] if known else line["value"]
        line["error"] = relative(line["value"] - exact, exact)
        line["gap"] = relative(line["value"] - line["lower"], exact)
    return line


def relative(difference: float, exact: float) -> float:
    """Return a difference relative to the optimal cost."""
    return float(difference / max(abs(exact), np.finfo(float).tiny))


def _limit(task: PeerTask, book: _Book, selection: Selection) -> float:
    """Return the seconds a task may take."""
    if not task.is_entropic:
        return REFERENCE_LIMIT
    aims = entropic_aims(selection.rtols)
    ours = [line["seconds"] for line in book.on_instance(task, OURS) if line["rtol"] in aims]
    return selection.limit(max(ours, default=selection.time_limit))
