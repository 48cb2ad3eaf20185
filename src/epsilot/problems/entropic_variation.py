r"""Unbalanced transport in total variation with an entropy.

.. math:: \min_{X \ge 0} \langle M, X\rangle + λ_a \|X 1 - a\|_1 + λ_b \|X^\top 1 - b\|_1 - reg H(X)

Its dual is :math:`\max \langle f, a\rangle + \langle g, b\rangle - reg \sum e^{(f + g - M)/reg -
1}` over :math:`|f| \le λ_a`, :math:`|g| \le λ_b`: rows, or columns, are best as Sinkhorn has them,
clipped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from .._types import Potentials, Vector
from ..errors import CertificateError
from ..kernels.proof import ROUND_OFF
from ..kernels.vectors import exp
from .certificate import BUG, LEAST_GAP
from .clipped import Best, Clipped
from .duals import softmin
from .entropic import DEFAULT_GAP, check_regularisation
from .kullback_leibler import rounding_factor
from .objective import Abilities
from .plan import Plan
from .problem import Problem
from .support import Support
from .total_variation import TotalVariation
from .unbalanced_base import MOST_GROWTH, check_growth, internal_prices


@dataclass(frozen=True)
class EntropicTotalVariation(TotalVariation):
    """min <C, X> + λ_a ‖X 1 - p‖₁ + λ_b ‖Xᵀ 1 - q‖₁ - η H(X)."""

    eta: float

    quantity: ClassVar[str] = "entropic unbalanced objective (TV)"
    is_entropic: ClassVar[bool] = True
    accuracy: ClassVar[str] = "tol"
    unserved: ClassVar[str] = (
        "solves other problems than unbalanced_type='tv' with reg; use clipped_sinkhorn, which is "
        "what auto takes, or eps or rtol instead of reg."
    )
    own_method: ClassVar[tuple[str, str] | None] = (
        "clipped_sinkhorn",
        "it keeps the bounds of potentials",
    )

    @classmethod
    def with_entropy(cls, problem: Problem, price_a: float, price_b: float, reg: float) -> Self:
        """Return the objective of a user's prices and regularisation.

        The entropy of a plan of another mass is no multiple of its own, so that the masses are the
        user's.
        """
        check_regularisation(reg, problem)
        p, q = problem.mass * problem.p, problem.mass * problem.q
        exact = replace(problem, geometry=problem.geometry.exact, p=p, q=q, mass=1.0)
        prices, eta = internal_prices(problem, price_a, price_b, reg), reg / problem.unit
        check_growth(problem, prices, sum(prices) / MOST_GROWTH + eta)
        return cls(exact, *prices, eta)

    # -- what a run needs to know ------------------------------------------------------------

    def is_served_by(self, method: Abilities) -> bool:
        """Tell whether a method knows bounds of potentials."""
        return method.takes_bounds

    def support(self) -> Support:
        """Return the problem as it is: what has no mass may be given some."""
        return Support.all(self.problem)

    def fixed_target(self, inner: Problem) -> VariationTarget:
        """Return the problem with its prices."""
        prices = self.price_a, self.price_b
        return VariationTarget(inner.geometry, self.eta, inner.p, inner.q, *prices)

    @property
    def default_gap(self) -> float:
        """A share of costs times masses."""
        return max(DEFAULT_GAP * self.round_off_size, LEAST_GAP * self.scale)

    @property
    def size(self) -> float:
        """The largest cost, price or regularisation, times the mass there is."""
        return self.total * max(super().size, self.eta)

    @property
    def round_off_size(self) -> float:
        """The largest cost or regularisation, times the mass there is, or the price of it."""
        return max(super().round_off_size, self.total * self.eta)

    # -- value and dual ----------------------------------------------------------------------

    def value(self, plan: Plan, cost: float) -> float:
        """Return the objective of a plan that keeps the sides it must keep."""
        return super().value(plan, cost) - self.eta * plan.entropy()

    def row_potential(self, g: Vector) -> Vector:
        """Return the best rows."""
        lse = self.problem.geometry.lse_rows(g, self.eta) - 1
        return self.fixed_target(self.problem).best_rows(lse).potential

    def dual(self, f: Vector) -> tuple[Potentials, float]:
        """Return potentials after exact updates of columns and rows, and the bound they prove."""
        geometry, target = self.problem.geometry, self.fixed_target(self.problem)
        g = target.best_cols(geometry.lse_cols(f, self.eta) - 1).potential
        f = target.best_rows(geometry.lse_rows(g, self.eta) - 1).potential
        potentials = target.translated(f, g)
        bound = self.dual_value(potentials)
        if bound > -math.inf:
            return potentials, bound
        # Exponentials have overflowed; constants prove a finite bound.
        a, b, (n, m) = self.price_a, self.price_b, self.problem.shape
        low = max(min(geometry.bounds[0], 0.0), -(a + b))
        share = 1.0 if a == math.inf else 0.0 if b == math.inf else a / (a + b)
        potentials = np.full(n, share * low), np.full(m, (1 - share) * low)
        return potentials, self.dual_value(potentials)

    def dual_value(self, potentials: Potentials) -> float:
        """Return the bound of potentials that are nowhere below what mass costs."""
        f, g = potentials
        if not (f.min() >= -self.price_a and g.min() >= -self.price_b):
            raise CertificateError(f"a potential is below what mass costs. {BUG}")
        lse = self.problem.geometry.lse_rows(g, self.eta) - 1
        mass = float(exp(f / self.eta + lse).sum()) * rounding_factor(f, g, self.eta)
        bound = self._bound(f, g) - self.eta * mass
        return bound if bound > -math.inf else -math.inf


@dataclass(frozen=True)
class VariationTarget(Clipped):
    """The entropic problem in total variation."""

    price_a: float
    price_b: float

    def best_rows(self, lse: Vector) -> Best:
        """Return what fills the rows, within the prices."""
        h = softmin(self.log_p, lse, self.eta)
        return Best(np.clip(h, -self.price_a, self.price_a), 0.0)

    def best_cols(self, lse: Vector) -> Best:
        """Return what fills the columns, within the prices."""
        k = softmin(self.log_q, lse, self.eta)
        return Best(np.clip(k, -self.price_b, self.price_b), 0.0)

    def translated(self, f: Vector, g: Vector) -> Potentials:
        """Return (f + t, g - t) with the best t that the prices allow.

        A constant between them changes the dual by what one side has more mass than the other.
        """
        p, q = float(self.p.sum()), float(self.q.sum())
        if abs(p - q) <= ROUND_OFF * (p + q):
            return f, g
        a, b = self.price_a, self.price_b
        t = self._room(g, self.q, b, f, a) if p > q else -self._room(f, self.p, a, g, b)
        return np.clip(f + t, -a, a), np.clip(g - t, -b, b)

    def _room(self, f: Vector, weights: Vector, price: float, g: Vector, other: float) -> float:
        """Return by how much f can be lowered and g raised; a side that is kept has no bound.

        Where there is no mass f stays as low as it can be: exponents must not become positive.
        """
        used, room = weights > 0, math.inf
        if other < math.inf:
            room = other - float(g.max())
        if price < math.inf:
            room = min(room, price + float(f[used].min()))
            if not used.all():
                room = min(room, price + self.geometry.bounds[0] - float(g.max()))
        return max(room, 0.0)
