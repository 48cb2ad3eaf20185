"""What ``solve`` asks of its arguments, each refusal one sentence with the remedy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .. import memory
from .._types import Potentials, Vector
from ..arguments import numeric
from ..errors import InvalidProblem
from ..kernels.simd8 import HEIGHT, WIDTH
from ..kernels.small_simplex import MOST_NODES, is_small
from ..problems.objective import Objective
from ..problems.problem import Problem
from ..solvers.base import AnySolver
from .goal import Goal

#: Potentials beyond this many times the largest cost (or η) are no start: their digits are lost.
LARGEST_START = 1e6
#: Potentials up to this size can be audited.
LARGEST_POTENTIAL = 1e300


def check_fit(
    name: str, solver: AnySolver, objective: Objective, whole: Problem, goal: Goal, stop: str
) -> None:
    """Refuse combinations that have no meaning, in one sentence.

    The method works on the objective, which may have fewer points than the whole problem.
    """
    about, problem, geometry = solver.about, objective.problem, objective.problem.geometry
    if not objective.is_served_by(about):
        raise InvalidProblem(f"{name} {objective.unserved}")
    if stop == "paper" and goal.eps is None:
        raise InvalidProblem(
            "stop='paper' needs eps, from which the published constants follow; pass eps=..., "
            "or stop='certificate'."
        )
    if stop == "paper" and objective.unpublished is not None:
        raise InvalidProblem(objective.unpublished)
    if about.needs_lattice and geometry.lattice is None:
        raise InvalidProblem(
            f"{name} was asked for on {_described(whole)}; it needs masses on grids with the "
            "metric 'cityblock' (use solve_grid, or method='auto')."
        )
    if about.needs_small and not is_small(*problem.shape):
        raise InvalidProblem(
            f"{name} was asked for on {_described(whole)}; it takes up to {MOST_NODES} rows and "
            f"columns together, counted in {HEIGHT}s and {WIDTH}s (use method='auto')."
        )
    if about.needs_line and geometry.line is None:
        raise InvalidProblem(
            f"{name} was asked for on {_described(whole)}; it needs points on a line that are not "
            "stored, with a metric that has a name (use solve_sample(..., lazy=True), or "
            "method='auto')."
        )
    is_missing = about.needs_dense and not geometry.is_dense
    if not is_missing:
        n, m = whole.shape
        memory.ask(solver.memory(problem), f"{name} on {n:,} x {m:,}", "use method='sinkhorn'")
    if is_missing or (about.needs_rows and not geometry.has_rows):
        what = "an explicit cost matrix" if about.needs_dense else "rows of the cost"
        other, _ = objective.own_method or ("sinkhorn", "")
        raise InvalidProblem(
            f"{name} needs {what}, which {_described(whole)} cannot give cheaply; use "
            f"method={other!r}, or pass a dense cost."
        )


def _described(problem: Problem) -> str:
    """Return what a problem's cost is, and its size."""
    n, m = problem.shape
    return f"{problem.geometry.noun} of {n:,} x {m:,}"


def largest_start(objective: Objective) -> float:
    """Return the size up to which potentials can start a run."""
    return objective.problem.unit * LARGEST_START * (max(objective.scale, objective.size) or 1.0)


def internal_potentials(
    given: tuple[ArrayLike, ArrayLike],
    problem: Problem,
    largest: float = LARGEST_POTENTIAL,
) -> Potentials:
    """Return potentials of at most a size in internal units."""
    largest = min(largest, problem.unit * LARGEST_POTENTIAL)
    f, g = _pair(given)
    if (f.shape, g.shape) != tuple((size,) for size in problem.shape):
        raise InvalidProblem(
            f"the potentials have shapes {f.shape} and {g.shape}; they must be two finite "
            f"vectors of {problem.shape[0]} and {problem.shape[1]} entries."
        )
    for name, x in (("f", f), ("g", g)):
        is_good = np.abs(x) <= largest
        if not is_good.all():
            i = int(np.argmin(is_good))
            raise InvalidProblem(
                f"the potential {name}[{i}] is {x[i]:.6g}; potentials must be finite and of the "
                f"size of the costs (at most {largest:.1g} here; are they in units of M?)."
            )
    return f / problem.unit - problem.offset, g / problem.unit


def _pair(given: tuple[ArrayLike, ArrayLike]) -> tuple[Vector, Vector]:
    """Return two arrays, or say that there are not two."""
    try:
        f, g = given
    except (TypeError, ValueError):
        raise InvalidProblem(
            f"the potentials are {type(given).__name__}; they must be two vectors (f, g), for rows "
            "and for columns."
        ) from None
    return numeric(f, "a potential"), numeric(g, "a potential")
