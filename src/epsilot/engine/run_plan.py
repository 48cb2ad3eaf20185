"""Plan a run: its method, the problem that the method works on, its start and its schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import memory
from .._types import Potentials, Vector
from ..arguments import numeric
from ..errors import InvalidProblem
from ..kernels.simd8 import HEIGHT, WIDTH
from ..kernels.small_simplex import MAX_NODES, is_small
from ..problems.objective import Objective
from ..problems.problem import Problem
from ..problems.support import Support
from ..solvers import auto_methods, make_solver
from ..solvers.base import AnySolver
from ..solvers.cost_models import Offer
from ..solvers.exact import OnePoint
from .goal import RTOL, Goal
from .request import Request, meant_keywords
from .schedules import AnySchedule, ConstantSchedule, make_schedule
from .starts import COLD, Start, wants_start
from .tuning import TUNING


@dataclass(frozen=True)
class Choice:
    """The method that "auto" chose, with the reason and the predicted cost."""

    method: str
    reason: str
    seconds: float  # predicted
    bytes: int  # predicted peak, beyond the inputs

    def __str__(self) -> str:
        return (
            f"{self.method}: {self.reason} (predicted {self.seconds:.2g} s, "
            f"{self.bytes / 2**20:.3g} MiB)"
        )


def choose(objective: Objective, rtol: float = RTOL) -> Choice:
    """Return the method for an objective: its own, or the fastest exact one to a relative gap."""
    if objective.default_method is not None:
        return Choice(*objective.default_method, 0.0, 0)
    problem = objective.problem
    offers = _offers(problem) or _offers(problem, is_fallback=True)
    if len(offers) > 1:
        method = min(offers, key=lambda x: offers[x].seconds_to(rtol) * offers[x].handicap)
    else:
        (method,) = offers
    offer = offers[method]
    return Choice(method, offer.reason, offer.seconds_to(rtol), offer.bytes)


def _offers(problem: Problem, *, is_fallback: bool = False) -> dict[str, Offer]:
    """Return the offers of the methods that serve a problem, by name."""
    offers = {}
    for name, solver in auto_methods(problem.geometry, is_fallback=is_fallback):
        offer = solver.offer(problem)
        if offer is not None:
            offers[name] = offer
    return offers


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """The decisions that are made before a run begins."""

    method: str
    choice: Choice | str | None  # the reason, if "auto" chose the method
    solver: AnySolver
    support: Any  # the part that the solver works on, as the driver needs it
    start: Start
    schedule: AnySchedule


def make_run_plan(objective: Objective, goal: Goal, request: Request) -> RunPlan:
    """Choose method, start and schedule, or raise ``InvalidProblem`` if keywords do not fit."""
    is_published = request.stop == "paper"
    support = Support.all(objective.problem) if is_published else objective.support()
    is_whole = support.problem is objective.problem
    restricted = objective if is_whole else objective.restricted_to(support)
    is_auto = request.method == "auto"
    choice = choose(restricted, goal.relative_to(objective.scale)) if is_auto else None
    method = request.method if choice is None else choice.method
    options = request.options or {}
    made = make_solver(method, options, meant_keywords() if options else None)
    solver = made.resolved(request.stop, support.problem)
    _check_fit(method, solver, restricted, objective.problem, goal, request.stop)
    if not is_published:
        solver = OnePoint.instead_of(solver, support.problem)
    fixed = restricted.fixed_target(support.problem)
    can_be_coarse = fixed is None and not is_published and not solver.starts_itself
    start = _given_start(objective, support, request)
    if start is None and can_be_coarse and wants_start(support.problem, request.multiscale):
        start = Start(coarse=support.problem)
    start = start or COLD
    inner, is_warm = support.problem, start.is_warm
    schedule: AnySchedule = (
        make_schedule(solver, inner, goal, is_published=is_published, is_warm=is_warm)
        if fixed is None
        else ConstantSchedule(fixed)
    )
    return RunPlan(
        method=method,
        choice=choice,
        solver=solver,
        support=support,
        start=start,
        schedule=schedule,
    )


# -- whether a method can solve a problem -----------------------------------------------------


def _check_fit(
    name: str, solver: AnySolver, objective: Objective, whole: Problem, goal: Goal, stop: str
) -> None:
    """Reject a method that cannot solve the problem, or not by its published procedure.

    The objective is that of the support; the whole problem is the one that messages describe.
    """
    about, problem, geometry = solver.about, objective.problem, objective.problem.geometry
    if not objective.is_served_by(about):
        raise InvalidProblem(f"{name} {objective.method_refusal}")
    if stop == "paper" and goal.eps is None:
        raise InvalidProblem(
            "stop='paper' needs eps, from which the published constants follow; pass eps=..., "
            "or stop='certificate'."
        )
    if stop == "paper" and objective.paper_refusal is not None:
        raise InvalidProblem(objective.paper_refusal)
    is_sparse = geometry.allowed is not None
    unfit = (
        (
            about.needs_lattice and geometry.lattice is None,
            "needs masses on grids with the metric 'cityblock'",
            "solve_grid, or ",
        ),
        (
            is_sparse and not (about.needs_arcs or about.takes_arcs),
            "needs a cost for every pair",
            "",
        ),
        (about.needs_arcs and not is_sparse, "needs a sparse cost", "epsilot.Sparse, or "),
        (
            about.needs_small and not is_small(*problem.shape),
            f"takes up to {MAX_NODES} rows and columns together, rounded up to multiples of "
            f"{HEIGHT} and {WIDTH}",
            "",
        ),
        (
            about.needs_line and geometry.line is None,
            "needs points on a line that are not stored, with a metric that has a name",
            "solve_sample(..., lazy=True), or ",
        ),
    )
    for is_unfit, need, remedy in unfit:
        if is_unfit:
            raise InvalidProblem(
                f"{name} cannot solve {_described(whole)}; it {need} (use {remedy}method='auto')."
            )
    is_missing = about.needs_dense and not geometry.is_dense
    if not is_missing:
        n_bytes = solver.memory(problem)
        if n_bytes > memory.MIN_CHECKED_BYTES:
            n, m = whole.shape
            memory.ask(n_bytes, f"{name} on {n:,} x {m:,}", "use method='sinkhorn'")
    if is_missing or (about.needs_rows and not geometry.has_rows):
        what = "an explicit cost matrix" if about.needs_dense else "rows of the cost"
        other, _ = objective.default_method or ("sinkhorn", "")
        raise InvalidProblem(
            f"{name} needs {what}, which {_described(whole)} cannot give cheaply; use "
            f"method={other!r}, or pass a dense cost."
        )


def _described(problem: Problem) -> str:
    """Return the noun and the size of a problem's cost."""
    n, m = problem.shape
    return f"{problem.geometry.noun} of {n:,} x {m:,}"


# -- potentials of the user -------------------------------------------------------------------


def _given_start(objective: Objective, support: Support, request: Request) -> Start | None:
    """Return a start from ``potentials_init``, if it was given."""
    if request.potentials_init is None:
        return None
    size = max(objective.scale, objective.size) or 1.0
    largest = objective.problem.unit * TUNING.max_start_ratio * size
    given = internal_potentials(request.potentials_init, objective.problem, largest)
    return Start.near(
        support.kept(*objective.own_potentials(*given)), objective.restricted_to(support)
    )


def internal_potentials(
    given: tuple[ArrayLike, ArrayLike], problem: Problem, largest: float = TUNING.max_potential
) -> Potentials:
    """Convert a user's potentials to internal units, or reject those beyond a size."""
    largest = min(largest, problem.unit * TUNING.max_potential)
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
    """Return two arrays, or reject anything else."""
    try:
        f, g = given
    except (TypeError, ValueError):
        raise InvalidProblem(
            f"the potentials are {type(given).__name__}; they must be two vectors (f, g), for rows "
            "and for columns."
        ) from None
    return numeric(f, "a potential"), numeric(g, "a potential")
