"""The kinds that ``unbalanced=`` asks for: marginals that are wished for, not required."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from ..arguments import check_choice, is_real, plain
from ..errors import InvalidProblem
from ..geometry import Geometry, as_geometry
from ..wording import shown
from .balanced import objective_of
from .kullback_leibler import KullbackLeibler
from .objective import Objective
from .problem import Problem, checked_weights, make_problem, scaled_problem
from .support import NEGLIGIBLE_MASS
from .total_variation import EntropicTotalVariation, TotalVariation

#: How a marginal that is missed is charged.
DIVERGENCES = ("kl", "tv")


def kind_of(unbalanced: object, unbalanced_type: object) -> Unbalanced:
    """Return the kind that two keywords ask for, or say in one sentence what is wrong with them."""
    check_choice("unbalanced_type", unbalanced_type, DIVERGENCES)
    if unbalanced is None:
        raise InvalidProblem(
            f"unbalanced_type is {unbalanced_type!r} without unbalanced; pass the price of a mass "
            "that is missed as unbalanced=λ or (λ_a, λ_b)."
        )
    return Unbalanced(*_prices(unbalanced), str(unbalanced_type))


def _prices(given: object) -> tuple[float, float]:
    """Return two positive prices, perhaps infinite, from one or two; text is split at commas."""
    given = plain(given)
    parts = given.split(",") if isinstance(given, str) else given
    pair: list[Any] = list(parts) if isinstance(parts, Iterable) else [parts, parts]
    pair = pair * 2 if len(pair) == 1 else pair
    try:
        pair = [float(x) if isinstance(x, str) else plain(x) for x in pair]
    except ValueError:
        pair = []
    if len(pair) != 2 or not all(is_real(x) and float(x) > 0 for x in pair):
        raise InvalidProblem(
            f"unbalanced is {shown(given)}; it must be one positive number or two, for sources and "
            "targets (math.inf keeps a side as it is)."
        )
    return float(pair[0]), float(pair[1])


@dataclass(frozen=True)
class Unbalanced:
    """Marginals that may be missed, at prices for one of two ways to measure by how much."""

    price_a: float
    price_b: float
    divergence: str

    @property
    def keywords(self) -> dict[str, object]:
        """The keywords that ask for it."""
        prices = self.price_a, self.price_b
        price = prices[0] if prices[0] == prices[1] else prices
        return {"unbalanced": price, "unbalanced_type": self.divergence}

    @property
    def is_hard(self) -> bool:
        """Whether both sides are kept, which is the balanced problem."""
        return min(self.price_a, self.price_b) == math.inf

    def problem(
        self,
        M: ArrayLike | Geometry,
        a: ArrayLike | None,
        b: ArrayLike | None,
        *,
        normalize: bool,
    ) -> Problem:
        """Return a problem whose unit of mass is what both sides have together."""
        if self.is_hard:
            return make_problem(M, a, b, normalize=normalize)
        geometry = as_geometry(M)
        p, q = checked_weights(geometry, a, b, normalize=normalize)
        totals = float(p.sum()), float(q.sum())
        unit = sum(totals)
        if not min(totals) / unit > NEGLIGIBLE_MASS:
            raise InvalidProblem(
                f"a sums to {totals[0]:.3g} and b to {totals[1]:.3g}; float64 takes totals that "
                f"are finite and within a factor of {1 / NEGLIGIBLE_MASS:.0e} of each other "
                "(rescale)."
            )
        return scaled_problem(geometry, p / unit, q / unit, unit, can_shift=False)

    def objective(self, problem: Problem, reg: float | None) -> Objective:
        """Return the cost and what missing the marginals costs."""
        if self.is_hard:
            return objective_of(problem, reg=reg)
        if self.divergence == "kl":
            return KullbackLeibler.of(problem, self.price_a, self.price_b, reg)
        if reg is not None:
            return EntropicTotalVariation.with_entropy(problem, self.price_a, self.price_b, reg)
        return TotalVariation.of(problem, self.price_a, self.price_b)
