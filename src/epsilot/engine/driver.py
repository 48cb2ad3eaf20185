"""The loop of every run: it steps a solver, certifies, stops at limits, and tells observers.

A driver advances a solver epoch by epoch. It computes certificates off the clock, when the
schedule says so. It ends when the certified gap is reached, a published rule is met, or a limit
is. The best plan and the best potentials are kept apart, so that the gap never grows. A published
rule is about one plan, which is then the answer; the best bounds stay in the history.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeAlias

import numpy as np

from .._types import Vector
from ..deadline import OutOfTime
from ..kernels.compile_watch import solver_clock
from ..kernels.vectors import are_between
from ..problems.objective import RunObjective
from ..problems.plan import Core
from ..problems.work import Record, Status, Work
from ..solvers.base import S, Signal, Solver, T
from .clock import Clock, Phase
from .goal import Goal, Limits
from .interrupts import watch_signals
from .observers import Observer
from .reserve import can_be_bounded_below, can_be_certified, reserve
from .run_state import Moment, RunPosition, RunState, certify_crudely, record_of
from .schedules import Schedule
from .starts import Started
from .tuning import TUNING


class SolverSupport(Protocol):
    """The part of a problem that a solver works on."""

    def lifted(self, core: Any, row: Vector, /) -> tuple[Any, Vector]:
        """Return a plan and a potential of the whole problem."""

    def nothing(self) -> tuple[Any, Vector]:
        """Return the plan and potential that are certified before a method has any."""

    def known_potential(self, f: Vector, /) -> Vector | None:
        """Return a potential of the whole problem made from one of this part, if it is one."""

    def certificate_work(self) -> Work:
        """Return the work of one certificate of this part."""


@dataclass(slots=True, kw_only=True)
class Driver(Generic[T, S]):
    """Run one solver on one objective.

    The driver certifies the ``objective``; the solver works on the ``support`` of its problem.
    """

    objective: RunObjective
    support: SolverSupport
    solver: Solver[T, S]
    schedule: Schedule[T]
    goal: Goal
    limits: Limits
    rng: np.random.Generator
    observers: Sequence[Observer] = ()
    clock: Clock = field(default_factory=Clock)
    run: RunState = field(default_factory=RunState)
    began: float = field(default_factory=solver_clock)

    def drive(self, started: Started | None, resumed: Moment[T, S] | None = None) -> RunState:
        """Run to the goal or to a limit, from a start or from where a saved run was.

        Without a start, the time was up while a start was computed.
        """
        place, clock = RunPosition(), self.clock
        try:
            if started is None:
                raise OutOfTime
            ending = self._loop(place, started, resumed)
        except OutOfTime:
            ending = clock.ending() or Status.MAX_SECONDS
        self._finish(place, ending)
        clock.phase = Phase.RETURN
        return self.run

    def _loop(self, place: RunPosition, started: Started, resumed: Moment[T, S] | None) -> Status:
        """Run steps until the run is over; return how it ended."""
        run, solver = self.run, self.solver
        is_saved = len(self.observers) > 1 and any(
            type(x).reached is not Observer.reached for x in self.observers
        )
        if resumed is None:
            run.seconds = started.seconds
            run.work.record(started.work)
            place.potentials = started.potentials
            target = self.schedule.first()
            state = self._init(target, started)
        else:
            target, state = resumed.target, resumed.state
        while True:
            place.target, place.state = target, state
            run.eta = target.eta
            signal = solver.signal(target, state)
            ending = self._ending(target, state, signal)
            if ending is not None:
                return ending
            if is_saved:
                self._keep_whole(place)
            if run.n_iter == 1:
                watch_signals()
            following = self.schedule.after(target, signal, run)
            place.is_abandoned = True
            place.is_torn = following is None and not solver.is_atomic
            if following is not None:
                state = self._init(following, Started(solver.potentials(target, state)))
                target = following
            began = solver_clock()
            self._step(target, state)
            place.is_abandoned = place.is_torn = False
            if self.clock.is_limited:
                self.clock.keep(reserve(run, self.objective, self.clock), solver_clock() - began)

    def _finish(self, place: RunPosition, ending: Status) -> None:
        """Certify the last state, as far as time allows, and set the status."""
        run, clock, is_ended = self.run, self.clock, ending is not Status.NOT_FINITE
        target, state = place.target, place.state
        is_whole = state is not None and not place.is_torn
        clock.phase = Phase.LAST_CERTIFICATE
        try:
            if is_whole and is_ended and run.evaluated_at != run.n_iter:
                if not _is_finite(self.solver.potentials(target, state)):
                    ending = Status.NOT_FINITE
                else:
                    self._save(place)
                    if can_be_certified(run, self.objective, clock):
                        self._evaluate(target, state)
            elif not is_whole:
                self._save(place)
            if run.plan is None and ending is Status.NOT_FINITE:  # before the first evaluation
                self._evaluate(target, self._init(target, Started()))
            if ending is Status.PUBLISHED_STOP:
                self._answer_as_published(target, state)
        except OutOfTime:
            ending = clock.ending() or Status.MAX_SECONDS
        if run.plan is None:
            self._certify_crudely(place)
        is_reached = self.goal.is_reached(run.upper, run.lower)
        if is_reached and ending is not Status.PUBLISHED_STOP:
            ending = Status.CERTIFIED
        run.status = ending

    # -- abandoned steps ---------------------------------------------------------------------

    def _keep_whole(self, place: RunPosition) -> None:
        """Copy the state for a checkpoint, in case the next step is abandoned."""
        generator = copy.deepcopy(dict(self.rng.bit_generator.state))
        work = copy.deepcopy(self.run.work)
        place.whole = place.target, copy.deepcopy(place.state), generator, work

    def _save(self, place: RunPosition) -> None:
        """Save the last whole state: a resumed run repeats a step that was abandoned."""
        if place.is_abandoned and place.whole is not None:
            target, state, generator, self.run.work = place.whole
            self.rng.bit_generator.state = generator
            self._reached(target, state)
        elif place.state is not None and not place.is_abandoned:
            self._reached(place.target, place.state)

    # -- stages ------------------------------------------------------------------------------

    def look(self, _: Record | None = None) -> bool:
        """Tell observers that a start is being computed; return True if one asks to stop."""
        run = self.run
        run.seconds = solver_clock() - self.began
        record = record_of(run, self.objective, 0.0)
        for observer in self.observers:
            run.is_told_to_stop |= observer.starting(record)
        return run.is_told_to_stop

    def _init(self, target: T, started: Started) -> S:
        began = solver_clock()
        state, work = self.solver.init(target, self.rng, started.potentials)
        self.run.seconds += solver_clock() - began
        self.run.work.record(work)
        return state

    def _step(self, target: T, state: S) -> None:
        run, began = self.run, solver_clock()
        work = self.solver.step(target, state, self.rng)
        run.seconds += solver_clock() - began
        run.work.record(work)
        run.n_iter += 1
        for observer in self.observers:
            observer.stepped(run.n_iter, run.seconds)

    def _reached(self, target: T, state: S) -> None:
        moment = Moment(self.run, target, state, self.rng)
        for observer in self.observers:
            observer.reached(moment)

    # -- endings -----------------------------------------------------------------------------

    def _ending(self, target: T, state: S, signal: Signal) -> Status | None:
        """Certify if that is due; return the status if the run is over.

        The signal shows an overflow at once; potentials are checked before a certificate.
        """
        run = self.run
        if signal.has_overflowed:
            return Status.NOT_FINITE
        is_published, operations = self.schedule.tolerance is not None, run.work.operations
        can_end = is_published or signal.is_finished
        ending = self._own_ending(target, state) if can_end else None
        is_due = signal.wants_certificate or self.schedule.is_due(target, signal, run)
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
        return self._limit(operations)

    @property
    def _must_be_tight(self) -> bool:
        """Whether the plan must have mass on tight arcs only.

        A small gap does not imply it: masses far below the others hardly change the gap.
        """
        return self.goal.is_exact and self.solver.about.exactness == "exact"

    def _is_tight(self) -> bool:
        """Tell whether the latest plan and its potentials are complementary."""
        run = self.run
        is_new = run.evaluated_at == run.n_iter
        return is_new and self.objective.is_tight(run.plan, run.potentials)

    def _own_ending(self, target: T, state: S) -> Status | None:
        """Return the status if the method ends the run: by its paper's rule, or because it is done.

        A rule may measure the state more accurately than the steps do.
        """
        tolerance = self.schedule.tolerance
        if tolerance is not None:
            is_met = self.solver.meets_published_rule(target, state, tolerance)
            return Status.PUBLISHED_STOP if is_met else None
        return Status.FINISHED if self.schedule.is_last(target) else None

    def _limit(self, operations: int) -> Status | None:
        """Return the status if a limit, an interruption or a lack of progress ends the run."""
        run, ending = self.run, self.clock.ending()
        if ending is Status.INTERRUPTED:
            return ending
        if run.n_iter >= self.limits.max_iter:
            return Status.MAX_ITER
        if ending is not None:
            return ending
        best, operations_then, epoch = run.last_progress
        if (
            operations > TUNING.stall_work_ratio * operations_then
            and run.n_iter > epoch + TUNING.stall_epochs
            and math.isfinite(best)
        ):
            return Status.STALLED
        return None

    # -- certificates ------------------------------------------------------------------------

    def _evaluate(self, target: T, state: S) -> bool:
        """Certify the current iterate; return True if an observer asks to stop.

        If that takes long, the best plan and potentials are proved at once, so that a run whose
        time is up has its answer. An abandoned evaluation changes nothing.
        """
        run, objective = self.run, self.objective
        began = solver_clock()
        usable = [pair for pair in self.solver.candidates(target, state) if _is_usable(*pair)]
        lifted = self.support.lifted
        evaluations = [
            objective.evaluate(*lifted(*pair)) for pair in usable or [self.support.nothing()]
        ]
        above, below, proof = (run.upper, run.plan), (run.lower, run.potentials), run.proof
        for found in evaluations:
            # A basis that comes later is nearer to the optimum, even if bounds cannot show it.
            is_reached = self._must_be_tight and self.goal.is_reached(found.upper, found.lower)
            is_pair = is_reached or objective.moves
            if found.upper < above[0] or above[1] is None or is_pair:
                above, proof = (found.upper, found.plan), None
            if found.lower > below[0] or is_pair:
                below, proof = (found.lower, found.potentials), None
        objective.check(above[0], below[0])
        if proof is None and solver_clock() - began > TUNING.proved_at_once_seconds:
            proof = objective.prove(above[1], below[1])
        for _ in evaluations:
            run.work.record(objective.certificate_work())
        (run.upper, run.plan), (run.lower, run.potentials), run.proof = above, below, proof
        run.marginal_error, run.evaluated_at = evaluations[0].marginal_error, run.n_iter
        run.evaluation_seconds = solver_clock() - began
        self.schedule.certified(target, self.solver.signal(target, state), evaluations[0], run)
        self._note_progress(target, state)
        return self._tell(target.eta)

    def _tell(self, eta: float) -> bool:
        """Tell observers of a certificate; return True if one of them asks to stop."""
        record, is_told = record_of(self.run, self.objective, eta), False
        for observer in self.observers:
            is_told |= observer.evaluated(record)
        return is_told

    def _certify_crudely(self, place: RunPosition) -> None:
        """Bound the optimum without a pass over the costs, or by potentials if time allows."""
        run, objective, clock = self.run, self.objective, self.clock
        certify_crudely(run, objective)
        f = self._known_potential(place)
        if f is not None and can_be_bounded_below(run, objective, clock):
            try:
                potentials, _ = objective.dual(f)
                lower = objective.dual_value(potentials)
            except OutOfTime:
                lower = -math.inf
            if lower > run.lower:
                assert run.proof is not None
                objective.check(run.upper, lower)
                run.lower, run.potentials = lower, potentials
                run.proof = run.proof._replace(lower=lower)
        self._tell(run.eta)

    def _known_potential(self, place: RunPosition) -> Vector | None:
        """Return a row potential of the whole problem from the state or the start, if there is one.

        Any vector proves a bound, even one from an abandoned step.
        """
        f: Vector | None = None if place.state is None else place.state.row_potential()
        if f is None and place.state is not None and not place.is_torn:
            f = self.solver.potentials(place.target, place.state)[0]
        if f is None and place.potentials is not None:
            f = place.potentials[0]
        return None if f is None else self.support.known_potential(f)

    def _answer_as_published(self, target: T, state: S) -> None:
        """Make the rounded plan of the published rule the answer: the method's first candidate.

        The best lower bound holds for it as for any plan.
        """
        run, (pair, *_) = self.run, self.solver.candidates(target, state)
        if _is_usable(*pair):
            found = self.objective.evaluate(*self.support.lifted(*pair))
            run.upper, run.plan, run.proof = found.upper, found.plan, None

    def _note_progress(self, target: T, state: S) -> None:
        """Record progress, and when the next certificate is due."""
        run, operations = self.run, self.run.work.operations
        # A published rule waits for the violation; direct methods measure none and never stall.
        measure = run.gap
        if self.schedule.tolerance is not None:
            measure = self.solver.signal(target, state).violation
        if measure < 0.99 * run.last_progress[0]:
            run.last_progress = (measure, operations, run.n_iter)
        spacing = self.support.certificate_work().certificate
        share = self.schedule.evaluate_after or 1.0
        run.next_evaluation = operations + max(spacing, int(share * operations))


AnyDriver: TypeAlias = Driver[Any, Any]


def _is_finite(potentials: tuple[Vector, ...]) -> bool:
    """Tell whether potentials are usable: -inf marks an empty row, NaN and +inf an overflow."""
    return all(are_between(x, -np.inf, np.inf) for x in potentials)


def _is_usable(core: Core, row: Vector) -> bool:
    """Tell whether a proposed plan and potential have not overflowed."""
    return _is_finite((row,)) and core.is_finite()
