"""The kind that ``mass=`` asks for: a given mass is moved, and the rest stays where it is."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from ..arguments import check_positive
from ..errors import InvalidProblem
from ..geometry import Geometry, as_geometry
from ..kernels.proof import SMALLEST
from .entropic_partial import EntropicPartial
from .partial import PartialTransport
from .problem import Problem, check_size, masses, scaled_problem

#: Share by which the mass to move may exceed what there is: rounding.
EXCESS = 1e-12
#: The least share of the mass there is that can be moved.
LEAST_SHARE = 1e-250


@dataclass(frozen=True)
class Partial:
    """The mass to move."""

    mass: float

    def __post_init__(self) -> None:
        """Refuse a mass that is none."""
        object.__setattr__(self, "mass", check_positive("mass", self.mass))
        if not self.mass >= SMALLEST:
            raise InvalidProblem(
                f"mass is {self.mass:.3g}; it must be at least {SMALLEST:.0e} for float64 to hold "
                "parts of it (rescale the weights)."
            )

    @property
    def keywords(self) -> dict[str, object]:
        """The keywords that ask for it."""
        return {"mass": self.mass}

    def problem(
        self,
        M: ArrayLike | Geometry,
        a: ArrayLike | None,
        b: ArrayLike | None,
        *,
        normalize: bool,
    ) -> Problem:
        """Return a problem whose unit of mass is what sources, targets and dummies have."""
        geometry = as_geometry(M)
        p, q = masses(geometry, a, b, normalize=normalize)
        totals = float(p.sum()), float(q.sum())
        if not self.mass <= min(totals) * (1 + EXCESS):
            raise InvalidProblem(
                f"mass is {self.mass:.10g}, a sums to {totals[0]:.10g} and b to {totals[1]:.10g}; "
                "no more can be moved than either has (pass a smaller mass)."
            )
        unit = max(sum(totals) - self.mass, *totals)
        return scaled_problem(geometry, p / unit, q / unit, unit)

    def objective(self, problem: Problem, reg: float | None) -> PartialTransport:
        """Return the cost of the mass that is moved, or the entropic objective."""
        check_size(problem.unit * problem.scale, self.mass, "mass is")
        share = min(self.mass / problem.mass, float(problem.p.sum()), float(problem.q.sum()))
        if not share >= LEAST_SHARE:
            raise InvalidProblem(
                f"mass is {self.mass:.3g} and the weights sum to {problem.mass:.3g}; float64 takes "
                f"shares down to {LEAST_SHARE:.0e} (lower the weights: none needs to exceed mass)."
            )
        if reg is not None:
            return EntropicPartial.of(problem, share, reg)
        return PartialTransport(problem, share)
