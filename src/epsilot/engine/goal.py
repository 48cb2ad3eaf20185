"""Convert the accuracy of a request to a gap in internal units, and its limit of epochs."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from ..errors import InvalidProblem
from ..kernels import proof
from ..kernels.proof import LARGEST, SMALLEST
from ..problems.objective import MIN_DEFAULT_GAP, RunObjective
from .request import Request

#: Relative gap if the request sets no target.
RTOL = 0.01
#: Relative gap at and below which exact methods run to their end: see ``Goal.is_exact``.
EXACT_RTOL = 1e-9
#: Largest gap that methods compute with, in units of the costs; every plan meets a larger one.
LARGEST_GAP = 1e100


@dataclass(frozen=True, kw_only=True)
class Goal:
    """The gap to reach, in internal units: absolute, or relative to the lower bound."""

    eps: float | None = None
    rtol: float | None = None
    offset: float = 0.0
    size: float = 0.0  # of the costs: if the optimum is near 0, rtol is relative to this
    floor: float = 0.0  # smallest gap relative to the lower bound, for a default eps
    slack: float = 0.0  # largest increase of the gap by conversion to the user's units

    @property
    def is_exact(self) -> bool:
        """Whether the plan must be exact, with mass on tight arcs only."""
        return self.rtol is not None and self.rtol <= EXACT_RTOL

    def relative_to(self, size: float) -> float:
        """Return ``rtol``, or else the absolute gap as a share of the size of the costs."""
        return (self.eps or 0.0) / (size or 1.0) if self.rtol is None else self.rtol

    def allowed(self, lower: float) -> float:
        """Return the largest gap that reaches the goal, given the best lower bound."""
        if not math.isfinite(lower):
            return self.eps or 0.0
        if self.rtol is None:
            return max(self.eps or 0.0, self.floor * abs(lower))
        return proof.relative_gap(self.rtol, lower + self.offset, self.size)

    def is_reached(self, upper: float, lower: float) -> bool:
        """Tell whether two bounds reach the goal, also in the user's units."""
        return proof.is_within(upper, lower, self.allowed(lower), self.slack)


@dataclass(frozen=True)
class Limits:
    """The limits of a run, except that of its clock."""

    max_iter: int = 1_000_000


def make_goal(objective: RunObjective, request: Request) -> Goal:
    """Convert a request's accuracy to internal units, or reject one that float64 cannot certify."""
    name, mass, unit = objective.accuracy, objective.mass, objective.unit
    given = getattr(request, name)
    if given is not None:
        largest = min(LARGEST_GAP * max(objective.scale, 1.0), LARGEST)
        gap = min(float(given) / mass / unit, largest)
        _check_reachable(name, gap, objective.scale, mass * unit)
        return Goal(eps=gap, slack=objective.slack)
    if objective.default_gap is not None:
        return Goal(eps=objective.default_gap, floor=MIN_DEFAULT_GAP, slack=objective.slack)
    rtol = RTOL if request.rtol is None else float(request.rtol)
    size, slack = objective.optimum_scale, objective.slack
    return Goal(rtol=rtol, offset=objective.shift, size=size, slack=slack)


def make_limits(request: Request, patience: float) -> Limits:
    """Return the limits of a run; the method's patience is the default limit of epochs."""
    max_iter = patience if request.max_iter is None else request.max_iter
    return Limits(sys.maxsize if math.isinf(max_iter) else int(max_iter))


def _check_reachable(name: str, value: float, size: float, unit: float) -> None:
    """Reject a gap that float64 cannot certify for costs of this size."""
    least = max(proof.least_gap(size), SMALLEST)
    if not least <= value:
        least *= unit
        raise InvalidProblem(
            f"{name} is {unit * value:.3g} for costs and masses of size {unit * size:.3g}; float64 "
            f"arithmetic can certify about {least:.1g} (use {name} >= {least:.1g})."
        )
