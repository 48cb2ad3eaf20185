"""Exact methods that solve in one step, among them POT's network simplex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from .. import processes
from .._types import Index, Matrix, Potentials, Vector
from ..errors import InvalidProblem
from ..problems.plan import Arcs, Core
from ..problems.problem import Additive, Problem
from ..problems.work import Work
from .base import AnySolver, DirectSolver, Pace, RowState, no_entries
from .cost_models import Offer, cost_model, tie_measure
from .method_info import A_PRIORI, MethodInfo, Order


@dataclass(slots=True)
class VertexState(RowState):
    """Optimal potentials and the arcs of an optimal vertex."""

    row: Vector  # row potential
    lam: Vector  # column potential
    i: Index = no_entries(np.int64)  # rows, columns and flow of the arcs in use
    j: Index = no_entries(np.int64)
    flow: Vector = no_entries()
    is_done: bool = False


class OneStep(DirectSolver[VertexState]):
    """An exact method whose only step solves the problem."""

    def init(
        self, problem: Additive, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[VertexState, Work]:
        """Start without arcs, from given potentials or zeros."""
        n, m = problem.shape
        row, lam = (np.zeros(n), np.zeros(m)) if potentials is None else potentials
        return VertexState(row, lam), Work()

    def candidates(self, problem: Additive, state: VertexState) -> list[tuple[Core, Vector]]:
        """Return the optimal plan and the optimal dual."""
        return [(Arcs(problem.shape, state.i, state.j, state.flow), state.row)]

    def potentials(self, problem: Additive, state: VertexState) -> Potentials:
        """Return the optimal dual."""
        return state.row, state.lam


@dataclass(frozen=True)
class OnePoint(OneStep):
    """Return the only feasible plan of a problem with one row or one column.

    It replaces the exact method that the user named, whose name and options the result shows.
    """

    replaced: AnySolver

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

    @property
    def named(self) -> AnySolver:
        """The method that the user named."""
        return self.replaced

    @classmethod
    def instead_of(cls, solver: AnySolver, problem: Problem) -> AnySolver:
        """Return this solver for one-point problems of exact methods, else the given one."""
        is_settled = 1 in problem.shape and solver.about.exactness == "exact"
        return cls(solver) if is_settled else solver

    def step(self, problem: Additive, state: VertexState, rng: Generator) -> Work:
        """Move all mass to or from the one point, with f_i + g_j = C_ij everywhere."""
        n, m = problem.shape
        state.i, state.j = np.divmod(np.arange(n * m), m)
        state.flow = problem.p.copy() if m == 1 else problem.q.copy()
        costs = problem.geometry.entries(state.i, state.j)
        state.row, state.lam = (costs, np.zeros(1)) if m == 1 else (np.zeros(1), costs)
        state.is_done = True
        return Work.of(vector=n + m)


@dataclass(frozen=True, kw_only=True)
class ExactTuning:
    """Tuning parameters of POT's network simplex."""

    entry_seconds: float = 1e-7  # predicted time of POT per entry of the cost
    node_seconds: float = 8e-6  # predicted time of POT per node of the longer side
    max_inline_seconds: float = 0.8  # longer runs take place in a process, which can be ended
    handicap: float = 0.8  # of its offer; other simplex methods may need a second round
    faster_by_ties: float = 1.7  # times the measure of ties, off the predicted seconds
    least_share: float = 0.3  # that ties leave


TUNING = ExactTuning()


@dataclass(frozen=True, kw_only=True)
class Exact(OneStep):
    """Solve the linear program by POT's network simplex, in one step.

    Parameters
    ----------
    max_pivots : int
        Maximum number of pivots; the certificate shows the gap that is left after them.
    """

    max_pivots: int = 100_000_000

    about: ClassVar[MethodInfo] = MethodInfo(
        family="exact",
        paper="Bonneel, van de Panne, Paris, Heidrich 2011 (POT)",
        year=2011,
        orders=(Order(3, log=1),),
        exactness="exact",
        solves_entropic=False,
        rule=A_PRIORI,
        needs_dense=True,
    )

    def __post_init__(self) -> None:
        if not self.max_pivots > 0:
            raise InvalidProblem(f"max_pivots is {self.max_pivots}; it must be positive.")

    @classmethod
    def offer(cls, problem: Problem) -> Offer | None:
        """Offer to solve stored costs that are too large for the small simplex."""
        geometry, (n, m) = problem.geometry, problem.shape
        if not geometry.is_dense or geometry.is_separable:
            return None
        model, faster = cost_model("exact"), 1.0
        if geometry.embedding is None:
            faster = max(1 - TUNING.faster_by_ties * tie_measure(geometry), TUNING.least_share)
        reason = "the network simplex is fastest at this size"
        seconds = faster * model.seconds(n, m)
        return Offer(reason, seconds, int(model.bytes * n * m), TUNING.handicap)

    def step(self, problem: Additive, state: VertexState, rng: Generator) -> Work:
        """Solve the problem by POT."""
        n, m = problem.shape
        C = problem.geometry.matrix()
        unit = problem.geometry.cost_unit  # POT's tolerances are absolute
        plan, u, v = simplex(problem.p, problem.q, C if unit == 1.0 else C / unit, self.max_pivots)
        # Compare first: flatnonzero of floats is ten times slower.
        state.i, state.j = np.divmod(np.flatnonzero(plan.ravel() > 0), m)
        state.flow = plan[state.i, state.j]
        state.row, state.lam = unit * u, unit * v
        state.is_done = True
        return Work.of(pivot=n * m)


def simplex(p: Vector, q: Vector, C: Matrix, max_pivots: int) -> tuple[Matrix, Vector, Vector]:
    """Return POT's optimal plan and duals; POT's compiled function takes positive masses only."""
    if p.min() > 0 and q.min() > 0:
        given = p, q * (p.sum() / q.sum()), C, max_pivots, 1
        if (
            TUNING.entry_seconds * C.size + TUNING.node_seconds * max(C.shape)
            > TUNING.max_inline_seconds
        ):
            plan, _, u, v, _ = processes.call("ot.lp.emd_wrap", "emd_c", *given)
        else:
            from ot.lp.emd_wrap import emd_c

            plan, _, u, v, _ = emd_c(*given)
        return plan, np.asarray(u), np.asarray(v)
    rows, cols = np.flatnonzero(p > 0), np.flatnonzero(q > 0)
    kept = np.ix_(rows, cols)
    inner, u, v = simplex(p[rows], q[cols], np.ascontiguousarray(C[kept]), max_pivots)
    plan = np.zeros(C.shape)
    plan[kept] = inner
    lam = np.min(C[rows] - u[:, None], axis=0)  # c-transforms, feasible where there is no mass
    lam[cols] = v
    row = np.min(C - lam, axis=1)
    row[rows] = u
    return plan, row, lam
