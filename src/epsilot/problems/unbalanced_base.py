"""The common part of objectives with marginal penalties, and checks of the penalties."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._types import Potentials, Vector
from ..errors import InvalidProblem
from ..geometry.base import AllowedArcs
from ..kernels.auction import corner
from ..kernels.proof import FEASIBLE, LARGEST, SMALLEST, scaling_power
from ..kernels.vectors import log
from .objective import Objective
from .plan import Arcs, Core, Correction, Plan, add_arcs
from .prices import Price, highest, least, typical
from .problem import Problem
from .rounding import Rounded, round_onto

Mask: TypeAlias = NDArray[np.bool_]
Sums: TypeAlias = tuple[Vector, Vector]


@dataclass(frozen=True)
class PenaltyTuning:
    """Limits of problems with penalties on their marginals."""

    # Largest ratio of penalties to costs, and of costs to penalties; beyond it, the round-off of
    # one exceeds the other.
    max_penalty_ratio: float = 1e13
    # Smallest share of unmatched mass whose penalty exceeds the round-off of penalties.
    min_missed_share: float = 1e-9
    # Penalties above this multiple of the largest cost force nearly exact marginals.
    high_penalty_ratio: float = 100.0
    # Methods see penalties above high_penalty_ratio times the largest cost lowered to this
    # multiple.
    lowered_penalty_ratio: float = 4.0
    # Largest exponent by which negative costs may make masses grow.
    max_growth_exponent: float = 300.0
    # Relative accuracy of a product or a sum of few terms.
    rounding: float = 4 * float(np.finfo(float).eps)
    # Passes that scale exact rows and columns at most.
    max_exact_passes: int = 4
    # Relative margin between the bounds of potentials and the penalties, for round-off.
    bound_margin: float = 16 * float(np.finfo(float).eps)


TUNING = PenaltyTuning()


def in_ordinary_units(problem: Problem, price_a: Price, price_b: Price) -> Problem:
    """Measure a problem whose costs are all zero in units of its penalties."""
    if problem.scale > 0:
        return problem
    return replace(problem, unit=math.ldexp(1.0, scaling_power(highest(price_a, price_b))))


def internal_prices(
    problem: Problem,
    price_a: Price,
    price_b: Price,
    reg: float | None = None,
    missed: float = 0.0,
) -> tuple[Price, Price]:
    """Return the penalties in internal units, or reject those out of proportion to the costs.

    Of penalties per point the largest is compared, and the mean of a unit of mass: a few small ones
    do no harm. Where all costs are zero, ``reg`` takes their place. Penalties may be far above the
    costs if some mass stays unmatched in any case, so that its penalty exceeds their round-off.
    """
    cost = problem.unit * problem.scale or reg or 0.0
    pairs = (price_a, problem.p), (price_b, problem.q)
    means = [x for x in (typical(*pair) for pair in pairs) if x < math.inf]
    smallest, low, high = (
        min(least(price_a), least(price_b)),
        min(means),
        highest(price_a, price_b),
    )
    if not (smallest * min(problem.mass, 1.0) >= SMALLEST and high * problem.mass <= LARGEST):
        raise InvalidProblem(
            f"unbalanced is {_shown(price_a, price_b)} and the weights sum to {problem.mass:.3g}; "
            f"a price and its product with the mass must be between {SMALLEST:.0e} and "
            f"{LARGEST:.0e} for float64 to hold them (rescale; math.inf keeps a side as it is)."
        )
    is_paid = low * missed > TUNING.min_missed_share * high and high / problem.unit <= LARGEST
    is_high = high / TUNING.max_penalty_ratio > min(low, cost or low) and not is_paid
    if is_high or cost / TUNING.max_penalty_ratio > low:
        raise InvalidProblem(
            f"unbalanced is {_shown(price_a, price_b)} for costs of size {cost:.3g}; float64 "
            f"certifies prices and costs within a factor of {TUNING.max_penalty_ratio:.0e} of each "
            "other (pass another price; math.inf keeps a side as it is)."
        )
    return price_a / problem.unit, price_b / problem.unit


def check_growth(problem: Problem, prices: tuple[Price, Price], most: float) -> None:
    """Reject negative costs that make the mass, or its value, grow beyond the range of float64.

    The exponent by which it grows is the least cost divided by a number.
    """
    low = problem.geometry.bounds[0]
    value = problem.unit * problem.scale * problem.mass
    room = min(TUNING.max_growth_exponent, float(log(LARGEST) - log(max(value, 1.0))))
    if -low > room * most:
        a, b = (problem.unit * least(price) for price in prices)
        raise InvalidProblem(
            f"the least cost is {problem.unit * low:.3g} and unbalanced is {a:.3g} and {b:.3g}; "
            "the optimal mass is beyond the range of float64 (pass a larger unbalanced, or larger "
            "costs)."
        )


def _shown(*prices: Price) -> str:
    """Return the finite penalties, or their range on a side, for a message."""
    finite = [x for x in prices if least(x) < math.inf]
    return " and ".join(
        f"{x:.3g}" if not isinstance(x, np.ndarray) else f"{least(x):.3g} to {highest(x):.3g}"
        for x in finite
    )


@dataclass(frozen=True)
class UnbalancedObjective(Objective):
    """An objective with penalties on the marginals p and q; ∞ requires an exact marginal.

    A penalty is one number for its side, or one per point.
    """

    price_a: Price
    price_b: Price

    #: Whether plans may put mass on points without mass.
    fills_empty_points: ClassVar[bool]

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
        return max(abs(x) for x in self.problem.geometry.untilted.bounds)

    @property
    def size(self) -> float:
        """The largest cost or penalty."""
        return max(self.cost_size, highest(self.price_a, self.price_b))

    @property
    def optimum_scale(self) -> float:
        """The smaller of largest cost and least mean penalty, which bound the optimum.

        Where all costs are zero it is the largest penalty: an optimum of 0 is certified to its
        round-off.
        """
        if self.cost_size == 0:
            return self.total * highest(self.price_a, self.price_b)
        means = typical(self.price_a, self.problem.p), typical(self.price_b, self.problem.q)
        return self.total * min(*means, self.cost_size)

    @property
    def total(self) -> float:
        """Total mass of both sides: 1, or the user's where there is an entropy."""
        return float(self.problem.p.sum() + self.problem.q.sum())

    @property
    def feasible_mass(self) -> float:
        """The mass of the side with an exact marginal, else the smaller of both."""
        p, q = float(self.problem.p.sum()), float(self.problem.q.sum())
        if least(self.price_a) == math.inf:
            return p
        return q if least(self.price_b) == math.inf else min(p, q)

    @property
    def scale(self) -> float:
        """The same: costs are not shifted."""
        return self.size

    def to_user_potentials(self, potentials: Potentials) -> Potentials:
        """Return potentials in the user's units."""
        f, g = potentials
        return self.problem.unit * f, self.problem.unit * g

    @property
    def is_partly_exact(self) -> bool:
        """Whether some but not all points of a side keep their mass."""
        return any(
            isinstance(x, np.ndarray) and bool(np.isinf(x).any())
            for x in (self.price_a, self.price_b)
        )

    def keeping(self, core: Core, s: Vector, t: Vector) -> Rounded:
        """Round diag(s) K diag(t) to the exact marginals, and price it.

        For one exact side its rows, or columns, are scaled. An empty one that needs mass is spread
        over the other side, or sent along its cheapest arc.
        """
        p, q = self.problem.p, self.problem.q
        if self.is_partly_exact:
            return self._keeping_points(core, s, t)
        e, d, error = np.zeros_like(p), np.zeros_like(q), 0.0
        if least(self.price_a) == math.inf:
            s, e, error = _to_marginal(core.rows(t), p)
            d = q / q.sum() if e.any() else d
        elif least(self.price_b) == math.inf:
            t, d, error = _to_marginal(core.cols(s), q)
            e = p / p.sum() if d.any() else e
        arcs = self.problem.geometry.allowed
        if arcs is not None and e.any() and d.any():
            lacking = e if least(self.price_a) == math.inf else d
            core = add_arcs(core, self._cheapest_arcs(arcs, lacking, s, t))
            e, d = np.zeros_like(p), np.zeros_like(q)
        correction = Correction(s, t, e, d)
        _, cost, shipped = core.price(self.problem.geometry, correction.t, correction.d)
        plan = Plan(core, correction)
        return Rounded(plan, plan.priced(cost, shipped), error)

    def _cheapest_arcs(self, arcs: AllowedArcs, lacking: Vector, s: Vector, t: Vector) -> Arcs:
        """Return the cheapest arcs of the points of an exact side that lack mass, with that mass.

        The other ends are those that the scalings ``s`` and ``t`` keep.
        """
        rows, cols = arcs.rows, arcs.cols.astype(np.int64)
        is_rows = least(self.price_a) == math.inf
        mine, usable = (rows, t[cols] > 0) if is_rows else (cols, s[rows] > 0)
        used = np.flatnonzero((lacking[mine] > 0) & usable)
        used = used[np.argsort(arcs.costs[used], kind="stable")]
        points, first = np.unique(mine[used], return_index=True)
        chosen = used[first]
        return Arcs(self.problem.shape, rows[chosen], cols[chosen], lacking[points])

    def _keeping_points(self, core: Core, s: Vector, t: Vector) -> Rounded:
        """Round to the masses of exact points, and to nearly those of the plan at the others.

        What the exact points of one side need more than the other side has is added to its other
        points. A side without other points sets the mass of both. Where float64 cannot hold both
        masses, the plan is one between the weights.
        """
        sums = s * core.rows(t), t * core.cols(s)
        sides = self._sides(sums, (s > 0, t > 0))
        missed = [
            np.abs(mass - side.wanted)[np.isinf(price)].sum()
            for price, mass, side in zip((self.price_a, self.price_b), sums, sides, strict=True)
        ]
        p, q = _equalised(*sides)
        found = self.with_exact_points(round_onto(core, p, q, self.problem.geometry))
        if not self.infeasibility(found.plan) <= FEASIBLE:
            p, q = _equalised(*self._sides((self.problem.p, self.problem.q), (s > 0, t > 0)))
            corner_plan = Arcs(self.problem.shape, *corner(p, q, 0.0)).above(0.0)
            found = round_onto(corner_plan, p, q, self.problem.geometry)
        return found._replace(marginal_error=float(sum(missed)))

    def _sides(self, masses: Sums, used: tuple[Mask, Mask]) -> list[_Side]:
        """Return masses of both sides, with the weights of exact points."""
        prices, weights = (self.price_a, self.price_b), (self.problem.p, self.problem.q)
        return [
            _Side(np.where(np.isinf(price), weight, mass), np.isfinite(price) & mask)
            for price, weight, mass, mask in zip(prices, weights, masses, used, strict=True)
        ]

    def with_exact_points(self, found: Rounded) -> Rounded:
        """Scale the rows and columns of exact points, if the plan misses their masses.

        Other points may have so much more mass that its round-off exceeds that of exact ones.
        """
        plan = found.plan
        for _ in range(TUNING.max_exact_passes):
            if self.infeasibility(plan) <= FEASIBLE / 4:
                break
            s, t, e, d = plan.correction or Correction.nothing(plan.shape)
            x = _share(self.price_a, self.problem.p, plan.marginals()[0])
            plan = replace(plan, correction=Correction(s * x, t, e * x, d))
            y = _share(self.price_b, self.problem.q, plan.marginals()[1])
            plan = replace(plan, correction=Correction(s * x, t * y, e * x, d * y))
        if plan is found.plan:
            return found
        return found._replace(plan=plan, cost=plan.cost(self.problem.geometry))


def _share(price: Price, wanted: Vector, mass: Vector) -> Vector:
    """Return the factors that give exact points their masses, and 1 for the others."""
    is_wrong = np.isinf(price) & (mass > 0)
    return np.where(is_wrong, wanted / np.where(is_wrong, mass, 1.0), 1.0)


class _Side(NamedTuple):
    """Masses of the points of a side, and those that may change."""

    wanted: Vector
    is_free: Mask

    def of_total(self, total: float) -> Vector:
        """Return masses of another total, or the same ones if none may change."""
        if not self.is_free.any():
            return self.wanted
        free = np.where(self.is_free, self.wanted, 0.0)
        own, change = float(free.sum()), total - float(self.wanted.sum())
        if own + change <= 0 or own == 0:
            share = max(own + change, 0.0) / np.count_nonzero(self.is_free)
            return np.where(self.is_free, share, self.wanted)
        return np.where(self.is_free, self.wanted * ((own + change) / own), self.wanted)


def _equalised(side_a: _Side, side_b: _Side) -> tuple[Vector, Vector]:
    """Return masses of equal totals: the lower one rises if it can, or else the other falls."""
    of_a, of_b = float(side_a.wanted.sum()), float(side_b.wanted.sum())
    lower, higher = (side_a, side_b) if of_a < of_b else (side_b, side_a)
    if lower.is_free.any():
        p, q = lower.of_total(max(of_a, of_b)), higher.wanted
    else:
        p, q = lower.wanted, higher.of_total(min(of_a, of_b))
    return (p, q) if lower is side_a else (q, p)


def _to_marginal(mass: Vector, wanted: Vector) -> tuple[Vector, Vector, float]:
    """Return scalings to the wanted sums, the mass that empty ones need, and the l1 error."""
    is_empty = mass <= 0
    scaling = np.where(is_empty, 1.0, wanted / np.where(is_empty, 1.0, mass))
    return scaling, np.where(is_empty, wanted, 0.0), float(np.abs(mass - wanted).sum())
