"""Solve unregularised problems for POT's functions."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._types import Array, Index, Matrix, Vector
from ..api.solve import run_request
from ..engine.batch.one_problem import solve_one_small
from ..engine.request import Request
from ..engine.result import Result
from ..geometry import Geometry
from ..kernels.small_simplex import is_small
from ..problems.plan import Plan
from ._tuning import TUNING

#: Result codes of POT.
OPTIMAL, MAX_PIVOTS = 1, 3


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
    n, m = M.shape
    is_limited = numItermax < n + m and not isinstance(M, Geometry)
    if not is_limited and isinstance(M, np.ndarray) and is_small(n, m):
        small = solve_one_small(M, a, b, rtol=TUNING.rtol, totals_rtol=TUNING.totals_rtol)
        if small is not None:
            return Optimum(**small._asdict(), code=OPTIMAL, shape=(n, m))
    request = _request(max(int(numItermax), 1) if is_limited else None)
    if potentials is not None and not is_limited:
        f, g = potentials
        request = Request.of({"rtol": TUNING.rtol, "on_limit": "ignore", "potentials_init": (f, g)})
    return of_result(run_request(request, M, a, b))


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
