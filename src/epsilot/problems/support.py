"""Restrict a problem to its support, add dummies, and lift results back."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from .._types import Potentials, Vector
from ..geometry.extended import extended
from ..kernels.vectors import are_between
from .plan import Arcs, Core, KeptIndex, spread
from .problem import Problem
from .work import Work, certificate_work

#: Largest mass, as a share of 1, of rows and columns that methods leave out: its logarithm and
#: its products leave the range of float64.
NEGLIGIBLE_MASS = 1e-200
#: Smallest mass of a row or column that methods see.
LEAST_MASS = math.nextafter(NEGLIGIBLE_MASS, 1.0)


@dataclass(frozen=True)
class Support:
    """A problem restricted to its rows and columns with mass; results are lifted back."""

    whole: Problem
    problem: Problem
    rows: KeptIndex
    cols: KeptIndex

    @classmethod
    def all(cls, problem: Problem) -> Self:
        """Return the problem as it is."""
        return cls(problem, problem, slice(None), slice(None))

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Leave out rows and columns of negligible mass.

        Rounding gives them their mass later. A geometry that cannot be restricted keeps all rows
        and columns, and so does a problem whose masses are all negligible.
        """
        if are_between(problem.p, LEAST_MASS, np.inf) and are_between(
            problem.q, LEAST_MASS, np.inf
        ):
            return cls.all(problem)
        rows, cols = (
            np.flatnonzero(problem.p > NEGLIGIBLE_MASS),
            np.flatnonzero(problem.q > NEGLIGIBLE_MASS),
        )
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
        """Return the empty plan and zero potentials, which stand for a method without a result."""
        return Arcs.none(self.problem.shape), np.zeros(self.problem.shape[0])

    def known_potential(self, f: Vector) -> Vector | None:
        """Lift a row potential of this part to the whole problem; None if it does not fit."""
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


@dataclass(frozen=True)
class Dummies(Support):
    """A balanced problem with a dummy source and a dummy target, which take unmoved mass.

    ``inner`` is the whole problem without its empty rows and columns; ``completed`` is that one
    with the dummies, in which a dummy of no mass may be left out again. The costs that methods see
    are higher than the inner ones by ``raised``.
    """

    inner: Support
    completed: Support
    raised: float

    @classmethod
    def added_to(
        cls,
        inner: Support,
        costs: tuple[Vector, Vector, float],
        masses: tuple[Vector, Vector],
        **more: Any,
    ) -> Self:
        """Add a dummy source and a dummy target to a problem.

        Parameters
        ----------
        inner
            The problem without them.
        costs
            From sources to the dummy target, from the dummy source to targets, and between both.
        masses
            Of the sources and of the targets, each with its dummy last.
        **more
            Further fields of a subclass.
        """
        problem = inner.problem
        geometry = extended(problem.geometry, *costs)
        low = min(geometry.bounds[0], 0.0)
        p, q = masses
        shifted = geometry.shifted(-low) if low < 0 else geometry
        completed = Support.of(Problem(shifted, p / p.sum(), q / q.sum()))
        return cls(
            whole=inner.whole,
            problem=completed.problem,
            rows=inner.rows,
            cols=inner.cols,
            inner=inner,
            completed=completed,
            raised=-low,
            **more,
        )

    def kept(self, f: Vector, g: Vector) -> Potentials:
        """Restrict potentials of the whole problem, and add optimal ones of the dummies."""
        f, g = self.inner.kept(f, g)
        geometry = self.completed.whole.geometry
        n, m = self.inner.problem.shape
        with_row = np.append(f, -np.inf)
        cols = np.append(g, geometry.ctransform_cols(with_row)[m])
        rows = np.append(f, geometry.ctransform_rows(cols)[n])
        return self.completed.kept(rows, cols)

    def lifted(self, core: Core, row: Vector) -> tuple[Core, Vector]:
        """Return a plan and a row potential of the whole problem."""
        core, row = self.completed.lifted(core, row)
        core, row = self.without_dummies(core, row)
        return self.inner.lifted(core, row)

    def without_dummies(self, core: Core, row: Vector) -> tuple[Core, Vector]:
        """Remove the dummies from a plan and a row potential."""
        return core.cropped(self.inner.problem.geometry, self.raised), row[:-1]
