"""What ``solve`` asks of its arguments, each refusal one sentence with the remedy."""

from __future__ import annotations

import math
import os
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .. import memory
from .._types import Potentials, Vector
from ..arguments import (
    check_choice,
    check_count,
    check_flag,
    check_options,
    check_positive,
    is_real,
    numeric,
    shown,
)
from ..errors import InvalidProblem, UnknownMethod
from ..files import check_own
from ..solvers.base import AnySolver
from ..transport.certificate import ROUND_OFF
from ..transport.objective import Objective
from ..transport.problem import Problem
from .driver import Goal, Limits

if TYPE_CHECKING:
    from .request import Request

#: The smallest relative gap that may be asked for.
SMALLEST_RTOL = 1e-12
#: Potentials beyond this many times the largest cost (or η) are no start: their digits are lost.
LARGEST_START = 1e6
#: Potentials up to this size can be audited.
LARGEST_POTENTIAL = 1e300


def check_request(request: Request) -> None:
    """Refuse what no problem can make sense of, before any work is done."""
    _check_kinds(request)
    _check_target(request)
    _check_limits(request)


def _check_kinds(request: Request) -> None:
    """Refuse keywords of the wrong kind."""
    if not isinstance(request.method, str):
        raise UnknownMethod(
            f"method is {shown(request.method)}; it must be a name from epsilot.methods()."
        )
    check_choice("stop", request.stop, ("certificate", "paper"))
    check_choice("on_limit", request.on_limit, ("warn", "raise", "ignore"))
    check_count("seed", request.seed, 0)
    if request.n_threads is not None:
        check_count("n_threads", request.n_threads, 1)
    if request.callback is not None and not callable(request.callback):
        raise InvalidProblem(
            f"callback is {shown(request.callback)}; it must be a function of a Record."
        )
    check_flag("progress", request.progress)
    check_flag("multiscale", request.multiscale)
    check_options(request.options)
    for name, path in (("checkpoint", request.checkpoint), ("resume", request.resume)):
        if path is not None and not isinstance(path, (str, os.PathLike)):
            raise InvalidProblem(f"{name} is {shown(path)}; it must be the path of a file.")
    if request.checkpoint is not None:
        check_own(request.checkpoint, "epsilot-checkpoint")


def _check_target(request: Request) -> None:
    """Refuse a target that is none, or more than one."""
    asked = {"eps": request.eps, "rtol": request.rtol, "reg": request.reg, "tol": request.tol}
    given = {name: value for name, value in asked.items() if value is not None}
    if len(given.keys() - {"tol"}) > 1:
        raise InvalidProblem(
            f"{' and '.join(n for n in given if n != 'tol')} were given; pass exactly one of eps, "
            "rtol and reg."
        )
    if "tol" in given and "reg" not in given:
        raise InvalidProblem(
            f"tol={shown(request.tol)} was given without reg; tol is the accuracy for reg only."
        )
    for name, value in given.items():
        check_positive(name, value)
    if request.rtol is not None and request.rtol < SMALLEST_RTOL:
        raise InvalidProblem(
            f"rtol is {request.rtol:g}; float64 arithmetic can certify about {SMALLEST_RTOL:g} "
            f"(ask for rtol >= {SMALLEST_RTOL:g})."
        )


def _check_limits(request: Request) -> None:
    """Refuse limits that are no numbers; an infinite one is none."""
    epochs, seconds = request.max_iter, request.max_seconds
    if epochs is not None and not (
        is_real(epochs) and epochs >= 0 and (math.isinf(epochs) or epochs % 1 == 0)
    ):
        raise InvalidProblem(
            f"max_iter is {shown(epochs)}; it must be a whole number >= 0, or None (math.inf: no "
            "limit)."
        )
    if seconds is not None and not (is_real(seconds) and seconds >= 0):
        raise InvalidProblem(f"max_seconds is {shown(seconds)}; it must be a number >= 0, or None.")


def check_reachable(name: str, value: float, size: float, unit: float) -> None:
    """Refuse an accuracy, in a unit of the user's, that float64 cannot certify for costs."""
    if not ROUND_OFF * size <= value < math.inf:
        least = unit * ROUND_OFF * size
        raise InvalidProblem(
            f"{name} is {unit * value:.3g} for costs and masses of size {unit * size:.3g}; float64 "
            f"arithmetic can certify about {least:.1g} (ask for {name} >= {least:.1g})."
        )


def check_fit(name: str, solver: AnySolver, objective: Objective, goal: Goal, stop: str) -> None:
    """Refuse combinations that have no meaning, in one sentence."""
    about, problem, geometry = solver.about, objective.problem, objective.problem.geometry
    kind = type(geometry).__name__
    if not objective.is_served_by(about):
        raise InvalidProblem(f"{name} {objective.unserved}")
    if stop == "paper" and goal.eps is None:
        raise InvalidProblem(
            "stop='paper' needs eps, from which the published constants follow; pass eps=..., "
            "or stop='certificate'."
        )
    if stop == "paper" and objective.unpublished is not None:
        raise InvalidProblem(objective.unpublished)
    is_missing = about.needs_dense and not geometry.is_dense
    if not is_missing:
        n, m = problem.shape
        memory.ask(solver.memory(problem), f"{name} on {n:,} x {m:,}", "use method='sinkhorn'")
    if is_missing or (about.needs_rows and not geometry.has_rows):
        what = "an explicit cost matrix" if about.needs_dense else "rows of the cost"
        raise InvalidProblem(
            f"{name} needs {what}, which {kind} cannot give cheaply; use method='sinkhorn', or "
            "pass a dense cost."
        )


def make_limits(request: Request, patience: float) -> Limits:
    """Return the limits of a run; a method's patience is the limit of epochs if none is given."""
    max_iter = patience if request.max_iter is None else request.max_iter
    return Limits(
        sys.maxsize if math.isinf(max_iter) else int(max_iter),
        math.inf if request.max_seconds is None else float(request.max_seconds),
        request.callback,
    )


def largest_start(objective: Objective) -> float:
    """Return the size up to which potentials can start a run."""
    return objective.problem.unit * LARGEST_START * (objective.scale or 1.0)


def internal_potentials(
    given: tuple[ArrayLike, ArrayLike] | None,
    problem: Problem,
    rows: Any = slice(None),
    cols: Any = slice(None),
    largest: float = LARGEST_POTENTIAL,
) -> Potentials | None:
    """Return potentials of at most a size in internal units, on the kept rows and columns."""
    if given is None:
        return None
    largest = min(largest, problem.unit * LARGEST_POTENTIAL)
    f, g = _pair(given)
    if (f.shape, g.shape) != tuple((size,) for size in problem.shape):
        raise InvalidProblem(
            f"the potentials have shapes {f.shape} and {g.shape}; they must be two finite "
            f"vectors of {problem.shape[0]} and {problem.shape[1]} entries."
        )
    for name, x in (("f", f), ("g", g)):
        is_good = np.abs(x) <= largest
        if not is_good.all():
            i = int(np.argmin(is_good))
            raise InvalidProblem(
                f"the potential {name}[{i}] is {x[i]:.6g}; potentials must be finite and of the "
                f"size of the costs (at most {largest:.1g} here; are they in units of M?)."
            )
    return f[rows] / problem.unit - problem.offset, g[cols] / problem.unit


def _pair(given: Any) -> tuple[Vector, Vector]:
    """Return two arrays, or say that there are not two."""
    try:
        f, g = given
    except (TypeError, ValueError):
        raise InvalidProblem(
            f"the potentials are {type(given).__name__}; they must be two vectors (f, g), for rows "
            "and for columns."
        ) from None
    return numeric(f, "a potential"), numeric(g, "a potential")
