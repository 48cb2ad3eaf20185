"""Exact transport on a line: sorted masses are matched from left to right.

Costs that are convex in the distance have the Monge property in sorted order, for which the plan of
the north-west corner is optimal, and potentials that are tight along its path feasible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from ..kernels import line as kernels
from ..metrics import metric_of
from ..problems.problem import Additive, Problem
from ..problems.work import Work
from .cost_models import Offer, cost_model
from .exact import OneStep, VertexState
from .method_info import MethodInfo, Order


@dataclass(frozen=True, kw_only=True)
class Monotone(OneStep):
    """Match sorted points from left to right, and derive potentials, in one step."""

    about: ClassVar[MethodInfo] = MethodInfo(
        family="exact",
        paper="Hoffman 1963 (Monge sequences)",
        year=1963,
        orders=(Order(1, log=1),),
        exactness="exact",
        solves_entropic=False,
        needs_line=True,
    )
    starts_itself: ClassVar[bool] = True

    @classmethod
    def offer(cls, problem: Problem) -> Offer | None:
        """Offer to match points on a line."""
        if problem.geometry.line is None:
            return None
        model, (n, m) = cost_model("monotone"), problem.shape
        reason = "on a line, sorted masses are matched from left to right"
        return Offer(reason, model.seconds(n, m), int(model.bytes * (n + m)))

    def memory(self, problem: Problem) -> int:
        """Return the bytes of orders, path, flow, potentials and a certificate's trees."""
        return 400 * sum(problem.shape)

    def step(self, problem: Additive, state: VertexState, rng: Generator) -> Work:
        """Match the points."""
        line = problem.geometry.line
        assert line is not None
        n, m = problem.shape
        i, j = np.empty((2, n + m - 1), dtype=np.int64)
        flow, f, g = np.empty(n + m - 1), np.empty(n), np.empty(m)
        p, q = problem.p[line.rows], problem.q[line.cols]
        cost = metric_of(line.embedding.metric).line_cost
        kernels.staircase(line.x, line.y, p, q, *cost, i, j, flow, f, g)
        used = flow > 0
        state.i, state.j, state.flow = line.rows[i[used]], line.cols[j[used]], flow[used]
        state.row, state.lam = np.empty(n), np.empty(m)
        state.row[line.rows], state.lam[line.cols] = f, g + line.embedding.shift
        state.is_done = True
        comparisons = n * n.bit_length() + m * m.bit_length()
        return Work.of(vector=n + m, arc_tested=comparisons)
