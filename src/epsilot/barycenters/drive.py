"""The loop of a barycentre: clock, limits and certificates; observers are told."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .._types import Potentials, Vector
from ..deadline import OutOfTime
from ..engine.clock import Clock, Phase
from ..engine.goal import Goal, Limits
from ..engine.interrupts import watch_signals
from ..engine.observers import Observer
from ..engine.reserve import PROVED_AT_ONCE
from ..engine.result import Status
from ..kernels.vectors import are_between
from ..problems.plan import Plan
from ..problems.work import Record, Work
from .bounds import above, below, check, crudely_above, crudely_below, prove
from .family import Family
from .method import Method, Proposal, Start, Step, Verdict, certificate_cost, nothing

#: The gap must shrink by 1 % before the steps have grown by this factor, or the run has stalled.
STALL_FACTOR, STALL_STEPS = 8, 2000


@dataclass
class Found:
    """What a run has found so far: the best plans and the best potentials, kept apart."""

    n_iter: int = 0
    work: Work = field(default_factory=Work)
    seconds: float = 0.0
    eta: float = 0.0
    b: Vector | None = None
    plans: tuple[Plan, ...] = ()
    potentials: tuple[Potentials, ...] = ()
    upper: float = math.inf
    lower: float = -math.inf
    marginal_error: float = math.inf
    waiting: Proposal | None = None  # what is not yet certified
    proof: tuple[float, float] | None = None  # bounds of the best, if they were proved already
    seconds_certified: float = 0.0  # what the last certificate took
    history: list[Record] = field(default_factory=list)
    last_progress: tuple[float, int] = (math.inf, 0)  # gap, step
    status: Status = Status.MAX_ITER


@dataclass(frozen=True, kw_only=True)
class Drive:
    """One run of one method on one family."""

    family: Family
    method: Method
    goal: Goal
    limits: Limits
    observers: Sequence[Observer] = ()
    clock: Clock = field(default_factory=Clock)
    found: Found = field(default_factory=Found)

    def run(self, start: Start | None = None) -> Found:
        """Step to the goal or to a limit; what is found is certified in any case."""
        found, clock = self.found, self.clock
        try:
            ending = self._loop(start)
        except OutOfTime:
            ending = clock.ending() or Status.MAX_SECONDS
        clock.phase = Phase.LAST_CERTIFICATE
        try:
            if found.waiting is not None and found.seconds_certified <= clock.seconds_for_proof():
                usable = _is_finite(found.waiting)
                self._certify(found.waiting if usable else nothing(self.family))
        except OutOfTime:
            pass
        clock.phase = Phase.RETURN
        if found.b is None:
            self._certify_crudely()
        if self.goal.is_reached(found.upper, found.lower):
            ending = Status.CERTIFIED
        found.status = ending
        return found

    def _loop(self, start: Start | None) -> Status:
        """Step until the run is over; return how it ended."""
        found = self.found
        steps = self.method.steps(self.family, self.goal, start)
        found.waiting = nothing(self.family)
        watch_signals()
        step = self._advance(lambda: next(steps))
        while True:
            found.waiting = step.proposal or found.waiting
            verdict, is_told = Verdict(False), False
            if found.waiting is not None and (step.is_due or step.is_last):
                verdict, is_told = self._certify(found.waiting)
            ending = self._ending(step, is_told)
            if ending is not None:
                return ending
            began = time.perf_counter()
            step = self._advance(lambda said=verdict: steps.send(said))  # type: ignore[misc]
            if self.clock.is_limited:
                self.clock.keep(found.seconds_certified, time.perf_counter() - began)

    def _advance(self, following: Callable[[], Step]) -> Step:
        """Let the method take a step, on the clock."""
        found, began = self.found, time.perf_counter()
        step = following()
        found.seconds += time.perf_counter() - began
        found.work.record(step.work)
        found.n_iter += 1
        found.eta = step.eta
        for observer in self.observers:
            observer.stepped(found.n_iter, found.seconds)
        return step

    def _ending(self, step: Step, is_told: bool) -> Status | None:
        """Return the status if the run is over."""
        found, limits, ending = self.found, self.limits, self.clock.ending()
        if self.goal.is_reached(found.upper, found.lower):
            return Status.CERTIFIED
        if is_told:
            return Status.CALLBACK
        if step.proposal is not None and not _is_finite(step.proposal):
            return Status.NOT_FINITE
        if ending is Status.INTERRUPTED:
            return ending
        if step.is_last:
            return Status.FINISHED
        if found.n_iter >= limits.max_iter:
            return Status.MAX_ITER
        if ending is not None:
            return ending
        _, then = found.last_progress
        if found.n_iter > max(STALL_FACTOR * then, then + STALL_STEPS):
            return Status.STALLED
        return None

    def _certify(self, proposal: Proposal) -> tuple[Verdict, bool]:
        """Bracket a proposal, keep what is better; return what was proved, and if to stop.

        Where that takes long, the best of both is proved at once; nothing is kept of a certificate
        that is abandoned.
        """
        found, family, began = self.found, self.family, time.perf_counter()
        bound = below(family, proposal.columns)
        plans = above(family, proposal.cores())
        b, best_plans, potentials, proof = found.b, found.plans, found.potentials, found.proof
        if bound.value > found.lower:
            potentials, proof = bound.potentials, None
        if plans.value < found.upper:
            b, best_plans, proof = plans.b, plans.plans, None
        if proof is None and time.perf_counter() - began > PROVED_AT_ONCE:
            assert b is not None
            proof = prove(family, b, best_plans, potentials)
        found.lower, found.upper = max(bound.value, found.lower), min(plans.value, found.upper)
        found.b, found.plans, found.potentials, found.proof = b, best_plans, potentials, proof
        found.waiting, found.seconds_certified = None, time.perf_counter() - began
        check(family, found.upper, found.lower)
        found.marginal_error = plans.marginal_error
        found.work.record(certificate_cost(family))
        gap = found.upper - found.lower
        if gap < 0.99 * found.last_progress[0]:
            found.last_progress = gap, found.n_iter
        record, is_told = self._record(), False
        found.history.append(record)
        for observer in self.observers:
            is_told |= observer.evaluated(record)
        own = plans.value - bound.value
        return Verdict(True, own, plans.added, plans.marginal_error), is_told

    def _certify_crudely(self) -> None:
        """Give a run that has nothing else a proved bracket, in no time."""
        found, family = self.found, self.family
        plans, bound = crudely_above(family), crudely_below(family)
        found.b, found.plans, found.potentials = plans.b, plans.plans, bound.potentials
        found.upper, found.lower, found.marginal_error = plans.value, bound.value, 0.0
        found.proof = plans.value, bound.value
        check(family, found.upper, found.lower)
        record = self._record()
        found.history.append(record)
        for observer in self.observers:
            observer.evaluated(record)

    def _record(self) -> Record:
        """Return what is known now, in the user's units."""
        found, family = self.found, self.family
        upper, lower = family.to_user(found.upper), family.to_user(found.lower)
        return Record(
            n_iter=found.n_iter,
            operations=found.work.operations,
            seconds=found.seconds,
            upper=upper,
            lower=lower,
            gap=upper - lower,
            marginal_error=family.mass * found.marginal_error,
            reg=found.eta * family.worth / family.mass,
        )


def _is_finite(proposal: Proposal) -> bool:
    """Tell whether column potentials are usable."""
    return all(are_between(g, -1e300, 1e300) for g in proposal.columns)
