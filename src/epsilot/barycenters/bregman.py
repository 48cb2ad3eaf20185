"""Iterative Bregman projections in logarithms, with a falling η, overrelaxed or mixed."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._types import Matrix
from ..arguments import check_count, is_real, shown
from ..errors import InvalidProblem
from ..kernels.vectors import distance, exp, log
from ..run.goal import Goal
from ..transport.duals import softmin
from ..transport.work import Work
from .bounds import below
from .family import Family
from .method import Proposal, Start, Step, Steps, Verdict, gibbs_cores
from .mixing import Mixing
from .scales import coarser, prolonged

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


class Projected(NamedTuple):
    """The image of column potentials, and how far their plans' columns are from a common b."""

    columns: Matrix
    error: float


def projected(family: Family, G: Matrix, eta: float) -> Projected:
    r"""Project onto given rows, then onto equal columns (Benamou et al. 2015, Section 3.2).

    With f_k = η (log p_k - LSE_j((g_k - C_k)/η)) and log q_k = LSE_i((f_k - C_k)/η), the image is
    g_k = η (Σ_l w_l log q_l - log q_k), for which Σ w_k g_k = 0 holds.
    """
    log_q = np.empty(family.shape)
    for k, support in enumerate(family.supports):
        problem = support.problem
        f = softmin(log(problem.p), problem.geometry.lse_rows(G[k], eta), eta)
        log_q[k] = problem.geometry.lse_cols(f, eta)
    columns = exp(log_q + G / eta)  # of the plans of f and G, whose rows are right
    b = family.mean(columns)
    error = sum(w * distance(x, b) for w, x in zip(family.weights.tolist(), columns, strict=True))
    return Projected(eta * (family.mean(log_q) - log_q), error)


@dataclass(frozen=True, kw_only=True)
class Bregman:
    """Iterative Bregman projections of one family after the other of marginals, in logarithms.

    Benamou, Carlier, Cuturi, Nenna, Peyré 2015, *Iterative Bregman Projections for Regularized
    Transportation Problems*, for an η that falls when rounding adds little to the gap.

    Parameters
    ----------
    relaxation : float
        ω in (0, 2): g moves ω times as far as the projection.
    memory : int
        Steps that Anderson's acceleration mixes; 0: none.
    """

    relaxation: float = 1.0
    memory: int = 5

    solves_entropic = True

    def __post_init__(self) -> None:
        check_count("memory", self.memory, 0)
        if not (is_real(self.relaxation) and 0 < self.relaxation < 2):
            raise InvalidProblem(
                f"relaxation is {shown(self.relaxation)}; it must be a number between 0 and 2."
            )

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
        begin = yield from self._coarse(coarse, goal)
        begin = yield from self.descend(coarse, goal, begin, is_fine=False)
        return Start(prolonged(begin.columns, coarse, family), begin.eta)

    def _next(self, family: Family, mixing: Mixing, G: Matrix, eta: float) -> Projected:
        """Return the next columns and the error before them."""
        image, error = projected(family, G, eta)
        if self.relaxation != 1:
            image = G + self.relaxation * (image - G)
        return Projected(mixing.next(G, image), error)

    def _mixing(self, family: Family) -> Mixing:
        return Mixing(self.memory, np.sqrt(family.weights)[:, None])

    def descend(
        self, family: Family, goal: Goal, start: Start, *, is_fine: bool = True
    ) -> Generator[Step, Verdict, Start]:
        """Yield steps until η is near the goal, without a certificate; return where that is.

        ``is_fine`` tells whether the family is the one to certify, and no coarser one.
        """
        mixing, (G, eta) = self._mixing(family), (start.columns, start.eta)
        pass_, unit = _work(family), family.cost_max
        while True:
            for _ in range(LONG):
                G, error = self._next(family, mixing, G, eta)
                yield Step(pass_, eta, _proposal(family, G, eta) if is_fine else None)
                if MOVED * unit * error <= ROUNDED * eta:
                    break
            else:
                return Start(G, eta)
            lower = below(family, G).value
            near = FAR * max(goal.allowed(lower), CRUDE * abs(lower + goal.offset))
            if eta <= max(near, FINEST * unit):
                return Start(G, eta)
            eta *= FAST if eta > FAR * near else SLOW
            mixing.clear()

    def _fall(self, family: Family, goal: Goal, start: Start) -> Steps:
        """Yield steps with a certificate at the end of every stage."""
        mixing, (G, eta) = self._mixing(family), (start.columns, start.eta)
        rate, last, pass_ = MOVED * family.cost_max, 0, _work(family)
        finest, n = FINEST * family.cost_max, 0
        while True:
            n += 1
            G, error = self._next(family, mixing, G, eta)
            is_settled = rate * error <= ROUNDED * eta
            is_due = is_settled or n >= last + max(PATIENCE, SHARE * n)
            is_last = is_settled and eta <= finest
            verdict = yield Step(pass_, eta, _proposal(family, G, eta), is_due, is_last)
            if not verdict.is_certified:
                continue
            last = n
            if verdict.marginal_error > 0:
                rate = verdict.added / verdict.marginal_error
            if verdict.added <= ROUNDED * verdict.gap and eta > finest:
                eta *= SLOW
                mixing.clear()
            elif is_settled:
                rate *= 2  # the error that is enough was not

    def _at(self, family: Family, goal: Goal, G: Matrix, eta: float) -> Steps:
        """Yield steps at one η, with a certificate when the error promises the gap."""
        mixing, pass_ = self._mixing(family), _work(family)
        rate, last, n = 0.0, 0, 0
        while True:
            n += 1
            G, error = self._next(family, mixing, G, eta)
            is_due = rate * error <= goal.allowed(0.0) or n >= last + max(PATIENCE, SHARE * n)
            verdict = yield Step(pass_, eta, _proposal(family, G, eta), is_due)
            if verdict.is_certified:
                last = n
                if verdict.marginal_error > 0:
                    rate = 1.5 * verdict.gap / verdict.marginal_error


def _proposal(family: Family, G: Matrix, eta: float) -> Proposal:
    return Proposal(G, lambda: gibbs_cores(family, G, eta))


def _work(family: Family) -> Work:
    """Return the work of one step."""
    k, m = family.shape
    return Work.of(lse=2 * family.pass_entries, vector=8 * k * m)
