"""Gromov-Wasserstein as the objective of a run: bounds, their proof, and the user's units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from .._types import Index, Matrix, Vector
from ..engine.goal import Goal
from ..kernels.auction import corner
from ..kernels.moment_transport import linear_part, moment
from ..problems.objective import Evaluation, OneProblem, Proof, WholeSupport
from ..problems.plan import Arcs
from .cover import Boxes, Cover
from .oracle import TransportOracle
from .problem import GromovProblem
from .verify import bound_of, value_of


@dataclass(frozen=True, kw_only=True)
class GromovGoal(Goal):
    """A gap of at most ``rtol`` times the lower bound, or ``atol``."""

    atol: float

    @property
    def is_exact(self) -> bool:
        """Return False: any plan within the gap will do."""
        return False

    def allowed(self, lower: float) -> float:
        """Return the largest gap that reaches the goal."""
        return max(self.atol, (self.rtol or 0.0) * max(lower, 0.0))


class Bracket(NamedTuple):
    """The best plan and a cover, with the bounds that the search has for them."""

    plan: Arcs
    lower: float
    cover: Cover

    def is_finite(self) -> bool:
        """Tell that both are finite: every oracle call proved its own."""
        return True


@dataclass(frozen=True)
class GromovObjective(WholeSupport, OneProblem):
    """K + <M - 4|x|²|y|², P> - 8|Z|²: plans above, covers of all cross moments below."""

    problem: GromovProblem
    oracle: TransportOracle

    shift: ClassVar[float] = 0.0
    slack: ClassVar[float] = 0.0  # both bounds are multiplied by the same number

    @property
    def scale(self) -> float:
        """Size of the numbers that are added up; the optimum may be 0."""
        return self.problem.scale

    @property
    def round_off_size(self) -> float:
        """Size of the numbers that are added up, with a margin for their count."""
        return 100 * self.problem.scale

    def objective_of(self, plan: Arcs) -> float:
        """Return the objective of a plan, in a fixed order."""
        problem, Z = self.problem, np.zeros(self.problem.dimension)
        moment(problem.X, problem.W, plan.i, plan.j, plan.flow, Z)
        linear = linear_part(problem.x2, problem.W, problem.M, plan.i, plan.j, plan.flow)
        return float(problem.constant + linear - 8 * (Z * Z).sum())

    def evaluate(self, core: Bracket, f: Vector) -> Evaluation[Arcs, Cover]:
        """Return the bounds of the search; the proof recomputes them."""
        problem, plan = self.problem, core.plan
        plan = plan.settled(problem.p, problem.q) or plan
        upper = max(self.objective_of(plan), problem.floor)
        lower = min(max(core.lower, problem.floor), upper)
        return Evaluation(plan, upper, core.cover, lower, 0.0)

    def prove(self, plan: Arcs, potentials: Cover) -> Proof:
        """Return the bounds that a plan and a cover prove, by independent code."""
        upper, _ = value_of(self.problem, plan)
        lower = bound_of(self.problem, potentials)
        self.check(upper, lower)
        return Proof(upper, min(lower, upper), upper)

    def crude_bounds(self) -> tuple[Evaluation[Arcs, Cover], Proof]:
        """Return the bounds of any plan, and of the form itself: squares are not negative."""
        problem = self.problem
        i, j, flow = corner(problem.p.copy(), problem.q.copy(), 0.0)
        shape = problem.p.size, problem.q.size
        plan = Arcs(shape, np.asarray(i), np.asarray(j), np.asarray(flow)).above(0.0)
        plan = plan.settled(problem.p, problem.q) or plan
        cover = empty_cover(problem)
        proof = self.prove(plan, cover)
        return Evaluation(plan, proof.upper, cover, proof.lower, 0.0), proof

    def dual_value(self, potentials: Cover) -> float:
        """Return the lower bound that a cover proves."""
        return bound_of(self.problem, potentials)

    def nothing(self) -> tuple[Bracket, Vector]:
        """Return a crude bracket."""
        found, _ = self.crude_bounds()
        return Bracket(found.plan, found.lower, found.potentials), np.zeros(0)


def empty_cover(problem: GromovProblem) -> Boxes:
    """Return one box around all cross moments, bounded without solving: V by its largest entry."""
    low, high = problem.box()
    c = (low + high) / 2
    x2, y2 = float(problem.x2.max()), float(problem.y2.max())
    reach = 16 * math.sqrt(float((c * c).sum()) * x2 * y2)
    value = np.array([4 * x2 * y2 - problem.floor + reach + problem.scale])
    leaf = np.zeros(1, dtype=np.int64)
    prices = np.zeros((1, problem.q.size))  # they prove the value: no entry is larger
    return Boxes(low[None], high[None], value, leaf, leaf, prices, leaf)


def cross_polytope(D: int, radius: float) -> tuple[Matrix, Index]:
    """Return the origin and the corners ±radius e_i, and the simplices of all orthants."""
    points = np.zeros((1 + 2 * D, D))
    for d in range(D):
        points[1 + 2 * d, d], points[2 + 2 * d, d] = radius, -radius
    orthants = np.arange(1 << D)[:, None] >> np.arange(D) & 1
    corners = np.zeros((1 << D, D + 1), dtype=np.int64)
    corners[:, 1:] = 1 + 2 * np.arange(D) + orthants
    return points, corners


def is_reached(goal: GromovGoal, upper: float, lower: float) -> bool:
    """Tell whether the search may stop."""
    return upper - lower <= goal.allowed(lower)
