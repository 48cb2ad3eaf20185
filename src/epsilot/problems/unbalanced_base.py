"""The common part of objectives with marginal penalties, and checks of the penalties."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from .._types import Potentials, Vector
from ..errors import InvalidProblem
from ..kernels.proof import LARGEST, SMALLEST, scaling_power
from ..kernels.vectors import log
from .objective import Objective
from .plan import Core, Correction
from .problem import Problem

#: Largest ratio of penalties to costs, and of costs to penalties; beyond it, the round-off of one
#: exceeds the other.
MAX_PENALTY_RATIO = 1e13
#: Smallest share of unmatched mass whose penalty exceeds the round-off of penalties.
MIN_MISSED_SHARE = 1e-9
#: Penalties above this multiple of the largest cost force nearly exact marginals.
HIGH_PENALTY_RATIO = 100.0
#: Largest exponent by which negative costs may make masses grow.
MAX_GROWTH_EXPONENT = 300.0
#: Relative accuracy of a product or a sum of few terms.
ROUNDING = 4 * float(np.finfo(float).eps)


def in_ordinary_units(problem: Problem, price_a: float, price_b: float) -> Problem:
    """Measure a problem whose costs are all zero in units of its penalties."""
    if problem.scale > 0:
        return problem
    power = scaling_power(max(x for x in (price_a, price_b) if x < math.inf))
    return replace(problem, unit=math.ldexp(1.0, power))


def internal_prices(
    problem: Problem,
    price_a: float,
    price_b: float,
    reg: float | None = None,
    missed: float = 0.0,
) -> tuple[float, float]:
    """Return the penalties in internal units, or reject those out of proportion to the costs.

    Where all costs are zero, ``reg`` takes their place. Penalties may be far above the costs if
    some mass stays unmatched in any case, so that its penalty exceeds their round-off.
    """
    cost = problem.unit * problem.scale or reg or 0.0
    prices = [x for x in (price_a, price_b) if x < math.inf]
    if not all(
        x * min(problem.mass, 1.0) >= SMALLEST and x * problem.mass <= LARGEST for x in prices
    ):
        raise InvalidProblem(
            f"unbalanced is {_shown(prices)} and the weights sum to {problem.mass:.3g}; a price "
            f"and its product with the mass must be between {SMALLEST:.0e} and {LARGEST:.0e} for "
            "float64 to hold them (rescale; math.inf keeps a side as it is)."
        )
    low, high = min(prices), max(prices)
    is_paid = low * missed > MIN_MISSED_SHARE * high and high / problem.unit <= LARGEST
    is_high = high / MAX_PENALTY_RATIO > min(low, cost or low) and not is_paid
    if is_high or cost / MAX_PENALTY_RATIO > low:
        raise InvalidProblem(
            f"unbalanced is {_shown(prices)} for costs of size {cost:.3g}; float64 certifies "
            f"prices and costs within a factor of {MAX_PENALTY_RATIO:.0e} of each other (pass "
            "another price; math.inf keeps a side as it is)."
        )
    return price_a / problem.unit, price_b / problem.unit


def check_growth(problem: Problem, prices: tuple[float, float], most: float) -> None:
    """Reject negative costs that make the mass, or its value, grow beyond the range of float64.

    The exponent by which it grows is the least cost divided by a number.
    """
    low = problem.geometry.bounds[0]
    value = problem.unit * problem.scale * problem.mass
    room = min(MAX_GROWTH_EXPONENT, float(log(LARGEST) - log(max(value, 1.0))))
    if -low > room * most:
        a, b = (problem.unit * price for price in prices)
        raise InvalidProblem(
            f"the least cost is {problem.unit * low:.3g} and unbalanced is {a:.3g} and {b:.3g}; "
            "the optimal mass is beyond the range of float64 (pass a larger unbalanced, or larger "
            "costs)."
        )


def _shown(prices: list[float]) -> str:
    return " and ".join(f"{x:.3g}" for x in prices)


@dataclass(frozen=True)
class UnbalancedObjective(Objective):
    """An objective with penalties on the marginals p and q; ∞ requires an exact marginal."""

    price_a: float
    price_b: float

    paper_refusal: ClassVar[str | None] = (
        "stop='paper' follows procedures for balanced problems; leave it out with unbalanced."
    )

    @property
    def shift(self) -> float:
        """Zero: mass is not fixed, so that costs cannot be shifted."""
        return 0.0

    @property
    def cost_size(self) -> float:
        """The largest absolute cost."""
        return max(abs(x) for x in self.problem.geometry.bounds)

    @property
    def finite_prices(self) -> list[float]:
        """The penalties of the sides without an exact marginal."""
        return [x for x in (self.price_a, self.price_b) if x < math.inf]

    @property
    def size(self) -> float:
        """The largest cost or penalty."""
        return max(self.cost_size, *self.finite_prices)

    @property
    def optimum_scale(self) -> float:
        """The smaller of largest cost and least penalty, which bound the optimum.

        Where all costs are zero it is the largest penalty: an optimum of 0 is certified to its
        round-off.
        """
        if self.cost_size == 0:
            return self.total * max(self.finite_prices)
        return self.total * min(*self.finite_prices, self.cost_size)

    @property
    def total(self) -> float:
        """Total mass of both sides: 1, or the user's where there is an entropy."""
        return float(self.problem.p.sum() + self.problem.q.sum())

    @property
    def feasible_mass(self) -> float:
        """The mass of the side with an exact marginal, else the smaller of both."""
        p, q = float(self.problem.p.sum()), float(self.problem.q.sum())
        if self.price_a == math.inf:
            return p
        return q if self.price_b == math.inf else min(p, q)

    @property
    def scale(self) -> float:
        """The same: costs are not shifted."""
        return self.size

    def to_user_potentials(self, potentials: Potentials) -> Potentials:
        """Return potentials in the user's units."""
        f, g = potentials
        return self.problem.unit * f, self.problem.unit * g

    def keeping(self, core: Core, s: Vector, t: Vector) -> tuple[Correction, float]:
        """Correct diag(s) K diag(t) to the exact marginal of a side; return correction and error.

        Rows, or columns, are scaled. An empty one that needs mass is spread over the other side.
        """
        p, q = self.problem.p, self.problem.q
        e, d, error = np.zeros_like(p), np.zeros_like(q), 0.0
        if self.price_a == math.inf:
            s, e, error = _to_marginal(core.rows(t), p)
            d = q / q.sum() if e.any() else d
        elif self.price_b == math.inf:
            t, d, error = _to_marginal(core.cols(s), q)
            e = p / p.sum() if d.any() else e
        return Correction(s, t, e, d), error


def _to_marginal(mass: Vector, wanted: Vector) -> tuple[Vector, Vector, float]:
    """Return scalings to the wanted sums, the mass that empty ones need, and the l1 error."""
    is_empty = mass <= 0
    scaling = np.where(is_empty, 1.0, wanted / np.where(is_empty, 1.0, mass))
    return scaling, np.where(is_empty, wanted, 0.0), float(np.abs(mass - wanted).sum())
