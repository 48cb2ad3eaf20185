"""Processes that run cases under a watchdog: an abort or a hang costs one worker, not the run."""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from .cases import Case, Line, line_of, run_case
from .outcome import Outcome

HANG_SECONDS = 60.0
#: Address space of a worker: what asks for more memory than this gets a MemoryError.
MEMORY = 12 << 30
CACHE = os.environ.get("NUMBA_CACHE_DIR", str(Path.home() / ".cache" / "epsilot-campaign"))
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


@dataclass
class Worker:
    """One process, the pipe to it and the case it is at."""

    number: int
    cache: str | None  # where kernels are kept; None: where this process keeps them
    serve: Callable[[Connection, str], None]
    process: Any = None
    pipe: Any = None
    case: Case | None = None
    began: float = 0.0
    is_retry: bool = False
    folder: str = field(default_factory=lambda: tempfile.mkdtemp(prefix="campaign-"))

    def start(self) -> None:
        """Start the process."""
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        settings = dict.fromkeys(BLAS_THREADS, "1")
        if self.cache is not None:
            settings["NUMBA_CACHE_DIR"] = f"{self.cache}/worker-{self.number}"
        with environment(settings):
            self.process = context.Process(
                target=self.serve, args=(theirs, self.folder), daemon=True
            )
            self.process.start()
        theirs.close()

    def give(self, case: Case, is_retry: bool = False) -> None:
        """Hand over a case."""
        if self.process is None:
            self.start()
        self.case, self.began, self.is_retry = case, time.monotonic(), is_retry
        self.pipe.send(case)

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
            self.process = None

    def close(self) -> None:
        """End the process and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def environment(settings: dict[str, str]) -> Iterator[None]:
    """Set variables for the processes started inside the block."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def serve(pipe: Connection, folder: str) -> None:
    """Run cases as they come, in a folder of scratch files, until the other end goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    os.chdir(folder)
    while True:
        try:
            case = pipe.recv()
        except EOFError:
            return
        pipe.send(run_case(case))


def run_cases(
    cases: Iterator[Case],
    jobs: int,
    hang_seconds: float = HANG_SECONDS,
    *,
    cache: str | None = CACHE,
    serve: Callable[[Connection, str], None] = serve,
) -> Iterator[Line]:
    """Yield the lines of cases as they end.

    A case that hangs is tried once more, since the first use of a kernel compiles it. Each
    worker has its own part of the kernel ``cache``: two that compile one kernel at the same
    moment can spoil it.
    """
    workers = [Worker(k, cache, serve) for k in range(jobs)]
    try:
        for worker in workers:
            _next(worker, cases)
        while busy := [w for w in workers if w.case is not None]:
            ready = wait([w.pipe for w in busy], timeout=0.5)
            for worker in busy:
                line = _line(worker, worker.pipe in ready, hang_seconds)
                if line is not None:
                    _next(worker, cases)
                    yield line
    finally:
        for worker in workers:
            worker.close()


def _next(worker: Worker, cases: Iterator[Case]) -> None:
    """Give a worker the next case, if there is one."""
    worker.case = None
    case = next(cases, None)
    if case is not None:
        worker.give(case)


def _line(worker: Worker, is_ready: bool, hang_seconds: float) -> Line | None:
    """Return the line of a case that has ended, crashed or hung, else None."""
    assert worker.case is not None
    case, seconds = worker.case, time.monotonic() - worker.began
    if is_ready:
        try:
            line: Line = worker.pipe.recv()
            return line
        except (EOFError, ConnectionResetError):
            worker.process.join()
            text = f"the process ended with code {worker.process.exitcode}"
            worker.stop()
            return line_of(case, Outcome("-", ending="crashed", defects=[text]), seconds)
    if seconds < hang_seconds:
        return None
    was_retry = worker.is_retry
    worker.stop()
    if not was_retry:
        worker.give(case, is_retry=True)
        return None
    text = f"no answer within {hang_seconds:g} s, twice"
    return line_of(case, Outcome("-", ending="hung", defects=[text]), seconds)
