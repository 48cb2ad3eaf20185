"""What objectives have in common whose marginals may be missed, at a price."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._types import Potentials, Vector
from .objective import Objective
from .plan import Around, Core


@dataclass(frozen=True)
class Missed(Objective):
    """An objective with the prices of missing p and q; a price of ∞ keeps a side as it is."""

    price_a: float
    price_b: float

    unpublished: ClassVar[str | None] = (
        "stop='paper' follows procedures for balanced problems; leave it out with unbalanced."
    )

    @property
    def shift(self) -> float:
        """Nothing: mass is not fixed, so that no constant can be taken off the costs."""
        return 0.0

    @property
    def size(self) -> float:
        """The largest cost or price."""
        prices = [x for x in (self.price_a, self.price_b) if x < math.inf]
        return max(*(abs(x) for x in self.problem.geometry.bounds), *prices)

    @property
    def total(self) -> float:
        """The mass there is: 1, or the user's where there is an entropy."""
        return float(self.problem.p.sum() + self.problem.q.sum())

    @property
    def scale(self) -> float:
        """The same: costs are not shifted."""
        return self.size

    def to_user_potentials(self, potentials: Potentials) -> Potentials:
        """Return potentials in the user's units."""
        f, g = potentials
        return self.problem.unit * f, self.problem.unit * g

    def keeping(self, core: Core, s: Vector, t: Vector) -> tuple[Around, float]:
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
        return Around(s, t, e, d), error


def _to_marginal(mass: Vector, wanted: Vector) -> tuple[Vector, Vector, float]:
    """Return scalings that give wanted sums, what empty ones need, and the distance from them."""
    is_empty = mass <= 0
    scaling = np.where(is_empty, 1.0, wanted / np.where(is_empty, 1.0, mass))
    return scaling, np.where(is_empty, wanted, 0.0), float(np.abs(mass - wanted).sum())
