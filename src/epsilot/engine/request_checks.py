"""What a request must be, whatever the problem; each refusal one sentence with the remedy."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

from ..arguments import (
    PLAIN,
    check_choice,
    check_count,
    check_flag,
    check_options,
    check_positive,
    is_real,
    plain,
)
from ..errors import InvalidProblem, UnknownMethod
from ..files import check_own
from ..wording import shown

if TYPE_CHECKING:
    from .request import Request

#: Keywords that are numbers.
NUMBERS = ("eps", "rtol", "reg", "tol", "max_iter", "max_seconds", "seed", "n_threads")
#: The smallest relative gap that float64 arithmetic can certify.
SMALLEST_RTOL = 1e-12


def check_request(request: Request) -> None:
    """Make numbers Python's own, and refuse what no problem can make sense of."""
    for name in NUMBERS:
        value = getattr(request, name)
        if type(value) not in PLAIN:
            object.__setattr__(request, name, plain(value))
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
    if not given:
        return
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
