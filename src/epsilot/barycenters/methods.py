"""The methods of barycentres by name, and which of them "auto" stands for."""

from __future__ import annotations

import dataclasses
import difflib
from typing import TYPE_CHECKING

from ..engine.goal import Goal
from ..errors import InvalidProblem, UnknownMethod
from ..solvers.options import converted
from ..wording import LONGEST_SHOWN, shown

if TYPE_CHECKING:
    from .family import Family
    from .method import Method

#: Names, each with a sentence for those who choose.
METHODS = {
    "anderson": "iterative Bregman projections with a falling η, accelerated by mixing steps",
    "ibp": "iterative Bregman projections with a falling η, overrelaxed",
    "lbfgs": "quasi-Newton steps on the semi-dual, with a falling η",
    "pdasmd": "accelerated stochastic steps on the semi-dual, a finite sum, with a falling η",
    "exact": "a linear program on few arcs, with column generation (HiGHS)",
}
#: Costs up to which the linear program is quicker, at any accuracy, and at a high one.
SMALL, MEDIUM = 1 << 16, 1 << 20
#: Relative gaps from which on steps of first order take too many.
HIGH = 2e-3


def choose(family: Family, goal: Goal) -> tuple[str, str]:
    """Return the method that "auto" stands for, and why."""
    entries = family.pass_entries
    is_stored = all(support.problem.geometry.has_rows for support in family.supports)
    if family.eta is not None:
        return "anderson", "the entropic barycentre is what it iterates on"
    if is_stored and entries <= SMALL:
        return "exact", "a linear program of this size takes less than a second"
    asked = goal.rtol if goal.eps is None else (goal.eps or 0.0) / family.cost_max
    if is_stored and entries <= MEDIUM and asked is not None and asked < HIGH:
        return "exact", "such an accuracy takes too many steps of first order"
    if is_stored and not any(x.problem.geometry.is_separable for x in family.supports):
        return "lbfgs", "a value and its slope take one pass over such costs"
    return "anderson", "it needs the fewest passes along the axes"


def make_method(name: str, options: dict[str, object]) -> Method:
    """Return a method with its options, or say which it does not have."""
    from .bregman import Bregman
    from .column_generation import ColumnGeneration
    from .lbfgs import LBFGS
    from .pdasmd import BlockPDASMD

    if name not in METHODS:
        near = difflib.get_close_matches(name[:LONGEST_SHOWN], METHODS, n=1, cutoff=0.5)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise UnknownMethod(
            f"method {shown(name)} does not find barycentres; it must be one of "
            f"{', '.join(['auto', *METHODS])}{hint}."
        )
    defaults: dict[str, Method] = {
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
            raise UnknownMethod(
                f"{name} has no option {shown(option)} for barycentres; its options are "
                f"{', '.join(known)}."
            )
    values = converted(name, type(method), options)
    made: Method = dataclasses.replace(method, **values)  # type: ignore[type-var]
    return made


def check_entropic(name: str, method: Method, family: Family) -> None:
    """Refuse a regularisation with a method that has none."""
    if family.eta is not None and not method.solves_entropic:
        raise InvalidProblem(
            f"{name} does not solve the entropic problem; leave reg out, or use anderson, ibp, "
            "lbfgs or pdasmd with it."
        )
