"""Small solves for the applications: run what is missing, in processes, with progress."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from .store import Store
from .tasks import Line


class Trial(Protocol):
    """One solve: what it is, and how it becomes a line."""

    @property
    def identity(self) -> Line:
        """What distinguishes it from all others, as the first fields of its line."""

    @property
    def key(self) -> str:
        """The identity as text."""

    @property
    def variant(self) -> tuple[str, ...]:
        """What decides which kernels are compiled."""

    def line(self) -> Line:
        """Solve and return the line."""


def key_by(*names: str) -> Callable[[Line], str]:
    """Return the function that makes a line's key of some of its fields."""

    def key(line: Line) -> str:
        return json.dumps([line[name] for name in names], sort_keys=True)

    return key


def run_trials(
    path: Path, trials: Sequence[Trial], key: Callable[[Line], str], jobs: int, console: Any
) -> list[Line]:
    """Solve the trials that the file lacks, and return the lines of all, in their order."""
    from rich.progress import track

    store = Store(path, key)
    missing = [trial for trial in trials if trial not in store]
    for line in track(
        _lines(missing, jobs), "solving", len(missing), console=console, transient=True,
        disable=not console.is_terminal,
    ):  # fmt: skip
        store.append(line)
    store.arrange(trials)
    return store.lines(trials)


def _lines(trials: Sequence[Trial], jobs: int) -> Iterator[Line]:
    """Yield lines as they are solved; one of each variant here, before processes start.

    Two processes that compile one kernel at the same moment can spoil numba's cache.
    """
    first = {trial.variant: trial for trial in reversed(trials)}
    here = trials if jobs == 1 else list(first.values())
    yield from (trial.line() for trial in here)
    rest = [trial for trial in trials if trial not in here]
    if rest:
        from joblib import Parallel, delayed

        pool = Parallel(n_jobs=min(jobs, len(rest)), return_as="generator_unordered")
        yield from pool(delayed(_solved)(trial) for trial in rest)


def _solved(trial: Trial) -> Line:
    return trial.line()
