"""The only loop: clock, stops, evaluation schedule; observers are told.

A driver advances a solver epoch by epoch, evaluates the certificate off the clock on a geometric
schedule of operations, and ends when the certified gap is reached, a published rule fires, or a
limit does. The best plan and the best dual are kept apart: their bracket only ever shrinks. A
published rule that fires is about one plan, which then is the answer; the bracket stays in the
history.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic

import numpy as np

from .._types import Vector
from ..kernels.vectors import are_between
from ..solvers.base import S, Signal, Solver, T, TakesFlow
from ..transport.objective import Objective
from ..transport.plan import Arcs, Core
from ..transport.record import Record
from ..transport.support import Support
from ..transport.work import Work, certificate_work
from .goal import Goal, Limits
from .observers import Observer
from .result import Status
from .run import Moment, Run
from .schedules import Schedule
from .starts import Stage, Start, Started

#: The gap (with stop="paper": the violation) must improve by 1 % before the work has grown by
#: this factor, or the run has stalled.
STALL_FACTOR = 8.0
STALL_EPOCHS = 5000


@dataclass(frozen=True, kw_only=True)
class Driver(Generic[T, S]):
    """One run of one solver on one problem.

    ``objective`` is what is certified; the solver works on the ``support`` of its problem.
    """

    objective: Objective
    support: Support
    solver: Solver[T, S]
    schedule: Schedule[T]
    goal: Goal
    limits: Limits
    rng: np.random.Generator
    observers: Sequence[Observer] = ()
    is_interrupted: Callable[[], bool] = bool  # asked before every step; never, by default
    run: Run = field(default_factory=Run)

    def drive(self, start: Start, resumed: Moment[T, S] | None = None) -> Run:
        """Run to the goal or to a limit, from a start or from where a saved run was."""
        began = time.perf_counter()
        if resumed is None:
            started = self._start(start, began)
            target = self.schedule.first()
            state = self._init(target, started)
        else:
            target, state = resumed.target, resumed.state
        self._loop(target, state, began)
        return self.run

    def _loop(self, target: T, state: S, began: float) -> None:
        """Step until the run is over; certify what it ended with."""
        run, solver = self.run, self.solver
        while True:
            run.eta = target.eta
            signal = solver.signal(target, state)
            ending = self._ending(target, state, signal, began)
            if ending is not None:
                break
            following = self.schedule.after(target, signal, run)
            if following is not None:
                state = self._init(following, Started(solver.potentials(target, state)))
                target = following
            self._step(target, state)
        if ending is not Status.NOT_FINITE and run.evaluated_at != run.n_iter:
            if _is_finite(solver.potentials(target, state)):
                self._reached(target, state)
                self._evaluate(target, state)
            else:
                ending = Status.NOT_FINITE
        if run.plan is None:  # overflowed before the first evaluation: certify a fresh start
            self._evaluate(target, self._init(target, Started()))
        if ending is Status.PUBLISHED_STOP:
            self._answer_as_published(target, state)
        is_reached = self.goal.is_reached(run.upper, run.lower)
        if is_reached and ending is not Status.PUBLISHED_STOP:
            ending = Status.CERTIFIED
        run.status = ending

    # -- stages ------------------------------------------------------------------------------

    def _start(self, start: Start, began: float) -> Started:
        """Return what a start finds; what it does is part of the run."""
        run = self.run

        def look(_: Record) -> bool:
            run.seconds = time.perf_counter() - began
            record = self._record(0.0)
            for observer in self.observers:
                run.is_told_to_stop |= observer.starting(record)
            return run.is_told_to_stop

        ends = began + self.limits.max_seconds
        started = start.find(Stage(lambda: ends - time.perf_counter(), look))
        run.seconds = time.perf_counter() - began
        run.work.record(started.work)
        return started

    def _init(self, target: T, started: Started) -> S:
        began = time.perf_counter()
        state, work = self._first_state(target, started)
        self.run.seconds += time.perf_counter() - began
        self.run.work.record(work)
        return state

    def _first_state(self, target: T, started: Started) -> tuple[S, Work]:
        solver, rng, potentials = self.solver, self.rng, started.potentials
        if started.flow is None or potentials is None or not isinstance(solver, TakesFlow):
            return solver.init(target, rng, potentials)
        taker: TakesFlow[T, S] = solver
        return taker.init_with_flow(target, rng, potentials, started.flow)

    def _step(self, target: T, state: S) -> None:
        run, began = self.run, time.perf_counter()
        work = self.solver.step(target, state, self.rng)
        run.seconds += time.perf_counter() - began
        run.work.record(work)
        run.n_iter += 1
        for observer in self.observers:
            observer.stepped(run.n_iter, run.seconds)

    def _reached(self, target: T, state: S) -> None:
        moment = Moment(self.run, target, state, self.rng)
        for observer in self.observers:
            observer.reached(moment)

    # -- endings -----------------------------------------------------------------------------

    def _ending(self, target: T, state: S, signal: Signal, began: float) -> Status | None:
        """Evaluate if it is due and return the status if the run is over.

        An overflow shows in the signal at once; potentials are looked at before a certificate.
        """
        run = self.run
        if signal.has_overflowed:
            return Status.NOT_FINITE
        is_published, operations = self.schedule.tolerance is not None, run.work.operations
        can_end = is_published or signal.is_finished
        ending = self._own_ending(target, state) if can_end else None
        is_due = signal.wants_certificate or (
            operations >= run.next_evaluation and self.schedule.evaluate_after is not None
        )
        if run.evaluated_at != run.n_iter > 0 and is_due:
            if not _is_finite(self.solver.potentials(target, state)):
                return Status.NOT_FINITE
            run.is_told_to_stop |= self._evaluate(target, state)
            self._reached(target, state)
        if run.is_told_to_stop:
            return Status.CALLBACK
        if ending is not None:
            return ending
        is_reached = not is_published and self.goal.is_reached(run.upper, run.lower)
        if is_reached and (signal.is_finished or not self._must_be_tight or self._is_tight()):
            return Status.CERTIFIED
        return self._limit(operations, began)

    @property
    def _must_be_tight(self) -> bool:
        """Whether the plan may have mass on tight arcs only, which a narrow bracket alone allows.

        Masses far below the others hardly widen it.
        """
        return self.goal.is_exact and self.solver.about.exactness == "exact"

    def _is_tight(self) -> bool:
        """Tell whether the latest plan and its potentials are complementary."""
        run = self.run
        assert run.plan is not None
        assert run.potentials is not None
        is_new = run.evaluated_at == run.n_iter
        return is_new and self.objective.is_tight(run.plan, run.potentials)

    def _own_ending(self, target: T, state: S) -> Status | None:
        """Return the status if the method ends the run: by its paper's rule, or as it has finished.

        A rule may look closer than the steps do and leave a better measured state.
        """
        tolerance = self.schedule.tolerance
        if tolerance is not None:
            is_met = self.solver.meets_published_rule(target, state, tolerance)
            return Status.PUBLISHED_STOP if is_met else None
        return Status.FINISHED if self.schedule.is_last(target) else None

    def _limit(self, operations: int, began: float) -> Status | None:
        """Return the status if something from outside, or a lack of progress, ends the run."""
        run, limits = self.run, self.limits
        if self.is_interrupted():
            return Status.INTERRUPTED
        if run.n_iter >= limits.max_iter:
            return Status.MAX_ITER
        if time.perf_counter() - began >= limits.max_seconds:
            return Status.MAX_SECONDS
        best, operations_then, epoch = run.last_progress
        if (
            operations > STALL_FACTOR * operations_then
            and run.n_iter > epoch + STALL_EPOCHS
            and (math.isfinite(best) or self.schedule.tolerance is None)
        ):
            return Status.STALLED
        return None

    # -- certificates ------------------------------------------------------------------------

    def _evaluate(self, target: T, state: S) -> bool:
        """Certify the current iterate; return True if an observer asks to stop."""
        run, objective, geometry = self.run, self.objective, self.objective.problem.geometry
        errors = []
        found = [pair for pair in self.solver.candidates(target, state) if _is_usable(*pair)]
        for pair in found or [self._nothing()]:
            bracket = objective.bracket(*self.support.lifted(*pair))
            errors.append(bracket.marginal_error)
            run.work.record(certificate_work(geometry))
            # A basis that comes later is nearer to the optimum, even if bounds cannot show it.
            is_pair = self._must_be_tight and self.goal.is_reached(bracket.upper, bracket.lower)
            if bracket.upper < run.upper or is_pair:
                run.upper, run.plan = bracket.upper, bracket.plan
            if bracket.lower > run.lower or is_pair:
                run.lower, run.potentials = bracket.lower, bracket.potentials
        objective.check(run.upper, run.lower)
        run.marginal_error, run.evaluated_at = errors[0], run.n_iter
        self._note_progress(target, state)
        record, is_told = self._record(target.eta), False
        for observer in self.observers:
            is_told |= observer.evaluated(record)
        return is_told

    def _answer_as_published(self, target: T, state: S) -> None:
        """Return what the procedure returns: the plan that its rule is about, rounded.

        That is the method's first candidate. The best lower bound proves it as well as any plan.
        """
        run, (pair, *_) = self.run, self.solver.candidates(target, state)
        if _is_usable(*pair):
            bracket = self.objective.bracket(*self.support.lifted(*pair))
            run.upper, run.plan = bracket.upper, bracket.plan

    def _note_progress(self, target: T, state: S) -> None:
        """Note progress, and when the next certificate is due."""
        run, operations = self.run, self.run.work.operations
        # A published rule waits for the violation; direct methods measure none and never stall.
        measure = run.gap
        if self.schedule.tolerance is not None:
            measure = self.solver.signal(target, state).violation
        if measure < 0.99 * run.last_progress[0]:
            run.last_progress = (measure, operations, run.n_iter)
        spacing = certificate_work(self.support.problem.geometry).certificate
        share = self.schedule.evaluate_after or 1.0
        run.next_evaluation = operations + max(spacing, int(share * operations))

    def _nothing(self) -> tuple[Core, Vector]:
        """Return what is certified of a method that has nothing yet: the independent plan."""
        shape = self.support.problem.shape
        return Arcs.none(shape), np.zeros(shape[0])

    def _record(self, eta: float) -> Record:
        """Return what is known now, in the user's units."""
        run, problem = self.run, self.objective.problem
        upper, lower = self.objective.bounds_to_user(run.upper, run.lower)
        return Record(
            n_iter=run.n_iter,
            operations=run.work.operations,
            seconds=run.seconds,
            upper=upper,
            lower=lower,
            gap=upper - lower,
            marginal_error=problem.mass * run.marginal_error,
            reg=problem.unit * eta,
        )


def _is_finite(potentials: tuple[Vector, ...]) -> bool:
    """Tell whether potentials are usable: -inf marks an empty row, NaN and +inf an overflow."""
    return all(are_between(x, -np.inf, np.inf) for x in potentials)


def _is_usable(core: Core, row: Vector) -> bool:
    """Tell whether a pair that a method proposes can be certified: none of it has overflowed."""
    return _is_finite((row,)) and core.is_finite()
