"""The compiled simplex of batches, as a method for one small problem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from .._types import Vector
from ..kernels.small import answer_one, match_one, solve_one
from ..kernels.small_simplex import is_small
from ..kernels.vectors import are_between
from ..problems.plan import Arcs
from ..problems.problem import Additive, Problem
from ..problems.work import Work
from .base import ProvedVertex
from .cost_models import Offer, cost_model
from .exact import Exact, OneStep, VertexState
from .method_info import A_PRIORI, MethodInfo


@dataclass(frozen=True, kw_only=True)
class SmallSimplex(OneStep):
    """Solve the linear program by pivots on a tree of at most 512 nodes, in one step.

    Equal masses are matched by shortest augmenting paths. Where float64 has too few digits for the
    costs, and pivots find no optimum, POT's simplex solves the problem.
    """

    about: ClassVar[MethodInfo] = MethodInfo(
        family="exact",
        paper="Cunningham 1976; Jonker, Volgenant 1987",
        year=1976,
        note="finitely many pivots",
        exactness="exact",
        solves_entropic=False,
        needs_dense=True,
        rule=A_PRIORI,
        needs_small=True,
    )

    @classmethod
    def offer(cls, problem: Problem) -> Offer | None:
        """Offer to solve stored costs whose tree is small enough."""
        geometry, (n, m) = problem.geometry, problem.shape
        if not geometry.is_dense or geometry.is_separable or not is_small(n, m):
            return None
        model = cost_model("small_simplex")
        reason = "a compiled simplex on all arcs is fastest for so few"
        return Offer(reason, model.seconds(n, m), int(model.bytes * n * m))

    def step(self, problem: Additive, state: VertexState, rng: Generator) -> Work:
        """Solve the problem by compiled pivots, or by POT."""
        n, m = problem.shape
        arcs, flow = np.empty((2, n + m), np.int64), np.empty(n + m)
        row, lam = np.empty(n), np.empty(m)
        C, p, q = problem.geometry.matrix(), problem.p, problem.q
        solved = match_one if _are_all_equal(p, q) else solve_one
        n_arcs = solved(C, p, q, arcs, flow, row, lam)
        if n_arcs == 0:
            return Exact().step(problem, state, rng)
        (state.i, state.j), state.flow = arcs[:, :n_arcs], flow[:n_arcs]
        state.row, state.lam, state.is_done = row, lam, True
        return Work.of(pivot=n * m)

    def proved(self, problem: Problem) -> ProvedVertex | None:
        """Solve a problem and prove the answer in one compiled call, with the bits of a run."""
        geometry, p, q = problem.geometry, problem.p, problem.q
        low, high = geometry.bounds
        if low == high:  # potentials are constant then
            return None
        n, m = geometry.shape
        arcs, flow = np.empty((2, n + m), np.int64), np.empty(n + m)
        f, g = np.empty(n), np.empty(m)
        trees = None if _are_all_equal(p, q) else True
        size, upper, lower, error = answer_one(geometry.matrix(), p, q, arcs, flow, f, g, trees)
        if size == 0:
            return None
        i, j = arcs[:, :size]
        plan = Arcs((n, m), i, j, flow[:size])
        return ProvedVertex(plan, (f, g), upper, lower, error, Work.of(pivot=n * m))


def _are_all_equal(p: Vector, q: Vector) -> bool:
    """Tell whether a problem is an assignment: as many rows as columns, and equal masses."""
    first = float(p[0])
    above = math.nextafter(first, math.inf)
    return (
        p.size == q.size
        and first == p[-1]
        and are_between(p, first, above)
        and are_between(q, float(q[0]), math.nextafter(float(q[0]), math.inf))
    )
