"""Run the trials that are missing, one at a time, each in the process of its solver."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InvalidProblem
from ..lab.runner import show_progress
from ..lab.store import Store
from ..lab.tasks import Line
from .entrants import ENTRANTS, OURS, REFERENCE, Choice
from .plan import Selection, Trial, entropic_aims, is_worth_trying
from .problems import FAMILIES
from .worker import Job, Worker

REFERENCE_LIMIT = 900.0


def run_trials(selection: Selection, store: Store, console: Any) -> list[Line]:
    """Solve what the store lacks, append each line as it is measured, and return all lines."""
    trials = selection.trials()
    missing = [trial for trial in trials if trial not in store]
    book = _Book(store.lines(trials))
    with ExitStack() as stack:
        crew = {name: stack.enter_context(Worker(ENTRANTS[name])) for name in selection.solvers}
        advance = stack.enter_context(show_progress(console, missing))
        for _, group in groupby(missing, key=lambda trial: trial.problem):
            with _stage(crew[REFERENCE]) as stage:
                for trial in group:
                    if is_worth_trying(trial, book.of(trial), selection.rtols):
                        line = _solved(trial, stage, crew[trial.solver], book, selection)
                        store.append(line)
                        book.add(line)
                    advance(trial)
    store.arrange(trials)
    return store.lines(trials)


class _Book:
    """The lines by family and solver: what rules and limits are read off."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines: dict[tuple[str, str], list[Line]] = defaultdict(list)
        for line in lines:
            self.add(line)

    def add(self, line: Line) -> None:
        self._lines[line["family"], line["solver"]].append(line)

    def of(self, trial: Trial, solver: str | None = None) -> list[Line]:
        """Return the lines of a solver on the family of a trial."""
        return self._lines[trial.family, solver or trial.solver]

    def on_problem(self, trial: Trial, solver: str) -> list[Line]:
        """Return the first solves of a solver on the problem of a trial, as far as they ended."""
        _, size, seed = trial.problem
        return [
            line
            for line in self.of(trial, solver)
            if (line["size"], line["seed"], line["repeat"]) == (size, seed, 0)
            and line["status"] == "done"
        ]


class _Stage:
    """A problem in a folder for the processes to read, written when first needed."""

    def __init__(self, folder: Path, reference: Worker) -> None:
        self.folder = folder
        self._reference = reference

    def prepare(self, trial: Trial) -> None:
        """Write the problem, and the optimal potentials unless the trial is to find them."""
        if not (self.folder / "M.npy").exists():
            problem = FAMILIES[trial.family].build(trial.size, trial.seed)
            for name, array in zip("Mab", problem, strict=True):
                np.save(self.folder / f"{name}.npy", array)
        if not trial.is_reference and not (self.folder / "reference.npz").exists():
            self._reference.run(Job(self.folder, Choice(), is_reference=True), REFERENCE_LIMIT)
        if not trial.is_reference and not (self.folder / "reference.npz").exists():
            raise InvalidProblem(
                f"ot.emd2 did not solve {trial.family} of size {trial.size} within "
                f"{REFERENCE_LIMIT:.0f} s; a smaller size is required (leave it out of --sizes)"
            )


@contextmanager
def _stage(reference: Worker) -> Iterator[_Stage]:
    with tempfile.TemporaryDirectory(prefix="epsilot-bench-") as folder:
        yield _Stage(Path(folder), reference)


def _solved(trial: Trial, stage: _Stage, worker: Worker, book: _Book, selection: Selection) -> Line:
    """Return the line of a trial: identity, what was measured, and how far from the optimum."""
    stage.prepare(trial)
    limit = _limit(trial, book, selection)
    measured = worker.run(Job(stage.folder, trial.choice, trial.is_reference), limit)
    line = {
        **trial.identity,
        "n": FAMILIES[trial.family].n_points(trial.size),
        "limit": round(limit, 3),
        **measured,
    }
    if line["status"] == "done":
        known = book.on_problem(trial, REFERENCE)
        exact = known[0]["value"] if known else line["value"]
        line["error"] = relative(line["value"] - exact, exact)
        line["gap"] = relative(line["value"] - line["lower"], exact)
    return line


def relative(difference: float, exact: float) -> float:
    """Return a difference relative to the optimal cost."""
    return float(difference / max(abs(exact), np.finfo(float).tiny))


def _limit(trial: Trial, book: _Book, selection: Selection) -> float:
    """Return the seconds a trial may take."""
    if not trial.is_entropic:
        return REFERENCE_LIMIT
    aims = entropic_aims(selection.rtols)
    ours = [line["seconds"] for line in book.on_problem(trial, OURS) if line["rtol"] in aims]
    return selection.limit(max(ours, default=selection.time_limit))
