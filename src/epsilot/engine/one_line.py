"""Solve one problem between points on a line, with little overhead per call."""

from __future__ import annotations

import numpy as np

from .. import parallel
from .._types import Index, Vector
from ..geometry import Geometry
from ..kernels.vectors import below
from ..problems.balanced import Transport
from ..problems.objective import linear
from ..problems.plan import Arcs
from ..problems.problem import Additive, make_problem
from ..problems.rounding import round_onto
from ..solvers.monotone import Monotone
from .batch.one_problem import SmallOptimum
from .seeds import generator


def solve_one_line(geometry: Geometry, a: Vector, b: Vector, *, rtol: float) -> SmallOptimum | None:
    """Match sorted points and prove the plan; return None if ``solve`` is needed.

    It is needed if a point is empty, if costs are not convex in the distance on a line, or if
    round-off leaves a larger gap.
    """
    problem = make_problem(geometry, a, b)
    line = problem.geometry.line
    if line is None or min(problem.p.min(), problem.q.min()) <= 0:
        return None
    objective, rng, solver = Transport(problem), generator(0), Monotone()
    target = Additive(problem.geometry, 0.0, problem.p, problem.q)
    state, _ = solver.init(target, rng)
    solver.step(target, state, rng)
    core = Arcs(problem.shape, state.i, state.j, state.flow)
    plan = round_onto(core, problem.p, problem.q).plan
    upper, _ = objective.prove_plan(plan)
    g = state.lam - state.lam.max()
    f = line.ctransform(False, -g)
    f = below(f - line.error(f, g))  # the order of the points proves f up to that error
    value, lower = objective.bounds_to_user(upper, linear(problem, (f, g)))
    if not value - lower <= rtol * abs(lower):
        with parallel.limit(1):
            f = objective.row_potential(g)
        value, lower = objective.bounds_to_user(upper, linear(problem, (f, g)))
    if not value - lower <= rtol * abs(lower):
        return None
    objective.check(upper, linear(problem, (f, g)))
    i, j, flow = _entries(plan.core.arcs())
    return SmallOptimum(
        value, lower, i, j, problem.mass * flow, *objective.to_user_potentials((f, g))
    )


def _entries(arcs: Arcs | None) -> tuple[Index, Index, Vector]:
    """Return rows, columns and flow of the arcs that carry flow."""
    assert arcs is not None
    used = np.flatnonzero(arcs.flow > 0)
    return arcs.i[used], arcs.j[used], arcs.flow[used]
