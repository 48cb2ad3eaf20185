"""The loop over the chunks of a batch: threads, limits, interruption, progress, checkpoints."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ... import parallel
from ..._types import Vector
from ...errors import CertificateError, ConvergenceWarning, InvalidBatch, InvalidProblem
from ...files import StrPath
from ..interrupts import graceful_interrupts
from ..request import Request
from ..result import Result, Status
from .blocks import ManyPotentials, Plans
from .chunk import Solved, Wish, solve_chunk
from .result import CODES, BatchResult, Pairing
from .single import ordinary
from .source import Chunk, Source

#: Seconds between two checkpoints.
SAVE_SECONDS = 20.0
#: Ends after which a problem is still to be solved.
UNSOLVED = [CODES[status] for status in (Status.INTERRUPTED, Status.MAX_SECONDS)]


@dataclass(frozen=True)
class Orders:
    """What is asked of a batch, beyond what is asked of each problem."""

    request: Request
    wish: Wish
    on_error: str = "raise"
    pairing: Pairing | None = None
    checkpoint: StrPath | None = None
    resume: StrPath | None = None


@dataclass
class Held:
    """What is known so far of a batch, chunk after chunk."""

    source: Source
    orders: Orders
    digest: str | None = None  # of the problems, where a file has to know them
    size: int = 0
    numbers: list[tuple[Vector, Vector, Vector]] = field(default_factory=list)
    codes: list[NDArray[np.int8]] = field(default_factory=list)
    errors: dict[int, str] = field(default_factory=dict)
    plans: list[Plans] = field(default_factory=list)
    potentials: list[ManyPotentials] = field(default_factory=list)

    def add(self, solved: Solved, codes: NDArray[np.int8]) -> None:
        """Take the answers of the next chunk."""
        self.numbers.append((solved.value, solved.lower_bound, solved.marginal_error))
        self.codes.append(codes)
        self.size += len(codes)
        if solved.plans is not None:
            self.plans.append(solved.plans)
        if solved.potentials is not None:
            self.potentials.append(solved.potentials)

    def result(self, ending: Status | None, seconds: float) -> BatchResult:
        """Return all that is known; problems that were not reached hold NaN and the ending."""
        source, orders = self.source, self.orders
        n_left = 0 if source.size is None else source.size - self.size
        nothing, none = np.full(n_left, np.nan), np.zeros(n_left + 1, np.int64)
        columns = ([x[c] for x in self.numbers] for c in range(3))
        value, lower, error = (np.concatenate([*column, nothing]) for column in columns)
        rest = np.full(n_left, CODES[ending or Status.INTERRUPTED], np.int8)
        no_plans = Plans(np.zeros((n_left, 2), np.int64), none, none[:0], none[:0], nothing[:0])
        no_potentials = ManyPotentials(none, nothing[:0], none, nothing[:0])
        wish, request = orders.wish, orders.request
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
            plans=Plans.joined([*self.plans, no_plans]) if wish.plans else None,
            potentials=(
                ManyPotentials.joined([*self.potentials, no_potentials])
                if wish.potentials
                else None
            ),
            pairing=orders.pairing,
            digest=self.digest,
            source=source,
        )

    def restore(self, path: StrPath) -> None:
        """Take the answers that a file holds, up to the first that is missing."""
        known, wish = BatchResult.load(path), self.orders.wish
        asked = self.orders.request.eps, self.orders.request.rtol, self.source.size, self.digest
        if (known.eps, known.rtol, len(known), known.digest) != asked:
            raise InvalidProblem(
                f"{path} holds the results of other problems, or to another accuracy; give those "
                "that it was written for, or leave out resume."
            )
        missing = [
            name
            for name, is_wanted in (("plans", wish.plans), ("potentials", wish.potentials))
            if is_wanted and getattr(known, name) is None
        ]
        if missing:
            raise InvalidProblem(
                f"{path} has no {' and no '.join(missing)}; leave out {'=True and '.join(missing)}"
                "=True, or leave out resume."
            )
        is_open = np.isin(known.codes, UNSOLVED)
        n = int(np.argmax(is_open)) if is_open.any() else len(known)
        if n == 0:
            return
        self.size = n
        self.numbers.append((known.value[:n], known.lower_bound[:n], known.marginal_error[:n]))
        self.codes.append(known.codes[:n])
        self.errors |= {k: text for k, text in known.errors.items() if k < n}
        if wish.plans and known.plans is not None:
            self.plans.append(known.plans.first(n))
        if wish.potentials and known.potentials is not None:
            self.potentials.append(known.potentials.first(n))


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


def run_batch(source: Source, orders: Orders) -> BatchResult:
    """Solve all problems, and say in the end what was refused or left out."""
    request, is_filed = orders.request, orders.resume is not None or orders.checkpoint is not None
    held, saved = Held(source, orders, _digest(source) if is_filed else None), 0.0
    if orders.resume is not None:
        held.restore(orders.resume)
    with (
        parallel.limit(request.n_threads),
        graceful_interrupts() as interrupted,
        _counter(request.progress, source.size, held.size) as show,
    ):
        watch = Watch(time.perf_counter(), request.max_seconds, interrupted)
        chunks = watch.allowed(source.chunks(held.size))
        for solved in parallel.in_order(partial(solve_chunk, wish=orders.wish), chunks):
            held.add(*_completed(solved, request, watch, held.errors))
            show(held.size)
            if orders.checkpoint is not None and watch.seconds - saved > SAVE_SECONDS:
                held.result(Status.INTERRUPTED, watch.seconds).save(orders.checkpoint)
                saved = watch.seconds
        ending = None if held.size == source.size else watch.ending()
    result = held.result(ending, watch.seconds)
    if orders.checkpoint is not None:
        result.save(orders.checkpoint)
    _report(result, orders.on_error)
    return result


def _digest(source: Source) -> str:
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
            f"{result.errors[k]} (The others are solved: see the error's .result, or pass "
            "on_error='collect'.)",
            result,
        )


@contextmanager
def _counter(is_wanted: bool, size: int | None, start: int) -> Iterator[Callable[[int], None]]:
    """Count on the terminal, if that is wanted."""
    if not is_wanted:
        yield lambda n_done: None
        return
    from ...show.counter import Counter

    with Counter(size, start) as counter:
        yield counter.show


def _completed(
    solved: Solved, request: Request, watch: Watch, errors: dict[int, str]
) -> tuple[Solved, NDArray[np.int8]]:
    """Return the answers of a chunk, and how each ended; what is not done goes the ordinary way."""
    codes = np.full(len(solved.is_done), CODES[Status.CERTIFIED], np.int8)
    for k in np.flatnonzero(~solved.is_done).tolist():
        ending = watch.ending()
        if ending is not None:
            codes[k] = CODES[ending]
            continue
        try:
            result = ordinary(solved.chunk, k, replace(request, max_seconds=watch.left()))
        except (InvalidProblem, CertificateError) as error:
            errors[solved.chunk.first + k] = str(error)
            codes[k] = CODES[Status.REFUSED]
            continue
        codes[k] = CODES[result.status]
        solved = _with(solved, k, result)
    return solved, codes


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
