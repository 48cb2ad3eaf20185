"""The course of a run: the chosen method, what it works on, where it starts, its targets."""

from __future__ import annotations

from dataclasses import dataclass

from ..problems.objective import Objective
from ..problems.support import Support
from ..solvers import make_solver
from ..solvers.base import AnySolver
from ..solvers.exact import OnePoint
from .auto import Choice, choose
from .checks import check_fit, internal_potentials, largest_start
from .goal import Goal
from .request import Request, meant_keywords
from .schedules import AnySchedule, ConstantSchedule, make_schedule
from .starts import COLD, Coarse, Execute, Given, Start, wants_start


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """What is settled before a run begins."""

    method: str
    choice: Choice | None  # why, if "auto" chose
    solver: AnySolver
    support: Support
    start: Start
    schedule: AnySchedule


def make_run_plan(objective: Objective, goal: Goal, request: Request, execute: Execute) -> RunPlan:
    """Choose method, start and targets, or say why what is asked for does not fit together."""
    is_published = request.stop == "paper"
    support = Support.all(objective.problem) if is_published else objective.support()
    is_whole = support.problem is objective.problem
    worked_on = objective if is_whole else objective.on(support.problem)
    choice = choose(worked_on) if request.method == "auto" else None
    method = request.method if choice is None else choice.method
    options = request.options or {}
    made = make_solver(method, options, meant_keywords() if options else None)
    solver = made.resolved(request.stop, support.problem)
    check_fit(method, solver, worked_on, objective.problem, goal, request.stop)
    if not is_published:
        solver = OnePoint.instead_of(solver, support.problem)
    fixed = objective.fixed_target(support.problem)
    can_be_coarse = fixed is None and not is_published and not solver.starts_itself
    start = _given(objective, support, request)
    if start is None and can_be_coarse and wants_start(support.problem, request.multiscale):
        start = Coarse(support.problem, request.seed, execute)
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


def _given(objective: Objective, support: Support, request: Request) -> Start | None:
    """Return a start from the user's potentials, if there are any."""
    if request.potentials_init is None:
        return None
    largest = largest_start(objective)
    given = internal_potentials(request.potentials_init, objective.problem, largest)
    return Given.near(support.kept(*given), objective.on(support.problem))
