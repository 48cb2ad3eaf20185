"""Names of the solvers of barycentres, and the choice of "auto"."""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import dataclass

from ..arguments import unknown_argument
from ..engine.goal import Goal
from ..engine.request import meant_keywords
from ..errors import InvalidProblem, UnknownMethod
from ..solvers.options import converted
from ..wording import LONGEST_SHOWN, shown
from .base import FamilySolver
from .bregman import Bregman
from .column_generation import ColumnGeneration
from .family import Family
from .semi_dual import LBFGS, BlockPDASMD

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
