"""Problems with a dummy source and a dummy target, which take the mass that is not moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._types import Potentials, Vector
from ..geometry.extended import extended
from .plan import Core
from .problem import Problem
from .support import Support


@dataclass(frozen=True)
class Dummies(Support):
    """A problem with balanced marginals whose plans, without the dummies, are those of another.

    ``inner`` is the whole problem without its empty rows and columns; ``completed`` is that one
    with the dummies, in which a dummy of no mass may be left out again. The costs that methods see
    are higher than the inner ones by ``raised``.
    """

    inner: Support
    completed: Support
    raised: float

    @classmethod
    def around(
        cls,
        inner: Support,
        costs: tuple[Vector, Vector, float],
        masses: tuple[Vector, Vector],
        **more: Any,
    ) -> Self:
        """Return a problem with dummies.

        Parameters
        ----------
        inner
            The problem without them.
        costs
            From sources to the dummy target, from the dummy source to targets, and between both.
        masses
            Of the sources and of the targets, each with its dummy last.
        **more
            What else a kind keeps.
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
        """Return potentials of the whole problem with the best ones of the dummies."""
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
        """Return what is left of a plan and of a row potential without the dummies."""
        return core.cropped(self.inner.problem.geometry, self.raised), row[:-1]
