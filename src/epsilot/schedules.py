"""Which η to solve for, and when to move on: the published constant, or a continuation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from scipy.special import entr

from .driver import Goal, Run
from .problem import Entropic, Problem, Target, smooth
from .solvers.base import Pace, Solver

#: Below this share of the largest cost, exponents (f + g - C) / η lose their accuracy.
SMALLEST_ETA = 1e-7


@dataclass(frozen=True)
class Constant:
    """One target for the whole run, ended by the certificate or by a published rule."""

    target: Target
    is_published: bool = False
    tolerance: float = 0.0

    @property
    def evaluate_after(self) -> float:
        """Published runs are evaluated for the record only, so less often."""
        return 0.5 if self.is_published else 0.1

    def first(self) -> Target:
        """Return the target."""
        return self.target

    def at(self, eta: float) -> Target:
        """Return the target."""
        return self.target

    def after(self, target: Target, violation: float, run: Run) -> Target | None:
        """Stay."""
        return None

    def is_published_stop(self, solver: Solver, target: Target, state: Any) -> bool:
        """Apply the method's rule, or let a direct method say that it has finished."""
        if not self.is_published and isinstance(target, Entropic):
            return False
        return solver.is_published_stop(target, state, self.tolerance)


@dataclass(frozen=True)
class Continuation:
    """η falls while the bias of the current η, not the marginal error, holds the gap open.

    At the entropic optimum the certified gap is at most η min(H(p), H(q)) and usually below η,
    while a violation δ adds about δ ‖C‖∞ / 2. So η is halved once δ ‖C‖∞ is below a share of
    η, and never falls below the η that is proved to suffice for the goal.
    """

    problem: Problem
    goal: Goal
    pace: Pace
    is_published: bool = field(default=False, init=False)
    evaluate_after: float = field(default=0.1, init=False)

    def at(self, eta: float) -> Entropic:
        """Return the problem with this η, smoothed only if an empty row or column is left."""
        p, q = self.problem.p, self.problem.q
        if p.min() == 0 or q.min() == 0:
            weight = min(0.01, eta / (8 * self.problem.cost_max))
            p, q = smooth(p, weight), smooth(q, weight)
        return Entropic(self.problem.geometry, eta, p, q)

    def first(self) -> Entropic:
        """Return the problem with the largest η."""
        return self.at(max(self.pace.start * self.problem.cost_max, self._floor(-math.inf)))

    def after(self, target: Target, violation: float, run: Run) -> Target | None:
        """Move to a smaller η when the marginal error is a small part of the gap."""
        floor = self._floor(run.lower)
        if target.eta <= floor:
            return None
        if violation * self.problem.cost_max > self.pace.share * target.eta:
            return None
        return self.at(max(floor, target.eta / self.pace.factor))

    def is_published_stop(self, solver: Solver, target: Target, state: Any) -> bool:
        """Leave the end to the certificate."""
        return False

    def _floor(self, lower: float) -> float:
        """Return the η at which the converged entropic plan is certified within the goal."""
        limit = SMALLEST_ETA * self.problem.cost_max
        if self.goal.rtol is not None and not math.isfinite(lower):
            return limit
        entropy = min(entr(self.problem.p).sum(), entr(self.problem.q).sum())
        return float(max(limit, self.goal.allowed(lower) / (2 * max(entropy, 0.5))))
