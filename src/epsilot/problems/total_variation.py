r"""Unbalanced transport with total variation penalties on the marginals.

.. math:: \min_{X \ge 0} \langle M, X\rangle + λ_a \|X 1 - a\|_1 + λ_b \|X^\top 1 - b\|_1

Its dual is :math:`\max \langle f, a\rangle + \langle g, b\rangle` over :math:`f \oplus g \le M`,
:math:`|f| \le λ_a`, :math:`|g| \le λ_b`. Methods see a balanced problem with two dummies: mass that
vanishes goes to one, mass that appears comes from the other. A price is never above that of a
detour: filling target j beyond what there is, from the source that is nearest to it, costs
λ_a + min_i M_ij instead of λ_b. Mass that takes the detour is put back into the plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy import sparse

from .._types import Index, Potentials, Vector
from ..errors import CertificateError, InvalidProblem
from ..geometry import Geometry
from ..kernels.proof import ROUND_OFF
from ..kernels.vectors import below, exp, finite_dot
from .balanced import DEFAULT_ENTROPIC_GAP, check_regularisation
from .certificate import BUG_NOTE, MIN_DEFAULT_GAP
from .duals import free_slopes, softmin
from .kullback_leibler import rounding_factor
from .objective import Slopes
from .plan import Arcs, Core, Plan, add_arcs
from .problem import BestPotential, Clipped, Problem
from .rounding import Rounded, remove_overflow
from .support import Dummies, Support
from .unbalanced_base import (
    HIGH_PENALTY_RATIO,
    MAX_GROWTH_EXPONENT,
    ROUNDING,
    UnbalancedObjective,
    check_growth,
    in_ordinary_units,
    internal_prices,
)

#: Methods see penalties above HIGH_PENALTY_RATIO times the largest cost lowered to this multiple.
LOWERED_PENALTY_RATIO = 4.0
#: Relative margin between the bounds of potentials and the penalties, for round-off.
BOUND_MARGIN = 16 * float(np.finfo(float).eps)


@dataclass(frozen=True)
class TotalVariation(UnbalancedObjective):
    """min <C, X> + λ_a ‖X 1 - p‖₁ + λ_b ‖Xᵀ 1 - q‖₁; λ = ∞ requires an exact marginal."""

    quantity: ClassVar[str] = "unbalanced transport cost (TV)"

    @classmethod
    def of(cls, problem: Problem, price_a: float, price_b: float) -> TotalVariation:
        """Return the objective for a user's penalties, or raise if it is unbounded."""
        problem = in_ordinary_units(problem, price_a, price_b)
        missed = abs(float(problem.p.sum() - problem.q.sum()))
        a, b = internal_prices(problem, price_a, price_b, missed=missed)
        low = problem.geometry.bounds[0]
        if low < -(a + b):
            raise InvalidProblem(
                f"the least cost is {problem.unit * low:.6g} and mass is created for "
                f"{price_a + price_b:.6g}; the optimum is -inf (pass larger unbalanced, or costs "
                "above its negative sum)."
            )
        return cls(problem, a, b)

    def support(self) -> Support:
        """Return the balanced problem with dummies."""
        problem = self.problem
        detours = Detours.of(problem.geometry, self.price_a, self.price_b)
        p, q = problem.p, problem.q
        return WithDetours.added_to(
            Support.all(problem),
            (detours.to_rows, detours.to_cols, 0.0),
            (np.append(p, q.sum()), np.append(q, p.sum())),
            detours=detours,
        )

    # -- plans -------------------------------------------------------------------------------

    def value(self, plan: Plan, cost: float) -> float:
        """Return the objective of a plan with the required exact marginals."""
        r, c = plan.marginals()
        of_rows = self._paid(self.price_a, r, self.problem.p)
        return cost + of_rows + self._paid(self.price_b, c, self.problem.q)

    def _paid(self, price: float, sums: Vector, weights: Vector) -> float:
        """Return the penalty of a side and of its round-off; 0 for an exact marginal."""
        if price == math.inf:
            return 0.0
        missing = np.abs(sums - weights)
        rounding = ROUNDING * np.where(missing > 0, weights, 0.0)
        return price * float((missing + rounding).sum())

    def rounded(self, core: Core) -> Rounded:
        """Return the plan, scaled to the exact marginal that is required."""
        p, q = self.problem.p, self.problem.q
        core, *_ = remove_overflow(core, p)
        correction, error = self.keeping(core, np.ones_like(p), np.ones_like(q))
        _, cost, shipped = core.price(self.problem.geometry, correction.t, correction.d)
        plan = Plan(core, correction)
        return Rounded(plan, plan.priced(cost, shipped), error)

    def infeasibility(self, plan: Plan) -> float:
        """Return the error of the exact marginals as a share of all mass."""
        r, c = plan.marginals()
        kept = (self.price_a, r - self.problem.p), (self.price_b, c - self.problem.q)
        missed = sum(np.abs(x).sum() for price, x in kept if price == math.inf)
        return float(missed) / self.total

    # -- potentials --------------------------------------------------------------------------

    def row_potential(self, g: Vector) -> Vector:
        """Return the c-transform."""
        return self.problem.geometry.ctransform_rows(np.clip(g, -self.price_b, self.price_b))

    @property
    def round_off_size(self) -> float:
        """The largest cost, or else the largest penalty, times the total mass."""
        return self.total * self.cost_size or self.total * self.size

    @property
    def _slack(self) -> float:
        """Margin between potentials and penalties that covers round-off."""
        # Neighbouring floats are not both whole numbers, which some geometries do not round.
        large, (n, m) = math.sqrt(2) * self.size, self.problem.shape
        f, g = np.full(n, large), np.full(m, math.nextafter(large, math.inf))
        return BOUND_MARGIN * self.size + 4 * self.problem.geometry.ctransform_error(f, g)

    def dual(self, f: Vector) -> tuple[Potentials, float]:
        """Make any row potential feasible; return both potentials and the bound they prove.

        Methods see lower prices where they are much above the costs: potentials near the prices
        have then to be raised or lowered by as much.
        """
        excess = price_excess(self.price_a, self.price_b, self.cost_size)
        shifts = (0.0, excess, -excess) if excess > 0 else (0.0,)
        found = [self._dual(f + shift) for shift in shifts]
        return max(found, key=lambda pair: pair[1])

    def _dual(self, f: Vector) -> tuple[Potentials, float]:
        geometry, slack = self.problem.geometry, self._slack
        nearest = geometry.ctransform_rows(np.zeros(geometry.shape[1]))
        ceiling = np.minimum(self.price_a, self.price_b + nearest)
        f = np.clip(f, -self.price_a + slack, ceiling - slack)
        g = np.minimum(geometry.ctransform_cols(f), self.price_b)
        f = np.minimum(geometry.ctransform_rows(g), self.price_a)
        f = below(f - geometry.ctransform_error(f, g))
        return (f, g), self._bound(f, g)

    def dual_value(self, potentials: Potentials) -> float:
        """Return the bound of potentials that respect costs and penalties."""
        f, g = potentials
        if not (self.problem.geometry.ctransform_rows(g) >= f).all():
            raise CertificateError(f"the potentials exceed the costs. {BUG_NOTE}")
        if not (f.min() >= -self.price_a and g.min() >= -self.price_b):
            raise CertificateError(f"a potential is below minus the marginal penalty. {BUG_NOTE}")
        return self._bound(f, g)

    def _bound(self, f: Vector, g: Vector) -> float:
        """Return <p, f> + <q, g> with potentials clipped to the penalties from above."""
        p, q = self.problem.p, self.problem.q
        f, g = np.minimum(f, self.price_a), np.minimum(g, self.price_b)
        rounding = ROUNDING * (finite_dot(p, np.abs(f)) + finite_dot(q, np.abs(g)))
        return finite_dot(p, f) + finite_dot(q, g) - rounding

    @property
    def slopes(self) -> Slopes | None:
        """The potentials themselves, since weights are free."""
        return free_slopes


def price_excess(price_a: float, price_b: float, cost: float) -> float:
    """Return the excess of the penalties over those that already make all mass move.

    Where they exceed half of all costs, no mass vanishes while other mass appears, so that optimal
    plans do not depend on how large they are; methods keep the digits of costs.
    """
    a, b = lowered_prices(price_a, price_b, cost)
    return min(price_a, price_b) - min(a, b)


def lowered_prices(price_a: float, price_b: float, cost: float) -> tuple[float, float]:
    """Lower both penalties by the same amount, without a change of the optimal plans."""
    least = min(price_a, price_b)
    if not 0 < HIGH_PENALTY_RATIO * cost < least:
        return price_a, price_b
    return LOWERED_PENALTY_RATIO * cost + (price_a - least), LOWERED_PENALTY_RATIO * cost + (
        price_b - least
    )


@dataclass(frozen=True)
class Detours:
    """Costs of removing and creating mass, and the arcs of cheaper detours."""

    to_rows: Vector  # from each source to the dummy target
    to_cols: Vector  # from the dummy source to each target
    rows: Index  # sources whose surplus goes to the target that is nearest to them
    rows_to: Index
    cols: Index  # targets that are filled beyond what there is, and the sources nearest to them
    cols_from: Index

    @classmethod
    def of(cls, geometry: Geometry, price_a: float, price_b: float) -> Detours:
        """Return the cheapest ways to remove and to create mass."""
        n, m = geometry.shape
        price_a, price_b = lowered_prices(price_a, price_b, max(abs(x) for x in geometry.bounds))
        over_rows = price_b + geometry.ctransform_rows(np.zeros(m))
        over_cols = price_a + geometry.ctransform_cols(np.zeros(n))
        rows, cols = np.flatnonzero(over_rows < price_a), np.flatnonzero(over_cols < price_b)
        return cls(
            np.minimum(price_a, over_rows),
            np.minimum(price_b, over_cols),
            rows,
            _nearest_targets(geometry, rows),
            cols,
            _nearest_sources(geometry, cols),
        )

    def restored(self, completed: Core, core: Core) -> Core:
        """Add the flow of the detours to a core, given the core with dummies."""
        n, m = core.shape
        vanishing = completed.rows(np.eye(1, m + 1, m)[0])[self.rows]
        appearing = completed.cols(np.eye(1, n + 1, n)[0])[self.cols]
        i, j = np.append(self.rows, self.cols_from), np.append(self.rows_to, self.cols)
        # Both detours may take the same arc.
        flow = sparse.coo_array((np.append(vanishing, appearing), (i, j)), shape=(n, m))
        return add_arcs(core, Arcs.of(flow).above(0.0))


@dataclass(frozen=True)
class WithDetours(Dummies):
    """Dummies that also stand for detours."""

    detours: Detours

    def without_dummies(self, core: Core, row: Vector) -> tuple[Core, Vector]:
        """Remove the dummies, and shift the dummy target's potential to 0."""
        level = min(float((self.detours.to_rows - row[:-1]).min()), -float(row[-1]))
        kept = core.cropped(self.inner.problem.geometry, self.raised)
        return self.detours.restored(core, kept), row[:-1] + level


def _nearest_targets(geometry: Geometry, rows: Index) -> Index:
    """Return the nearest target of each source."""
    if rows.size == 0:
        return rows
    return geometry.k_least(rows, np.zeros(geometry.shape[1]), 1)[0][:, 0]


def _nearest_sources(geometry: Geometry, cols: Index) -> Index:
    """Return the nearest source of each target."""
    best, out = np.full(cols.size, np.inf), np.zeros(cols.size, dtype=np.int64)
    if cols.size:
        for start, _, C in geometry.blocks():
            rows = np.argmin(C[:, cols], axis=0)
            costs = C[rows, cols]
            nearer = costs < best
            best[nearer], out[nearer] = costs[nearer], rows[nearer] + start
    return out


@dataclass(frozen=True)
class EntropicTotalVariation(TotalVariation):
    r"""min <C, X> + λ_a ‖X 1 - p‖₁ + λ_b ‖Xᵀ 1 - q‖₁ - η H(X).

    Its dual is :math:`\max \langle f, p\rangle + \langle g, q\rangle - η \sum e^{(f + g - C)/η -
    1}` over :math:`|f| \le λ_a`, :math:`|g| \le λ_b`. The best rows, or columns, are those of
    Sinkhorn, clipped.
    """

    eta: float

    quantity: ClassVar[str] = "entropic unbalanced objective (TV)"
    form: ClassVar[str] = Clipped.form
    is_entropic: ClassVar[bool] = True
    accuracy: ClassVar[str] = "tol"
    method_refusal: ClassVar[str] = (
        "solves other problems than unbalanced_type='tv' with reg; use clipped_sinkhorn, which is "
        "what auto takes, or eps or rtol instead of reg."
    )
    default_method: ClassVar[tuple[str, str] | None] = (
        "clipped_sinkhorn",
        "it keeps the bounds of potentials",
    )

    @classmethod
    def with_entropy(cls, problem: Problem, price_a: float, price_b: float, reg: float) -> Self:
        """Return the objective for a user's penalties and regularisation.

        The entropy of a plan of another mass is no multiple of its own, so that the masses are the
        user's.
        """
        check_regularisation(reg, problem)
        p, q = problem.mass * problem.p, problem.mass * problem.q
        exact = replace(problem, geometry=problem.geometry.exact, p=p, q=q, mass=1.0)
        prices, eta = internal_prices(problem, price_a, price_b, reg), reg / problem.unit
        check_growth(problem, prices, sum(prices) / MAX_GROWTH_EXPONENT + eta)
        return cls(exact, *prices, eta)

    # -- what a run needs to know ------------------------------------------------------------

    def support(self) -> Support:
        """Return the whole problem: plans may put mass on empty rows and columns."""
        return Support.all(self.problem)

    def fixed_target(self, inner: Problem) -> VariationTarget:
        """Return the problem with its penalties."""
        prices = self.price_a, self.price_b
        return VariationTarget(inner.geometry, self.eta, inner.p, inner.q, *prices)

    @property
    def default_gap(self) -> float:
        """A share of costs times masses."""
        return max(DEFAULT_ENTROPIC_GAP * self.round_off_size, MIN_DEFAULT_GAP * self.scale)

    @property
    def size(self) -> float:
        """The largest cost, penalty or regularisation, times the total mass."""
        return self.total * max(super().size, self.eta)

    @property
    def round_off_size(self) -> float:
        """The largest cost or regularisation, or else penalty, times the total mass."""
        return max(super().round_off_size, self.total * self.eta)

    # -- value and dual ----------------------------------------------------------------------

    def value(self, plan: Plan, cost: float) -> float:
        """Return the objective of a plan with the required exact marginals."""
        return super().value(plan, cost) - self.eta * plan.entropy()

    def row_potential(self, g: Vector) -> Vector:
        """Return the optimal row potential."""
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
        """Return the bound of potentials that are nowhere below minus the penalty."""
        f, g = potentials
        if not (f.min() >= -self.price_a and g.min() >= -self.price_b):
            raise CertificateError(f"a potential is below minus the marginal penalty. {BUG_NOTE}")
        lse = self.problem.geometry.lse_rows(g, self.eta) - 1
        mass = float(exp(f / self.eta + lse).sum()) * rounding_factor(f, g, self.eta)
        bound = self._bound(f, g) - self.eta * mass
        return bound if bound > -math.inf else -math.inf


@dataclass(frozen=True)
class VariationTarget(Clipped):
    """The entropic problem in total variation."""

    price_a: float
    price_b: float

    def best_rows(self, lse: Vector) -> BestPotential:
        """Return the exact row update, clipped to the penalty."""
        h = softmin(self.log_p, lse, self.eta)
        return BestPotential(np.clip(h, -self.price_a, self.price_a), 0.0)

    def best_cols(self, lse: Vector) -> BestPotential:
        """Return the exact column update, clipped to the penalty."""
        k = softmin(self.log_q, lse, self.eta)
        return BestPotential(np.clip(k, -self.price_b, self.price_b), 0.0)

    def translated(self, f: Vector, g: Vector) -> Potentials:
        """Return (f + t, g - t) with the optimal t within the penalties.

        A constant between them changes the dual by what one side has more mass than the other.
        """
        p, q = float(self.p.sum()), float(self.q.sum())
        if abs(p - q) <= ROUND_OFF * (p + q):
            return f, g
        a, b = self.price_a, self.price_b
        t = (
            self._largest_shift(g, self.q, b, f, a)
            if p > q
            else -self._largest_shift(f, self.p, a, g, b)
        )
        return np.clip(f + t, -a, a), np.clip(g - t, -b, b)

    def _largest_shift(
        self, f: Vector, weights: Vector, price: float, g: Vector, other: float
    ) -> float:
        """Return how far f can be lowered and g raised; an exact marginal sets no limit.

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
