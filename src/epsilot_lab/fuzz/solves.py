"""Solve random problems of every kind with every method: right, or properly refused."""

from __future__ import annotations

import copy
import re
from typing import Any

import numpy as np

import epsilot

from .problems import CallRecord, CaseOutcome, Drawn, Rng, ask, draw_problem, error_defects, pick
from .proofs import EXACT, DrawnGoal, certify_defects, result_defects, truth_of

#: Methods for balanced problems with a cost for every pair, which the oracles can solve.
OTHER_COSTS = "unbalanced|partial|sparse"
METHODS = {m.name: m for m in epsilot.methods() if not re.search(OTHER_COSTS, m.costs)}
#: Epochs times entries that a case may take.
BUDGET = 3e6
COST_ERROR = 1e-14
SAFETY_SECONDS = 2.0  # ends a case that is slower than planned; its bits are then not compared
#: Methods by the passes over the cost that the geometry must offer.
NEEDS_DENSE = (
    "packing_lp",
    "sinkhorn_newton",
    "exact",
    "small_simplex",
    "greenkhorn",
    "apdgcd",
    "stochastic_sinkhorn",
    "apdrcd",
)
NEEDS_LATTICE = tuple(name for name, method in METHODS.items() if method.costs == "l1 grids")
NEEDS_LINE = tuple(name for name, method in METHODS.items() if method.costs == "points on a line")
NEEDS_ROWS = (*NEEDS_DENSE, "dijkstra_dfs", "pdasmd", "restricted_simplex", "pdasgd")


def solves(rng: Rng) -> CaseOutcome:
    """Draw a problem, a method and a goal; solve it and check the result."""
    try:
        problem = draw_problem(rng)
    except epsilot.InvalidProblem as error:  # a cloud whose costs cannot be held
        return CaseOutcome("cloud", ending="refused").blame(*error_defects(error))
    goal = draw_goal(rng, problem)
    method = draw_method(rng, goal)
    keywords = {**goal.keywords, **draw_keywords(rng, problem, method), "method": method}
    shown = ", ".join(f"{k}={_short(v)}" for k, v in keywords.items())
    outcome = CaseOutcome(problem.kind, method, label=f"{problem.label}; {shown}")
    before = copy.deepcopy((_bytes(problem.M), _bytes(problem.a), _bytes(problem.b)))
    answer = ask(epsilot.solve, problem.M, problem.a, problem.b, **keywords)
    outcome.blame(*answer.defects)
    if not problem.cost_error < COST_ERROR and answer.error is None:
        outcome.blame(f"the costs of the cloud are off by {problem.cost_error:.1e} of the largest")
    if before != (_bytes(problem.M), _bytes(problem.a), _bytes(problem.b)):
        outcome.blame("the inputs were changed")
    if answer.error is not None:
        outcome.ending = "refused" if answer.is_refused else "raised"
        if answer.is_refused and not may_be_refused(problem, goal, method):
            outcome.blame(f"refused a valid problem: {answer.error}")
        return outcome
    return _checked(rng, outcome, answer, problem, goal, keywords)


def _checked(
    rng: Rng,
    outcome: CaseOutcome,
    answer: CallRecord,
    problem: Drawn,
    goal: DrawnGoal,
    keywords: Any,
) -> CaseOutcome:
    result = answer.value
    outcome.ending = result.status.name.lower()
    by_highs = problem.cost.size <= 900 and rng.random() < 0.1
    truth = truth_of(problem, goal.reg, by_highs=by_highs)
    limit = keywords.get("max_iter")
    outcome.blame(*result_defects(result, problem, goal, truth, max_iter=limit))
    if goal.reg is None and rng.random() < 0.3:
        audit = ask(lambda: list(certify_defects(result, problem, truth)))
        outcome.blame(*(audit.value or []), *(f"certify {text}" for text in audit.defects))
    # A run that the clock ended may be certified by its last look, and ends elsewhere next time.
    quick = 0.3 * SAFETY_SECONDS
    if rng.random() < 0.1 and answer.seconds < quick and result.status.name != "CALLBACK":
        again = {**keywords, "n_threads": int(rng.integers(1, 3))}
        other = ask(epsilot.solve, problem.M, problem.a, problem.b, **again)
        if other.value is not None and other.seconds < quick:
            outcome.blame(*bit_defects(result, other.value, "a second solve"))
    if result.status.name == "NOT_FINITE" and outcome.method in ("auto", *EXACT):
        outcome.blame("the iterate of a simplex overflowed")
    return outcome


def bit_defects(first: Any, second: Any, what: str) -> list[str]:
    """Say where two results that must be equal to the last bit are not."""
    names = ("value", "value_linear", "lower_bound", "n_iter", "status", "marginal_error")
    different = [name for name in names if getattr(first, name) != getattr(second, name)]
    pairs = [(first.plan, second.plan), *zip(first.potentials, second.potentials, strict=True)]
    if any(x.tobytes() != y.tobytes() for x, y in pairs):
        different.append("plan or potentials")
    if [r._replace(seconds=0.0) for r in first.history] != [
        r._replace(seconds=0.0) for r in second.history
    ]:
        different.append("history")
    return [f"{what} differs in {', '.join(different)}"] if different else []


# -- goals and methods -----------------------------------------------------------------------------


def draw_goal(rng: Rng, problem: Drawn) -> DrawnGoal:
    """Draw a target in the problem's units."""
    unit = float(np.ptp(problem.cost / 2) * 2) or float(problem.largest) or 1.0
    mass = float(problem.mass)
    kind = pick(rng, {"rtol": 3, "eps": 3, "reg": 3, "tiny reg": 0.5, "paper": 1.5, "default": 0.5})
    if kind == "rtol":
        return DrawnGoal(rtol=float(10 ** rng.uniform(-7, -0.5)))
    if kind == "eps":
        return DrawnGoal(eps=float(10 ** rng.uniform(-8, -0.5) * unit * mass))
    if kind == "paper":
        return DrawnGoal(eps=float(10 ** rng.uniform(-1.7, -0.3) * unit * mass), stop="paper")
    if kind == "default":
        return DrawnGoal()
    reg = float(unit * 10 ** (rng.uniform(-4, 0.7) if kind == "reg" else rng.uniform(-200, -4)))
    tol = float(10 ** rng.uniform(-9, -1) * unit * mass) if rng.random() < 0.5 else None
    return DrawnGoal(reg=reg, tol=tol)


def draw_method(rng: Rng, goal: DrawnGoal) -> str:
    """Draw a method; rarely one that cannot reach the goal."""
    names = ["auto", *METHODS]
    if goal.reg is not None and rng.random() < 0.95:
        names = [name for name in names if name == "auto" or METHODS[name].solves_entropic]
    return str(rng.choice(names))


def draw_keywords(rng: Rng, problem: Drawn, method: str) -> dict[str, Any]:
    """Draw limits that keep a case short, and now and then the less usual arguments."""
    n, m = problem.shape
    most = max(2.0, BUDGET / (n * m))
    keywords: dict[str, Any] = {"max_seconds": SAFETY_SECONDS, "seed": int(rng.integers(1000))}
    if method not in ("auto", *EXACT) or rng.random() < 0.3:
        keywords["max_iter"] = int(min(most, 10 ** rng.uniform(0, 4)))
    if rng.random() < 0.1:
        size = float(problem.largest) * 10 ** rng.uniform(-2, 2)
        keywords["potentials_init"] = rng.normal(size=n) * size, rng.normal(size=m) * size
    if rng.random() < 0.05:
        keywords["max_iter"] = 0
    if rng.random() < 0.05:
        keywords["callback"] = lambda record: record.n_iter > 3
    if rng.random() < 0.2:
        keywords["n_threads"] = int(rng.integers(1, 4))
    if method in ("pdasmd", "pdasgd") and rng.random() < 0.3:
        keywords["batch_size"] = int(rng.integers(1, n + 1))
    keywords["on_limit"] = str(rng.choice(["warn", "ignore"]))
    return keywords


def may_be_refused(problem: Drawn, goal: DrawnGoal, method: str) -> bool:
    """Tell whether a refusal is right: meaningless, beyond float64, or not for this geometry."""
    if goal.reg is not None and method != "auto" and not METHODS[method].solves_entropic:
        return True
    if (
        method in NEEDS_DENSE
        and not isinstance(problem.M, epsilot.Dense)
        and problem.kind != "dense"
    ):
        return True
    if method in NEEDS_LATTICE and getattr(problem.M, "lattice", None) is None:
        return True
    if method in NEEDS_LINE and getattr(problem.M, "line", None) is None:
        return True
    if method in NEEDS_ROWS and problem.kind == "grid":
        return True
    finest = 2.1e-15 if problem.kind == "grid" else 1.1e-17
    if goal.reg is not None and not finest <= goal.reg / (problem.largest or 1) <= 0.9e30:
        return True
    unit = problem.largest * problem.mass
    if goal.reg is not None:
        unit = max(problem.largest, np.longdouble(goal.reg)) * problem.mass
    target = goal.eps if goal.eps is not None else goal.tol
    unreachable = target is not None and target < 1.1e-13 * unit
    return problem.is_extreme or unreachable or _is_extreme(goal)


def _is_extreme(goal: DrawnGoal) -> bool:
    """Tell whether a target is at the end of float64's range."""
    targets = [x for x in (goal.eps, goal.reg, goal.tol) if x is not None]
    return any(not 1e-290 < x < 1e300 for x in targets)


# -- words and bytes ---------------------------------------------------------------------------


def _bytes(x: Any) -> Any:
    """Return what an argument holds, so that a change would show."""
    if isinstance(x, np.ndarray):
        return x.tobytes(), x.flags.writeable
    return x.digest() if isinstance(x, epsilot.Geometry) else x


def _short(x: Any) -> str:
    if isinstance(x, float):
        return f"{x:.3g}"
    return "given" if isinstance(x, tuple) or callable(x) else str(x)
