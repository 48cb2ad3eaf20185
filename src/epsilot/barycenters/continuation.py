"""Stages of falling η: what iterations on entropic barycentres have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from .._types import Matrix
from ..engine.goal import Goal
from ..problems.work import Work
from .bounds import below
from .family import Family
from .method import Proposal, Start, Step, Steps, Verdict, gibbs_cores
from .scales import coarser

#: First η and the last one, as shares of the largest cost.
FIRST, FINEST = 0.05, 1e-10
#: η falls by one of these: far from the goal, and near it.
FAST, SLOW = 0.25, 0.5
#: Far from the goal is where η is above so many times the gap to reach, or a relative gap of 1 %.
FAR, CRUDE = 4.0, 0.01
#: A stage is over when rounding adds at most this share of the gap, which is about η.
ROUNDED = 0.25
#: What a unit of mass costs to move, as a share of the largest cost, before rounding shows it.
MOVED = 0.125
#: Steps without a certificate: so many, or a share of those taken; and of a stage that needs none.
PATIENCE, SHARE, LONG = 20, 0.25, 200


class Moved(NamedTuple):
    """What one step of an iteration found."""

    columns: Matrix
    error: float  # Σ w_k ‖X_kᵀ 1 - b‖₁ of plans whose rows are right, as last measured
    work: Work


class Iteration(Protocol):
    """An iteration on the entropic barycentre of one family."""

    def next(self, G: Matrix, eta: float) -> Moved:
        """Return what follows column potentials: those it returned last, unless it was cleared."""

    def clear(self) -> None:
        """Forget what was seen: η is another one from here."""


class Continuation(ABC):
    """A method that is an iteration at one η, and for the unregularised problem at falling ones."""

    solves_entropic: ClassVar[bool] = True

    @abstractmethod
    def iteration(self, family: Family) -> Iteration:
        """Return the iteration on a family, at its beginning."""

    def steps(self, family: Family, goal: Goal, start: Start | None = None) -> Steps:
        """Yield steps: stages of falling η, or one stage of the η that is asked for."""
        if family.eta is not None:
            columns = np.zeros(family.shape) if start is None else start.columns
            yield from self._at(family, goal, columns, family.eta)
            return
        begin = start or (yield from self._coarse(family, goal))
        begin = yield from self.descend(family, goal, begin)
        yield from self._fall(family, goal, begin)

    def _coarse(self, family: Family, goal: Goal) -> Generator[Step, Verdict, Start]:
        """Yield steps on coarser families, if there are any; return where to begin."""
        coarse = coarser(family)
        if coarse is None:
            return Start(np.zeros(family.shape), FIRST * family.cost_max)
        begin = yield from self._coarse(coarse.family, goal)
        begin = yield from self.descend(coarse.family, goal, begin, is_fine=False)
        return Start(coarse.prolonged(begin.columns), begin.eta)

    def descend(
        self, family: Family, goal: Goal, start: Start, *, is_fine: bool = True
    ) -> Generator[Step, Verdict, Start]:
        """Yield steps until η is near the goal, without a certificate; return where that is.

        ``is_fine`` tells whether the family is the one to certify, and no coarser one.
        """
        iteration, (G, eta) = self.iteration(family), (start.columns, start.eta)
        unit = family.cost_max
        while True:
            for _ in range(LONG):
                G, error, work = iteration.next(G, eta)
                yield Step(work, eta, _proposal(family, G, eta) if is_fine else None)
                if MOVED * unit * error <= ROUNDED * eta:
                    break
            else:
                return Start(G, eta)
            lower = below(family, G).value
            near = FAR * max(goal.allowed(lower), CRUDE * abs(lower + goal.offset))
            if eta <= max(near, FINEST * unit):
                return Start(G, eta)
            eta *= FAST if eta > FAR * near else SLOW
            iteration.clear()

    def _fall(self, family: Family, goal: Goal, start: Start) -> Steps:
        """Yield steps with a certificate at the end of every stage."""
        iteration, (G, eta) = self.iteration(family), (start.columns, start.eta)
        rate, last = MOVED * family.cost_max, 0
        finest, n = FINEST * family.cost_max, 0
        while True:
            n += 1
            G, error, work = iteration.next(G, eta)
            is_settled = rate * error <= ROUNDED * eta
            is_due = is_settled or n >= last + max(PATIENCE, SHARE * n)
            is_last = is_settled and eta <= finest
            verdict = yield Step(work, eta, _proposal(family, G, eta), is_due, is_last)
            if not verdict.is_certified:
                continue
            last = n
            if verdict.marginal_error > 0:
                rate = verdict.added / verdict.marginal_error
            if verdict.added <= ROUNDED * verdict.gap and eta > finest:
                eta *= SLOW
                iteration.clear()
            elif is_settled:
                rate *= 2  # the error that is enough was not

    def _at(self, family: Family, goal: Goal, G: Matrix, eta: float) -> Steps:
        """Yield steps at one η, with a certificate when the error promises the gap."""
        iteration = self.iteration(family)
        rate, last, n = 0.0, 0, 0
        while True:
            n += 1
            G, error, work = iteration.next(G, eta)
            is_due = rate * error <= goal.allowed(0.0) or n >= last + max(PATIENCE, SHARE * n)
            verdict = yield Step(work, eta, _proposal(family, G, eta), is_due)
            if verdict.is_certified:
                last = n
                if verdict.marginal_error > 0:
                    rate = 1.5 * verdict.gap / verdict.marginal_error


def _proposal(family: Family, G: Matrix, eta: float) -> Proposal:
    return Proposal(G, lambda: gibbs_cores(family, G, eta))
