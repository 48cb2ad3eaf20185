"""L-BFGS on the semi-dual of the entropic barycentre, with a falling η."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._types import Matrix
from ..arguments import check_count
from ..problems.work import Work
from .continuation import Continuation, Moved
from .family import Family
from .semi_dual import Evaluated, evaluate, evaluation_work, inner

#: Shares of the first slope: by which φ must fall, and that must be left of the slope.
FALL, FLAT = 1e-4, 0.9
#: Points that a search along a line looks at, at most.
TRIALS = 20
#: How far φ may rise by rounding alone, as a share of the largest cost.
ROUND_OFF = 1e-15
#: Masses of the barycentre that scale steps no more, as a share of the mean one.
LEAST = 0.03
#: Share of a bracket that the next point of a search keeps from its ends.
MARGIN = 0.1


@dataclass(frozen=True, kw_only=True)
class LBFGS(Continuation):
    """Limited-memory BFGS steps on the semi-dual (Nocedal 1980), for an η that falls.

    Parameters
    ----------
    memory : int
        Pairs of steps and differences of gradients that are kept.
    """

    memory: int = 10

    def __post_init__(self) -> None:
        check_count("memory", self.memory, 1)

    def iteration(self, family: Family) -> QuasiNewton:
        """Return the iteration on a family, without a history."""
        return QuasiNewton(family, self.memory)


class Pair(NamedTuple):
    """A step and the difference of gradients along it."""

    step: Matrix
    turn: Matrix
    product: float  # of the two


class QuasiNewton:
    """Quasi-Newton steps on the semi-dual of one family, in the norm Σ w_k ‖g_k‖²."""

    def __init__(self, family: Family, memory: int) -> None:
        k, m = family.shape
        self.family, self.memory = family, memory
        self.work = evaluation_work(family) + Work.of(vector=6 * k * m)
        self.direction_work = Work.of(vector=(8 * memory + 6) * k * m)
        self.clear()

    def clear(self) -> None:
        """Forget the curvature, which is another one at another η."""
        self.pairs: list[Pair] = []
        self.at: Evaluated | None = None

    def next(self, G: Matrix, eta: float) -> Moved:
        """Return the point that a search along a quasi-Newton direction ends at."""
        work = Work()
        if self.at is None:
            self.at = evaluate(self.family, G, eta)
            work += self.work
        at = self.at
        direction = self._direction(at, eta)
        slope = inner(self.family, at.gradient, direction)
        if not slope < 0:
            self.pairs = []
            direction = self._direction(at, eta)
            slope = inner(self.family, at.gradient, direction)
        found, n = self._search(at, direction, slope, eta)
        self._keep(Pair(found.columns - at.columns, found.gradient - at.gradient, 0.0))
        self.at = found
        for _ in range(n):
            work += self.work
        return Moved(found.columns, found.error, work + self.direction_work)

    def _direction(self, at: Evaluated, eta: float) -> Matrix:
        """Return -H ∇φ by the two loops over the history (Nocedal 1980)."""
        r, shares = at.gradient.copy(), []
        for step, turn, product in reversed(self.pairs):
            share = inner(self.family, step, r) / product
            r -= share * turn
            shares.append(share)
        scale = 1 / np.maximum(at.mean, LEAST / at.mean.size)
        if self.pairs:
            _, turn, product = self.pairs[-1]
            r *= product / inner(self.family, turn, turn * scale) * scale
        else:
            r *= eta * scale
        for (step, turn, product), share in zip(self.pairs, reversed(shares), strict=True):
            r += (share - inner(self.family, turn, r) / product) * step
        return -r

    def _search(
        self, at: Evaluated, direction: Matrix, slope: float, eta: float
    ) -> tuple[Evaluated, int]:
        """Return a point along a line where φ fell enough and is flat enough (Wolfe)."""
        family, slack = self.family, ROUND_OFF * self.family.cost_max
        low, high, steep, t = (0.0, np.inf, slope, 1.0)
        rise = np.inf
        best = at
        for n in range(1, TRIALS + 1):
            found = evaluate(family, at.columns + t * direction, eta, at)
            here = inner(family, found.gradient, direction)
            if not found.value <= at.value + FALL * t * slope + slack:
                high, rise = t, here
            elif here < FLAT * slope:
                low, steep, best = t, here, found
            else:
                return found, n
            if high == np.inf:
                t *= 2
            else:
                share = steep / (steep - rise) if rise > 0 else 0.5
                t = low + min(max(share, MARGIN), 1 - MARGIN) * (high - low)
        return best, TRIALS

    def _keep(self, pair: Pair) -> None:
        product = inner(self.family, pair.step, pair.turn)
        if product > 0:
            self.pairs.append(pair._replace(product=product))
            del self.pairs[: -self.memory]
