"""What objectives have in common whose marginals may be missed, at a price."""

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

#: Largest ratio of prices and costs: beyond, round-off of the one exceeds the other.
MAX_PENALTY_RATIO = 1e13
#: The share of the mass that must be missed for its price to exceed the rounding of prices.
MIN_MISSED_SHARE = 1e-9
#: Prices above this multiple of the largest cost make plans keep nearly all of their marginals.
HIGH_PENALTY_RATIO = 100.0
#: Largest exponent by which negative costs may make masses grow.
MAX_GROWTH_EXPONENT = 300.0
#: Relative accuracy of a product or a sum of few terms.
ROUNDING = 4 * float(np.finfo(float).eps)


def in_ordinary_units(problem: Problem, price_a: float, price_b: float) -> Problem:
    """Return the problem in units of its prices where all costs are zero, and have no unit."""
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
    """Return the prices in internal units, unless they are out of proportion to the costs.

    A regularisation stands for costs that are all zero. Prices may be far above the costs if a
    share of the mass is missed in any case, which costs more than their rounding.
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
    """Refuse negative costs that make the mass, or its value, grow beyond the range of float64.

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
    """An objective with the prices of missing p and q; a price of ∞ keeps a side as it is."""

    price_a: float
    price_b: float

    paper_refusal: ClassVar[str | None] = (
        "stop='paper' follows procedures for balanced problems; leave it out with unbalanced."
    )

    @property
    def shift(self) -> float:
        """Nothing: mass is not fixed, so that no constant can be taken off the costs."""
        return 0.0

    @property
    def cost_size(self) -> float:
        """The largest absolute cost."""
        return max(abs(x) for x in self.problem.geometry.bounds)

    @property
    def finite_prices(self) -> list[float]:
        """The prices of the sides that are not kept."""
        return [x for x in (self.price_a, self.price_b) if x < math.inf]

    @property
    def size(self) -> float:
        """The largest cost or price."""
        return max(self.cost_size, *self.finite_prices)

    @property
    def optimum_scale(self) -> float:
        """The largest cost or the least price: the optimum is below both.

        Where all costs are zero it is the largest price: an optimum of 0 is certified to its
        rounding.
        """
        if self.cost_size == 0:
            return self.total * max(self.finite_prices)
        return self.total * min(*self.finite_prices, self.cost_size)

    @property
    def total(self) -> float:
        """The mass there is: 1, or the user's where there is an entropy."""
        return float(self.problem.p.sum() + self.problem.q.sum())

    @property
    def feasible_mass(self) -> float:
        """The mass of a side that is kept; the smaller of both if neither is."""
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
        """Return what gives diag(s) K diag(t) the sums of a side that is kept, and how far it was.

        Rows, or columns, are scaled; one that is empty and must not be is spread over the others'
        masses.
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
    """Return scalings that give wanted sums, what empty ones need, and the distance from them."""
    is_empty = mass <= 0
    scaling = np.where(is_empty, 1.0, wanted / np.where(is_empty, 1.0, mass))
    return scaling, np.where(is_empty, wanted, 0.0), float(np.abs(mass - wanted).sum())
