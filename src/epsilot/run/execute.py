"""One request on one problem: goal, method, start, run, and the proof of what is returned."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import parallel
from .._types import Potentials
from ..errors import ConvergenceWarning, NotConverged
from ..solvers import make_solver, options_of
from ..solvers.base import AnySolver
from ..transport.certificate import ROUND_OFF
from ..transport.linear import dual_feasible
from ..transport.objective import Objective
from ..transport.problem import Additive, Problem, make_problem
from ..transport.work import Work
from ..version import __version__
from .auto import Choice, choose
from .checkpoint import Checkpoint
from .checks import (
    check_fit,
    check_reachable,
    internal_potentials,
    largest_start,
    make_limits,
)
from .driver import Driver, Goal, Run, Stage, Start, warm_up
from .interrupts import graceful_interrupts
from .request import Request, known_keywords
from .result import Result, Status
from .schedules import Constant, Continuation, Refinement
from .starts import coarse_start, wants_start

#: Potentials beyond this many times the largest cost (or η) say nothing but their c-transforms.
FAR = 100.0
#: Relative accuracy if none is asked for.
RTOL = 0.01


def execute(problem: Problem, request: Request) -> Result:
    """Solve a problem as requested, and prove the answer."""
    stop, seed = request.stop, request.seed
    if request.callback is not None:  # which may change what it was given
        problem = problem.detached()
    objective = request.kind.objective(problem, request.reg)
    problem, goal = objective.problem, make_goal(objective, request)
    choice = choose(objective) if request.method == "auto" else None
    name = request.method if choice is None else choice.method
    solver = make_solver(name, request.options or {}, known_keywords()).resolved(stop, problem)
    check_fit(name, solver, objective, goal, stop)
    inner, rows, cols = (
        (problem, slice(None), slice(None)) if stop == "paper" else problem.support()
    )
    largest = largest_start(objective)
    given = internal_potentials(request.potentials_init, problem, rows, cols, largest)
    given = _near(given, objective.on(inner))
    fixed = objective.fixed_target(inner)
    is_cold = given is None and fixed is None and stop != "paper"
    is_started = is_cold and wants_start(inner.geometry, request.multiscale)
    start = _start(inner, seed) if is_started else None
    is_warm = given is not None or start is not None
    schedule = (
        Constant(fixed) if fixed is not None else _schedule(solver, inner, goal, stop, is_warm)
    )
    with parallel.limit(request.n_threads):
        warm_up(solver, schedule.first())
        driver = Driver(
            objective, inner, rows, cols, solver, schedule, goal,
            make_limits(request, solver.patience), np.random.default_rng(seed),
        )  # fmt: skip
        wish = {
            "eps": request.eps, "rtol": goal.rtol, "reg": request.reg, "tol": request.tol,
            "stop": stop,
        }  # fmt: skip
        saved = Checkpoint(driver.objective, wish, name, solver, seed)
        if request.checkpoint is not None:
            driver.save = saved.writer(request.checkpoint)
        resumed = None if request.resume is None else saved.restore(request.resume, driver)
        with graceful_interrupts(), _observed(driver, name, request.progress):
            run = driver.drive(given, resumed, start)
            result = _result(run, driver, name, choice, seed)
    _report_limit(result, request.on_limit)
    return result


@contextmanager
def _observed(driver: Driver, name: str, progress: bool) -> Iterator[None]:
    """Show a live line while a driver runs, if it is wanted."""
    if not progress:
        yield
        return
    from ..show.progress import Progress

    goal, problem = driver.goal, driver.objective.problem
    eps = None if goal.eps is None else goal.eps * problem.mass * problem.unit
    with Progress(name, eps, goal.rtol) as line:
        driver.observers, driver.beat = [line], line.beat
        yield


def _near(given: Potentials | None, objective: Objective) -> Potentials | None:
    """Return a warm start whose exponents do not overflow: far potentials are c-transformed."""
    if given is None:
        return None
    f, g = given[0] - given[0].max(), given[1] + given[0].max()
    if max(np.abs(f).max(), np.abs(g).max()) <= FAR * objective.size:
        return given
    return dual_feasible(objective.problem.geometry, f)


def _start(inner: Problem, seed: int) -> Start:
    """Return a start from a coarse version of a problem, solved within the run's limits."""

    def run(stage: Stage) -> tuple[Potentials, Work]:
        began, work = time.perf_counter(), Work()

        def solve_coarse(*problem: Any, **keywords: Any) -> Result:
            left = max(0.0, stage.max_seconds - (time.perf_counter() - began))
            limits = {"max_seconds": left, "callback": stage.callback, "on_limit": "ignore"}
            request = Request.of(keywords | limits | {"seed": seed})
            result = execute(make_problem(*problem, normalize=True), request)
            work.record(result.work)
            return result

        return coarse_start(inner, solve_coarse), work

    return run


# -- the wish --------------------------------------------------------------------------------


def make_goal(objective: Objective, request: Request) -> Goal:
    """Turn what is asked for into a gap in internal units, or say why it cannot be reached."""
    problem, name = objective.problem, objective.accuracy
    mass, unit = problem.mass, problem.unit
    asked = getattr(request, name)
    gap = objective.default_gap if asked is None else float(asked) / mass / unit
    if gap is not None:
        check_reachable(name, gap, objective.scale, mass * unit)
        return Goal(eps=gap, slack=objective.slack)
    rtol = RTOL if request.rtol is None else float(request.rtol)
    # An optimum of 0 is certified to round-off.
    tiny = max(1e-9, ROUND_OFF / rtol) * problem.scale
    return Goal(rtol=rtol, offset=problem.offset, tiny=tiny, slack=objective.slack)


def _schedule(solver: AnySolver, inner: Problem, goal: Goal, stop: str, is_warm: bool) -> Any:
    if stop == "paper":
        target, tolerance = solver.published(inner, goal.allowed(-inner.offset))
        return Constant(target, tolerance, 0.5)  # evaluated for the record only
    if solver.about.exactness == "exact":
        target = Additive(inner.geometry, goal.allowed(-inner.offset), inner.p, inner.q)
        return Constant(target, evaluate_after=solver.pace.evaluate_after)
    if not solver.about.solves_entropic:
        return Refinement(inner, goal, solver.pace)
    return Continuation(inner, goal, solver.pace, is_warm)


# -- the answer ------------------------------------------------------------------------------


def _result(run: Run, driver: Driver, name: str, choice: Choice | None, seed: int) -> Result:
    """Prove the bracket once more, from the very plan and potentials that are returned."""
    objective, goal, solver = driver.objective, driver.goal, driver.solver
    problem, unit = objective.problem, objective.problem.unit
    assert run.plan is not None
    assert run.potentials is not None
    upper, lower, cost = objective.prove(run.plan, run.potentials)
    value, lower_bound = objective.to_user(upper), objective.to_user(lower)
    target = problem.mass * unit * goal.allowed(lower)
    converged = value - lower_bound <= target
    status = run.status
    if status is Status.CERTIFIED and not converged:
        status = Status.FINISHED
    return Result(
        plan_operator=run.plan.detached().scaled(problem.mass),
        potentials=objective.to_user_potentials(run.potentials),
        value=value,
        value_linear=objective.to_user_cost(cost),
        lower_bound=lower_bound,
        marginal_error=problem.mass * run.marginal_error,
        converged=converged,
        status=status,
        method=name,
        reg=unit * run.eta,
        seed=seed,
        options=options_of(solver),
        version=__version__,
        n_iter=run.n_iter,
        work=run.work,
        seconds=run.seconds,
        history=list(run.history),
        target=target,
        is_entropic=objective.is_entropic,
        problem=problem,
        choice=None if choice is None else str(choice),
        quantity=objective.quantity,
    )


def _report_limit(result: Result, on_limit: str) -> None:
    if result.converged or on_limit == "ignore" or result.status is Status.CALLBACK:
        return
    message = (
        f"{result.method}: {result.status}. The plan is feasible and its gap is "
        f"{result.gap:.3g}, above the target {result.target:.3g}."
    )
    if on_limit == "raise":
        raise NotConverged(message, result)
    warnings.warn(message, ConvergenceWarning, stacklevel=_caller())


def _caller() -> int:
    """Return how far up, from where a warning is given, the first caller outside epsilot is."""
    package, frame, level = __name__.partition(".")[0], sys._getframe(1), 1
    while frame.f_back is not None and _is_of(frame.f_globals.get("__name__", ""), package):
        frame, level = frame.f_back, level + 1
    return level


def _is_of(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")
