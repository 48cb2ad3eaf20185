"""Processes that run cases under a watchdog: an abort or a hang costs one worker, not the run."""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

from epsilot_lab.store import Line
from epsilot_lab.worker import ONE_BLAS_THREAD, Late, Reply, Worker, follow_parent, replies

from .cases import Case, line_of, run_case
from .outcome import Outcome

HANG_SECONDS = 60.0
#: Address space of a worker: what asks for more memory than this gets a MemoryError.
MEMORY = 12 << 30
CACHE = os.environ.get("NUMBA_CACHE_DIR", str(Path.home() / ".cache" / "epsilot-campaign"))


def serve(pipe: Connection, folder: str) -> None:
    """Run cases as they come, in a folder of scratch files, until the other end goes away."""
    follow_parent()
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
    with tempfile.TemporaryDirectory(prefix="campaign-", ignore_cleanup_errors=True) as scratch:
        crew = []
        for number in range(jobs):
            folder = Path(scratch) / str(number)
            folder.mkdir()
            own = {} if cache is None else {"NUMBA_CACHE_DIR": f"{cache}/worker-{number}"}
            crew.append(Worker(serve, str(folder), variables={**ONE_BLAS_THREAD, **own}))
        with closing(replies(cases, crew, hang_seconds, retries=1)) as found:
            for reply in found:
                yield _line(reply)


def _line(reply: Reply[Case, Line]) -> Line:
    """Return the line of a case that has ended, crashed or hung."""
    if reply.answer is not None:
        return reply.answer
    is_late = isinstance(reply.failure, Late)
    text = f"{reply.failure}, twice" if is_late else str(reply.failure)
    outcome = Outcome("-", ending="hung" if is_late else "crashed", defects=[text])
    return line_of(reply.request, outcome, reply.seconds)
