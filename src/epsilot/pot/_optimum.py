"""Solve unregularised problems for POT's functions."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._types import Array, Index, Matrix, Vector
from ..api.solve import run_request
from ..engine.batch.one_problem import solve_one_small
from ..engine.one_line import solve_one_line
from ..engine.request import Request
from ..engine.result import Result
from ..errors import InvalidProblem
from ..geometry import Geometry
from ..geometry.inputs import cloud_geometry
from ..kernels.small_simplex import is_small
from ..metrics import MetricLike
from ..problems.plan import Plan
from ._tuning import TUNING

#: Result codes of POT, and one of ours: the gap is that of the round-off of the largest cost.
OPTIMAL, MAX_PIVOTS, UNPROVED = 1, 3, 5


class Optimum(NamedTuple):
    """A plan with few entries, its cost, a lower bound, and dual potentials."""

    value: float
    lower: float
    i: Index
    j: Index
    flow: Vector
    f: Vector
    g: Vector
    code: int
    shape: tuple[int, int]

    def dense(self) -> Matrix:
        """Return the plan as an array."""
        plan = np.zeros(self.shape)
        plan[self.i, self.j] = self.flow
        return plan

    @property
    def bounds(self) -> dict[str, float]:
        """The entries of a log that POT does not have."""
        return {"lower_bound": self.lower, "gap": self.value - self.lower}


@cache
def _request(max_pivots: int | None) -> Request:
    """Return the request of an exact solution, with a limit of POT's pivots."""
    keywords: dict[str, Any] = {"rtol": TUNING.rtol, "on_limit": "ignore"}
    if max_pivots is not None:
        keywords |= {"method": "exact", "max_pivots": max_pivots}
    return Request.of(keywords)


def optimum(
    M: Matrix | Geometry,
    a: Vector,
    b: Vector,
    *,
    numItermax: float = np.inf,
    potentials: tuple[Array, Array] | None = None,
) -> Optimum:
    """Solve a problem exactly.

    Limits of at least n + m pivots, the fewest that a simplex method needs, are not looked at:
    nothing is gained by returning a worse plan.
    """
    if numItermax >= sum(M.shape) or isinstance(M, Geometry):
        found = _optimum(M, a, b, None, potentials)
        return found if isinstance(M, Geometry) else _tightened(found, M, a, b)
    return _optimum(M, a, b, max(int(numItermax), 1), None)


def _optimum(
    M: Matrix | Geometry,
    a: Vector,
    b: Vector,
    max_pivots: int | None,
    potentials: tuple[Array, Array] | None,
) -> Optimum:
    """Solve a problem by compiled code if it is small, and else by a run."""
    n, m = M.shape
    is_limited = max_pivots is not None
    if not is_limited and isinstance(M, np.ndarray) and is_small(n, m):
        small = solve_one_small(M, a, b, rtol=TUNING.rtol, totals_rtol=TUNING.totals_rtol)
        if small is not None:
            return Optimum(**small._asdict(), code=OPTIMAL, shape=(n, m))
    request = _request(max_pivots)
    if potentials is not None:
        f, g = potentials
        request = Request.of({"rtol": TUNING.rtol, "on_limit": "ignore", "potentials_init": (f, g)})
    return of_result(run_request(request, M, a, b))


def _tightened(found: Optimum, M: Matrix, a: Vector, b: Vector) -> Optimum:
    """Solve again without arcs that are too expensive, if their size has hidden the optimum.

    Round-off is that of the largest cost. Without the arcs it is smaller, and the same potentials
    bound the whole problem if they are feasible there.
    """
    if not found.value - found.lower > TUNING.loose_rtol * abs(found.value):
        return found
    is_dear = TUNING.dear_ratio * np.abs(M[found.i, found.j]).max(initial=0.0) < M
    if is_dear.any():
        try:
            cut = of_result(run_request(_request(None), np.where(is_dear, np.inf, M), a, b))
        except InvalidProblem:  # no plan does without them
            cut = None
        if cut is not None:
            rows, cols = np.nonzero(is_dear)
            if (cut.f[rows] + cut.g[cols] <= M[rows, cols]).all():
                return cut
    is_ordinary = found.value - found.lower <= TUNING.loose_rtol * float(
        a.sum() * np.median(np.abs(M))
    )
    return found if is_ordinary else found._replace(code=UNPROVED)


def optimum_on_line(x: Vector, y: Vector, metric: MetricLike, a: Vector, b: Vector) -> Optimum:
    """Solve a problem between points on a line exactly; costs of few points are stored."""
    is_stored = x.size * y.size <= TUNING.max_stored_line
    line = cloud_geometry(x.reshape(-1, 1), y.reshape(-1, 1), metric, lazy=True)
    if is_stored:
        return optimum(line.matrix(), a, b)
    found = solve_one_line(line, a, b, rtol=TUNING.rtol)
    if found is None:
        return optimum(line, a, b)
    return Optimum(**found._asdict(), code=OPTIMAL, shape=line.shape)


def of_result(result: Result) -> Optimum:
    """Return a result of ``solve`` as an optimum."""
    (f, g), (i, j, flow) = result.potentials, arcs_of(result.plan_operator)
    return Optimum(
        value=result.value,
        lower=result.lower_bound,
        i=i,
        j=j,
        flow=flow,
        f=f,
        g=g,
        code=OPTIMAL if result.converged else MAX_PIVOTS,
        shape=result.plan_operator.shape,
    )


def arcs_of(plan: Plan) -> tuple[Index, Index, Vector]:
    """Return the rows, columns and values of a plan's entries."""
    found = sparse.coo_array(plan.tosparse())
    i, j = (np.asarray(x, np.int64) for x in found.coords)
    return i, j, np.asarray(found.data, np.float64)
