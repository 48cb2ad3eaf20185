"""Transport to or from a single point: the plan is unique, and its potentials are the costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from ..problems.problem import Additive, Problem
from ..problems.work import Work
from .base import AnySolver, Pace
from .method_info import A_PRIORI, MethodInfo, Order
from .vertex import OneStep, State


@dataclass(frozen=True)
class OnePoint(OneStep):
    """Write down the only plan of a problem with one row or one column, in one step.

    It stands for an exact method, whose name and options the result shows.
    """

    asked: AnySolver

    about: ClassVar[MethodInfo] = MethodInfo(
        family="exact",
        paper="Kantorovich 1942",
        year=1942,
        orders=(Order(1),),
        exactness="exact",
        solves_entropic=False,
        rule=A_PRIORI,
    )
    starts_itself: ClassVar[bool] = True
    pace: ClassVar[Pace] = Pace(start=0.0, factor=4.0, warm_up=0)

    @classmethod
    def instead_of(cls, solver: AnySolver, problem: Problem) -> AnySolver:
        """Return the solver itself unless it is exact and one side has a single point."""
        is_settled = 1 in problem.shape and solver.about.exactness == "exact"
        return cls(solver) if is_settled else solver

    def step(self, problem: Additive, state: State, rng: Generator) -> Work:
        """Solve: all mass goes to or comes from the one point, and f_i + g_j = C_ij everywhere."""
        n, m = problem.shape
        state.i, state.j = np.divmod(np.arange(n * m), m)
        state.flow = problem.p.copy() if m == 1 else problem.q.copy()
        costs = problem.geometry.entries(state.i, state.j)
        state.row, state.lam = (costs, np.zeros(1)) if m == 1 else (np.zeros(1), costs)
        state.is_done = True
        return Work.of(vector=n + m)
