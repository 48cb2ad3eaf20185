"""Run a batch: a loop over chunks with threads or a cluster, limits, progress and checkpoints."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import parallel
from ..._types import Vector
from ...errors import (
    CertificateError,
    ClusterError,
    ConvergenceWarning,
    InvalidBatch,
    InvalidProblem,
)
from ...files import StrPath
from ...wording import named
from ..clock import Clock
from ..interrupts import graceful_interrupts, watch_signals
from ..request import Request
from ..result import Result, Status
from ..storage import save_or_warn
from .chunks import BatchGoal, ManyPotentials, Plans, SolvedChunk, ordinary, solve_chunk
from .problems import Chunk, GivenProblem, ListChunk, ProblemSource
from .result import CODES, BatchResult, Pairing

if TYPE_CHECKING:
    from ...distributed.cluster import Cluster


def until_ending(chunks: Iterator[Chunk], clock: Clock) -> Iterator[Chunk]:
    """Yield chunks until the clock ends the batch; chunks taken from a source are still solved."""
    for chunk in chunks:
        yield chunk
        if clock.ending() is not None:
            return


def seconds_left(clock: Clock) -> float | None:
    """Return the seconds that are left, as ``max_seconds`` of a request."""
    return max(0.0, clock.seconds_left()) if clock.is_limited else None


class AnsweredChunk(NamedTuple):
    """What is known of the problems of a chunk, how each ended, and what was refused."""

    value: Vector
    lower_bound: Vector
    marginal_error: Vector
    codes: NDArray[np.int8]
    errors: dict[int, str]
    plans: Plans | None
    potentials: ManyPotentials | None


#: Yields the answers to chunks, in their order.
ChunkSolver: TypeAlias = Callable[
    [Iterator[Chunk], BatchGoal, Request, Clock], Iterator[AnsweredChunk]
]


def solve_here(
    chunks: Iterator[Chunk], goal: BatchGoal, request: Request, clock: Clock
) -> Iterator[AnsweredChunk]:
    """Solve chunks by threads; what compiled code leaves over is solved one by one."""
    for solved in parallel.in_order(partial(solve_chunk, goal=goal), chunks):
        yield completed(solved, request, clock)


@dataclass(frozen=True)
class ClusterSolver:
    """Chunks are solved by the workers of a cluster."""

    cluster: Cluster

    def __call__(
        self, chunks: Iterator[Chunk], goal: BatchGoal, request: Request, clock: Clock
    ) -> Iterator[AnsweredChunk]:
        """Solve the first chunk here, which compiles what the workers then load."""
        from ...distributed.task_payloads import in_order

        for chunk in chunks:
            yield completed(solve_chunk(chunk, goal), request, clock)
            break
        there = replace(request, n_threads=None, progress=False)
        items = ((chunk, seconds_left(clock)) for chunk in chunks)
        yield from in_order(self.cluster, partial(answered_there, goal=goal, request=there), items)


def answered_there(
    item: tuple[Chunk, float | None], goal: BatchGoal, request: Request
) -> AnsweredChunk:
    """Return the answers to a chunk that came with the seconds that are left."""
    chunk, left = item
    clock = Clock(left)
    return completed(solve_chunk(chunk, goal), request, clock)


def completed(solved: SolvedChunk, request: Request, clock: Clock) -> AnsweredChunk:
    """Return the answers to a chunk; what is not done goes the ordinary way."""
    codes, errors = np.full(len(solved.is_done), CODES[Status.CERTIFIED], np.int8), {}
    for k in np.flatnonzero(~solved.is_done).tolist():
        ending = clock.ending()
        if ending is not None:
            codes[k] = CODES[ending]
            continue
        try:
            result = ordinary(solved.chunk, k, replace(request, max_seconds=seconds_left(clock)))
        except (InvalidProblem, CertificateError) as error:
            errors[k] = str(error)
            codes[k] = CODES[Status.REFUSED]
            continue
        codes[k] = CODES[result.status]
        solved = _with(solved, k, result)
    numbers = solved.value, solved.lower_bound, solved.marginal_error
    return AnsweredChunk(*numbers, codes, errors, solved.plans, solved.potentials)


def _with(solved: SolvedChunk, k: int, result: Result) -> SolvedChunk:
    """Return the answers of a chunk with that to problem k."""
    solved.value[k], solved.lower_bound[k] = result.value, result.lower_bound
    solved.marginal_error[k] = result.marginal_error
    plans, potentials = solved.plans, solved.potentials
    if plans is not None:
        plans = plans.replaced(k, result.plan_operator.tosparse())
    if potentials is not None:
        potentials = potentials.replaced(k, result.potentials)
    return solved._replace(plans=plans, potentials=potentials)


#: Seconds between two checkpoints.
SAVE_SECONDS = 20.0
#: Ends after which a problem is still to be solved.
UNSOLVED = [CODES[status] for status in (Status.INTERRUPTED, Status.MAX_SECONDS)]


@dataclass(frozen=True)
class BatchConfig:
    """What is asked of a batch, beyond what is asked of each problem."""

    request: Request
    goal: BatchGoal
    on_error: str = "raise"
    pairing: Pairing | None = None
    checkpoint: StrPath | None = None
    resume: StrPath | None = None
    solver: ChunkSolver = solve_here  # threads of this process, or a cluster


@dataclass
class BatchAccumulator:
    """What is known so far of a batch, chunk after chunk."""

    source: ProblemSource
    config: BatchConfig
    digest: str | None = None  # of the problems, where a file has to know them
    size: int = 0
    numbers: list[tuple[Vector, Vector, Vector]] = field(default_factory=list)
    codes: list[NDArray[np.int8]] = field(default_factory=list)
    errors: dict[int, str] = field(default_factory=dict)
    plans: list[Plans] = field(default_factory=list)
    potentials: list[ManyPotentials] = field(default_factory=list)

    def add(self, answered: AnsweredChunk) -> None:
        """Take the answers of the next chunk."""
        self.errors |= {self.size + k: text for k, text in answered.errors.items()}
        self.numbers.append((answered.value, answered.lower_bound, answered.marginal_error))
        self.codes.append(answered.codes)
        self.size += len(answered.codes)
        if answered.plans is not None:
            self.plans.append(answered.plans)
        if answered.potentials is not None:
            self.potentials.append(answered.potentials)

    def result(self, ending: Status | None, seconds: float) -> BatchResult:
        """Return all that is known; problems that were not reached hold NaN and the ending."""
        source, config = self.source, self.config
        n_left = 0 if source.size is None else source.size - self.size
        nothing, none = np.full(n_left, np.nan), np.zeros(n_left + 1, np.int64)
        columns = ([x[c] for x in self.numbers] for c in range(3))
        value, lower, error = (np.concatenate([*column, nothing]) for column in columns)
        rest = np.full(n_left, CODES[ending or Status.INTERRUPTED], np.int8)
        no_plans = Plans(np.zeros((n_left, 2), np.int64), none, none[:0], none[:0], nothing[:0])
        no_potentials = ManyPotentials(none, nothing[:0], none, nothing[:0])
        goal, request = config.goal, config.request
        return BatchResult(
            value,
            lower,
            error,
            np.concatenate([*self.codes, rest]),
            dict(self.errors),
            eps=request.eps,
            rtol=request.rtol,
            seconds=seconds,
            is_complete=ending is None,
            plans=Plans.joined([*self.plans, no_plans]) if goal.plans else None,
            potentials=(
                ManyPotentials.joined([*self.potentials, no_potentials])
                if goal.potentials
                else None
            ),
            pairing=config.pairing,
            digest=self.digest,
            source=source,
        )

    def save(self, seconds: float) -> None:
        """Write a checkpoint, if the config names one."""
        if self.config.checkpoint is not None:
            save_or_warn(self.config.checkpoint, self.result(Status.INTERRUPTED, seconds).save)

    def restore(self, path: StrPath) -> None:
        """Take the answers that a file holds, up to the first that is missing."""
        known, goal = BatchResult.load(path), self.config.goal
        asked = self.config.request.eps, self.config.request.rtol, self.source.size, self.digest
        if (known.eps, known.rtol, len(known), known.digest) != asked:
            raise InvalidProblem(
                f"{named(path)} holds the results of other problems, or to another accuracy; give "
                "those that it was written for, or leave out resume."
            )
        missing = [
            name
            for name, is_wanted in (("plans", goal.plans), ("potentials", goal.potentials))
            if is_wanted and getattr(known, name) is None
        ]
        if missing:
            raise InvalidProblem(
                f"{named(path)} has no {' and no '.join(missing)}; leave out "
                f"{'=True and '.join(missing)}=True, or leave out resume."
            )
        is_open = np.isin(known.codes, UNSOLVED)
        n = int(np.argmax(is_open)) if is_open.any() else len(known)
        if n == 0:
            return
        self.size = n
        self.numbers.append((known.value[:n], known.lower_bound[:n], known.marginal_error[:n]))
        self.codes.append(known.codes[:n])
        self.errors |= {k: text for k, text in known.errors.items() if k < n}
        if goal.plans and known.plans is not None:
            self.plans.append(known.plans.first(n))
        if goal.potentials and known.potentials is not None:
            self.potentials.append(known.potentials.first(n))


def run_batch(source: ProblemSource, config: BatchConfig) -> BatchResult:
    """Solve all problems, and say in the end what was refused or left out."""
    request, is_filed = config.request, config.resume is not None or config.checkpoint is not None
    results = BatchAccumulator(source, config, _digest(source) if is_filed else None)
    if config.resume is not None:
        results.restore(config.resume)
    if config.solver is solve_here:
        _warm_up(config.goal.potentials)
    with (
        parallel.limit(request.n_threads),
        graceful_interrupts() as interrupted,
        _counter(request.progress, source.size, results.size) as show,
    ):
        watch_signals()
        began = saved = time.perf_counter()
        clock = Clock(request.max_seconds, interrupted)
        chunks = until_ending(source.chunks(results.size), clock)
        try:
            for answered in config.solver(chunks, config.goal, request, clock):
                results.add(answered)
                show(results.size)
                if time.perf_counter() - saved > SAVE_SECONDS:
                    results.save(time.perf_counter() - began)
                    saved = time.perf_counter()
        except ClusterError:
            results.save(time.perf_counter() - began)
            raise
        ending = None if results.size == source.size else clock.ending()
    result = results.result(ending, time.perf_counter() - began)
    if config.checkpoint is not None:
        save_or_warn(config.checkpoint, result.save)
    _report(result, config.on_error)
    return result


@cache
def _warm_up(with_potentials: bool) -> None:
    """Compile on a tiny problem, so that no limit sees the compiler."""
    tiny = ListChunk(0, [GivenProblem(np.zeros((1, 1)), np.ones(1), None)], normalize=False)
    solve_chunk(tiny, BatchGoal(0.0, 1.0, potentials=with_potentials))


def _digest(source: ProblemSource) -> str:
    """Return a hash of problems by which a file knows them, or say that they have none."""
    digest = source.digest()
    if digest is None:
        raise InvalidProblem(
            "checkpoint and resume need problems that can be read twice; pass lists or arrays "
            "instead of an iterator."
        )
    return digest


def _report(result: BatchResult, on_error: str) -> None:
    """Warn of what was left out, and raise if a problem was refused."""
    n_good, n_refused = int(result.converged.sum()), len(result.errors)
    if not result.is_complete or n_good + n_refused < len(result):
        ended = "stopped early" if not result.is_complete else "done"
        warnings.warn(
            f"{ended}: of {len(result):,} problems {n_good:,} are certified and {n_refused:,} "
            "refused; the others hold what is known of them, or NaN.",
            ConvergenceWarning,
            stacklevel=4,
        )
    if result.errors and on_error == "raise":
        k = min(result.errors)
        raise InvalidBatch(
            f"{len(result.errors):,} of {len(result):,} problems were refused, first problem {k}: "
            f"{result.errors[k].removesuffix('.')} (the error's .result holds the others).",
            result,
        )


@contextmanager
def _counter(is_wanted: bool, size: int | None, start: int) -> Iterator[Callable[[int], None]]:
    """Count on the terminal, if that is wanted."""
    if not is_wanted:
        yield lambda n_done: None
        return
    from ...display.progress import Counter

    with Counter(size, start) as counter:
        yield counter.show
