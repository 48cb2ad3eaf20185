"""The answers to the chunks of a batch, one after the other: by threads, or by a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import parallel
from ..._types import Vector
from ...errors import CertificateError, InvalidProblem
from ..request import Request
from ..result import Result, Status
from .blocks import ManyPotentials, Plans
from .chunk import Solved, Wish, solve_chunk
from .result import CODES
from .single import ordinary
from .source import Chunk

if TYPE_CHECKING:
    from ...distributed.cluster import Cluster


@dataclass(frozen=True)
class Watch:
    """Tells whether a batch has to end, and with what status."""

    began: float
    limit: float | None
    interrupted: Callable[[], bool]

    @property
    def seconds(self) -> float:
        """Seconds since the batch began."""
        return time.perf_counter() - self.began

    def left(self) -> float | None:
        """Return the seconds that are left."""
        return None if self.limit is None else max(0.0, self.limit - self.seconds)

    def ending(self) -> Status | None:
        """Return how the batch ends now, if it has to."""
        if self.interrupted():
            return Status.INTERRUPTED
        return Status.MAX_SECONDS if self.left() == 0 else None

    def allowed(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """Yield chunks until the batch has to end; what was taken from a source is still solved."""
        for chunk in chunks:
            yield chunk
            if self.ending() is not None:
                return


class Answered(NamedTuple):
    """What is known of the problems of a chunk, how each ended, and what was refused."""

    value: Vector
    lower_bound: Vector
    marginal_error: Vector
    codes: NDArray[np.int8]
    errors: dict[int, str]
    plans: Plans | None
    potentials: ManyPotentials | None


#: Yields the answers to chunks, in their order.
Answers: TypeAlias = Callable[[Iterator[Chunk], Wish, Request, Watch], Iterator[Answered]]


def answers_here(
    chunks: Iterator[Chunk], wish: Wish, request: Request, watch: Watch
) -> Iterator[Answered]:
    """Solve chunks by threads; what compiled code leaves over is solved one by one."""
    for solved in parallel.in_order(partial(solve_chunk, wish=wish), chunks):
        yield completed(solved, request, watch)


@dataclass(frozen=True)
class AnswersFrom:
    """Chunks are solved by the workers of a cluster."""

    cluster: Cluster

    def __call__(
        self, chunks: Iterator[Chunk], wish: Wish, request: Request, watch: Watch
    ) -> Iterator[Answered]:
        """Solve the first chunk here, which compiles what the workers then load."""
        from ...distributed.parcels import in_order

        for chunk in chunks:
            yield completed(solve_chunk(chunk, wish), request, watch)
            break
        there = replace(request, n_threads=None, progress=False)
        items = ((chunk, watch.left()) for chunk in chunks)
        yield from in_order(self.cluster, partial(answered_there, wish=wish, request=there), items)


def answered_there(item: tuple[Chunk, float | None], wish: Wish, request: Request) -> Answered:
    """Return the answers to a chunk that came with the seconds that are left."""
    chunk, left = item
    watch = Watch(time.perf_counter(), left, bool)
    return completed(solve_chunk(chunk, wish), request, watch)


def completed(solved: Solved, request: Request, watch: Watch) -> Answered:
    """Return the answers to a chunk; what is not done goes the ordinary way."""
    codes, errors = np.full(len(solved.is_done), CODES[Status.CERTIFIED], np.int8), {}
    for k in np.flatnonzero(~solved.is_done).tolist():
        ending = watch.ending()
        if ending is not None:
            codes[k] = CODES[ending]
            continue
        try:
            result = ordinary(solved.chunk, k, replace(request, max_seconds=watch.left()))
        except (InvalidProblem, CertificateError) as error:
            errors[k] = str(error)
            codes[k] = CODES[Status.REFUSED]
            continue
        codes[k] = CODES[result.status]
        solved = _with(solved, k, result)
    numbers = solved.value, solved.lower_bound, solved.marginal_error
    return Answered(*numbers, codes, errors, solved.plans, solved.potentials)


def _with(solved: Solved, k: int, result: Result) -> Solved:
    """Return the answers of a chunk with that to problem k."""
    solved.value[k], solved.lower_bound[k] = result.value, result.lower_bound
    solved.marginal_error[k] = result.marginal_error
    plans, potentials = solved.plans, solved.potentials
    if plans is not None:
        plans = plans.replaced(k, result.plan_operator.tosparse())
    if potentials is not None:
        potentials = potentials.replaced(k, result.potentials)
    return solved._replace(plans=plans, potentials=potentials)
