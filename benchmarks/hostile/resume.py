"""Interrupted runs: continued, continued as another call, or from spoilt files.

A resumed run is the uninterrupted one to the last bit, or a refusal in one sentence, or right.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import epsilot
from epsilot.engine.result import recertify
from epsilot.problems.balanced import Balanced
from epsilot.problems.problem import make_problem

from .checks import ROUND_OFF, Scales, Wish, result_defects, truth_of
from .damage import spoil
from .outcome import Answer, Outcome, ask
from .problems import Drawn, Rng, ordinary, pick
from .solves import METHODS, NEEDS_DENSE, NEEDS_LATTICE, NEEDS_ROWS, bit_defects

LIMITS = {"max_seconds": 5.0, "on_limit": "ignore"}
#: Epochs of the whole run and, at most, of its interrupted part.
EPOCHS, FIRST = 400, 60


def resume(rng: Rng) -> Outcome:
    """Draw a run, interrupt it, and go on from its checkpoint in one of several ways."""
    problem = ordinary(rng)
    wish = draw_wish(rng)
    method = draw_method(rng, problem, wish)
    keywords = {**wish.keywords, "method": method, "seed": int(rng.integers(100)), **LIMITS}
    way = pick(rng, {"same call": 2, "another call": 4, "spoilt checkpoint": 4, "spoilt result": 3})
    outcome = Outcome(way, method, label=f"{problem.label}; {wish.keywords}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.npz"
        if way == "spoilt result":
            return _spoilt_result(rng, outcome, path, problem, wish, keywords)
        stop = {"max_iter": int(rng.integers(1, FIRST))}
        if rng.random() < 0.3:
            stop = {"max_iter": EPOCHS, "callback": lambda record: rng.random() < 0.5}
        first = ask(solve, problem, {**keywords, **stop, "checkpoint": str(path)})
        outcome.blame(*first.defects)
        if not path.exists():
            outcome.ending = "no checkpoint"
            return outcome
        keywords |= {"max_iter": EPOCHS, "resume": str(path)}
        return CONTINUATIONS[way](rng, outcome, path, problem, wish, keywords)


def solve(problem: Drawn, keywords: dict[str, Any]) -> epsilot.Result:
    """Call the library."""
    return epsilot.solve(problem.M, problem.a, problem.b, **keywords)


def draw_wish(rng: Rng) -> Wish:
    """Draw a target that takes some hundred epochs; costs are at most about one."""
    kind = pick(rng, {"eps": 3, "rtol": 2, "reg": 3, "paper": 1})
    if kind == "eps":
        return Wish(eps=float(10 ** rng.uniform(-7, -1)))
    if kind == "rtol":
        return Wish(rtol=float(10 ** rng.uniform(-6, -1)))
    if kind == "paper":
        return Wish(eps=float(10 ** rng.uniform(-1.5, -0.5)), stop="paper")
    tol = float(10 ** rng.uniform(-10, -4)) if rng.random() < 0.7 else None
    return Wish(reg=float(10 ** rng.uniform(-3, 0)), tol=tol)


def draw_method(rng: Rng, problem: Drawn, wish: Wish) -> str:
    """Draw a method that can do what is asked."""
    names = ["auto", *METHODS]
    if wish.reg is not None:
        names = [name for name in names if name == "auto" or METHODS[name].solves_entropic]
    unfit = {"dense": (), "lazy cloud": NEEDS_DENSE, "grid": NEEDS_ROWS}[problem.kind]
    if getattr(problem.M, "lattice", None) is None:
        unfit = (*unfit, *NEEDS_LATTICE)
    return str(rng.choice([name for name in names if name not in unfit]))


# -- ways to go on -----------------------------------------------------------------------------


def _same(
    rng: Rng, outcome: Outcome, path: Path, problem: Drawn, wish: Wish, keywords: dict[str, Any]
) -> Outcome:
    resumed = ask(solve, problem, keywords)
    whole = ask(solve, problem, {k: v for k, v in keywords.items() if k != "resume"})
    for answer in (resumed, whole):
        outcome.blame(*answer.defects)
    if resumed.value is None or whole.value is None:
        outcome.ending = "raised"
        return outcome.blame(*([f"not resumed: {resumed.error}"] if resumed.is_refused else []))
    outcome.ending = "continued"
    if "MAX_SECONDS" not in (resumed.value.status.name, whole.value.status.name):
        outcome.blame(*bit_defects(resumed.value, whole.value, "the resumed run"))
    return outcome.blame(*_wrong(resumed.value, problem, wish))


def _another(
    rng: Rng, outcome: Outcome, path: Path, problem: Drawn, wish: Wish, keywords: dict[str, Any]
) -> Outcome:
    what = str(rng.choice(["wish", "wish", "wish", "method", "seed", "M", "a", "scaled M"]))
    if what == "wish":
        wish = draw_wish(rng)
        kept = {k: v for k, v in keywords.items() if k not in vars(Wish())}
        keywords = {**kept, **wish.keywords}
    elif what == "method":
        keywords["method"] = draw_method(rng, problem, wish)
    elif what == "seed":
        keywords["seed"] += 1
    else:
        problem = changed(rng, problem, what)
    outcome.kind += f", other {what}"
    outcome.label += f" then {wish.keywords}, {keywords['method']}"
    return _judged(outcome, ask(solve, problem, keywords), problem, wish)


def changed(rng: Rng, problem: Drawn, what: str) -> Drawn:
    """Return a problem that differs a little in one argument."""
    if what == "a":
        a = np.asarray(problem.weights[0], dtype=float).copy()
        i, j = rng.integers(len(a), size=2)
        part = float(rng.choice([1.0, 0.5, 1e-9])) * a[i]
        a[i], a[j] = a[i] - part, a[j] + part
        return problem.with_new(a=a, b=np.asarray(problem.weights[1], dtype=float))
    cost = problem.cost * 2 if what == "scaled M" else problem.cost.copy()
    cost.flat[rng.integers(cost.size)] += float(rng.choice([1.0, -0.5, 1e-12]))
    return problem.with_new(M=cost, cost=cost, kind="dense")


def _spoilt(
    rng: Rng, outcome: Outcome, path: Path, problem: Drawn, wish: Wish, keywords: dict[str, Any]
) -> Outcome:
    how = spoil(rng, path)
    outcome.kind += f", {how.partition(':')[0]}"
    outcome.label += f"; {how}"
    return _judged(outcome, ask(solve, problem, keywords), problem, wish)


def _judged(outcome: Outcome, answer: Answer, problem: Drawn, wish: Wish) -> Outcome:
    """Accept a refusal, or a result that is right."""
    outcome.blame(*answer.defects)
    if answer.value is None:
        outcome.ending = "refused" if answer.is_refused else "raised"
        return outcome
    outcome.ending = "continued"
    return outcome.blame(*_wrong(answer.value, problem, wish))


def _wrong(result: epsilot.Result, problem: Drawn, wish: Wish) -> list[str]:
    truth = truth_of(problem, wish.reg)
    found = list(result_defects(result, problem, wish, truth, with_history=False))
    if not (result.n_iter >= 0 and 0 <= result.seconds < np.inf and result.work.operations >= 0):
        found.append(f"counters {result.n_iter!r}, {result.seconds!r}, {result.work.operations!r}")
    return found


CONTINUATIONS = {"same call": _same, "another call": _another, "spoilt checkpoint": _spoilt}


def _spoilt_result(
    rng: Rng, outcome: Outcome, path: Path, problem: Drawn, wish: Wish, keywords: dict[str, Any]
) -> Outcome:
    """Save a result, spoil the file and have it proved again."""
    answer = ask(solve, problem, {**keywords, "max_iter": FIRST})
    outcome.blame(*answer.defects)
    if answer.value is None:
        outcome.ending = "raised"
        return outcome
    answer.value.save(path)
    how = spoil(rng, path)
    outcome.kind += f", {how.partition(':')[0]}"
    outcome.label += f"; {how}"
    again = ask(recertify, path, make_problem(problem.M, problem.a, problem.b), Balanced())
    outcome.blame(*again.defects)
    outcome.ending = "refused" if again.is_refused else "raised"
    if again.value is None:
        return outcome
    outcome.ending = "proved again"
    header, found = again.value
    reg = header["reg"] if header["is_entropic"] else None
    truth, slack = truth_of(problem, reg), ROUND_OFF * Scales.of(problem, reg).value
    if not found.lower <= truth.high + slack:
        outcome.blame(f"wrong lower bound {found.lower!r} above the optimum {truth.high!s}")
    if not found.upper >= truth.low - slack:
        outcome.blame(f"wrong upper bound {found.upper!r} below the optimum {truth.low!s}")
    return outcome
