"""Transport between two marginals of equal mass: linear, or with an entropy."""

from __future__ import annotations

from .entropic import EntropicTransport
from .linear import Transport
from .objective import Objective
from .problem import Problem


def objective_of(problem: Problem, *, reg: float | None = None) -> Objective:
    """Return what is minimised: the cost, or with a regularisation the entropic objective."""
    return Transport(problem) if reg is None else EntropicTransport.of(problem, float(reg))
