"""Schedules of η or ε: one constant target, or a decreasing sequence of targets."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Protocol, TypeAlias

import numpy as np

from ..kernels.proof import least_gap
from ..kernels.vectors import dot, entropy
from ..problems.objective import Evaluation
from ..problems.problem import Additive, Entropic, Problem, smooth
from ..solvers.base import AnySolver, Pace, Signal, T
from .goal import Goal
from .run_state import RunState


@dataclass(frozen=True, kw_only=True)
class ScheduleTuning:
    """Tuning parameters of schedules; an η is a share of max C."""

    min_eta: float = 1e-7  # below, exponents (f + g - C) / η lose accuracy
    warm_eta: float = 0.002  # first η, with given potentials and without an ε
    warm_ratio: float = 16.0  # with an ε: multiple of the η that is proved to suffice
    min_entropy: float = 0.5  # of marginals, in the η that is proved to suffice
    # A marginal with zeros is mixed with a uniform one, which gets the share
    # min(max_smoothing, η / smoothing_ratio).
    max_smoothing: float = 0.01
    smoothing_ratio: float = 8.0
    first_epsilon: float = 0.25  # share of the first gap
    # Shares of all operations between certificates; the latter with stop="paper".
    evaluate_after: float = 0.1
    record_after: float = 0.5


TUNING = ScheduleTuning()


class Schedule(Protocol[T]):
    """A choice of targets for a solver: one η or ε, or a decreasing sequence of them."""

    @property
    def tolerance(self) -> float | None:
        """Tolerance of the published rule, if that rule ends the run."""

    @property
    def evaluate_after(self) -> float | None:
        """Share of all operations between certificates; None: only at the method's request."""

    def first(self) -> T:
        """Return the first target."""

    def at(self, level: Any) -> T:
        """Return the target with this η (or ε), for a run that resumes there."""

    def is_due(self, target: T, signal: Signal, run: RunState) -> bool:
        """Tell whether a certificate is worth its time now."""

    def certified(
        self, target: T, signal: Signal, found: Evaluation[Any, Any], run: RunState
    ) -> None:
        """Look at a new certificate; numbers to remember go to ``run.measured``."""

    def after(self, target: T, signal: Signal, run: RunState) -> T | None:
        """Return the next target, or None to keep the current one."""

    def is_last(self, target: T) -> bool:
        """Tell whether the run ends when the method has finished this target."""


AnySchedule: TypeAlias = Schedule[Any]


def make_schedule(
    solver: AnySolver, inner: Problem, goal: Goal, *, is_published: bool, is_warm: bool
) -> AnySchedule:
    """Return the schedule of a method for the unregularised problem."""
    if is_published:
        target, tolerance = solver.published(inner, goal.allowed(-goal.offset))
        return ConstantSchedule(target, tolerance, TUNING.record_after)
    if solver.about.exactness == "exact":
        target = Additive(inner.geometry, goal.allowed(-goal.offset), inner.p, inner.q)
        return ConstantSchedule(target, evaluate_after=solver.pace.evaluate_after)
    if not solver.about.solves_entropic:
        return EpsilonRefinement(inner, goal, solver.pace)
    return EtaContinuation(inner, goal, solver.pace, is_warm)


class ByWork:
    """Certificates after shares of all work; the schedule remembers none of them."""

    @property
    def evaluate_after(self) -> float | None:
        """Share of all operations between certificates; None: only at the method's request."""
        raise NotImplementedError

    def is_due(self, target: object, signal: Signal, run: RunState) -> bool:
        """Tell whether enough work was done since the last certificate."""
        return self.evaluate_after is not None and run.work.operations >= run.next_evaluation

    def certified(
        self, target: object, signal: Signal, found: Evaluation[Any, Any], run: RunState
    ) -> None:
        """Do nothing: this schedule needs no certificates."""


@dataclass(frozen=True)
class ConstantSchedule(ByWork, Generic[T]):
    """One target for the whole run, ended by the certificate or by a published rule."""

    target: T
    tolerance: float | None = None
    evaluate_after: float | None = TUNING.evaluate_after

    def first(self) -> T:
        """Return the target."""
        return self.target

    def at(self, level: float) -> T:
        """Return the target."""
        return self.target

    def after(self, target: T, signal: Signal, run: RunState) -> T | None:
        """Return None: the target never changes."""
        return None

    def is_last(self, target: T) -> bool:
        """Return True: no other target follows."""
        return True


@dataclass(frozen=True)
class EtaContinuation(ByWork):
    """Decrease η while its bias, not the marginal error, dominates the gap.

    At the entropic optimum the certified gap is at most η H(p) and usually below η,
    while a violation δ adds about δ ‖C‖∞ / 2. So η is halved once δ ‖C‖∞ is below a share of
    η, and never falls below the η that is proved to suffice for the goal.
    """

    problem: Problem
    goal: Goal
    pace: Pace
    is_warm: bool = False
    tolerance: None = field(default=None, init=False)
    evaluate_after: float = field(default=TUNING.evaluate_after, init=False)

    @property
    def _unit(self) -> float:
        """‖C‖∞, or 1 where all costs are equal."""
        return self.problem.cost_max or 1.0

    def at(self, level: float) -> Entropic:
        """Return the problem with this η; smooth its marginals only if a mass is zero."""
        p, q = self.problem.p, self.problem.q
        if p.min() == 0 or q.min() == 0:
            longest = TUNING.smoothing_ratio * self._unit
            weight = min(TUNING.max_smoothing, level / longest)
            p, q = smooth(p, weight), smooth(q, weight)
        return Entropic(self.problem.geometry, level, p, q)

    def first(self) -> Entropic:
        """Return the problem with the first η, which is small after a warm start."""
        floor = self._floor(-math.inf)
        start = self.pace.start * self._unit
        if self.is_warm:
            near = (
                TUNING.warm_eta * self._unit
                if self.goal.rtol is not None
                else TUNING.warm_ratio * floor
            )
            start = min(start, near)
        return self.at(max(start, floor))

    def after(self, target: Entropic, signal: Signal, run: RunState) -> Entropic | None:
        """Move to a smaller η when the marginal error is a small part of the gap."""
        if signal.violation * self.problem.cost_max > self.pace.share * target.eta:
            return None
        floor = self._floor(run.lower)
        if target.eta <= floor:
            return None
        return self.at(max(floor, target.eta / self.pace.factor))

    def is_last(self, target: Entropic) -> bool:
        """Tell whether η is as small as exponents allow."""
        return target.eta <= TUNING.min_eta * self._unit

    def _floor(self, lower: float) -> float:
        """Return the η at which the converged entropic plan is certified within the goal."""
        limit = TUNING.min_eta * self._unit
        if self.goal.rtol is not None and not math.isfinite(lower):
            return limit
        return float(max(limit, self.goal.allowed(lower) / (2 * self._entropy)))

    @cached_property
    def _entropy(self) -> float:
        """The smaller entropy of the marginals, and at least a constant."""
        least = min(entropy(self.problem.p), entropy(self.problem.q))
        return max(least, TUNING.min_entropy)


@dataclass(frozen=True)
class EpsilonRefinement(ByWork):
    """Decrease ε; each run of a direct method starts from the potentials of the previous one.

    The first ε is a share of the gap between the independent plan and the zero potential. Methods
    that gain nothing from warm starts begin with the goal itself. A relative goal is known only
    near the optimum, so with one every method starts from a large ε.
    """

    problem: Problem
    goal: Goal
    pace: Pace
    tolerance: None = field(default=None, init=False)

    @property
    def evaluate_after(self) -> float | None:
        """Share of all operations between certificates, as the method prefers."""
        return self.pace.evaluate_after

    def at(self, level: float) -> Additive:
        """Return the problem with this ε."""
        return Additive(self.problem.geometry, level, self.problem.p, self.problem.q)

    def first(self) -> Additive:
        """Return the problem with a large first ε, or with the goal's."""
        problem, start = self.problem, self.pace.start
        if self.goal.rtol is None and start == 0:
            return self.at(self.goal.allowed(-math.inf))
        upper = dot(problem.p, problem.geometry.matvec(problem.q))
        lower = dot(problem.q, problem.geometry.ctransform_cols(np.zeros_like(problem.p)))
        return self.at(self._bounded((start or TUNING.first_epsilon) * (upper - lower), lower))

    def after(self, target: Additive, signal: Signal, run: RunState) -> Additive | None:
        """Move to a smaller ε when the method has finished, or the gap is below ε."""
        if not signal.is_finished and run.gap > target.level:
            return None
        level = self._bounded(min(run.gap, target.level) / self.pace.factor, run.lower)
        return self.at(level) if level < target.level else None

    def is_last(self, target: Additive) -> bool:
        """Tell whether ε is as small as float64 can certify."""
        return target.level <= self._bounded(0.0, -math.inf)

    def _bounded(self, level: float, lower: float) -> float:
        """Return an ε that is at least the goal, and at least what float64 can certify."""
        limit = least_gap(self.problem.cost_max or 1.0)
        return max(level, self.goal.allowed(lower), limit)
