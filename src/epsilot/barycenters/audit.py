"""Audits of anybody's barycentre: its plans rounded, its potentials made feasible, or derived."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from .._types import Matrix, Vector
from ..engine.execute import execute as execute_member
from ..engine.request import Request
from ..errors import InvalidProblem
from ..problems.certificate import AUDIT_TOLERANCE, Certificate
from ..problems.plan import Core
from .bounds import above, below, check, onto
from .execute import execute
from .family import Family

#: How much less accurate potentials are computed than plans: they take all histograms at once.
CRUDER = 10


def audit(
    family: Family,
    b: Vector,
    cores: Sequence[Core] | None,
    columns: Matrix | None,
    derived: Request,
) -> Certificate:
    """Bracket the optimum with a barycentre, and with plans and potentials if there are any.

    Parameters
    ----------
    b : (m,) array
        A histogram in the user's units; what its total differs by counts as marginal error.
    cores : sequence of Core, optional
        Plans of mass 1; the best ones to b are computed if there are none.
    columns : (k, m) array, optional
        Column potentials in internal units; computed if there are none.
    derived : Request
        The accuracy of what is computed.
    """
    total = float(b.sum())
    if not (b.min() >= 0 and 0 < total < np.inf):
        raise InvalidProblem(
            "barycenter has negative entries, or no finite positive total; it must be a histogram."
        )
    b = b / total
    if cores is None:
        cores = [
            execute_member(onto(member, b).problem, derived).plan_operator.scaled(1 / family.mass)
            for member in family.members
        ]
    if columns is None:
        rtol = None if derived.rtol is None else CRUDER * derived.rtol
        crude = execute(family, dataclasses.replace(derived, rtol=rtol))
        unit = family.worth / family.mass
        columns = np.stack([g / unit for _, g in crude.potentials])
    upper, lower = above(family, cores, b), below(family, columns)
    check(family, upper.value, lower.value)
    high, low = family.to_user(upper.value), family.to_user(lower.value)
    error = upper.marginal_error + abs(total / family.mass - 1)
    return Certificate(high, low, high - low, family.mass * error, error <= AUDIT_TOLERANCE)
