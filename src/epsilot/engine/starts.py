"""Where a run starts: from nothing, from given potentials, or from a coarse version of the problem.

A start is a stage of the run it serves: the runs it makes have the run's clock, limits, seed,
threads, callback, progress and interruption, and their operations are counted.

The coarse version of two clouds: points are gathered into cells of equal count by median splits;
the centroids with the cells' masses are a small problem, solved nearly exactly. A potential of the
small problem extends to every point of the large one by a c-transform, f(x) = min_J c(x, y_J) -
g_J. Between a very large cloud and a small one lies a third, solved by Sinkhorn's algorithm, whose
potentials extend by the softened minimum of their η: the large cloud then starts near its own
fixed point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._types import Matrix, Potentials, Vector
from ..errors import InvalidProblem
from ..geometry import Geometry
from ..kernels.vectors import log
from ..problems.balanced import dual_feasible
from ..problems.duals import softmin
from ..problems.objective import Objective
from ..problems.plan import Gibbs
from ..problems.problem import Problem, make_problem
from ..problems.work import Record, Work
from .request import Request
from .result import Result

#: Cells of the coarse clouds; the coarse problem takes a fraction of a second.
N_CELLS = 1500
#: Cells of the cloud in the middle, its accuracy, and the smallest cloud that has one.
N_MIDDLE, MIDDLE_RTOL, LARGE = 8000, 0.1, 40_000
#: Smallest cloud and highest dimension for which a coarse cloud says enough.
SMALLEST, HIGHEST = 5000, 3
#: Potentials beyond this many times the largest cost (or η) say nothing but their c-transforms.
FAR = 100.0


class Stage(NamedTuple):
    """What a start sees of the run it serves."""

    seconds_left: Callable[[], float]
    look: Callable[[Record], bool]  # tells the run's observers; True asks to stop


@dataclass(frozen=True)
class Started:
    """The potentials that a start found, and the work it took."""

    potentials: Potentials | None = None
    work: Work = field(default_factory=Work)


class Start(Protocol):
    """Finds what a run begins with."""

    @property
    def is_warm(self) -> bool:
        """Whether potentials near the solution are to be expected."""

    def find(self, stage: Stage) -> Started:
        """Return what was found within what the run has left."""


@dataclass(frozen=True)
class Cold:
    """Nothing is known."""

    is_warm: bool = field(default=False, init=False)

    def find(self, stage: Stage) -> Started:
        """Return nothing."""
        return Started()


COLD = Cold()


@dataclass(frozen=True)
class Given:
    """Potentials of the user's, or of an earlier run."""

    potentials: Potentials
    is_warm: bool = field(default=True, init=False)

    @classmethod
    def near(cls, potentials: Potentials, objective: Objective) -> Given:
        """Return a start whose exponents do not overflow: far potentials are c-transformed."""
        f, g = potentials[0] - potentials[0].max(), potentials[1] + potentials[0].max()
        if max(np.abs(f).max(), np.abs(g).max()) <= FAR * objective.size:
            return cls(potentials)
        return cls(dual_feasible(objective.problem.geometry, f))

    def find(self, stage: Stage) -> Started:
        """Return them."""
        return Started(self.potentials)


#: Runs a request on a problem, as any run is.
Execute = Callable[[Problem, Request], Result]


@dataclass(frozen=True)
class Coarse:
    """The potentials of a coarse version of two clouds, found by runs inside the run."""

    problem: Problem
    seed: int
    execute: Execute = field(repr=False)
    is_warm: bool = field(default=True, init=False)

    def find(self, stage: Stage) -> Started:
        """Return potentials extended from the coarse version; its runs heed the run's limits."""
        work = Work()

        def solve(problem: Problem, **wish: Any) -> Result:
            request = Request(
                **wish,
                seed=self.seed,
                max_seconds=max(0.0, stage.seconds_left()),
                callback=stage.look,
                on_limit="ignore",
            )
            result = self.execute(problem, request)
            work.record(result.work)
            return result

        geometry, p, q = self.problem.geometry, self.problem.p, self.problem.q
        return Started(coarse_potentials(geometry, p, q, solve), work=work)


def wants_start(problem: Problem, is_wanted: bool | None) -> bool:
    """Tell whether to start from a coarse problem: if asked to, or if that is worthwhile."""
    geometry = problem.geometry
    if is_wanted and not geometry.can_coarsen:
        raise InvalidProblem(
            f"multiscale=True was given for {geometry.noun}; it needs a point cloud with one of "
            "the named metrics that is not stored (pass lazy=True)."
        )
    if is_wanted is not None or not geometry.can_coarsen or geometry.dimension is None:
        return bool(is_wanted)
    return min(geometry.shape) >= SMALLEST and geometry.dimension <= HIGHEST


def coarse_potentials(
    geometry: Geometry,
    a: Vector,
    b: Vector,
    solve: Callable[..., Result],
    n_cells: int | None = None,
) -> Potentials:
    """Return potentials that extend from cells of sources and targets.

    ``solve`` solves a problem as asked by keywords.
    """
    if n_cells is None:
        n_cells = N_CELLS if min(geometry.shape) < LARGE else N_MIDDLE
    coarse = geometry.coarsen(n_cells, a, b)
    assert coarse is not None  # what can_coarsen says
    cells, p, q = coarse.geometry, coarse.p, coarse.q
    if n_cells == N_CELLS:
        solved = solve(_uneven(cells.matrix(), p, q), rtol=1e-3)
    else:
        start = coarse_potentials(cells, p, q, solve, N_CELLS)
        solved = solve(
            _uneven(cells, p, q),
            rtol=MIDDLE_RTOL,
            method="sinkhorn",
            potentials_init=start,
            multiscale=False,
        )
    core = solved.plan_operator.core
    if n_cells == N_CELLS or not isinstance(core, Gibbs):  # Sinkhorn had no time for a pass
        f, g = solved.potentials
        f, g = coarse.from_rows.ctransform_rows(g), coarse.from_cols.ctransform_rows(f)
        return f + coarse.shift, g
    log_a, log_b = (log(np.where(mass > 0, mass, 1.0)) for mass in (a, b))
    f = softmin(log_a, coarse.from_rows.rough.lse_rows(core.g, core.eta), core.eta)
    g = softmin(log_b, coarse.from_cols.rough.lse_rows(core.f, core.eta), core.eta)
    return f + coarse.shift, g


def _uneven(cost: Matrix | Geometry, p: Vector, q: Vector) -> Problem:
    """Return a problem whose masses were added up differently: their totals may be uneven."""
    return make_problem(cost, p, q, normalize=True)
