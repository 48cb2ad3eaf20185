"""The loop over the chunks of a batch: threads, limits, interruption, progress, checkpoints."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ... import parallel
from ..._types import Vector
from ...errors import ClusterError, ConvergenceWarning, InvalidBatch, InvalidProblem
from ...files import StrPath
from ...wording import named
from ..interrupts import graceful_interrupts, watch_signals
from ..request import Request
from ..result import Status
from ..storage import save_or_warn
from .answers import Answered, Answers, Watch, answers_here
from .blocks import ManyPotentials, Plans
from .chunk import Wish, solve_chunk
from .lists import ListChunk
from .result import CODES, BatchResult, Pairing
from .source import Given, Source

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
    answers: Answers = answers_here  # who solves the chunks: threads, or a cluster


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

    def add(self, answered: Answered) -> None:
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
                f"{named(path)} holds the results of other problems, or to another accuracy; give "
                "those that it was written for, or leave out resume."
            )
        missing = [
            name
            for name, is_wanted in (("plans", wish.plans), ("potentials", wish.potentials))
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
        if wish.plans and known.plans is not None:
            self.plans.append(known.plans.first(n))
        if wish.potentials and known.potentials is not None:
            self.potentials.append(known.potentials.first(n))


def run_batch(source: Source, orders: Orders) -> BatchResult:
    """Solve all problems, and say in the end what was refused or left out."""
    request, is_filed = orders.request, orders.resume is not None or orders.checkpoint is not None
    held, saved = Held(source, orders, _digest(source) if is_filed else None), 0.0
    if orders.resume is not None:
        held.restore(orders.resume)
    if orders.answers is answers_here:
        _warm_up(orders.wish.potentials)
    with (
        parallel.limit(request.n_threads),
        graceful_interrupts() as interrupted,
        _counter(request.progress, source.size, held.size) as show,
    ):
        watch_signals()
        watch = Watch(time.perf_counter(), request.max_seconds, interrupted)
        chunks = watch.allowed(source.chunks(held.size))
        try:
            for answered in orders.answers(chunks, orders.wish, request, watch):
                held.add(answered)
                show(held.size)
                if orders.checkpoint is not None and watch.seconds - saved > SAVE_SECONDS:
                    known = held.result(Status.INTERRUPTED, watch.seconds)
                    save_or_warn(orders.checkpoint, known.save)
                    saved = watch.seconds
        except ClusterError:
            if orders.checkpoint is not None:
                known = held.result(Status.INTERRUPTED, watch.seconds)
                save_or_warn(orders.checkpoint, known.save)
            raise
        ending = None if held.size == source.size else watch.ending()
    result = held.result(ending, watch.seconds)
    if orders.checkpoint is not None:
        save_or_warn(orders.checkpoint, result.save)
    _report(result, orders.on_error)
    return result


@cache
def _warm_up(with_potentials: bool) -> None:
    """Compile on a tiny problem, so that no limit sees the compiler."""
    tiny = ListChunk(0, [Given(np.zeros((1, 1)), np.ones(1), None)], normalize=False)
    solve_chunk(tiny, Wish(0.0, 1.0, potentials=with_potentials))


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
            f"{result.errors[k].removesuffix('.')} (the error's .result holds the others).",
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
