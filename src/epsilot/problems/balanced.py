"""Transport between two marginals of equal mass: linear, or with an entropy."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from ..geometry import Geometry
from .entropic import EntropicTransport
from .linear import Transport
from .objective import Objective
from .problem import Problem, make_problem


@dataclass(frozen=True)
class Balanced:
    """Plans with the marginals a and b: the kind that no keyword selects."""

    def problem(
        self,
        M: ArrayLike | Geometry,
        a: ArrayLike | None,
        b: ArrayLike | None,
        *,
        normalize: bool,
    ) -> Problem:
        """Return a problem whose weights have equal totals."""
        return make_problem(M, a, b, normalize=normalize)

    def objective(self, problem: Problem, reg: float | None) -> Objective:
        """Return the cost, or the entropic objective."""
        return objective_of(problem, reg=reg)

    @property
    def keywords(self) -> dict[str, object]:
        """No keywords."""
        return {}


def objective_of(problem: Problem, *, reg: float | None = None) -> Objective:
    """Return the objective to minimise: the cost, or with ``reg`` the entropic objective."""
    return Transport(problem) if reg is None else EntropicTransport.of(problem, float(reg))
