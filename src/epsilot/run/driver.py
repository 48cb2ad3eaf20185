"""The only loop: clock, stops, evaluation schedule, observers, checkpoints.

``drive`` advances a solver epoch by epoch, evaluates the certificate off the clock on a
geometric schedule of operations, and ends when the certified gap is reached, a published
rule fires, or a limit does. The best plan and the best dual are kept apart: their bracket
only ever shrinks.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._types import Potentials, Vector
from ..solvers.base import AnySolver, Signal
from ..transport.linear import Transport
from ..transport.objective import Objective
from ..transport.plan import Arcs, Core, Plan, spread
from ..transport.problem import Entropic, Problem, Target
from ..transport.record import Record
from ..transport.work import Work, certificate_work
from .interrupts import graceful_interrupts
from .result import Status

#: The gap (with stop="paper": the violation) must improve by 1 % before the work has grown by
#: this factor, or the run has stalled.
STALL_FACTOR = 8.0
STALL_EPOCHS = 5000


class Schedule(Protocol):
    """Chooses the targets a solver runs through: one η, or a decreasing sequence of them."""

    @property
    def tolerance(self) -> float | None:
        """Tolerance of the published rule if that, not the certificate, ends the run."""

    @property
    def evaluate_after(self) -> float | None:
        """Share of all operations after which a certificate is due; None: when it is wanted."""

    def first(self) -> Target:
        """Return the first target."""

    def at(self, level: float) -> Target:
        """Return the target with this η (or ε), for a run that resumes there."""

    def after(self, target: Target, signal: Signal, run: Run) -> Target | None:
        """Return the next target if it is time to move on, else None."""

    def is_last(self, target: Target) -> bool:
        """Tell whether a method that has finished this target has finished the run."""


@dataclass(frozen=True)
class Goal:
    """The gap to reach, in internal units: absolute, or relative to the lower bound."""

    eps: float | None = None
    rtol: float | None = None
    offset: float = 0.0
    tiny: float = 0.0
    #: What turning bounds into the user's units may add to the gap.
    slack: float = 0.0

    def allowed(self, lower: float) -> float:
        """Return the gap that is asked for, given the best lower bound."""
        if self.rtol is None:
            return self.eps or 0.0
        if not math.isfinite(lower):
            return 0.0
        return self.rtol * max(abs(lower + self.offset), self.tiny)

    def is_reached(self, upper: float, lower: float) -> bool:
        """Tell whether a bracket is narrow enough, and stays so in the user's units."""
        return upper - lower <= self.allowed(lower) - self.slack


@dataclass(frozen=True)
class Limits:
    """What may end a run early."""

    max_iter: int = 1_000_000
    max_seconds: float = math.inf
    callback: Callable[[Record], Any] | None = None


class Stage(NamedTuple):
    """What is left of a run's limits for the solves of its start."""

    max_seconds: float
    callback: Callable[[Record], Any]  # returns True to stop, whatever it is called with


#: Finds potentials to start from, within what is left of the limits, and says what work it was.
Start = Callable[[Stage], tuple[Potentials, Work]]


@dataclass
class Run:
    """Everything a run has found so far; what a checkpoint saves besides the state."""

    n_iter: int = 0
    work: Work = field(default_factory=Work)
    seconds: float = 0.0
    plan: Plan | None = None
    potentials: Potentials | None = None
    upper: float = math.inf
    lower: float = -math.inf
    marginal_error: float = math.inf
    history: list[Record] = field(default_factory=list)
    last_progress: tuple[float, int, int] = (math.inf, 0, 0)  # gap or violation, operations, epoch
    evaluated_at: int = -1  # epoch of the last evaluation
    next_evaluation: int = 0  # operations at which the next one is due
    status: Status = Status.MAX_ITER
    eta: float = 0.0
    is_told_to_stop: bool = False  # by the callback

    @property
    def gap(self) -> float:
        """Best certified gap, in internal units."""
        return self.upper - self.lower


@dataclass
class Driver:
    """One run of one solver on one problem.

    ``objective`` is what is certified; ``inner`` its problem without empty rows and columns, whose
    kept indices are ``rows`` and ``cols``.
    """

    objective: Objective
    inner: Problem
    rows: Any
    cols: Any
    solver: AnySolver
    schedule: Schedule
    goal: Goal
    limits: Limits
    rng: np.random.Generator
    observers: Sequence[Callable[[Record], Any]] = ()
    beat: Callable[[int, float], Any] | None = None  # called after every step
    save: Callable[[Driver, Target, Any], None] | None = None
    run: Run = field(default_factory=Run)

    def drive(
        self, potentials: Potentials | None = None, resumed: Any = None, start: Start | None = None
    ) -> Run:
        """Run to the goal or to a limit.

        ``resumed`` is a (target, state) pair to continue; a ``start`` finds the first potentials,
        on the run's clock and within its limits.
        """
        run, solver = self.run, self.solver
        began = time.perf_counter()
        with graceful_interrupts() as interrupted:
            if resumed is None:
                if start is not None:
                    potentials = self._started(start, began)
                target = self.schedule.first()
                state = self._init(target, potentials)
            else:
                target, state = resumed
            while True:
                run.eta = target.eta
                ending = self._ending(target, state, interrupted, began)
                if ending is not None:
                    run.status = ending
                    break
                following = self.schedule.after(target, solver.signal(target, state), run)
                if following is not None:
                    state = self._init(following, solver.potentials(target, state))
                    target = following
                started = time.perf_counter()
                work = solver.step(target, state, self.rng)
                run.seconds += time.perf_counter() - started
                run.work.record(work)
                run.n_iter += 1
                if self.beat is not None:
                    self.beat(run.n_iter, run.seconds)
            if run.status is not Status.NOT_FINITE and run.evaluated_at != run.n_iter:
                if _is_finite(solver.potentials(target, state)):
                    if self.save is not None:
                        self.save(self, target, state)
                    self._evaluate(target, state)
                else:
                    run.status = Status.NOT_FINITE
            if run.plan is None:  # overflowed before the first evaluation: certify a fresh start
                self._evaluate(target, self._init(target, None))
            run.status = self._final(run.status)
        return run

    def _started(self, start: Start, began: float) -> Potentials:
        """Return the potentials of a start; what it does is part of the run."""
        run, limits = self.run, self.limits

        def look(_: Record) -> bool:
            run.seconds = time.perf_counter() - began
            if self.beat is not None:
                self.beat(0, run.seconds)
            if limits.callback is not None and limits.callback(self._record(0.0)):
                run.is_told_to_stop = True
            return run.is_told_to_stop

        potentials, work = start(Stage(limits.max_seconds, look))
        run.seconds = time.perf_counter() - began
        run.work.record(work)
        return potentials

    def _init(self, target: Target, potentials: Potentials | None) -> Any:
        started = time.perf_counter()
        state, work = self.solver.init(target, self.rng, potentials)
        self.run.seconds += time.perf_counter() - started
        self.run.work.record(work)
        return state

    def _final(self, status: Status) -> Status:
        """Return the status of a run that has been evaluated to its end."""
        if status is Status.PUBLISHED_STOP:
            return status
        is_reached = self.goal.is_reached(self.run.upper, self.run.lower)
        return Status.CERTIFIED if is_reached else status

    def _ending(self, target: Target, state: Any, interrupted: Any, began: float) -> Status | None:
        """Evaluate if it is due and return the status if the run is over.

        An overflow shows in the signal at once; potentials are looked at before a certificate.
        """
        run, limits, tolerance = self.run, self.limits, self.schedule.tolerance
        signal, operations = self.solver.signal(target, state), run.work.operations
        if signal.has_overflowed:
            return Status.NOT_FINITE
        ending = self._own_ending(target, state, signal)
        is_due = signal.wants_certificate or (
            operations >= run.next_evaluation and self.schedule.evaluate_after is not None
        )
        if run.evaluated_at != run.n_iter > 0 and is_due:
            if not _is_finite(self.solver.potentials(target, state)):
                return Status.NOT_FINITE
            wants_to_stop = self._evaluate(target, state)
            if self.save is not None:
                self.save(self, target, state)
            run.is_told_to_stop |= wants_to_stop
        if run.is_told_to_stop:
            return Status.CALLBACK
        if ending is not None:
            return ending
        if tolerance is None and self.goal.is_reached(run.upper, run.lower):
            return Status.CERTIFIED
        if interrupted():
            return Status.INTERRUPTED
        if run.n_iter >= limits.max_iter:
            return Status.MAX_ITER
        if time.perf_counter() - began >= limits.max_seconds:
            return Status.MAX_SECONDS
        best, operations_then, epoch = run.last_progress
        if (
            operations > STALL_FACTOR * operations_then
            and run.n_iter > epoch + STALL_EPOCHS
            and (math.isfinite(best) or tolerance is None)
        ):
            return Status.STALLED
        return None

    def _own_ending(self, target: Target, state: Any, signal: Signal) -> Status | None:
        """Return the status if the method itself ends the run: by its paper's rule, or at its end.

        A rule may look closer than the steps do and leave a better measured state.
        """
        tolerance = self.schedule.tolerance
        if tolerance is not None:
            is_met = self.solver.meets_published_rule(target, state, tolerance)
            return Status.PUBLISHED_STOP if is_met else None
        is_over = signal.is_finished and self.schedule.is_last(target)
        return Status.FINISHED if is_over else None

    def _evaluate(self, target: Target, state: Any) -> bool:
        """Certify the current iterate; return True if an observer asks to stop."""
        run, objective, problem = self.run, self.objective, self.objective.problem
        errors = []
        found = [pair for pair in self.solver.candidates(target, state) if _is_usable(*pair)]
        for core, row in found or [self._nothing()]:
            f = spread(row, self.rows, problem.shape[0], -np.inf)
            if self.inner is not problem:
                core = core.embedded(problem.geometry, self.rows, self.cols)
            bracket = objective.bracket(core, f)
            errors.append(bracket.marginal_error)
            run.work.record(certificate_work(problem.geometry))
            if bracket.upper < run.upper:
                run.upper, run.plan = bracket.upper, bracket.plan
            if bracket.lower > run.lower:
                run.lower, run.potentials = bracket.lower, bracket.potentials
        objective.check(run.upper, run.lower)
        run.marginal_error = errors[0]
        operations = run.work.operations
        run.evaluated_at = run.n_iter
        # A published rule waits for the violation; direct methods have none and never stall.
        signal = self.solver.signal(target, state)
        measure = run.gap if self.schedule.tolerance is None else signal.violation
        if measure < 0.99 * run.last_progress[0]:
            run.last_progress = (measure, operations, run.n_iter)
        spacing = certificate_work(self.inner.geometry).certificate
        share = self.schedule.evaluate_after or 1.0
        run.next_evaluation = operations + max(spacing, int(share * operations))
        record = self._record(target.eta)
        run.history.append(record)
        for observer in self.observers:
            observer(record)
        callback = self.limits.callback
        return callback is not None and bool(callback(record))

    def _nothing(self) -> tuple[Core, Vector]:
        """Return what is certified of a method that has nothing yet: the independent plan."""
        return Arcs.none(self.inner.shape), np.zeros(self.inner.shape[0])

    def _record(self, eta: float) -> Record:
        """Return what is known now, in the user's units."""
        run, problem = self.run, self.objective.problem
        upper, lower = self.objective.to_user(run.upper), self.objective.to_user(run.lower)
        return Record(
            run.n_iter, run.work.operations, run.seconds, upper, lower, upper - lower,
            problem.mass * run.marginal_error, problem.unit * eta,
        )  # fmt: skip


def _is_finite(potentials: tuple[Vector, ...]) -> bool:
    """Tell whether potentials are usable: -inf marks an empty row, NaN and +inf an overflow."""
    return all(bool((x < np.inf).all()) for x in potentials)


def _is_usable(core: Core, row: Vector) -> bool:
    """Tell whether a pair that a method proposes can be certified: none of it has overflowed."""
    return _is_finite((row,)) and core.is_finite()


_warm: set[tuple[Any, ...]] = set()


def warm_up(solver: AnySolver, target: Target) -> None:
    """Compile a solver's kernels on a tiny instance, so that no clock sees the compiler."""
    key = (type(solver), type(target.geometry), repr(solver))
    if key in _warm:
        return
    _warm.add(key)
    geometry = target.geometry.miniature()
    n, m = geometry.shape
    tiny = dataclasses.replace(target, geometry=geometry, p=np.full(n, 1 / n), q=np.full(m, 1 / m))
    unit = geometry.bounds[1] or 1.0
    if isinstance(tiny, Entropic):
        tiny = dataclasses.replace(tiny, eta=0.5 * unit)
    else:
        tiny = dataclasses.replace(tiny, epsilon=0.1 * unit)
    rng = np.random.default_rng(0)
    state, _ = solver.init(tiny, rng)
    for _ in range(solver.pace.warm_up):
        solver.step(tiny, state, rng)
    if _is_finite(solver.potentials(tiny, state)):
        for core, row in solver.candidates(tiny, state):
            Transport(Problem(geometry, tiny.p, tiny.q)).bracket(core, row)
