"""Choose a method for a family of histograms, run it, and audit anybody's barycentre."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from .. import memory, parallel
from .._types import Matrix, Vector
from ..arguments import unknown_argument
from ..engine.certificate import Certificate
from ..engine.clock import Clock, started
from ..engine.execute import drive, facts, proved, report_limit
from ..engine.execute import execute as execute_member
from ..engine.goal import Goal, make_goal
from ..engine.request import Request, meant_keywords
from ..engine.run_plan import RunPlan
from ..engine.run_state import RunState
from ..engine.schedules import AnySchedule
from ..engine.starts import COLD
from ..errors import InvalidProblem, UnknownMethod
from ..problems.objective import AUDIT_TOLERANCE
from ..problems.plan import Core
from ..solvers.base import AnySolver
from ..solvers.options import converted
from ..wording import LONGEST_SHOWN, shown
from .bregman import Bregman
from .column_generation import ColumnGeneration
from .family import Family, FamilyCore, onto
from .result import BarycenterResult
from .semi_dual import LBFGS, BlockPDASMD
from .stages import FamilySolver

#: Names, each with a sentence for users who choose.
METHODS = {
    "anderson": "iterative Bregman projections with a falling η, with Anderson acceleration",
    "ibp": "iterative Bregman projections with a falling η, overrelaxed",
    "lbfgs": "quasi-Newton steps on the semi-dual, with a falling η",
    "pdasmd": "accelerated stochastic steps on the semi-dual, a finite sum, with a falling η",
    "exact": "a linear program on few arcs, with column generation (HiGHS)",
}


@dataclass(frozen=True)
class BarycenterChoiceTuning:
    """Sizes and accuracies at which "auto" changes its method."""

    max_exact_entries: int = 1 << 16  # costs for which the linear program is faster
    max_accurate_entries: int = 1 << 20  # the same, for small gaps
    small_rtol: float = 2e-3  # relative gap below which first-order methods take too many steps


CHOICE = BarycenterChoiceTuning()


def choose(family: Family, goal: Goal) -> tuple[str, str]:
    """Return the method that "auto" stands for, and why."""
    entries = family.pass_entries
    is_stored = all(support.problem.geometry.has_rows for support in family.supports)
    if family.eta is not None:
        return "anderson", "it iterates on the entropic barycentre itself"
    if is_stored and entries <= CHOICE.max_exact_entries:
        return "exact", "a linear program of this size takes less than a second"
    rtol = goal.rtol if goal.eps is None else (goal.eps or 0.0) / family.cost_max
    is_accurate = rtol is not None and rtol < CHOICE.small_rtol
    if is_stored and entries <= CHOICE.max_accurate_entries and is_accurate:
        return "exact", "first-order methods take too many steps to this accuracy"
    if is_stored and not any(x.problem.geometry.is_separable for x in family.supports):
        return "lbfgs", "a value and its gradient take one pass over such costs"
    return "anderson", "it needs the fewest passes along the axes"


def make_method(name: str, options: dict[str, object]) -> FamilySolver:
    """Return a solver with its options, or raise with its known options."""
    if name not in METHODS:
        near = difflib.get_close_matches(name[:LONGEST_SHOWN], METHODS, n=1, cutoff=0.5)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise UnknownMethod(
            f"method {shown(name)} does not find barycentres; it must be one of "
            f"{', '.join(['auto', *METHODS])}{hint}."
        )
    defaults: dict[str, FamilySolver] = {
        "anderson": Bregman(),
        "ibp": Bregman(relaxation=1.8, memory=0),
        "lbfgs": LBFGS(),
        "pdasmd": BlockPDASMD(),
        "exact": ColumnGeneration(),
    }
    method = defaults[name]
    known = [f.name for f in dataclasses.fields(method)]  # type: ignore[arg-type]
    for option in options:
        if option not in known:
            meant = {**meant_keywords(), **{name: name for name in known}}
            raise unknown_argument("barycenter", option, meant)
    values = converted(name, type(method), options)
    made: FamilySolver = dataclasses.replace(method, **values)  # type: ignore[type-var]
    return made


def check_entropic(name: str, method: FamilySolver, family: Family) -> None:
    """Refuse a regularisation with a method for the unregularised problem."""
    if family.eta is not None and not method.about.solves_entropic:
        raise InvalidProblem(
            f"{name} does not solve the entropic problem; leave reg out, or use anderson, ibp, "
            "lbfgs or pdasmd with it."
        )


def execute(family: Family, request: Request) -> BarycenterResult:
    """Find a barycentre as requested, and prove the answer."""
    if request.callback is not None:  # which may change the user's arrays
        family = family.detached()
    goal = make_goal(family, request)
    run_plan = _run_plan(family, goal, request)
    with parallel.limit(request.n_threads), started(request.max_seconds) as clock:
        run = drive(family, goal, request, run_plan, clock)
        result = _result(family, run, goal, request, run_plan, clock)
    report_limit(result, request)
    return result


def _run_plan(family: Family, goal: Goal, request: Request) -> RunPlan:
    """Return the requested method, or the choice of "auto", with its stages."""
    chosen = choose(family, goal) if request.method == "auto" else None
    name = request.method if chosen is None else chosen[0]
    method = make_method(name, request.options or {})
    check_entropic(name, method, family)
    method.check(family)
    memory.ask(method.remembered_bytes(family), f"{name} with this memory", "use a smaller memory")
    return RunPlan(
        method=name,
        choice=None if chosen is None else ": ".join(chosen),
        solver=cast("AnySolver", method),
        support=family,
        start=COLD,
        schedule=cast("AnySchedule", method.schedule(family, goal)),
    )


def _result(
    family: Family, run: RunState, goal: Goal, request: Request, run_plan: RunPlan, clock: Clock
) -> BarycenterResult:
    """Prove the bounds once more, from the very plans and potentials that are returned."""
    answer = proved(run, family, goal)
    members = [onto(member, run.plan.b) for member in family.members]
    triples = list(zip(members, run.plan.plans, run.potentials, strict=True))
    values = [x.to_user(x.value(plan, plan.cost(x.problem.geometry))) for x, plan, _ in triples]
    return BarycenterResult(
        **facts(run, answer, request, clock),
        barycenter=family.mass * run.plan.b,
        plans=tuple(plan.detached().scaled(family.mass) for plan in run.plan.plans),
        potentials=tuple(x.to_user_potentials(pair) for x, _, pair in triples),
        values=np.array(values),
        weights=family.weights,
        marginal_error=family.mass * run.marginal_error,
        method=run_plan.method,
        reg=family.unit * run.eta,
        is_entropic=family.eta is not None,
        options=dataclasses.asdict(run_plan.solver),
        choice=None if run_plan.choice is None else str(run_plan.choice),
    )


def audit(
    family: Family,
    b: Vector,
    cores: Sequence[Core] | None,
    columns: Matrix | None,
    derived: Request,
) -> Certificate:
    """Return the bounds of a barycentre, with plans and potentials if they are given.

    Parameters
    ----------
    b : (m,) array
        A histogram in the user's units; a different total counts as marginal error.
    cores : sequence of Core, optional
        Plans of mass 1; the best ones to b are computed if there are none.
    columns : (k, m) array, optional
        Column potentials in internal units; computed if there are none.
    derived : Request
        The accuracy of computed plans and potentials.
    """
    total = float(b.sum())
    if not (b.min() >= 0 and 0 < total < np.inf):
        raise InvalidProblem(
            "barycenter has negative entries, or no finite positive total; it must be a histogram."
        )
    b = b / total
    if cores is None:
        cores = [
            execute_member(onto(member, b).problem, derived).plan_operator.scaled(1 / family.mass)
            for member in family.members
        ]
    if columns is None:
        rtol = None if derived.rtol is None else 10 * derived.rtol  # less costly than plans
        crude = execute(family, dataclasses.replace(derived, rtol=rtol))
        columns = np.stack([g / family.unit for _, g in crude.potentials])
    found = family.evaluate(FamilyCore(tuple(cores)), columns.ravel(), b)
    upper, lower = family.bounds_to_user(found.upper, found.lower)
    error = found.marginal_error + abs(total / family.mass - 1)
    return Certificate(upper, lower, upper - lower, family.mass * error, error <= AUDIT_TOLERANCE)
