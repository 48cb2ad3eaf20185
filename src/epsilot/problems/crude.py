"""Bounds on the optimum without a pass over the costs, for runs whose time is up.

Above: the north-west corner plan, of at most n + m - 1 entries. Below: the optimum of the same
problem in which every cost is the least one; its potentials are feasible for all costs that are
not lower.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._types import Potentials
from ..geometry.constant import Constant
from ..kernels.auction import corner
from .objective import Objective
from .plan import Arcs, Plan


class CrudePlan(NamedTuple):
    """A proved upper bound, in internal units."""

    plan: Plan
    upper: float
    cost: float  # <C, X>


def crude_plan(objective: Objective) -> CrudePlan:
    """Return a feasible plan of few entries, and what it proves."""
    problem, mass = objective.problem, objective.movable
    p, q = (x * (mass / float(x.sum())) for x in (problem.p, problem.q))
    core = Arcs(problem.shape, *corner(p, q, 0.0)).above(0.0)
    plan = objective.rounded(core).plan
    return CrudePlan(plan, *objective.prove_plan(plan))


def least_costs(objective: Objective) -> Objective:
    """Return the objective with the least cost everywhere: bounds below it are bounds below."""
    problem = objective.problem
    least = Constant(problem.shape, problem.geometry.bounds[0])
    return objective.on(replace(problem, geometry=least))


def crude_potentials(objective: Objective) -> tuple[Potentials, float]:
    """Return feasible potentials that know the least cost only, and the bound they prove."""
    return least_costs(objective).dual(np.zeros(objective.problem.shape[0]))
