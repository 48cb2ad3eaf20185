"""Round onto the transport polytope (Altschuler, Weed, Rigollet 2017, Algorithm 2)."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

import numpy as np

from .. import deadline
from .._types import Index, Vector
from ..errors import Infeasible
from ..geometry import Geometry
from ..kernels.max_flow import complete
from ..kernels.vectors import are_between, distance, shortfall, shrink
from .plan import Arcs, Core, Correction, Plan

#: Largest row or column sum of a plan whose products cannot overflow: as a multiple of the mass,
#: and absolute.
MAX_SUM_RATIO, MAX_SUM = 1e100, 1e280


class Rounded(NamedTuple):
    """A feasible plan, its cost (0 without a geometry), and the l1 error it started from."""

    plan: Plan
    cost: float
    marginal_error: float


def round_onto(
    core: Core, p: Vector, q: Vector, geometry: Geometry | None = None, mass: float = 1.0
) -> Rounded:
    r"""Round a nonnegative matrix to a plan with marginals p and q, and price it.

    Rows, then columns, that carry too much are scaled down; what is then missing is added as
    a rank-one term. For a core of mass 1 the plan moves by at most the marginal error
    :math:`\delta` in l1, and its cost rises by at most :math:`\frac12\delta(\max C-\min C)`.
    Three passes over the core. Arcs that form a forest, as those of a simplex do, get the flow
    that the marginals determine instead: a vertex stays one. Other arcs get a few more for what
    is missing, at the same bounds: few arcs stay few. A sparse geometry allows some arcs only; see
    :func:`round_on_arcs`.

    Parameters
    ----------
    core : Core
        Nonnegative (n, m) matrix.
    p, q : (n,), (m,) arrays
        Marginals of equal total.
    geometry : Geometry, optional
        Prices the result.
    mass : float
        The user's mass of an internal mass of 1, for messages.
    """
    core, r, c = remove_overflow(core, p)
    if geometry is not None and geometry.allowed is not None:
        return round_on_arcs(core, p, q, geometry, mass)
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
        sums, cost, shipped = core.rows(t), np.zeros_like(p), np.zeros_like(p)
    else:
        sums, cost, shipped = core.price(geometry, t, d)
    shortfall(sums, s, p, e)
    plan = Plan(core, Correction(s, t, e, d))
    return Rounded(plan, plan.priced(cost, shipped), error)


#: Mass of a cut, as a share of 1, beyond which sums of masses prove that no plan exists.
LEAST_EXCESS = 1e-12


def round_on_arcs(
    core: Core,
    p: Vector,
    q: Vector,
    geometry: Geometry,
    mass: float,
    share: float | None = None,
) -> Rounded:
    """Round to a plan on the allowed arcs, or raise Infeasible with a cut.

    Mass on other arcs is dropped. Rows, then columns, that carry too much are scaled down. What is
    missing goes along augmenting paths, which may move mass from one arc to another.

    Parameters
    ----------
    core, p, q, geometry, mass
        As in :func:`round_onto`.
    share : float, optional
        Mass of the plan, whose marginals are then at most p and q; by default they are p and q.
    """
    arcs, (n, m) = geometry.allowed, geometry.shape
    assert arcs is not None
    r, c = core.marginals()
    wanted = float(p.sum()) if share is None else share
    if share is None:
        error = distance(r, p) + distance(c, q)
    else:
        excess = np.maximum(r - p, 0).sum() + np.maximum(c - q, 0).sum()
        error = float(excess) + abs(float(r.sum()) - share)
    few = core.arcs()
    vertex = None if few is None or share is not None else few.settled(p, q)
    if vertex is not None:
        plan = Plan(vertex)
        cost = plan.cost(geometry)
        if cost < np.inf:  # on allowed arcs only
            return Rounded(plan, cost, error)
    cols = arcs.cols.astype(np.int64)
    flow = np.maximum(core.at(arcs.rows, cols), 0.0)
    s, t = np.empty(n), np.empty(m)
    shrink(np.bincount(arcs.rows, flow, n), p, s)
    flow *= s[arcs.rows]
    shrink(np.bincount(cols, flow, m), q, t)
    flow *= t[cols]
    left = np.maximum(p - np.bincount(arcs.rows, flow, n), 0.0)
    right = np.maximum(q - np.bincount(cols, flow, m), 0.0)
    moved = float(flow.sum())
    if moved > wanted:
        flow *= wanted / moved
    else:
        levels = np.full(n, -1, dtype=np.int64), np.full(m, -1, dtype=np.int64)
        tiny = 1e-14 / (n + m)  # paths ignore nodes of less mass
        added, missing, is_open = 0.0, wanted - moved, moved < wanted
        while is_open:
            lacking = left, right, added, missing, tiny
            added, is_open = complete(arcs.lists, flow, *lacking, *levels)
            deadline.check()
        moved += added
        if wanted - moved > LEAST_EXCESS * wanted:
            raise_infeasible(mass * p, mass * q, mass * wanted, levels)
    used = np.flatnonzero(flow > 0)
    plan = Plan(Arcs((n, m), arcs.rows[used], cols[used], flow[used]))
    return Rounded(plan, plan.cost(geometry), error)


def raise_infeasible(p: Vector, q: Vector, wanted: float, levels: tuple[Index, Index]) -> NoReturn:
    """Raise Infeasible for the rows and columns that paths still reach."""
    sources, targets = (np.flatnonzero(level >= 0) for level in levels)
    sent = wanted - (float(p.sum()) - float(p[sources].sum()))
    excess = sent - float(q[targets].sum())
    raise Infeasible(
        f"no plan exists on the allowed arcs: {len(sources)} of the sources must send {sent:.6g}, "
        f"but their arcs lead to {len(targets)} of the targets, which take only "
        f"{sent - excess:.6g} (allow more arcs, or pass mass= or unbalanced= to leave mass).",
        sources,
        targets,
        excess,
    )


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
