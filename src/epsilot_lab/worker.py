"""Run a function in worker processes with time limits; kill and replace those that hang."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Literal, Self, TypeVar

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext

#: Variables that keep BLAS libraries to one thread. Their threads wait in busy loops, which is
#: expensive where processes share the cores.
ONE_BLAS_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")
#: Seconds between two looks at the clock of workers that have not answered.
_POLL = 0.5

R = TypeVar("R")  # a request to a process
A_co = TypeVar("A_co", covariant=True)  # what it sends back


class Failure(Exception):
    """A worker did not answer."""


class Late(Failure):
    """The answer did not come in time; the process has been killed."""


class Died(Failure):
    """The process ended before it answered."""


class Worker(Generic[A_co]):
    """The parent's end of a process: started when first needed, replaced after its end.

    Parameters
    ----------
    serve
        Runs in the process, with a pipe and the arguments: receives requests, sends answers.
    arguments
        What else ``serve`` is called with.
    start
        How processes start, as :mod:`multiprocessing` names it.
    preload
        Modules that a server imports once, for its forks to share.
    variables
        Environment of the process, beyond ours.
    """

    def __init__(
        self,
        serve: Callable[..., None],
        *arguments: object,
        start: Literal["spawn", "forkserver"] = "spawn",
        preload: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._serve = serve
        self._arguments = arguments
        self._variables = variables or {}
        self._context: SpawnContext | ForkServerContext = (
            get_context("spawn")
            if start == "spawn" or sys.platform == "win32"
            else get_context("forkserver")
        )
        if preload and sys.platform != "win32":
            self._context.set_forkserver_preload(list(preload))
        self._running: tuple[BaseProcess, Connection] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def pipe(self) -> Connection:
        """The pipe to the process, which is started if there is none."""
        _, pipe = self._running or self._started()
        return pipe

    def _started(self) -> tuple[BaseProcess, Connection]:
        pipe, theirs = self._context.Pipe()
        with environment(self._variables):
            process = self._context.Process(
                target=self._serve, args=(theirs, *self._arguments), daemon=True
            )
            process.start()
        theirs.close()
        self._running = process, pipe
        return self._running

    def send(self, request: object) -> None:
        """Hand over a request; whether the process lives is seen when it should answer."""
        pipe = self.pipe
        try:
            pipe.send(request)
        except OSError:
            return

    def receive(self, limit: float = math.inf) -> A_co:
        """Return the next answer; raise :class:`Late` after so many seconds, or :class:`Died`."""
        process, pipe = self._running or self._started()
        try:
            if not pipe.poll(None if limit == math.inf else limit):
                raise _killed(self, limit)
            answer: A_co = pipe.recv()
        except (EOFError, OSError):
            process.join()
            self.kill()
            raise Died(f"the process ended with code {process.exitcode}") from None
        return answer

    def kill(self) -> None:
        """End the process at once."""
        if self._running is not None:
            process, pipe = self._running
            process.kill()
            process.join()
            pipe.close()
            self._running = None


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables for the processes started inside the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def follow_parent() -> None:
    """Let the parent deal with Ctrl-C, and end with it whatever ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


# -- several at once -------------------------------------------------------------------------


@dataclass(frozen=True)
class Reply(Generic[R, A_co]):
    """The outcome of a request: an answer, or a failure."""

    request: R
    answer: A_co | None
    failure: Failure | None
    seconds: float


@dataclass(frozen=True)
class _Turn(Generic[R]):
    """A request that a worker is at."""

    request: R
    began: float
    retries: int


def replies(
    requests: Iterable[R],
    workers: Sequence[Worker[A_co]],
    limit: float = math.inf,
    retries: int = 0,
) -> Generator[Reply[R, A_co]]:
    """Hand requests to whoever is free, and yield replies as they come.

    Parameters
    ----------
    requests
        Taken one at a time, when a worker is free.
    workers
        The workers; they are killed at the end, whatever ends it.
    limit
        Seconds that an answer may take.
    retries
        How often a request that was late is tried again: its first run may have compiled.
    """
    source = iter(requests)
    busy: dict[Worker[A_co], _Turn[R]] = {}

    def hand(worker: Worker[A_co]) -> None:
        for request in source:
            worker.send(request)
            busy[worker] = _Turn(request, time.monotonic(), retries)
            return

    try:
        for worker in workers:
            hand(worker)
        while busy:
            ready = wait([worker.pipe for worker in busy], timeout=_POLL)
            for worker, turn in list(busy.items()):
                seconds = time.monotonic() - turn.began
                is_ready = worker.pipe in ready
                if not is_ready and seconds < limit:
                    continue
                answer, failure = _received(worker) if is_ready else (None, _killed(worker, limit))
                if isinstance(failure, Late) and turn.retries:
                    worker.send(turn.request)
                    began = time.monotonic()
                    busy[worker] = replace(turn, began=began, retries=turn.retries - 1)
                    continue
                del busy[worker]
                hand(worker)
                yield Reply(turn.request, answer, failure, seconds)
    finally:
        for worker in workers:
            worker.kill()


def _received(worker: Worker[A_co]) -> tuple[A_co | None, Failure | None]:
    """Return the answer that is there, or why there is none."""
    try:
        return worker.receive(), None
    except Failure as failure:
        return None, failure


def _killed(worker: Worker[object], limit: float) -> Late:
    """End a process whose time is up, and return the failure."""
    worker.kill()
    return Late(f"no answer within {limit:g} s")
