"""The kind of problem that ``unbalanced=`` selects: penalised marginals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from .._types import Vector
from ..arguments import as_numpy, check_choice, is_real, numeric, plain
from ..errors import Infeasible, InvalidProblem
from ..geometry import Geometry, as_geometry
from ..wording import shown
from .balanced import objective_of
from .kinds import UserProblem
from .kullback_leibler import KullbackLeibler
from .objective import Objective
from .prices import Price, folded, least
from .problem import Problem, checked_weights, make_problem, read_only, scaled_problem
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


def _prices(given: object) -> tuple[Price, Price]:
    """Return the penalties of both sides, from one or two; split text at commas."""
    given = plain(given)
    given = given if is_real(given) else as_numpy(given, "unbalanced")
    parts = given.split(",") if isinstance(given, str) else given
    pair: list[Any] = list(parts) if isinstance(parts, Iterable) else [parts, parts]
    pair = pair * 2 if len(pair) == 1 else pair
    if len(pair) != 2:
        _refuse(given)
    price_a, price_b = (_price(x, given) for x in pair)
    return price_a, price_b


def _price(x: Any, given: object) -> Price:
    """Return the penalty of one side: a positive number, or one per point."""
    try:
        x = float(x) if isinstance(x, str) else plain(x)
    except ValueError:
        _refuse(given)
    if is_real(x):
        return float(x) if float(x) > 0 else _refuse(given)
    if x is None or isinstance(x, (str, bool)):
        _refuse(given)
    prices = np.array(numeric(x, "unbalanced"))
    if prices.ndim != 1 or prices.size == 0:
        _refuse(given)
    if not (prices > 0).all():
        i = int(np.argmin(prices > 0))
        raise InvalidProblem(
            f"unbalanced holds {prices[i]:g} for point {i} of a side; penalties must be positive "
            "(math.inf keeps the mass of a point as it is)."
        )
    return read_only(prices)


def _refuse(given: object) -> NoReturn:
    raise InvalidProblem(
        f"unbalanced is {shown(given)}; it must be one positive number or two, for sources and "
        "targets (math.inf keeps a side as it is), or two arrays of one number per point."
    )


@dataclass(frozen=True, eq=False)
class Unbalanced:
    """Marginal penalties of sources and targets, and the divergence that they weigh.

    A penalty is one number for its side, or an array of one per point.
    """

    price_a: Price
    price_b: Price
    divergence: str

    @property
    def keywords(self) -> dict[str, object]:
        """The keywords that select this kind, with their values."""
        prices = self.price_a, self.price_b
        is_one = not self._has_arrays and prices[0] == prices[1]
        return {
            "unbalanced": prices[0] if is_one else prices,
            "unbalanced_type": self.divergence,
        }

    @property
    def _has_arrays(self) -> bool:
        return any(isinstance(x, np.ndarray) for x in (self.price_a, self.price_b))

    @property
    def is_hard(self) -> bool:
        """Whether both marginals are exact, as in the balanced problem."""
        return min(least(self.price_a), least(self.price_b)) == math.inf

    def problem(self, given: UserProblem) -> Problem:
        """Return a problem whose unit of mass is the total of both sides."""
        if self.is_hard:
            return make_problem(*given[:3], **given.options)
        geometry = as_geometry(given.M)
        self._check_lengths(geometry)
        p, q = checked_weights(geometry, given.a, given.b, normalize=given.normalize)
        self._check_exact(p, q)
        self._check_arcs(geometry, p, q)
        totals = float(p.sum()), float(q.sum())
        unit = sum(totals)
        if not min(totals) / unit > NEGLIGIBLE_MASS:
            raise InvalidProblem(
                f"a sums to {totals[0]:.3g} and b to {totals[1]:.3g}; float64 takes totals that "
                f"are finite and within a factor of {1 / NEGLIGIBLE_MASS:.0e} of each other "
                "(rescale)."
            )
        return scaled_problem(geometry, p / unit, q / unit, unit, can_shift=False)

    def _check_lengths(self, geometry: Geometry) -> None:
        """Reject arrays of another length than the side they belong to."""
        sides = ("sources", "targets")
        for price, size, side in zip(
            (self.price_a, self.price_b), geometry.shape, sides, strict=True
        ):
            if isinstance(price, np.ndarray) and price.size != size:
                raise InvalidProblem(
                    f"unbalanced holds {price.size} numbers for the {size} {side}; pass one number "
                    "per point, or one for all of them."
                )

    def _check_exact(self, p: Vector, q: Vector) -> None:
        """Reject an exact side that cannot take the mass of the exact points of the other one."""
        for price, other, mass, others in (
            (self.price_a, self.price_b, p, q),
            (self.price_b, self.price_a, q, p),
        ):
            is_free = np.isfinite(price) & ((mass > 0) | (self.divergence == "tv"))
            held = float(np.where(np.isinf(other), others, 0.0).sum())
            total = float(mass.sum())
            # A smaller relative excess is round-off.
            if not np.any(is_free) and held > total * (1 + 1e-9):
                raise InvalidProblem(
                    f"unbalanced keeps a mass of {held:.10g} on points of one side, and all points "
                    f"of the other, of {total:.10g}; no plan has these marginals (pass a finite "
                    "penalty for more points)."
                )

    def _check_arcs(self, geometry: Geometry, p: Vector, q: Vector) -> None:
        """Reject an exact side with points that have mass and no arc.

        The other side takes any mass then. Between single exact points, arcs may be too few.
        """
        arcs = geometry.allowed
        are_exact = [bool(np.isinf(price).any()) for price in (self.price_a, self.price_b)]
        if arcs is None or not any(are_exact):
            return
        if all(are_exact) or not np.isinf(self.price_a if are_exact[0] else self.price_b).all():
            raise InvalidProblem(
                "unbalanced holds inf for some points, and the cost forbids some pairs; arcs may "
                "be unable to take exact masses of single points (pass inf for one whole side, or "
                "finite penalties)."
            )
        ends = [(arcs.rows, p), (arcs.cols.astype(np.int64), q)]
        (mine, mass), (others, other) = ends if are_exact[0] else ends[::-1]
        usable = other[others] > 0 if self.divergence == "kl" else np.ones(others.size, np.bool_)
        is_alone = (mass > 0) & (np.bincount(mine[usable], minlength=mass.size) == 0)
        if not is_alone.any():
            return
        alone, excess = np.flatnonzero(is_alone), float(mass[is_alone].sum())
        n = p.size
        cut = (alone, np.zeros(0, dtype=np.int64))
        if not are_exact[0]:  # all sources together cannot reach these targets
            cut = (np.arange(n), np.flatnonzero(~is_alone))
        side, there = ("sources", "target") if are_exact[0] else ("targets", "source")
        weighed = " with mass" if self.divergence == "kl" else ""
        raise Infeasible(
            f"no plan exists on the allowed arcs: {alone.size} of the {side} must keep a mass of "
            f"{excess:.6g}, but have no arc to a {there}{weighed} (allow more arcs, or pass a "
            "finite penalty).",
            *cut,
            excess,
        )

    def objective(self, problem: Problem, reg: float | None) -> Objective:
        """Return cost and marginal penalties as an objective, with an entropy for ``reg``."""
        if self.is_hard:
            return objective_of(problem, reg=reg)
        price_a, price_b = folded(self.price_a), folded(self.price_b)
        if self.divergence == "kl":
            return KullbackLeibler.of(problem, price_a, price_b, reg)
        if reg is not None:
            return EntropicTotalVariation.with_entropy(problem, price_a, price_b, reg)
        return TotalVariation.of(problem, price_a, price_b)
