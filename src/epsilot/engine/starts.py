"""Where a run starts: at zero potentials, at given ones, or at those of a coarse problem.

The coarse version of two clouds: points are gathered into cells of equal count by median splits.
The centroids with the cells' masses are a small problem, solved nearly exactly. A potential of the
small problem extends to every point of the large one by a c-transform, f(x) = min_J c(x, y_J) -
g_J. Between a very large cloud and a small one lies a third, solved by Sinkhorn's algorithm, whose
potentials extend by the softened minimum of their η: the large cloud then starts near its own
fixed point. ``execute`` solves these problems as stages of the run, coarsest first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .._types import Matrix, Potentials, Vector
from ..errors import InvalidProblem
from ..geometry import Geometry
from ..geometry.base import Coarsening
from ..kernels.vectors import log
from ..problems.balanced import dual_feasible
from ..problems.duals import softmin
from ..problems.objective import Objective
from ..problems.plan import Gibbs
from ..problems.problem import Problem, make_problem
from ..problems.work import Work
from .result import Result
from .tuning import TUNING


@dataclass(frozen=True)
class Start:
    """Where a run starts: at potentials, or at those of coarse versions of a problem."""

    potentials: Potentials | None = None
    coarse: Problem | None = None  # its coarse versions are solved first

    @property
    def is_warm(self) -> bool:
        """Whether potentials near the solution are to be expected."""
        return self.potentials is not None or self.coarse is not None

    @classmethod
    def near(cls, potentials: Potentials, objective: Objective) -> Start:
        """Return a start whose exponents do not overflow: far potentials are c-transformed."""
        f, g = potentials[0] - potentials[0].max(), potentials[1] + potentials[0].max()
        if max(np.abs(f).max(), np.abs(g).max()) <= TUNING.far_ratio * objective.size:
            return cls(potentials)
        return cls(dual_feasible(objective.problem.geometry, f))


COLD = Start()


@dataclass(frozen=True)
class Started:
    """The potentials of a start, and the work and seconds it took."""

    potentials: Potentials | None = None
    work: Work = field(default_factory=Work)
    seconds: float = 0.0


def wants_start(problem: Problem, is_wanted: bool | None) -> bool:
    """Tell whether to start from a coarse problem: if requested, or if it saves time."""
    geometry = problem.geometry
    if is_wanted and not geometry.can_coarsen:
        raise InvalidProblem(
            f"multiscale=True was given for {geometry.noun}; it needs a point cloud with one of "
            "the named metrics that is not stored (pass lazy=True)."
        )
    if is_wanted is not None or not geometry.can_coarsen or geometry.dimension is None:
        return bool(is_wanted)
    return (
        min(geometry.shape) >= TUNING.min_points_of_coarse
        and geometry.dimension <= TUNING.max_axes_of_coarse
    )


class CoarseLevel(NamedTuple):
    """A coarse version of a problem, and how its potentials extend to the finer one."""

    coarse: Coarsening
    finer_masses: tuple[Vector, Vector]
    is_middle: bool  # between a very large cloud and the coarsest

    @property
    def problem(self) -> Problem:
        """The coarse problem; the totals of its masses may differ by rounding."""
        cells = self.coarse.geometry
        cost: Matrix | Geometry = cells if self.is_middle else cells.matrix()
        return make_problem(cost, self.coarse.p, self.coarse.q, normalize=True)

    def keywords(self, potentials: Potentials | None) -> dict[str, Any]:
        """Return the accuracy and method for this level, given potentials of the coarser one."""
        if not self.is_middle:
            return {"rtol": TUNING.coarse_rtol}
        start = {"potentials_init": potentials, "multiscale": False}
        return {"rtol": TUNING.middle_rtol, "method": "sinkhorn", **start}

    def extended(self, solved: Result) -> Potentials:
        """Return potentials of the finer problem."""
        coarse, core = self.coarse, solved.plan_operator.core
        if not (self.is_middle and isinstance(core, Gibbs)):  # Sinkhorn may lack time for a pass
            f, g = solved.potentials
            f, g = coarse.from_rows.ctransform_rows(g), coarse.from_cols.ctransform_rows(f)
            return f + coarse.shift, g
        log_a, log_b = (log(np.where(mass > 0, mass, 1.0)) for mass in self.finer_masses)
        f = softmin(log_a, coarse.from_rows.rough.lse_rows(core.g, core.eta), core.eta)
        g = softmin(log_b, coarse.from_cols.rough.lse_rows(core.f, core.eta), core.eta)
        return f + coarse.shift, g


def coarse_levels(geometry: Geometry, a: Vector, b: Vector) -> list[CoarseLevel]:
    """Return the coarse versions of a problem, coarsest first."""
    is_middle = min(geometry.shape) >= TUNING.min_points_of_middle
    coarse = geometry.coarsen(TUNING.n_middle if is_middle else TUNING.n_cells, a, b)
    assert coarse is not None  # as can_coarsen promises
    level = CoarseLevel(coarse, (a, b), is_middle)
    if not is_middle:
        return [level]
    coarsest = coarse.geometry.coarsen(TUNING.n_cells, coarse.p, coarse.q)
    assert coarsest is not None
    return [CoarseLevel(coarsest, (coarse.p, coarse.q), is_middle=False), level]
