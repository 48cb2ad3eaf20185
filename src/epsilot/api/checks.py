"""What ``solve`` asks of its arguments, each refusal one sentence with the remedy."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import memory
from .._types import Potentials, Vector
from ..arguments import (
    check_choice,
    check_count,
    check_flag,
    is_real,
    numeric,
    shown,
)
from ..errors import InvalidProblem, UnknownMethod
from ..files import check_own
from ..run.driver import Goal, Limits
from ..solvers.base import Solver
from ..transport.problem import Problem
from ..transport.record import Record

#: Relative accuracy that float64 arithmetic can certify.
SMALLEST_EPS = 1e-13
#: Largest regularisation, as a multiple of the largest cost.
LARGEST_REG = 1e30
#: Potentials beyond this many times the largest cost (or η) are no start: their digits are lost.
LARGEST_START = 1e6
#: Potentials up to this size can be audited.
LARGEST_POTENTIAL = 1e300


def check_arguments(
    *,
    method: Any,
    stop: Any,
    on_limit: Any,
    seed: Any,
    n_threads: Any,
    callback: Any,
    checkpoint: Any,
    resume: Any,
    normalize: Any,
    progress: Any,
) -> None:
    """Refuse arguments of the wrong kind, before any work is done."""
    if not isinstance(method, str):
        raise UnknownMethod(f"method is {shown(method)}; it must be a name from epsilot.methods().")
    check_choice("stop", stop, ("certificate", "paper"))
    check_choice("on_limit", on_limit, ("warn", "raise", "ignore"))
    check_count("seed", seed, 0)
    if n_threads is not None:
        check_count("n_threads", n_threads, 1)
    if callback is not None and not callable(callback):
        raise InvalidProblem(f"callback is {shown(callback)}; it must be a function of a Record.")
    check_flag("normalize", normalize)
    check_flag("progress", progress)
    for name, path in (("checkpoint", checkpoint), ("resume", resume)):
        if path is not None and not isinstance(path, (str, os.PathLike)):
            raise InvalidProblem(f"{name} is {shown(path)}; it must be the path of a file.")
    if checkpoint is not None:
        check_own(checkpoint, "epsilot-checkpoint")


def check_reachable(name: str, value: float, size: float, unit: float) -> None:
    """Refuse an accuracy, in a unit of the user's, that float64 cannot certify for costs."""
    if not SMALLEST_EPS * size <= value < math.inf:
        least = unit * SMALLEST_EPS * size
        raise InvalidProblem(
            f"{name} is {unit * value:.3g} for costs and masses of size {unit * size:.3g}; float64 "
            f"arithmetic can certify about {least:.1g} (ask for {name} >= {least:.1g})."
        )


def check_regularisation(reg: float, problem: Problem) -> None:
    """Refuse a regularisation out of all proportion to the costs."""
    size = problem.unit * problem.scale
    least, most = (share * (size or 1.0) for share in (problem.geometry.finest_eta, LARGEST_REG))
    if not least <= reg <= most:
        raise InvalidProblem(
            f"reg is {reg:.3g} for costs of size {size:.3g}; it must be at least {least:.1g} and "
            f"at most {most:.1g} to be within the range of float64 (use eps or rtol for the "
            "problem without regularisation)."
        )


def check_fit(name: str, solver: Solver, problem: Problem, goal: Goal, stop: str) -> None:
    """Refuse combinations that have no meaning, in one sentence."""
    about, geometry = solver.about, problem.geometry
    kind = type(geometry).__name__
    if goal.reg is not None and not about.solves_entropic:
        raise InvalidProblem(
            f"{name} does not solve the entropic problem; use eps or rtol with it, or another "
            "method with reg (sinkhorn)."
        )
    if stop == "paper" and goal.eps is None:
        raise InvalidProblem(
            "stop='paper' needs eps, from which the published constants follow; pass eps=..., "
            "or stop='certificate'."
        )
    if stop == "paper" and goal.reg is not None:
        raise InvalidProblem("stop='paper' chooses η from eps; pass eps instead of reg.")
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


def make_limits(
    max_iter: float, max_seconds: float | None, callback: Callable[[Record], Any] | None
) -> Limits:
    """Return the limits of a run; an infinite one is none."""
    if not (is_real(max_iter) and max_iter >= 0 and (math.isinf(max_iter) or max_iter % 1 == 0)):
        raise InvalidProblem(
            f"max_iter is {shown(max_iter)}; it must be a whole number >= 0, or None (math.inf: no "
            "limit)."
        )
    if max_seconds is not None and not (is_real(max_seconds) and max_seconds >= 0):
        raise InvalidProblem(
            f"max_seconds is {shown(max_seconds)}; it must be a number >= 0, or None."
        )
    return Limits(
        sys.maxsize if math.isinf(max_iter) else int(max_iter),
        math.inf if max_seconds is None else float(max_seconds),
        callback,
    )


def largest_start(problem: Problem, reg: float | None) -> float:
    """Return the size up to which potentials can start a run."""
    return problem.unit * LARGEST_START * (max(problem.scale, reg or 0.0) or 1.0)


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
