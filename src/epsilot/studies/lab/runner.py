"""Solve what is not solved yet: in several processes, with the time left on show."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any, Protocol

from ... import solve
from .store import Store
from .tasks import Interrupted, Line, Task, instance, solve_task

#: What tells BLAS libraries how many threads to use. Theirs wait for each other in busy loops,
#: which costs more than all else where processes share the cores.
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def run_tasks(tasks: Sequence[Task], store: Store, jobs: int, console: Any) -> None:
    """Solve the tasks that the store lacks and append each as it ends.

    Timed tasks run after all others, one at a time, with every core to themselves; the others
    have one thread each. The longest come first, so that the processes end together.
    """
    missing = [task for task in dict.fromkeys(tasks) if task not in store]
    shared = sorted((t for t in missing if not t.is_timed), key=lambda t: -t.seconds)
    timed = [task for task in missing if task.is_timed]
    jobs = max(1, min(jobs, len(shared)))
    with show_progress(console, missing) as advance:
        solved = _parallel(shared, jobs) if jobs > 1 else _serial(shared, 1)
        for task, line in solved:
            store.append(line)
            advance(task)
        for task, line in _serial(timed, None):
            store.append(line)
            advance(task)
    store.arrange(tasks)


def _serial(tasks: Sequence[Task], n_threads: int | None) -> Iterator[tuple[Task, Line]]:
    for task in tasks:
        yield task, solve_task(task, n_threads)


def _parallel(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[Task, Line]]:
    """Yield lines as they are solved by spawned processes."""
    _compile(tasks)
    os.environ.update(dict.fromkeys(BLAS_THREADS, "1"))  # for the processes: BLAS is loaded here
    pool = ProcessPoolExecutor(
        jobs, mp_context=multiprocessing.get_context("spawn"), initializer=start_worker
    )
    try:
        futures: dict[Future[Line | None], Task] = {
            pool.submit(_solve_in_worker, task): task for task in tasks
        }
        for future in as_completed(futures):
            line = future.result()
            if line is None:
                raise Interrupted
            yield futures[future], line
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    pool.shutdown()


def _compile(tasks: Sequence[Task]) -> None:
    """Compile every method here, so that processes find kernels in the cache.

    Two processes that compile one kernel at the same moment can spoil numba's cache.
    """
    seen = set()
    for task in tasks:
        variant = (task.method, task.stop, task.options)
        if variant not in seen:
            seen.add(variant)
            solve(
                *instance("synthetic", 3, 0), eps=0.5, method=task.method, stop=task.stop,
                max_iter=2, n_threads=1, on_limit="ignore", **dict(task.options),
            )  # fmt: skip


def start_worker() -> None:
    """Let the parent deal with Ctrl-C, and end with it whatever ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _solve_in_worker(task: Task) -> Line | None:
    """Return the line, or None when Ctrl-C reached this process in the middle of a solve."""
    try:
        return solve_task(task, 1)
    except Interrupted:
        return None


class Expected(Protocol):
    """What is known of a solve before it is made."""

    @property
    def seconds(self) -> float:
        """Expected time."""

    @property
    def label(self) -> str:
        """What is being solved, in a few words."""


@contextmanager
def show_progress(
    console: Any, missing: Sequence[Expected]
) -> Iterator[Callable[[Expected], None]]:
    """Show what is being done and the time left, where somebody is looking."""
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
        *columns, console=console, transient=True, speed_estimate_period=300,
        disable=not console.is_terminal,
    ) as progress:  # fmt: skip
        total = sum(task.seconds for task in missing)
        bar = progress.add_task("", total=total, done=0, of=len(missing))
        done = 0

        def advance(task: Expected) -> None:
            nonlocal done
            done += 1
            progress.update(bar, advance=task.seconds, description=task.label, done=done)

        yield advance
