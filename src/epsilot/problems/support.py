"""The part of a problem that methods work on, and the way back to the whole."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from .._types import Potentials, Vector
from ..kernels.vectors import are_between
from .plan import Arcs, Core
from .plan.core import Kept, spread
from .problem import Problem
from .work import Work, certificate_work

#: Masses of 1 that no method need look at: their logarithms and products leave the range of floats.
EMPTY = 1e-200
#: The least mass that is looked at.
ABOVE = math.nextafter(EMPTY, 1.0)


@dataclass(frozen=True)
class Support:
    """A problem without its empty rows and columns; what is found there is lifted back."""

    whole: Problem
    problem: Problem
    rows: Kept
    cols: Kept

    @classmethod
    def all(cls, problem: Problem) -> Self:
        """Return the problem as it is."""
        return cls(problem, problem, slice(None), slice(None))

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Return the problem without empty rows and columns.

        Rows and columns next to empty go too: rounding gives them what they miss. A geometry that
        cannot be restricted keeps everything, and so do masses that are all next to empty.
        """
        if are_between(problem.p, ABOVE, np.inf) and are_between(problem.q, ABOVE, np.inf):
            return cls.all(problem)
        rows, cols = np.flatnonzero(problem.p > EMPTY), np.flatnonzero(problem.q > EMPTY)
        is_any = rows.size > 0 and cols.size > 0
        geometry = problem.geometry.restricted(rows, cols) if is_any else None
        if geometry is None:
            return cls.all(problem)
        inner = replace(problem, geometry=geometry, p=problem.p[rows], q=problem.q[cols])
        return cls(problem, inner, rows, cols)

    def certificate_work(self) -> Work:
        """Return the work of one certificate of this part."""
        return certificate_work(self.problem.geometry)

    def nothing(self) -> tuple[Core, Vector]:
        """Return what is certified of a method that has nothing yet: the independent plan."""
        return Arcs.none(self.problem.shape), np.zeros(self.problem.shape[0])

    def known_potential(self, f: Vector) -> Vector | None:
        """Return a row potential of the whole problem made from one of this part, if it is one."""
        if f.shape != self.problem.shape[:1] or not are_between(f, -np.inf, np.inf):
            return None
        return self.lifted(Arcs.none(self.problem.shape), f.copy())[1]

    def kept(self, f: Vector, g: Vector) -> Potentials:
        """Return potentials of the whole problem on the kept rows and columns."""
        return f[self.rows], g[self.cols]

    def lifted(self, core: Core, row: Vector) -> tuple[Core, Vector]:
        """Return a plan and a row potential of the whole problem: empty rows get -inf."""
        if self.problem is self.whole:
            return core, row
        geometry = self.whole.geometry
        f = spread(row, self.rows, geometry.shape[0], -np.inf)
        return core.embedded(geometry, self.rows, self.cols), f
