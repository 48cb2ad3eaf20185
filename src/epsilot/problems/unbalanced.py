"""The kind of problem that ``unbalanced=`` selects: penalised marginals."""

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

#: Divergences of the marginal penalty.
DIVERGENCES = ("kl", "tv")


def kind_of(unbalanced: object, unbalanced_type: object) -> Unbalanced:
    """Return the kind that two keywords select, or raise InvalidProblem."""
    check_choice("unbalanced_type", unbalanced_type, DIVERGENCES)
    if unbalanced is None:
        raise InvalidProblem(
            f"unbalanced_type is {unbalanced_type!r} without unbalanced; pass the marginal "
            "penalty as unbalanced=λ or (λ_a, λ_b)."
        )
    return Unbalanced(*_prices(unbalanced), str(unbalanced_type))


def _prices(given: object) -> tuple[float, float]:
    """Return two positive penalties, perhaps infinite, from one or two; split text at commas."""
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
    """Two marginal penalties (``price_a``, ``price_b``) and the divergence that they weigh."""

    price_a: float
    price_b: float
    divergence: str

    @property
    def keywords(self) -> dict[str, object]:
        """The keywords that select this kind, with their values."""
        prices = self.price_a, self.price_b
        price = prices[0] if prices[0] == prices[1] else prices
        return {"unbalanced": price, "unbalanced_type": self.divergence}

    @property
    def is_hard(self) -> bool:
        """Whether both marginals are exact, as in the balanced problem."""
        return min(self.price_a, self.price_b) == math.inf

    def problem(
        self,
        M: ArrayLike | Geometry,
        a: ArrayLike | None,
        b: ArrayLike | None,
        *,
        normalize: bool,
    ) -> Problem:
        """Return a problem whose unit of mass is the total of both sides."""
        if self.is_hard:
            return make_problem(M, a, b, normalize=normalize)
        geometry = as_geometry(M)
        self._check_arcs(geometry)
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

    def _check_arcs(self, geometry: Geometry) -> None:
        """Reject forbidden arcs beside one exact marginal, and with KL penalties."""
        if geometry.allowed is None:
            return
        if max(self.price_a, self.price_b) == math.inf:
            raise InvalidProblem(
                "unbalanced holds inf for one side and the cost forbids some pairs; an exact "
                "marginal needs a cost for every pair (pass finite penalties for both sides)."
            )
        if self.divergence == "kl":
            raise InvalidProblem(
                "unbalanced_type is 'kl' and the cost forbids some pairs; sparse costs have total "
                "variation penalties only (pass unbalanced_type='tv')."
            )

    def objective(self, problem: Problem, reg: float | None) -> Objective:
        """Return cost and marginal penalties as an objective, with an entropy for ``reg``."""
        if self.is_hard:
            return objective_of(problem, reg=reg)
        if self.divergence == "kl":
            return KullbackLeibler.of(problem, self.price_a, self.price_b, reg)
        if reg is not None:
            return EntropicTotalVariation.with_entropy(problem, self.price_a, self.price_b, reg)
        return TotalVariation.of(problem, self.price_a, self.price_b)
