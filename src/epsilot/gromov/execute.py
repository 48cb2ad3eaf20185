"""Run a request on two clouds, and prove the answer."""

from __future__ import annotations

from typing import cast

from .. import memory, parallel
from ..arguments import check_count, check_least
from ..engine.clock import Clock, started
from ..engine.execute import drive, facts, proved, report_limit
from ..engine.request import Request
from ..engine.run_plan import RunPlan
from ..engine.run_state import RunState
from ..engine.schedules import AnySchedule, ConstantSchedule
from ..engine.starts import COLD
from ..errors import InvalidProblem, UnknownMethod
from ..problems.work import Status
from ..solvers.base import AnySolver
from ..wording import shown
from .boxes import Bisection
from .objective import GromovGoal, GromovObjective
from .oracle import TransportOracle
from .problem import GromovProblem
from .result import GromovResult
from .search import GromovTarget, Search
from .triangulation import MAX_DIMENSION, Triangulation
from .tuning import TUNING
from .verify import value_of

#: Methods, each with a sentence for users who choose.
METHODS = {
    "triangulation": "a regular triangulation of cross moments, up to 6 dimensions",
    "boxes": "boxes of cross moments, halved where the bound is least, in any dimension",
}
#: Relative gap if the call sets none, and the least one.
RTOL, LEAST_RTOL = 0.01, 1e-12


def make_gromov_goal(problem: GromovProblem, rtol: float | None, atol: float | None) -> GromovGoal:
    """Return the goal of a call in internal units."""
    share = RTOL if rtol is None else rtol
    gap = TUNING.default_gap * problem.scale if atol is None else check_least("atol", atol, 0.0)
    if atol is not None:
        gap /= problem.unit * problem.mass
        if gap < TUNING.least_gap * problem.scale and share < LEAST_RTOL:
            raise InvalidProblem(
                f"atol is {atol:.3g}; float64 arithmetic can certify about "
                f"{TUNING.least_gap * problem.scale * problem.unit * problem.mass:.1g} here."
            )
    return GromovGoal(rtol=share, atol=max(gap, TUNING.least_gap * problem.scale))


def choose(problem: GromovProblem, method: str) -> str:
    """Return the method, or the choice of "auto", or raise."""
    if method == "auto":
        return "triangulation" if problem.dimension <= MAX_DIMENSION else "boxes"
    if method not in METHODS:
        raise UnknownMethod(
            f"method {shown(method)} does not solve Gromov-Wasserstein; it must be one of "
            f"{', '.join(['auto', *METHODS])}."
        )
    if method == "triangulation" and problem.dimension > MAX_DIMENSION:
        dx, dy = problem.X.shape[1], problem.Y.shape[1]
        raise InvalidProblem(
            f"method='triangulation' was given for {dx} x {dy} dimensions; it holds products up to "
            f"{MAX_DIMENSION} (use method='boxes')."
        )
    return method


def execute(
    problem: GromovProblem,
    request: Request,
    *,
    atol: float | None,
    starts: int,
    max_ot: int | None,
) -> GromovResult:
    """Bound the optimum as requested, and prove the answer."""
    method = choose(problem, request.method)
    goal = make_gromov_goal(problem, request.rtol, atol)
    starts = check_count("starts", starts, 0)
    most = 0 if max_ot is None else check_count("max_ot", max_ot, 1)
    n, m = problem.shape
    memory.ask(64 * (n + m) * 8, f"a pair of clouds of {n:,} and {m:,} points", "use fewer points")
    kind: type[Search] = Triangulation if method == "triangulation" else Bisection
    assert goal.rtol is not None
    solver = kind(rtol=goal.rtol, atol=goal.atol, n_starts=starts, max_ot=most)
    with parallel.limit(request.n_threads), started(request.max_seconds) as clock:
        objective = GromovObjective(problem, TransportOracle(problem))
        target = GromovTarget(objective, goal)
        run_plan = RunPlan(
            method=method,
            choice=method if request.method == "auto" else None,
            solver=cast("AnySolver", solver),
            support=objective,
            start=COLD,
            schedule=cast("AnySchedule", ConstantSchedule(target, None, TUNING.evaluate_after)),
        )
        run = drive(objective, goal, request, run_plan, clock)
        result = _result(objective, run, goal, request, run_plan, most, clock)
    report_limit(result, request)
    return result


def _result(
    objective: GromovObjective,
    run: RunState,
    goal: GromovGoal,
    request: Request,
    run_plan: RunPlan,
    max_ot: int,
    clock: Clock,
) -> GromovResult:
    """Prove the bounds once more, from the very plan and cover that are returned."""
    problem = objective.problem
    answer = proved(run, objective, goal)
    _, error = value_of(problem, run.plan)
    status, n_ot = answer.status, int(run.work.units.get("transport", 0))
    if answer.converged and status is not Status.CALLBACK:
        status = Status.CERTIFIED
    elif max_ot and n_ot >= max_ot and status is Status.FINISHED:
        status = Status.MAX_OT
    return GromovResult(
        **facts(run, answer, request, clock) | {"status": status},
        problem=problem,
        arcs=run.plan,
        cover=run.potentials,
        marginal_error=problem.mass * error,
        method=run_plan.method,
        n_ot=n_ot,
        choice=run_plan.choice if isinstance(run_plan.choice, str) else None,
    )
