"""One request on one family: goal, method, run, and the proof of what is returned."""

from __future__ import annotations

import dataclasses
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import numpy as np

from .. import parallel
from ..engine.clock import started
from ..engine.execute import report_limit
from ..engine.goal import Goal, make_goal, make_limits
from ..engine.observers import Callback, Observer, live_line
from ..engine.request import Request
from ..engine.result import Status
from ..version import __version__
from .bounds import onto, prove
from .drive import Drive, Found
from .family import Family
from .method import Method
from .methods import check_entropic, choose, make_method
from .result import BarycenterResult

#: Steps after which a run ends, if nothing else is asked for.
PATIENCE = 100_000
_NO_LINE: nullcontext[None] = nullcontext()


class RunPlan(NamedTuple):
    """The method of a run, and why it is the one."""

    name: str
    method: Method
    choice: str | None


def execute(family: Family, request: Request) -> BarycenterResult:
    """Find a barycentre as requested, and prove the answer."""
    goal = dataclasses.replace(make_goal(family.largest, request), offset=family.shift)
    course = _course(family, goal, request)
    with (
        parallel.limit(request.n_threads),
        started(request.max_seconds) as clock,
        _line(family, goal, course, request) as line,
    ):
        observers: list[Observer] = [] if line is None else [line]
        if request.callback is not None:
            observers.append(Callback(request.callback))
        found = Drive(
            family=family,
            method=course.method,
            goal=goal,
            limits=make_limits(request, PATIENCE),
            observers=observers,
            clock=clock,
        ).run()
        result = _result(family, found, goal, course)
    report_limit(result, request.on_limit)
    return result


def _course(family: Family, goal: Goal, request: Request) -> RunPlan:
    """Return the method that is asked for, or the one that "auto" stands for."""
    chosen = choose(family, goal) if request.method == "auto" else None
    name = request.method if chosen is None else chosen[0]
    method = make_method(name, request.options or {})
    check_entropic(name, method, family)
    return RunPlan(name, method, None if chosen is None else ": ".join(chosen))


def _line(
    family: Family, goal: Goal, course: RunPlan, request: Request
) -> AbstractContextManager[Observer | None]:
    """Return the context of a live line, if there is to be one."""
    if not request.progress:
        return _NO_LINE
    return live_line(course.name, None if goal.eps is None else goal.eps * family.worth, goal.rtol)


def _result(family: Family, found: Found, goal: Goal, course: RunPlan) -> BarycenterResult:
    """Prove the bracket once more, from the very plans and potentials that are returned."""
    assert found.b is not None
    upper, lower = found.proof or prove(family, found.b, found.plans, found.potentials)
    value = family.to_user(upper)
    lower_bound = min(family.to_user(lower), value)  # rounding does not let them contradict
    target = family.worth * goal.allowed(lower)
    converged = value - lower_bound <= target
    status = found.status
    if status is Status.CERTIFIED and not converged:
        status = Status.FINISHED
    members = [onto(member, found.b) for member in family.members]
    pairs = list(zip(members, found.plans, found.potentials, strict=True))
    return BarycenterResult(
        barycenter=family.mass * found.b,
        plans=tuple(plan.detached().scaled(family.mass) for plan in found.plans),
        potentials=tuple(x.to_user_potentials(pair) for x, _, pair in pairs),
        value=value,
        lower_bound=lower_bound,
        values=np.array(
            [x.to_user(x.value(plan, plan.cost(x.problem.geometry))) for x, plan, _ in pairs]
        ),
        weights=family.weights,
        marginal_error=family.mass * found.marginal_error,
        converged=converged,
        status=status,
        method=course.name,
        reg=found.eta * family.worth / family.mass,
        is_entropic=family.eta is not None,
        options=dataclasses.asdict(course.method),  # type: ignore[call-overload]
        version=__version__,
        n_iter=found.n_iter,
        work=found.work,
        seconds=found.seconds,
        history=list(found.history),
        target=target,
        choice=course.choice,
    )
