"""Solve random problems of every kind with every method: right, or properly refused."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

import epsilot

from .problems import CallRecord, CaseOutcome, Drawn, Rng, ask, draw_problem, error_defects, pick
from .proofs import (
    EXACT,
    ROUND_OFF,
    TINY,
    FuzzKind,
    bit_defects,
    result_defects,
    target_defects,
    vertex_defects,
)

#: Keywords of a target: eps, rtol, reg, tol, stop.
Goal = dict[str, Any]

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
    keywords = {**goal, **draw_keywords(rng, problem, method), "method": method}
    shown = ", ".join(f"{k}={_short(v)}" for k, v in keywords.items())
    outcome = CaseOutcome(problem.kind, method, label=f"{problem.label}; {shown}")
    before = copy.deepcopy((_bytes(problem.M), _bytes(problem.a), _bytes(problem.b)))
    answer = ask(epsilot.solve, problem.M, problem.a, problem.b, **keywords)
    is_due = not may_be_refused(problem, goal, method)
    result = outcome.settled(answer, is_due)
    if not problem.cost_error < COST_ERROR and answer.error is None:
        outcome.blame(f"the costs of the cloud are off by {problem.cost_error:.1e} of the largest")
    if before != (_bytes(problem.M), _bytes(problem.a), _bytes(problem.b)):
        outcome.blame("the inputs were changed")
    if result is None:
        return outcome
    return _checked(rng, outcome, answer, problem, goal, keywords)


def _checked(
    rng: Rng,
    outcome: CaseOutcome,
    answer: CallRecord,
    problem: Drawn,
    goal: Goal,
    keywords: Any,
) -> CaseOutcome:
    result = answer.value
    outcome.blame(*drawn_defects(result, problem, goal, keywords.get("max_iter")))
    if "reg" not in goal and rng.random() < 0.3:
        audit = ask(lambda: list(certify_defects(result, problem)))
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


def drawn_defects(
    result: epsilot.Result,
    problem: Drawn,
    goal: Goal,
    max_iter: int | None = None,
    *,
    with_history: bool = True,
) -> list[str]:
    """Say which claims of a result are false; ``max_iter`` is the limit of its run."""
    kind, extended = FuzzKind(reg=goal.get("reg")), problem.extended
    return [
        *result_defects(result, kind, *extended, with_history=with_history),
        *target_defects(result, kind, *extended, goal),
        *vertex_defects(result, extended[0], goal, max_iter),
    ]


def certify_defects(result: epsilot.Result, problem: Drawn) -> Iterator[str]:
    """Yield where an audit of the result's own plan and potentials disagrees with it."""
    audit = epsilot.certify(
        problem.M, problem.a, problem.b, plan=result.plan, potentials=result.potentials
    )
    room = ROUND_OFF * problem.largest * problem.mass + TINY
    if not abs(np.longdouble(audit.upper) - np.longdouble(result.value_linear)) <= room:
        yield f"certify finds the upper bound {audit.upper!r}, not {result.value_linear!r}"
    if not np.longdouble(audit.lower) >= np.longdouble(result.lower_bound) - room:
        yield f"certify finds the lower bound {audit.lower!r} below {result.lower_bound!r}"
    if not audit.lower <= audit.upper + room:
        yield f"certify finds the lower bound {audit.lower!r} above the value {audit.upper!r}"
    if not audit.is_feasible:
        yield f"certify calls the plan infeasible (marginal error {audit.marginal_error!r})"


# -- goals and methods -----------------------------------------------------------------------------


def draw_goal(rng: Rng, problem: Drawn) -> Goal:
    """Draw a target in the problem's units."""
    unit = float(np.ptp(problem.cost / 2) * 2) or float(problem.largest) or 1.0
    mass = float(problem.mass)
    kind = pick(rng, {"rtol": 3, "eps": 3, "reg": 3, "tiny reg": 0.5, "paper": 1.5, "default": 0.5})
    if kind == "rtol":
        return {"rtol": float(10 ** rng.uniform(-7, -0.5))}
    if kind == "eps":
        return {"eps": float(10 ** rng.uniform(-8, -0.5) * unit * mass)}
    if kind == "paper":
        return {"eps": float(10 ** rng.uniform(-1.7, -0.3) * unit * mass), "stop": "paper"}
    if kind == "default":
        return {}
    reg = {
        "reg": float(
            unit * 10 ** (rng.uniform(-4, 0.7) if kind == "reg" else rng.uniform(-200, -4))
        )
    }
    with_tol = {**reg, "tol": float(10 ** rng.uniform(-9, -1) * unit * mass)}
    return with_tol if rng.random() < 0.5 else reg


def draw_method(rng: Rng, goal: Goal) -> str:
    """Draw a method; rarely one that cannot reach the goal."""
    names = ["auto", *METHODS]
    if "reg" in goal and rng.random() < 0.95:
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


def may_be_refused(problem: Drawn, goal: Goal, method: str) -> bool:
    """Tell whether a refusal is right: meaningless, beyond float64, or not for this geometry."""
    if "reg" in goal and method != "auto" and not METHODS[method].solves_entropic:
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
    if "reg" in goal and not finest <= goal["reg"] / (problem.largest or 1) <= 0.9e30:
        return True
    unit = problem.largest * problem.mass
    if "reg" in goal:
        unit = max(problem.largest, np.longdouble(goal["reg"])) * problem.mass
    target = goal.get("eps", goal.get("tol"))
    unreachable = target is not None and target < 1.1e-13 * unit
    return problem.is_extreme or unreachable or _is_extreme(goal)


def _is_extreme(goal: Goal) -> bool:
    """Tell whether a target is at the end of float64's range."""
    targets = [goal[name] for name in ("eps", "reg", "tol") if name in goal]
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
