"""Solve the tasks that a store lacks, in several processes, and show the time left."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from epsilot import parallel

from .store import Expected, KeyedTask, Line, Store, Task
from .worker import ONE_BLAS_THREAD, Worker, follow_parent, replies

if TYPE_CHECKING:
    from rich.console import Console


E = TypeVar("E", bound=Expected)
T = TypeVar("T", bound=Task)
K = TypeVar("K", bound=KeyedTask)
#: Solve tasks; yield each with its line, or with None if the solve was skipped.
Way = Callable[[Sequence[E]], Generator[tuple[E, Line | None]]]


def run_tasks(tasks: Sequence[E], store: Store, console: Console, way: Way[E]) -> list[Line]:
    """Solve the tasks that the store lacks, append each line as it comes, and return all lines.

    Parameters
    ----------
    tasks
        The solves of a study, in the order of its file.
    store
        What is solved already; it is arranged in the order of the tasks at the end.
    console
        Terminal that shows the progress; nothing is shown elsewhere.
    way
        How they are solved, such as :func:`in_processes`.
    """
    missing = [task for task in dict.fromkeys(tasks) if task not in store]
    with show_progress(console, missing) as advance, closing(way(missing)) as solved:
        for task, line in solved:
            if line is not None:
                store.append(line)
            advance(task)
    store.arrange(tasks)
    return store.lines(tasks)


@dataclass(frozen=True)
class ExperimentSetup:
    """Where an experiment of the paper writes, and how much it does at a time."""

    out: Path
    quick: bool
    seeds: int | None  # repetitions; None: as many as the experiment has
    jobs: int
    console: Console

    @property
    def scale(self) -> str:
        """The word of the command line for the size of the experiment."""
        return "--quick" if self.quick else "--full"

    def store(self, key: Sequence[str]) -> Store:
        """Return the store of the experiment, whose lines have this key."""
        return Store(self.out / "solves.jsonl", key)

    def solve(self, tasks: Sequence[T], store: Store) -> list[Line]:
        """Solve the tasks that the store lacks, and return the lines of all."""
        return run_tasks(tasks, store, self.console, in_processes(self.jobs))


def in_processes(jobs: int) -> Way[T]:
    """Return a function that solves tasks in several processes, with one thread each.

    The longest tasks come first, so that the processes end together. Timed tasks run after all
    others, one at a time, with every core to themselves.
    """

    def solved(missing: Sequence[T]) -> Generator[tuple[T, Line | None]]:
        shared = sorted((t for t in missing if not t.is_timed), key=lambda t: -t.seconds)
        count = min(jobs, len(shared))
        yield from _parallel(shared, count) if count > 1 else _serial(shared, 1)
        yield from _serial([task for task in missing if task.is_timed], None)

    return solved


def in_own_processes(study: str) -> Way[K]:
    """Return a function that solves each task in a new process, ``STUDY --child FIELDS``."""

    def solved(missing: Sequence[K]) -> Generator[tuple[K, Line | None]]:
        for task in missing:
            fields = json.dumps(list(vars(task).values()))
            command = [sys.executable, "-m", "epsilot_lab", study, "--child", fields]
            made = subprocess.run(command, capture_output=True, text=True, check=True)
            yield task, json.loads(made.stdout.splitlines()[-1])

    return solved


def _serial(tasks: Sequence[T], n_threads: int | None) -> Iterator[tuple[T, Line]]:
    for task in tasks:
        yield task, _line(task, n_threads)


def _line(task: Task, n_threads: int | None) -> Line:
    with parallel.limit(n_threads):
        return task.line()


def _parallel(tasks: Sequence[T], jobs: int) -> Iterator[tuple[T, Line | None]]:
    """Yield lines as they are solved by spawned processes.

    Every variant is compiled here beforehand, so that processes find kernels in the cache: two
    that compile one kernel at the same moment can spoil it.
    """
    for task in {task.variant: task for task in tasks}.values():
        task.warm_up()
    workers: list[Worker[Line | BaseException]]
    workers = [Worker(_serve, variables=ONE_BLAS_THREAD) for _ in range(jobs)]
    with closing(replies(tasks, workers)) as found:
        for reply in found:
            if reply.failure is not None:
                raise reply.failure
            if isinstance(reply.answer, BaseException):
                raise reply.answer
            yield reply.request, reply.answer


def _serve(pipe: Connection) -> None:
    """Solve the tasks of a pipe; send back lines or exceptions, KeyboardInterrupt included."""
    follow_parent()
    while True:
        task: Task = pipe.recv()
        try:
            pipe.send(_line(task, 1))
        except BaseException as error:
            pipe.send(error)


@contextmanager
def show_progress(
    console: Console, missing: Sequence[Expected]
) -> Iterator[Callable[[Expected], None]]:
    """Show the current solve and the time left, if the console is a terminal."""
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.fields[done]}/{task.fields[of]} solves"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(
        *columns,
        console=console,
        transient=True,
        speed_estimate_period=300,
        disable=not console.is_terminal,
    ) as progress:
        total = sum(task.seconds for task in missing)
        bar = progress.add_task("", total=total, done=0, of=len(missing))
        done = 0

        def advance(task: Expected) -> None:
            nonlocal done
            done += 1
            progress.update(bar, advance=task.seconds, description=task.label, done=done)

        yield advance
