"""Execute a request on a problem: objective, goal, run plan, run, and the proof of the answer."""

from __future__ import annotations

import math
import sys
import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Self

from .. import parallel
from ..deadline import OutOfTime
from ..errors import Answer, ConvergenceWarning, Interrupted, NotConverged
from ..kernels.compile_watch import solver_clock
from ..problems.balanced import Transport
from ..problems.objective import Objective, Proof, RunObjective
from ..problems.plan import Plan
from ..problems.problem import Problem, Target
from ..problems.work import Status, Work
from ..solvers import options_of
from ..version import __version__
from .checkpoint import Checkpoint, identify, restore
from .clock import Clock, Phase, started
from .driver import AnyDriver, Driver
from .goal import Goal, make_goal, make_limits
from .interrupts import AGAIN
from .observers import Callback, History, Observer, live_line
from .request import Request
from .result import Result
from .run_plan import RunPlan, make_run_plan
from .run_state import AnyMoment, RunState, certify_crudely, record_of
from .seeds import generator
from .starts import Started, coarse_levels
from .warming import warm_up

_NO_LINE: nullcontext[None] = nullcontext()


def execute(problem: Problem, request: Request, clock: Clock | None = None) -> Result:
    """Solve a problem as requested, and prove the answer.

    The clock is that of the call, if it began before there was a problem.
    """
    if clock is None:
        with started(request.max_seconds) as clock:
            result = _execute(problem, request, clock)
    else:
        result = _execute(problem, request, clock)
    report_limit(result, request)
    return result


def _execute(problem: Problem, request: Request, clock: Clock) -> Result:
    """Solve within the time of a clock."""
    if request.callback is not None:  # which may change the user's arrays
        problem = problem.detached()
    objective = request.kind.objective(problem, request.reg)
    goal = make_goal(objective, request)
    with parallel.limit(request.n_threads):
        try:
            run_plan = make_run_plan(objective, goal, request)
            run = _proved_at_once(objective, goal, request, run_plan, clock)
            if run is None:
                target = run_plan.schedule.first()
        except OutOfTime:
            return _unstarted(objective, goal, request, clock)
        if run is None:
            run = drive(objective, goal, request, run_plan, clock, target)
        return _result(run, objective, goal, request, _About.of(run_plan), clock)


def _proved_at_once(
    objective: Objective, goal: Goal, request: Request, run_plan: RunPlan, clock: Clock
) -> RunState | None:
    """Return the run of a method that solves and proves a small problem in one call, or None.

    Bits, counters and history are those of the loop, which is for runs that something watches,
    and for problems that the call does not solve.
    """
    problem = objective.problem
    if (
        not isinstance(objective, Transport)
        or run_plan.support.problem is not problem
        or run_plan.schedule.tolerance is not None
        or request.max_iter == 0
        or request.is_watched
        or clock.ending() is not None
    ):
        return None
    began = solver_clock()
    found = run_plan.solver.proved(problem)
    if found is None or not goal.is_reached(found.upper, found.lower):
        return None
    objective.check(found.upper, found.lower)
    run = RunState(
        n_iter=1,
        work=found.work,
        seconds=solver_clock() - began,
        plan=Plan(found.plan),
        potentials=found.potentials,
        upper=found.upper,
        lower=found.lower,
        marginal_error=found.marginal_error,
        proof=Proof(found.upper, found.lower, found.upper),
        status=Status.CERTIFIED,
    )
    run.history.append(record_of(run, objective, 0.0))
    run.work.record(objective.certificate_work())
    clock.phase = Phase.RETURN
    return run


def drive(
    objective: RunObjective,
    goal: Goal,
    request: Request,
    run_plan: RunPlan,
    clock: Clock,
    warmed_on: Target | None = None,
) -> RunState:
    """Run a solver to its goal or to a limit, watched and saved as requested.

    Kernels that a tiny version of the target ``warmed_on`` needs are compiled first, off the clock.
    """
    with _line(request, objective, goal, run_plan) as line:
        if warmed_on is not None:
            clock.pause(warm_up(run_plan.solver, warmed_on))
        run, resumed, observers = _watched(request, objective, goal, run_plan, line)
        driver = Driver(
            objective=objective,
            support=run_plan.support,
            solver=run_plan.solver,
            schedule=run_plan.schedule,
            goal=goal,
            limits=make_limits(request, run_plan.solver.patience),
            rng=generator(request.seed) if resumed is None else resumed.rng,
            observers=observers,
            clock=clock,
            run=run,
        )
        coarse = run_plan.start.coarse
        if resumed is not None or coarse is None:
            return driver.drive(Started(run_plan.start.potentials), resumed)
        return driver.drive(_coarse_start(coarse, request.seed, driver))


def _coarse_start(problem: Problem, seed: int, driver: AnyDriver) -> Started | None:
    """Solve coarse versions of a problem, coarsest first, as stages of its run.

    They share the run's limits, seed, callback and progress line. None: the time was up.
    """
    work, potentials = Work(), None
    try:
        for level in coarse_levels(problem.geometry, problem.p, problem.q):
            request = Request(
                **level.keywords(potentials),
                seed=seed,
                max_seconds=max(0.0, driver.clock.seconds_left()),
                callback=driver.look,
                on_limit="ignore",
            )
            result = execute(level.problem, request)
            work.record(result.work)
            potentials = level.extended(result)
    except OutOfTime:
        return None
    return Started(potentials, work, solver_clock() - driver.began)


def _unstarted(objective: Objective, goal: Goal, request: Request, clock: Clock) -> Result:
    """Return crude bounds: the time was up before a method was chosen."""
    run = RunState(status=clock.ending() or Status.MAX_SECONDS)
    clock.phase = Phase.RETURN
    certify_crudely(run, objective)
    run.history.append(record_of(run, objective, 0.0))
    return _result(run, objective, goal, request, _About(request.method, None, {}), clock)


def _line(
    request: Request, objective: RunObjective, goal: Goal, run_plan: RunPlan
) -> AbstractContextManager[Observer | None]:
    """Return the context of a progress line, if one was requested."""
    if not request.progress:
        return _NO_LINE
    user_unit = objective.mass * objective.unit
    return live_line(run_plan.method, None if goal.eps is None else goal.eps * user_unit, goal.rtol)


def _watched(
    request: Request, objective: RunObjective, goal: Goal, run_plan: RunPlan, line: Observer | None
) -> tuple[RunState, AnyMoment | None, list[Observer]]:
    """Return a run, new or resumed, and its observers."""
    resumed, identity = None, {}
    if request.checkpoint is not None or request.resume is not None:
        identity = identify(request, objective, goal, run_plan)
    if request.resume is not None:
        resumed = restore(request.resume, identity, objective, run_plan)
    run = RunState() if resumed is None else resumed.run
    observers: list[Observer] = [History(run)]
    if line is not None:
        observers.append(line)
    if request.callback is not None:
        observers.append(Callback(request.callback))
    if request.checkpoint is not None:
        observers.append(Checkpoint(request.checkpoint, identity, objective))
    return run, resumed, observers


# -- the answer ------------------------------------------------------------------------------


class ProvedAnswer(NamedTuple):
    """Bounds that the returned plan and potentials prove, and how the run ended."""

    value: float  # in the user's units, as the others
    lower_bound: float
    target: float  # the gap that was to be reached
    converged: bool
    status: Status
    cost: float  # <C, X> in internal units, or the upper bound
    lower: float  # in internal units


def proved(run: RunState, objective: RunObjective, goal: Goal) -> ProvedAnswer:
    """Prove the bounds from the very plan and potentials that are returned.

    An answer that was proved when it was found, because proofs take long, is not proved again.
    """
    upper, lower, cost = run.proof or objective.prove(run.plan, run.potentials)
    value, lower_bound = objective.bounds_to_user(upper, lower)
    target = objective.mass * objective.unit * goal.allowed(lower)
    converged = value - lower_bound <= target
    status = run.status
    if status is Status.CERTIFIED and not converged:
        status = Status.FINISHED
    return ProvedAnswer(value, lower_bound, target, converged, status, cost, lower)


def facts(run: RunState, answer: ProvedAnswer, request: Request, clock: Clock) -> dict[str, Any]:
    """Return the fields that results of every kind of run have."""
    return {
        "value": answer.value,
        "lower_bound": answer.lower_bound,
        "target": answer.target,
        "converged": answer.converged,
        "status": answer.status,
        "n_iter": run.n_iter,
        "work": run.work,
        "seconds": run.seconds,
        "history": list(run.history),
        "seed": request.seed,
        "version": __version__,
        "compile_seconds": clock.compile_seconds(),
    }


class _About(NamedTuple):
    """Method of a result: its name, why it was chosen, its options."""

    method: str
    choice: str | None
    options: dict[str, object]

    @classmethod
    def of(cls, run_plan: RunPlan) -> Self:
        """Return the method of a run plan."""
        choice = None if run_plan.choice is None else str(run_plan.choice)
        return cls(run_plan.method, choice, options_of(run_plan.solver))


def _result(
    run: RunState,
    objective: Objective,
    goal: Goal,
    request: Request,
    about: _About,
    clock: Clock,
) -> Result:
    """Return the result of a run, with bounds that are proved once more."""
    problem, unit = objective.problem, objective.problem.unit
    answer = proved(run, objective, goal)
    assert run.plan is not None
    assert run.potentials is not None
    return Result.of_fields(
        **facts(run, answer, request, clock),
        plan_operator=run.plan.detached().scaled(problem.mass),
        potentials=objective.to_user_potentials(run.potentials),
        value_linear=objective.to_user_cost(answer.cost),
        marginal_error=problem.mass * run.marginal_error,
        method=about.method,
        reg=unit * run.eta,
        options=about.options,
        is_entropic=objective.is_entropic,
        problem=problem,
        choice=about.choice,
        quantity=objective.quantity,
        slopes=None if objective.problem.is_tilted else objective.slopes,
        mass_price=objective.mass_price(run.potentials, answer.lower),
        asked=request.written(),
    )


def report_limit(result: Answer, request: Request) -> None:
    """Warn or raise, as requested, if a limit or Ctrl-C ended a run before its target."""
    is_interrupted = result.status is Status.INTERRUPTED
    if is_interrupted and request.on_interrupt == "raise":
        raise Interrupted(f"{result.method}: {result.status}", result)
    if result.converged or request.on_limit == "ignore" or result.status is Status.CALLBACK:
        return
    message = f"{result.method}: {result.status}. "
    if result.gap == math.inf:
        message += "No feasible flow was found yet; the lower bound holds."
    else:
        message += (
            f"The plan is feasible and its gap is {result.gap:.3g}, above the target "
            f"{result.target:.3g}"
        )
        message += "." if result.choice is not None else " (method='auto' may reach it)."
    if is_interrupted:
        message += f" {AGAIN}"
    if request.on_limit == "raise":
        raise NotConverged(message, result)
    warnings.warn(message, ConvergenceWarning, stacklevel=_caller())


def _caller() -> int:
    """Return the stack level of the first caller outside epsilot, for warnings."""
    package, frame, level = __name__.partition(".")[0], sys._getframe(1), 1
    while frame.f_back is not None and _is_of(frame.f_globals.get("__name__", ""), package):
        frame, level = frame.f_back, level + 1
    return level


def _is_of(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")
