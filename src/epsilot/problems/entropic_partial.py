r"""Partial transport with an entropy, which is that of the plan alone.

.. math:: \min_X \langle M, X\rangle - reg H(X) \quad X 1 \le a,\; X^\top 1 \le b,\; 1^\top X 1 = s

Its dual is :math:`\max \langle f, a\rangle + \langle g, b\rangle + sµ - reg \sum e^{(f + g + µ -
M)/reg - 1}` over :math:`f, g \le 0`. The best µ beside f and g has a closed form, and so have the
best rows and µ together, after a search among n numbers. There are no dummies: they would have
entropies too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from .._types import Potentials, Vector
from ..errors import CertificateError
from ..kernels.vectors import dot, exp, log
from .certificate import BUG
from .clipped import Best, Clipped
from .duals import softmin
from .entropic import DEFAULT_GAP, check_regularisation
from .objective import Abilities, linear
from .partial import PartialTransport
from .plan import Plan
from .problem import Problem
from .support import Support


@dataclass(frozen=True)
class EntropicPartial(PartialTransport):
    """min <C, X> - η H(X) over plans that move a share of the unit of mass."""

    eta: float

    quantity: ClassVar[str] = "entropic partial objective"
    is_entropic: ClassVar[bool] = True
    accuracy: ClassVar[str] = "tol"
    unserved: ClassVar[str] = (
        "solves other problems than mass with reg; use clipped_sinkhorn, which is what auto takes, "
        "or eps or rtol instead of reg."
    )
    own_method: ClassVar[tuple[str, str] | None] = (
        "clipped_sinkhorn",
        "it keeps the bounds of potentials",
    )

    @classmethod
    def of(cls, problem: Problem, share: float, reg: float) -> Self:
        """Return the objective of a user's regularisation, unless it is out of proportion."""
        check_regularisation(reg, problem)
        exact = replace(problem, geometry=problem.geometry.exact)
        return cls(exact, share, reg / problem.unit)

    # -- what a run needs to know ------------------------------------------------------------

    def is_served_by(self, method: Abilities) -> bool:
        """Tell whether a method knows bounds of potentials."""
        return method.takes_bounds

    def support(self) -> Support:
        """Return the problem without its empty rows and columns."""
        return Support.of(self.problem)

    def fixed_target(self, inner: Problem) -> PartialTarget:
        """Return the problem with this η."""
        return PartialTarget(inner.geometry, self.eta, inner.p, inner.q, self.share)

    @property
    def default_gap(self) -> float:
        """A share of the largest cost, for the mass that is moved."""
        return DEFAULT_GAP * self.scale

    @property
    def scale(self) -> float:
        """The largest cost, or the regularisation, for the mass that is moved."""
        return self.share * max(self.problem.scale, self.eta)

    @property
    def slack(self) -> float:
        """What turning bounds into the user's units may add to a gap."""
        return max(super().slack, 1e-15 * self.share * self.eta)

    @property
    def shift(self) -> float:
        """The offset of the costs, and what H of a plan of another mass differs by."""
        return super().shift + self.share * self.eta * float(log(self.problem.mass))

    @property
    def size(self) -> float:
        """The largest cost, or the regularisation."""
        return max(super().size, self.eta)

    # -- value and dual ----------------------------------------------------------------------

    def value(self, plan: Plan, cost: float) -> float:
        """Return <C, X> - η H(X)."""
        return cost - self.eta * plan.entropy()

    def row_potential(self, g: Vector) -> Vector:
        """Return the best rows beside columns that are nowhere positive."""
        lse = self.problem.geometry.lse_rows(g - g.max(), self.eta) - 1
        return self.fixed_target(self.problem).best_rows(lse).potential

    def dual(self, f: Vector) -> tuple[Potentials, float]:
        """Return potentials after exact updates of columns and rows, and the bound they prove."""
        geometry, target = self.problem.geometry, self.fixed_target(self.problem)
        g = target.best_cols(geometry.lse_cols(f - f.max(), self.eta) - 1).potential
        lse = geometry.lse_rows(g, self.eta)
        f = target.best_rows(lse - 1).potential
        return (f, g), self._entropic_bound((f, g), lse)

    def dual_value(self, potentials: Potentials) -> float:
        """Return the bound of potentials that are nowhere positive, with the best µ."""
        f, g = potentials
        if not (f.max() <= 0 and g.max() <= 0):
            raise CertificateError(f"a potential is positive. {BUG}")
        return self._entropic_bound(potentials, self.problem.geometry.lse_rows(g, self.eta))

    def mass_price(self, potentials: Potentials, lower: float) -> float:
        """Return µ; what the bound has for each unit of mass is η less."""
        return super().mass_price(potentials, lower) + self.problem.unit * self.eta

    def _level(self, f: Vector, lse: Vector) -> float:
        """Return µ = η (1 + log s - log Σ exp((f + g - C) / η))."""
        terms = f / self.eta + lse
        highest = float(terms.max())
        total = highest + float(log(float(exp(terms - highest).sum())))
        return self.eta * (1 + float(log(self.share)) - total)

    def _entropic_bound(self, potentials: Potentials, lse: Vector) -> float:
        """Return <p, f> + <q, g> + share (µ - η), where η share is the mass of the best µ."""
        level = self._level(potentials[0], lse)
        return linear(self.problem, potentials) + self.share * (level - self.eta)


@dataclass(frozen=True)
class PartialTarget(Clipped):
    """The entropic partial problem of a share."""

    share: float

    def best_rows(self, lse: Vector) -> Best:
        """Return the best f <= 0 and µ together."""
        return best_clipped(softmin(self.log_p, lse, self.eta), self.p, self.share, self.eta)

    def best_cols(self, lse: Vector) -> Best:
        """Return the best g <= 0 and µ together."""
        return best_clipped(softmin(self.log_q, lse, self.eta), self.q, self.share, self.eta)


def best_clipped(h: Vector, weights: Vector, share: float, eta: float) -> Best:
    """Return min(h - µ, 0) and the µ for which Σ p min(1, exp((µ - h) / η)) is the share.

    h are the potentials that would fill all rows. Where several rows are nearly full, the search is
    for the first h at which enough is moved; below it, µ has a closed form.
    """
    used = weights > 0
    heights, masses = h[used], weights[used]
    tried = np.sort(heights)

    def moved(level: float) -> float:
        return dot(masses, exp(np.minimum((level - heights) / eta, 0.0)))

    low, high = 0, tried.size - 1
    while low < high:
        middle = (low + high) // 2
        if moved(float(tried[middle])) >= share:
            high = middle
        else:
            low = middle + 1
    top = float(tried[low])
    is_full = heights < top
    rest = dot(masses[~is_full], exp((top - heights[~is_full]) / eta))
    level = top + eta * float(log((share - float(masses[is_full].sum())) / rest))
    return Best(np.minimum(h - level, 0.0), level)
