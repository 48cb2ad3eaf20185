"""Run a batch: solve chunks of problems by threads or a cluster, with limits and checkpoints.

Small balanced problems without regularisation are solved by compiled code, a whole chunk at a
time. All other problems go one by one through ``execute``, as in ``solve``.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ... import parallel
from ..._types import Index, Vector
from ...arithmetic import keeping_subnormals
from ...errors import (
    CertificateError,
    ClusterError,
    ConvergenceWarning,
    Interrupted,
    InvalidBatch,
    InvalidProblem,
)
from ...files import StrPath
from ...kernels.compile_watch import compile_seconds, solver_clock
from ...kernels.small import (
    Answers,
    Problems,
    SmallGoal,
    blank,
    extend_potentials,
    have_equal_masses,
    potentials_to_user,
    solve_all,
    uniform_histograms,
)
from ...problems.balanced import Balanced
from ...problems.work import Status
from ...wording import named
from ..clock import Clock, started
from ..execute import execute
from ..goal import RTOL
from ..interrupts import AGAIN, graceful_interrupts, watch_signals
from ..request import Request
from ..result import Result
from ..storage import save_or_warn
from ..tuning import TUNING
from .problems import Chunk, ProblemSource, flat, own, places
from .result import (
    CODES,
    Answer,
    BatchResult,
    ManyPotentials,
    Pairing,
    Plans,
    RunFields,
    asked_of,
    run_fields,
)

if TYPE_CHECKING:
    from ...distributed.cluster import Cluster

#: Plans, or potentials, of many problems.
Stored = TypeVar("Stored", Plans, ManyPotentials)
#: Code of a problem that has no answer yet.
NO_ANSWER = -1
#: Codes of problems that a resumed batch solves.
UNSOLVED = [CODES[status] for status in (Status.INTERRUPTED, Status.MAX_SECONDS)]


@dataclass(frozen=True)
class BatchGoal:
    """The gap to reach in every problem (``eps``, or ``rtol`` if it is 0), and what to keep."""

    eps: float
    rtol: float
    plans: bool = False
    potentials: bool = False
    is_compiled: bool = True  # whether compiled code may solve the problems

    @classmethod
    def of(cls, request: Request, *, plans: bool = False, potentials: bool = False) -> BatchGoal:
        """Return the goal of a request."""
        rtol = RTOL if request.rtol is None else request.rtol
        return cls(float(request.eps or 0.0), float(rtol), plans, potentials, _is_compiled(request))

    @property
    def slowdown(self) -> float:
        """Seconds per problem, as a multiple of those of the compiled solver."""
        return 1.0 if self.is_compiled else TUNING.execute_slowdown


def _is_compiled(request: Request) -> bool:
    """Tell whether the compiled solver answers a request: balanced, not regularised, any method."""
    return (
        isinstance(request.kind, Balanced)
        and request.reg is None
        and request.method == "auto"
        and request.stop == "certificate"
        and request.max_iter is None
        and not request.options
    )


class Numbers(NamedTuple):
    """The numbers of some problems; those without an answer have NaN and the code NO_ANSWER."""

    value: Vector
    lower_bound: Vector
    marginal_error: Vector
    codes: NDArray[np.int8]

    @classmethod
    def empty(cls, size: int, code: int) -> Numbers:
        """Return the numbers of problems that have no answer."""
        nothing = np.full((3, size), np.nan)
        return cls(nothing[0], nothing[1], nothing[2], np.full(size, code, np.int8))


@dataclass
class ChunkAnswers:
    """The answers to the problems of one chunk."""

    numbers: Numbers
    plans: Plans | None
    potentials: ManyPotentials | None
    errors: dict[int, str] = field(default_factory=dict)
    runs: dict[int, RunFields] = field(default_factory=dict)

    def take(self, results: dict[int, Result]) -> None:
        """Enter the results of single problems."""
        for k, result in results.items():
            value, lower, error, codes = self.numbers
            value[k], lower[k] = result.value, result.lower_bound
            error[k], codes[k] = result.marginal_error, CODES[result.status]
            if self.plans is not None and self.potentials is not None:
                self.runs[k] = run_fields(result)
        if self.plans is not None:
            own_plans = {k: Plans.of(x.plan_operator) for k, x in results.items()}
            self.plans = Plans.joined(_interleaved(self.plans, own_plans))
        if self.potentials is not None:
            own_potentials = {k: ManyPotentials.of(x.potentials) for k, x in results.items()}
            self.potentials = ManyPotentials.joined(_interleaved(self.potentials, own_potentials))


def _interleaved(stored: Stored, own: dict[int, Stored]) -> list[Stored]:
    """Return the parts of plans, or of potentials, in which those of some problems are replaced."""
    parts: list[Stored] = []
    start = 0
    for k, part in own.items():
        parts.append(stored.between(start, k))
        parts.append(part)
        start = k + 1
    parts.append(stored.between(start, len(stored)))
    return parts


# -- one chunk -----------------------------------------------------------------------------------


def solve_packed(chunk: Chunk, goal: BatchGoal) -> tuple[Problems, Answers]:
    """Pack the problems of a chunk and solve them by compiled code, which proves each answer."""
    problems = chunk.packed()
    answers = blank(problems)
    trees = None if have_equal_masses(problems) else True
    solve_all(problems, SmallGoal(goal.eps, goal.rtol, chunk.tolerance), answers, trees)
    return problems, answers


def solve_chunk(chunk: Chunk, goal: BatchGoal) -> tuple[Chunk, ChunkAnswers]:
    """Solve the problems of a chunk that the compiled solver takes."""
    size = len(chunk)
    if not goal.is_compiled:
        plans = Plans.empty(size) if goal.plans else None
        potentials = ManyPotentials.empty(size) if goal.potentials else None
        return chunk, ChunkAnswers(Numbers.empty(size, NO_ANSWER), plans, potentials)
    problems, answers = solve_packed(chunk, goal)
    codes = np.where(answers.n_arcs > 0, CODES[Status.CERTIFIED], NO_ANSWER).astype(np.int8)
    value, lower, error = answers.numbers[:, :3].T.copy()
    return chunk, ChunkAnswers(
        Numbers(value, lower, error, codes),
        _packed_plans(problems, answers) if goal.plans else None,
        _packed_potentials(problems, answers) if goal.potentials else None,
    )


def _packed_plans(problems: Problems, answers: Answers) -> Plans:
    """Return the plans of solved problems in the user's units; those of others are empty."""
    n_arcs, at = answers.n_arcs, answers.at
    kept = np.arange(at[0, -1]) - np.repeat(at[0, :-1], np.diff(at[0])) < np.repeat(
        n_arcs, np.diff(at[0])
    )
    mass = np.repeat(answers.numbers[:, 3], n_arcs)
    (i, j), flow = answers.arcs[:, kept], answers.flow[kept]
    return Plans(_packed_shapes(problems), places(n_arcs), i, j, flow * mass)


def _packed_shapes(problems: Problems) -> Index:
    """Return the shapes of packed problems."""
    of = problems.of
    return np.stack((problems.sources.sizes[of[:, 1]], problems.targets.sizes[of[:, 2]]), axis=1)


def _packed_potentials(problems: Problems, answers: Answers) -> ManyPotentials:
    """Return feasible potentials of solved problems in the user's units, NaN for others."""
    extend_potentials(problems, answers)
    f, g = np.empty_like(answers.f), np.empty_like(answers.g)
    potentials_to_user(answers, f, g)
    return ManyPotentials(answers.at[1], f, answers.at[2], g)


def solve_one(chunk: Chunk, k: int, request: Request, clock: Clock) -> Result:
    """Solve the k-th problem of a chunk as ``solve`` does, in the time that is left.

    The clock of the batch does not count the seconds that the compiler takes.
    """
    problem = request.problem(*chunk.given(k), normalize=chunk.normalize)
    left = seconds_left(clock)
    with started(left) as own:
        ends = own.ends
        result = execute(problem, replace(request, max_seconds=left), own)
    if clock.is_limited:
        clock.pause(own.ends - ends)
    return result


def complete(chunk: Chunk, answers: ChunkAnswers, request: Request, clock: Clock) -> ChunkAnswers:
    """Solve the problems of a chunk that have no answer yet, one by one."""
    codes, results = answers.numbers.codes, {}
    for k in np.flatnonzero(codes == NO_ANSWER).tolist():
        ending = clock.ending()
        if ending is not None:
            codes[k] = CODES[ending]
            continue
        try:
            results[k] = solve_one(chunk, k, request, clock)
        except (InvalidProblem, CertificateError) as error:
            answers.errors[k] = str(error)
            codes[k] = CODES[Status.REFUSED]
    if results:
        answers.take(results)
    return answers


def solve_again(source: ProblemSource, request: Request, k: int) -> Answer:
    """Solve problem k of a batch again, to the same bits, and keep its plan and potentials."""
    request = replace(request, max_seconds=None)
    goal = BatchGoal.of(request, plans=True, potentials=True)
    with started(None) as clock:
        answers = complete(*solve_chunk(source.only(k), goal), request, clock)
    assert answers.plans is not None
    assert answers.potentials is not None
    return answers.plans.arcs(0), answers.potentials[0], answers.runs.get(0)


def seconds_left(clock: Clock) -> float | None:
    """Return the seconds that are left, as ``max_seconds`` of a request."""
    return max(0.0, clock.seconds_left()) if clock.is_limited else None


# -- all chunks ----------------------------------------------------------------------------------

#: Yields the answers to chunks, in their order.
ChunkSolver: TypeAlias = Callable[
    [Iterator[Chunk], BatchGoal, Request, Clock], Iterator[ChunkAnswers]
]


def solve_here(
    chunks: Iterator[Chunk], goal: BatchGoal, request: Request, clock: Clock
) -> Iterator[ChunkAnswers]:
    """Solve chunks by threads, and one by one the problems that compiled code leaves over."""
    for chunk, answers in parallel.in_order(partial(solve_chunk, goal=goal), chunks):
        yield complete(chunk, answers, request, clock)


@dataclass(frozen=True)
class ClusterSolver:
    """Solves chunks on the workers of a cluster."""

    cluster: Cluster

    def __call__(
        self, chunks: Iterator[Chunk], goal: BatchGoal, request: Request, clock: Clock
    ) -> Iterator[ChunkAnswers]:
        """Solve the first chunk here, which compiles the kernels that the workers then load."""
        from ...distributed.task_payloads import in_order

        for chunk in chunks:
            yield complete(*solve_chunk(chunk, goal), request, clock)
            break
        there = replace(request, n_threads=None, progress=False)
        items = ((chunk, seconds_left(clock)) for chunk in chunks)
        yield from in_order(self.cluster, partial(solve_there, goal=goal, request=there), items)


def solve_there(
    item: tuple[Chunk, float | None], goal: BatchGoal, request: Request
) -> ChunkAnswers:
    """Solve a chunk that came with the seconds that are left."""
    chunk, left = item
    clock = Clock(left)
    return complete(*solve_chunk(chunk, goal), request, clock)


def until_ending(chunks: Iterator[Chunk], clock: Clock) -> Iterator[Chunk]:
    """Yield chunks until the clock ends the batch; chunks taken from a source are still solved."""
    for chunk in chunks:
        yield chunk
        if clock.ending() is not None:
            return


@dataclass(frozen=True)
class BatchConfig:
    """The options of a batch beyond those of each problem."""

    request: Request
    goal: BatchGoal
    on_error: str = "raise"
    pairing: Pairing | None = None
    checkpoint: StrPath | None = None
    resume: StrPath | None = None
    solver: ChunkSolver = solve_here  # threads of this process, or a cluster


@dataclass
class BatchAccumulator:
    """The answers of a batch so far, chunk after chunk."""

    source: ProblemSource
    config: BatchConfig
    digest: str | None = None  # of the problems, where a file must identify them
    size: int = 0
    n_restored: int = 0  # problems whose answers came from a file
    numbers: list[Numbers] = field(default_factory=list)
    errors: dict[int, str] = field(default_factory=dict)
    runs: dict[int, RunFields] = field(default_factory=dict)
    plans: list[Plans] = field(default_factory=list)
    potentials: list[ManyPotentials] = field(default_factory=list)

    def add(self, new: ChunkAnswers) -> None:
        """Take the answers of the next chunk."""
        self.errors |= {self.size + k: text for k, text in new.errors.items()}
        self.runs |= {self.size + k: run for k, run in new.runs.items()}
        self.numbers.append(new.numbers)
        self.size += len(new.numbers.codes)
        if new.plans is not None:
            self.plans.append(new.plans)
        if new.potentials is not None:
            self.potentials.append(new.potentials)

    def result(self, ending: Status | None, seconds: float) -> BatchResult:
        """Return all answers; problems that were not reached hold NaN and the ending."""
        source, config = self.source, self.config
        n_left = 0 if source.size is None else source.size - self.size
        numbers = [*self.numbers]
        plans, potentials = [*self.plans], [*self.potentials]
        if n_left or not numbers:
            numbers.append(Numbers.empty(n_left, CODES[ending or Status.INTERRUPTED]))
            plans.append(Plans.empty(n_left))
            potentials.append(ManyPotentials.empty(n_left))
        goal, request = config.goal, config.request
        codes = np.concatenate([x.codes for x in numbers])
        return BatchResult(
            np.concatenate([x.value for x in numbers]),
            np.concatenate([x.lower_bound for x in numbers]),
            np.concatenate([x.marginal_error for x in numbers]),
            codes,
            dict(self.errors),
            eps=request.eps,
            rtol=request.rtol,
            seconds=seconds,
            is_complete=ending is None and not any((codes == code).any() for code in UNSOLVED),
            plans=Plans.joined(plans) if goal.plans else None,
            potentials=ManyPotentials.joined(potentials) if goal.potentials else None,
            pairing=config.pairing,
            digest=self.digest,
            source=source,
            request=request,
            first_solved=self.n_restored,
            runs=dict(self.runs),
            solve_again=partial(solve_again, source, request),
        )

    def save(self, seconds: float) -> None:
        """Write a checkpoint, if the config names one."""
        if self.config.checkpoint is not None:
            save_or_warn(self.config.checkpoint, self.result(Status.INTERRUPTED, seconds).save)

    def restore(self, path: StrPath) -> None:
        """Take the answers that a file holds, up to the first that is missing."""
        known, goal = BatchResult.load(path), self.config.goal
        asked = asked_of(self.config.request)
        if (known.keywords, len(known), known.digest) != (asked, self.source.size, self.digest):
            raise InvalidProblem(
                f"{named(path)} holds the results of other problems, or of other keywords; give "
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
        self.size = self.n_restored = n
        value, lower, error = known.value[:n], known.lower_bound[:n], known.marginal_error[:n]
        self.numbers.append(Numbers(value, lower, error, known.codes[:n]))
        self.errors |= {k: text for k, text in known.errors.items() if k < n}
        if goal.plans and known.plans is not None:
            self.plans.append(known.plans.between(0, n))
        if goal.potentials and known.potentials is not None:
            self.potentials.append(known.potentials.between(0, n))


def run_batch(source: ProblemSource, config: BatchConfig) -> BatchResult:
    """Solve all problems, then report those that were refused or left out."""
    request, is_filed = config.request, config.resume is not None or config.checkpoint is not None
    results = BatchAccumulator(source, config, _digest(source) if is_filed else None)
    if config.resume is not None:
        results.restore(config.resume)
    compiled_before = compile_seconds()
    with (
        parallel.limit(request.n_threads),
        keeping_subnormals(),
        graceful_interrupts() as interrupted,
        _counter(request.progress, source.size, results.size) as show,
    ):
        watch_signals()
        began, saved = solver_clock(), time.perf_counter()
        clock = Clock(request.max_seconds, interrupted)
        chunks = source.chunks(results.size, config.goal.slowdown)
        is_here = config.solver is solve_here and config.goal.is_compiled
        if is_here and config.goal.potentials not in _loaded:
            first = next(chunks, None)
            if first is not None:
                spent = _warm_up(first, config.goal.potentials)
                chunks, began = chain((first,), chunks), began + spent
                clock.pause(spent)
        chunks = until_ending(chunks, clock)
        try:
            for answers in config.solver(chunks, config.goal, request, clock):
                results.add(answers)
                show(results.size)
                if time.perf_counter() - saved > TUNING.save_seconds:
                    results.save(solver_clock() - began)
                    saved = time.perf_counter()
        except ClusterError:
            results.save(solver_clock() - began)
            raise
        ending = None if results.size == source.size else clock.ending()
    result = results.result(ending, solver_clock() - began)
    result = replace(result, compile_seconds=compile_seconds() - compiled_before)
    if config.checkpoint is not None:
        save_or_warn(config.checkpoint, result.save)
    is_interrupted = not result.is_complete and interrupted()
    if is_interrupted and request.on_interrupt == "raise":
        raise Interrupted("the batch was interrupted; .result holds what is done", result)
    _report(result, config.on_error, AGAIN if is_interrupted else "")
    return result


#: Whether the kernels of a batch are loaded: without potentials, and with them.
_loaded: set[bool] = set()


def _warm_up(first: Chunk, with_potentials: bool) -> float:
    """Load the kernels that a chunk needs, by a tiny problem; return the seconds that this takes.

    Only these are compiled if there is no cache: assignments need fewer.
    """
    began = solver_clock()
    trees = None if have_equal_masses(first.packed()) else True
    one = np.ones(1, np.int64)
    sides = uniform_histograms(one), uniform_histograms(one)
    tiny = Problems(flat(np.zeros(1)), places(one), *sides, own(1))
    answers = blank(tiny)
    solve_all(tiny, SmallGoal(0.0, 1.0, 0.0), answers, trees)
    if with_potentials:
        _packed_potentials(tiny, answers)
    _loaded.add(with_potentials)
    return solver_clock() - began


def _digest(source: ProblemSource) -> str:
    """Return a hash that identifies the problems; reject problems that can be read only once."""
    digest = source.digest()
    if digest is None:
        raise InvalidProblem(
            "checkpoint and resume need problems that can be read twice; pass lists or arrays "
            "instead of an iterator."
        )
    return digest


def _report(result: BatchResult, on_error: str, note: str) -> None:
    """Warn of problems that were left out, and raise if one was refused."""
    n_good, n_refused = int(result.converged.sum()), len(result.errors)
    if not result.is_complete or n_good + n_refused < len(result):
        ended = "stopped early" if not result.is_complete else "done"
        warnings.warn(
            f"{ended}: of {len(result):,} problems {n_good:,} are certified and {n_refused:,} "
            f"refused; the others hold their best bounds, or NaN. {note}".rstrip(),
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
    """Count problems on the terminal, if the caller wants it."""
    if not is_wanted:
        yield lambda n_done: None
        return
    from ...display.progress import Counter

    with Counter(size, start) as counter:
        yield counter.show
