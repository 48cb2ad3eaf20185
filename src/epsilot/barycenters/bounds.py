"""The proof: plans with one common marginal above, potentials with Σ w_k g_k = 0 below.

Nothing here trusts a method. Any cores give plans, rounded to p_k and to the mean b of what they
bring; any column potentials give a bound, once their mean is taken off and they are c-transformed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._types import Matrix, Potentials, Vector
from ..errors import CertificateError
from ..kernels.proof import FEASIBLE, are_consistent
from ..kernels.vectors import dot, shrink
from ..problems.certificate import BUG_NOTE
from ..problems.objective import Objective, crude_plan, least_costs
from ..problems.plan import Core, Plan
from ..problems.rounding import remove_overflow
from .family import Family


class Above(NamedTuple):
    """A barycentre, its plans and their value, in internal units."""

    b: Vector
    plans: tuple[Plan, ...]
    value: float
    marginal_error: float  # mean l1 distance of the cores from p_k and b
    added: float  # what the mass that rounding moved costs


class Below(NamedTuple):
    """Feasible potentials and the bound they prove, in internal units."""

    potentials: tuple[Potentials, ...]
    value: float


def onto(member: Objective, b: Vector) -> Objective:
    """Return a member as transport to a barycentre."""
    return replace(member, problem=replace(member.problem, q=b))


def common_marginal(family: Family, cores: Sequence[Core]) -> Vector:
    """Return the mean of what the cores bring, of total 1, after their rows were cut to p_k."""
    brought = np.empty(family.shape)
    for k, (core, member) in enumerate(zip(cores, family.members, strict=True)):
        p = member.problem.p
        core, r, _ = remove_overflow(core, p)
        s = np.empty(p.size)
        shrink(r, p, s)
        brought[k] = core.cols(s)
    b = family.mean(brought)
    total = float(b.sum())
    return b / total if total > 0 else np.full(b.size, 1.0 / b.size)


def above(family: Family, cores: Sequence[Core], b: Vector | None = None) -> Above:
    """Return plans from p_k to b near any nonnegative cores; b is theirs if it is not given."""
    b = common_marginal(family, cores) if b is None else b
    plans, values, errors, added = [], [], [], []
    for core, member in zip(cores, family.members, strict=True):
        objective = onto(member, b)
        rounded = objective.rounded(core)
        plans.append(rounded.plan)
        values.append(objective.value(rounded.plan, rounded.cost))
        errors.append(rounded.marginal_error)
        added.append(_added(rounded.plan, member))
    return Above(
        b, tuple(plans), family.mean_of(values), family.mean_of(errors), family.mean_of(added)
    )


def _added(plan: Plan, member: Objective) -> float:
    """Return what the rank-one term of a rounded plan costs."""
    if plan.correction is None:
        return 0.0
    return dot(plan.correction.e, member.problem.geometry.matvec(plan.correction.d))


def below(family: Family, G: Matrix) -> Below:
    """Return feasible potentials made from any column potentials, and the bound they prove."""
    potentials = tuple(
        (member.row_potential(g), g)
        for member, g in zip(family.members, family.centred(G), strict=True)
    )
    return Below(potentials, dual_value(family, potentials))


def crudely_above(family: Family) -> Above:
    """Return plans of few entries to the uniform histogram, proved without a pass."""
    b = np.full(family.shape[1], 1.0 / family.shape[1])
    found = [crude_plan(onto(member, b)) for member in family.members]
    value = family.mean_of([upper for _, upper, _ in found])
    return Above(b, tuple(plan for plan, _, _ in found), value, 0.0, 0.0)


def crudely_below(family: Family) -> Below:
    """Return potentials that know the least costs only, and the bound they prove."""
    members = [least_costs(member) for member in family.members]
    g = np.zeros(family.shape[1])
    potentials = tuple((member.row_potential(g), g) for member in members)
    parts = [member.dual_value(pair) for member, pair in zip(members, potentials, strict=True)]
    return Below(potentials, family.mean_of(parts))


def dual_value(family: Family, potentials: Sequence[Potentials]) -> float:
    """Return the bound that potentials prove, or raise if they prove none.

    Whatever b of mass 1 is, Σ w_k <g_k, b> is at least the least entry of Σ w_k g_k.
    """
    parts = [
        member.dual_value(pair) for member, pair in zip(family.members, potentials, strict=True)
    ]
    least = float(family.mean(np.stack([g for _, g in potentials])).min())
    return family.mean_of(parts) + least


def prove(
    family: Family, b: Vector, plans: Sequence[Plan], potentials: Sequence[Potentials]
) -> tuple[float, float]:
    """Return the bounds that these very plans and potentials prove, or raise.

    Nothing is rounded or repaired: every plan must lead from p_k to b, and potentials must be
    feasible.
    """
    if not (b.min() >= 0 and abs(float(b.sum()) - 1) <= FEASIBLE):
        raise CertificateError(f"the barycentre is no histogram of the common mass. {BUG_NOTE}")
    proved = [
        onto(member, b).prove_plan(plan) for member, plan in zip(family.members, plans, strict=True)
    ]
    values = [value for value, _ in proved]
    upper, lower = family.mean_of(values), dual_value(family, potentials)
    check(family, upper, lower)
    return upper, lower


def check(family: Family, upper: float, lower: float) -> None:
    """Raise unless two bounds are finite and do not contradict each other."""
    if not are_consistent(upper, lower, max(member.size for member in family.members)):
        raise CertificateError(
            f"the upper bound {upper!r} contradicts the lower bound {lower!r}. {BUG_NOTE}"
        )
