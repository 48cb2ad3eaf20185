"""Exact transport on a sparse cost by a primal network simplex on all of its arcs.

A few Sinkhorn sweeps over the arcs give crude potentials. The first basis is a tree of arcs of
least reduced cost. Nodes whose mass it cannot send or take hang from a root by artificial arcs,
whose price rises until they carry nothing. If they still carry mass at the highest price, the
certificate looks for a cut that proves the problem infeasible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from .._types import Potentials, Vector
from ..kernels.vectors import log
from ..problems.plan import Arcs, Core
from ..problems.problem import Additive, Problem
from ..problems.work import Work
from .arc_simplex import RoundState, basic_flow, begin, crash, duals, empty_rounds, pivot
from .base import DirectSolver, Pace
from .cost_models import Offer
from .method_info import A_PRIORI, MethodInfo


@dataclass(frozen=True, kw_only=True)
class NetworkSimplexTuning:
    """Tuning parameters of the network simplex on all arcs."""

    etas: tuple[float, ...] = (0.1, 0.03, 0.01, 0.003)  # of the sweeps, as shares of max C
    tolerance: float = 5e-14  # share of max C below which a reduced cost is negative
    arc_seconds: float = 1e-6  # predicted time per arc
    arc_bytes: int = 60  # predicted memory per arc


TUNING = NetworkSimplexTuning()


@dataclass(kw_only=True)
class NetworkState(RoundState):
    """The only round of the simplex, on all arcs."""

    def fits(self, problem: Additive) -> bool:
        """Tell whether saved arrays have consistent sizes and indices."""
        n, m = problem.shape
        is_whole = self.flow.size == (n + m + 1 if self.has_basis else 0)
        return (self.row.size, self.lam.size) == (n, m) and is_whole and self.is_basis()


@dataclass(frozen=True, kw_only=True)
class NetworkSimplex(DirectSolver[NetworkState]):
    """Solve a sparse transport problem by pivots of a network simplex on its arcs.

    A step is a number of pivots. The first step also builds the basis.
    """

    about: ClassVar[MethodInfo] = MethodInfo(
        family="exact",
        paper="Dantzig 1951; Cunningham 1976",
        year=1951,
        note="simplex on the given arcs",
        exactness="exact",
        solves_entropic=False,
        rule=A_PRIORI,
        needs_arcs=True,
    )
    pace: ClassVar[Pace] = Pace(evaluate_after=None, warm_up=20)
    starts_itself: ClassVar[bool] = True

    @classmethod
    def offer(cls, problem: Problem) -> Offer | None:
        """Offer to solve sparse costs."""
        arcs = problem.geometry.allowed
        if arcs is None:
            return None
        size = arcs.costs.size
        reason = "a network simplex on the arcs is fastest for sparse costs"
        return Offer(reason, TUNING.arc_seconds * size, TUNING.arc_bytes * size)

    def init(
        self, problem: Additive, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[NetworkState, Work]:
        """Start from given potentials, or from those of a few Sinkhorn sweeps."""
        if potentials is None:
            (row, lam), work = crude_potentials(problem)
        else:
            (row, lam), work = potentials, Work()
        return NetworkState(row=row.copy(), lam=lam.copy(), **empty_rounds()), work

    def step(self, problem: Additive, state: NetworkState, rng: Generator) -> Work:
        """Pivot, and build the basis first."""
        unit, work = problem.geometry.cost_unit, Work()
        if state.is_done:
            return work
        if not state.has_basis:
            open_round(problem, state)
            work.record(Work.of(ctransform=state.arc_costs.size))
        work.record(pivot(state, unit, TUNING.tolerance))
        state.is_done = state.is_done or state.round > 0
        return work

    def candidates(self, problem: Additive, state: NetworkState) -> list[tuple[Core, Vector]]:
        """Return the plan of the basis and its duals."""
        row, _ = self.potentials(problem, state)
        flow = basic_flow(state) if state.has_basis else Arcs.none(problem.shape)
        core = flow if isinstance(flow, Arcs) else Arcs(problem.shape, *flow)
        return [(core, row)]

    def potentials(self, problem: Additive, state: NetworkState) -> Potentials:
        """Return the current duals."""
        return duals(state, problem.geometry.cost_unit)


def crude_potentials(problem: Additive) -> tuple[Potentials, Work]:
    """Return the potentials after Sinkhorn sweeps with falling η, and their work."""
    geometry, (n, m) = problem.geometry, problem.shape
    row, lam = np.zeros(n), np.zeros(m)
    log_p, log_q = (log(np.maximum(x, 1e-300)) for x in (problem.p, problem.q))
    unit = geometry.cost_unit
    for share in TUNING.etas:
        eta = share * unit
        row = bounded(eta * (log_p - geometry.lse_rows(lam, eta)), unit)
        lam = bounded(eta * (log_q - geometry.lse_cols(row, eta)), unit)
    return (row, lam), Work.of(lse=2 * len(TUNING.etas) * geometry.pass_entries)


def bounded(x: Vector, unit: float) -> Vector:
    """Clip potentials: those of nodes without arcs are infinite."""
    most = 1e3 * unit
    return np.clip(x, -most, most)


def open_round(problem: Additive, state: NetworkState) -> None:
    """Open the round with all arcs, and build a basis from a tree of least reduced costs."""
    arcs = problem.geometry.allowed
    assert arcs is not None
    order = np.random.default_rng(0).permutation(arcs.costs.size)
    i, j = arcs.rows[order], arcs.cols[order].astype(np.int64)
    begin(state, problem.shape, i, j, arcs.costs[order], problem.geometry.cost_unit)
    by_cost = np.argsort(np.abs(state.reduced).astype(np.float32), kind="stable")
    crash(state, (problem.p, problem.q), by_cost)
