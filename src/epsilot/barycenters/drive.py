"""The loop of a barycentre: clock, limits and certificates; observers are told."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .._types import Potentials, Vector
from ..kernels.vectors import are_between
from ..run.goal import Goal, Limits
from ..run.observers import Observer
from ..run.result import Status
from ..transport.plan import Plan
from ..transport.record import Record
from ..transport.work import Work
from .bounds import above, below, check
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
    is_interrupted: Callable[[], bool] = bool
    found: Found = field(default_factory=Found)

    def run(self, start: Start | None = None) -> Found:
        """Step to the goal or to a limit; what is found is certified in any case."""
        began, found = time.perf_counter(), self.found
        steps = self.method.steps(self.family, self.goal, start)
        proposal, is_told, ending = nothing(self.family), False, None
        step = self._advance(lambda: next(steps))
        while ending is None:
            proposal = step.proposal or proposal
            verdict = Verdict(False)
            if step.is_due or step.is_last:
                verdict, is_told = self._certify(proposal)
            ending = self._ending(step, began, is_told)
            if ending is None:
                step = self._advance(lambda said=verdict: steps.send(said))  # type: ignore[misc]
            elif not verdict.is_certified:
                self._certify(proposal if _is_finite(proposal) else nothing(self.family))
        if self.goal.is_reached(found.upper, found.lower):
            ending = Status.CERTIFIED
        found.status = ending
        return found

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

    def _ending(self, step: Step, began: float, is_told: bool) -> Status | None:
        """Return the status if the run is over."""
        found, limits = self.found, self.limits
        if self.goal.is_reached(found.upper, found.lower):
            return Status.CERTIFIED
        if is_told:
            return Status.CALLBACK
        if step.proposal is not None and not _is_finite(step.proposal):
            return Status.NOT_FINITE
        if self.is_interrupted():
            return Status.INTERRUPTED
        if step.is_last:
            return Status.FINISHED
        if found.n_iter >= limits.max_iter:
            return Status.MAX_ITER
        if time.perf_counter() - began >= limits.max_seconds:
            return Status.MAX_SECONDS
        _, then = found.last_progress
        if found.n_iter > max(STALL_FACTOR * then, then + STALL_STEPS):
            return Status.STALLED
        return None

    def _certify(self, proposal: Proposal) -> tuple[Verdict, bool]:
        """Bracket a proposal, keep what is better; return what was proved, and if to stop."""
        found, family = self.found, self.family
        bound = below(family, proposal.columns)
        if bound.value > found.lower:
            found.lower, found.potentials = bound.value, bound.potentials
        plans = above(family, proposal.cores())
        if plans.value < found.upper:
            found.upper, found.b, found.plans = plans.value, plans.b, plans.plans
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
