"""Round onto the transport polytope (Altschuler, Weed, Rigollet 2017, Algorithm 2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._types import Vector
from ..geometry import Geometry
from ..kernels.vectors import are_between, shortfall, shrink
from .plan import Arcs, Core, Correction, Plan

#: Largest row or column sum of a plan whose products cannot overflow: as a multiple of the mass,
#: and absolute.
MAX_SUM_RATIO, MAX_SUM = 1e100, 1e280


class Rounded(NamedTuple):
    """A feasible plan, its cost (0 without a geometry), and the l1 error it started from."""

    plan: Plan
    cost: float
    marginal_error: float


def round_onto(core: Core, p: Vector, q: Vector, geometry: Geometry | None = None) -> Rounded:
    r"""Round a nonnegative matrix to a plan with marginals p and q, and price it.

    Rows, then columns, that carry too much are scaled down; what is then missing is added as
    a rank-one term. For a core of mass 1 the plan moves by at most the marginal error
    :math:`\delta` in l1, and its cost rises by at most :math:`\frac12\delta(\max C-\min C)`.
    Three passes over the core. Arcs that form a forest, as those of a simplex do, get the flow
    that the marginals determine instead: a vertex stays one. Other arcs get a few more for what
    is missing, at the same bounds: few arcs stay few.

    Parameters
    ----------
    core : Core
        Nonnegative (n, m) matrix.
    p, q : (n,), (m,) arrays
        Marginals of equal total.
    geometry : Geometry, optional
        Prices the result.
    """
    core, r, c = remove_overflow(core, p)
    s, t = np.empty(p.size), np.empty(q.size)
    error = shrink(r, p, s) + shrink(c, q, t)
    arcs = core.arcs()
    vertex = None if arcs is None else arcs.settled(p, q)
    if vertex is None:
        c = core.cols(s)
        shrink(c, q, t)
    if arcs is not None:
        plan = Plan(vertex or arcs.completed(s, t, p, q))
        return Rounded(plan, 0.0 if geometry is None else plan.cost(geometry), error)
    e, d = np.empty(p.size), np.empty(q.size)
    missing = shortfall(c, t, q, d)
    if missing > 0:
        d /= missing
    if geometry is None:
        mass, cost, shipped = core.rows(t), np.zeros_like(p), np.zeros_like(p)
    else:
        mass, cost, shipped = core.price(geometry, t, d)
    shortfall(mass, s, p, e)
    plan = Plan(core, Correction(s, t, e, d))
    return Rounded(plan, plan.priced(cost, shipped), error)


def remove_overflow(core: Core, p: Vector) -> tuple[Core, Vector, Vector]:
    """Return a core whose products do not overflow, with its row and column sums."""
    r, c = core.marginals()
    if _are_below(MAX_SUM_RATIO, r, c) or _are_below(
        min(MAX_SUM_RATIO * float(p.sum()), MAX_SUM), r, c
    ):
        return core, r, c
    core = core.without_overflow(p)
    r, c = core.marginals()
    if _are_below(MAX_SUM, r, c):
        return core, r, c
    nothing = Arcs.none(core.shape)  # exponents have no digits left
    return nothing, *nothing.marginals()


def _are_below(most: float, *sums: Vector) -> bool:
    """Tell whether no sum exceeds a number; NaN is not below it."""
    return all(are_between(x, -np.inf, most) for x in sums)
