"""Coarser versions of a family on a grid: potentials found there begin the next finer one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._types import Matrix
from ..geometry.base import Halved
from ..problems.balanced import Transport
from ..problems.problem import Problem, read_only
from ..problems.support import Support
from .family import Family

#: Cells of a grid that has no coarser version.
FEW = 1 << 11


class CoarseFamily(NamedTuple):
    """A family on cells twice as long along every axis."""

    family: Family
    halved: Halved

    def prolonged(self, G: Matrix) -> Matrix:
        """Return column potentials on the finer grid."""
        return np.stack([self.halved.prolong(g) for g in G])


def coarser(family: Family) -> CoarseFamily | None:
    """Return the family on cells twice as long along every axis, if it is on one large grid."""
    geometry = family.members[0].problem.geometry
    if geometry.shape[0] <= FEW:
        return None
    if any(member.problem.geometry is not geometry for member in family.members):
        return None
    halved = geometry.halved()
    if halved is None:
        return None
    nothing = read_only(np.zeros(halved.geometry.shape[1]))
    problems = [
        Problem(halved.geometry, read_only(halved.pool(x.p)), nothing, x.offset, x.mass, x.unit)
        for x in (member.problem for member in family.members)
    ]
    members, supports = tuple(map(Transport, problems)), tuple(map(Support.all, problems))
    return CoarseFamily(Family(members, supports, family.weights), halved)
