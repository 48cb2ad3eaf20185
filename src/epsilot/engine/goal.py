"""What a run is to reach, in internal units, and what may end it early."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from ..errors import InvalidProblem
from ..kernels import proof
from ..kernels.proof import LARGEST, SMALLEST
from ..problems.certificate import LEAST_GAP
from ..problems.objective import RunObjective
from .request import Request

#: Relative accuracy if none is asked for.
RTOL = 0.01
#: Relative accuracy from which on exact methods go to their end: see ``Goal.is_exact``.
EXACT = 1e-9


@dataclass(frozen=True, kw_only=True)
class Goal:
    """The gap to reach, in internal units: absolute, or relative to the lower bound."""

    eps: float | None = None
    rtol: float | None = None
    offset: float = 0.0
    size: float = 0.0  # of the costs: a relative gap of an optimum near 0 is a share of it
    #: The least share of the lower bound that eps stands for, where it is a default.
    floor: float = 0.0
    #: What turning bounds into the user's units may add to the gap.
    slack: float = 0.0

    @property
    def is_exact(self) -> bool:
        """Whether an exact plan is asked for: its mass is to be on tight arcs only."""
        return self.rtol is not None and self.rtol <= EXACT

    def allowed(self, lower: float) -> float:
        """Return the gap that is asked for, given the best lower bound."""
        if not math.isfinite(lower):
            return self.eps or 0.0
        if self.rtol is None:
            return max(self.eps or 0.0, self.floor * abs(lower))
        return proof.relative_gap(self.rtol, lower + self.offset, self.size)

    def is_reached(self, upper: float, lower: float) -> bool:
        """Tell whether a bracket is narrow enough, and stays so in the user's units."""
        return proof.is_within(upper, lower, self.allowed(lower), self.slack)


@dataclass(frozen=True)
class Limits:
    """What may end a run early, beside its clock."""

    max_iter: int = 1_000_000


def make_goal(objective: RunObjective, request: Request) -> Goal:
    """Turn what is asked for into a gap in internal units, or say why it cannot be reached."""
    name, mass, unit = objective.accuracy, objective.mass, objective.unit
    asked = getattr(request, name)
    if asked is not None:
        gap = min(float(asked) / mass / unit, LARGEST)
        _check_reachable(name, gap, objective.scale, mass * unit)
        return Goal(eps=gap, slack=objective.slack)
    if objective.default_gap is not None:
        return Goal(eps=objective.default_gap, floor=LEAST_GAP, slack=objective.slack)
    rtol = RTOL if request.rtol is None else float(request.rtol)
    size = objective.optimum_scale
    return Goal(rtol=rtol, offset=objective.shift, size=size, slack=objective.slack)


def make_limits(request: Request, patience: float) -> Limits:
    """Return the limits of a run; a method's patience is the limit of epochs if none is given."""
    max_iter = patience if request.max_iter is None else request.max_iter
    return Limits(sys.maxsize if math.isinf(max_iter) else int(max_iter))


def _check_reachable(name: str, value: float, size: float, unit: float) -> None:
    """Refuse an accuracy, in a unit of the user's, that float64 cannot certify for costs."""
    least = max(proof.least_gap(size), SMALLEST)
    if not least <= value:
        least *= unit
        raise InvalidProblem(
            f"{name} is {unit * value:.3g} for costs and masses of size {unit * size:.3g}; float64 "
            f"arithmetic can certify about {least:.1g} (ask for {name} >= {least:.1g})."
        )
