r"""Unbalanced transport with total variation penalties on the marginals.

.. math:: \min_{X \ge 0} \langle M, X\rangle + \sum λ_a |X 1 - a| + \sum λ_b |X^\top 1 - b|

λ is one number for its side, or one per point. Its dual is
:math:`\max \langle f, a\rangle + \langle g, b\rangle` over :math:`f \oplus g \le M`,
:math:`|f| \le λ_a`, :math:`|g| \le λ_b`. Methods see a balanced problem with two dummies: mass that
vanishes goes to one, mass that appears comes from the other. A price is never above that of a
detour: filling target j beyond what there is, from the source that is cheapest for it, costs
min_i λ_a,i + M_ij instead of λ_b,j. Mass that takes the detour is put back into the plan.
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
from .duals import free_slopes, softmin
from .kullback_leibler import rounding_factor
from .objective import BUG_NOTE, MIN_DEFAULT_GAP, Slopes
from .plan import Arcs, Core, Plan, add_arcs
from .prices import Price, highest, kept, least, per_point, weighed
from .problem import BestPotential, Clipped, PenalisedMarginals, Problem
from .rounding import Rounded, remove_overflow
from .support import Dummies, Support
from .unbalanced_base import (
    TUNING,
    UnbalancedObjective,
    check_growth,
    in_ordinary_units,
    internal_prices,
)


@dataclass(frozen=True)
class TotalVariation(UnbalancedObjective):
    """min <C, X> + λ_a ‖X 1 - p‖₁ + λ_b ‖Xᵀ 1 - q‖₁; λ = ∞ requires an exact marginal."""

    quantity: ClassVar[str] = "unbalanced transport cost (TV)"
    fills_empty_points: ClassVar[bool] = True

    @classmethod
    def of(cls, problem: Problem, price_a: Price, price_b: Price) -> TotalVariation:
        """Return the objective for a user's penalties, or raise if it is unbounded."""
        problem = in_ordinary_units(problem, price_a, price_b)
        missed = abs(float(problem.p.sum() - problem.q.sum()))
        a, b = internal_prices(problem, price_a, price_b, missed=missed)
        low = problem.geometry.bounds[0]
        if low < -(least(a) + least(b)) and is_unbounded(problem.geometry, a, b):
            raise InvalidProblem(
                f"the least cost is {problem.unit * low:.6g} and mass is created for "
                f"{least(price_a) + least(price_b):.6g}; the optimum is -inf (pass larger "
                "unbalanced, or costs above its negative sum)."
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

    @np.errstate(over="ignore", invalid="ignore")
    def value(self, plan: Plan, cost: float) -> float:
        """Return the objective of a plan with the required exact marginals."""
        r, c = plan.marginals()
        of_rows = self._paid(self.price_a, r, self.problem.p)
        return cost + of_rows + self._paid(self.price_b, c, self.problem.q)

    def _paid(self, price: Price, sums: Vector, weights: Vector) -> float:
        """Return the penalty of a side and of its round-off; 0 for exact points."""
        missing = np.abs(sums - weights)
        rounding = TUNING.rounding * np.where(missing > 0, weights, 0.0)
        return float(weighed(price, missing + rounding).sum())

    def rounded(self, core: Core) -> Rounded:
        """Return the plan, scaled to the exact marginals that are required."""
        p, q = self.problem.p, self.problem.q
        core, *_ = remove_overflow(core, p)
        return self.keeping(core, np.ones_like(p), np.ones_like(q))

    def infeasibility(self, plan: Plan) -> float:
        """Return the error of the exact marginals as a share of all mass."""
        r, c = plan.marginals()
        kept = (self.price_a, r - self.problem.p), (self.price_b, c - self.problem.q)
        missed = sum(np.where(np.isinf(price), np.abs(x), 0.0).sum() for price, x in kept)
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
        """Margin between potentials and penalties that covers the round-off of c-transforms."""
        # Neighbouring floats are not both whole numbers, which some geometries do not round.
        large, (n, m) = math.sqrt(2) * self.size, self.problem.shape
        f, g = np.full(n, large), np.full(m, math.nextafter(large, math.inf))
        error = self.problem.geometry.ctransform_error(f, g)
        return TUNING.bound_margin * self.cost_size + 4 * error

    def dual(self, f: Vector) -> tuple[Potentials, float]:
        """Make any row potential feasible; return both potentials and the bound they prove.

        Methods see lower prices where they are much above the costs: potentials near the prices
        have then to be raised or lowered by as much.
        """
        excess = price_excess(self.problem.geometry, self.price_a, self.price_b, self.cost_size)
        shifts = (0.0, excess, -excess) if excess > 0 else (0.0,)
        found = [self._dual(f + shift) for shift in shifts]
        return max(found, key=lambda pair: pair[1])

    def _dual(self, f: Vector) -> tuple[Potentials, float]:
        geometry, slack = self.problem.geometry, self._slack
        ceiling = np.minimum(self.price_a, cheapest_rows(geometry, self.price_b))
        margin = slack + TUNING.bound_margin * np.where(np.isinf(ceiling), 0.0, np.abs(ceiling))
        # Where the penalty is below its round-off, the violation that is left is charged.
        lowest = -self.price_a + np.minimum(
            slack + TUNING.bound_margin * weighed(self.price_a, np.ones_like(f)), self.price_a
        )
        f = np.maximum(np.minimum(f, ceiling - margin), lowest)
        g = np.minimum(geometry.ctransform_cols(f), self.price_b)
        f = np.minimum(geometry.ctransform_rows(g), self.price_a)
        f = below(f - geometry.ctransform_error(f, g))
        return (f, g), self._bound(f, g)

    def dual_value(self, potentials: Potentials) -> float:
        """Return the bound of potentials that respect costs and penalties."""
        f, g = potentials
        if not (self.problem.geometry.ctransform_rows(g) >= f).all():
            raise CertificateError(f"the potentials exceed the costs. {BUG_NOTE}")
        if not self._are_above(f, g, 4 * self._slack):
            raise CertificateError(f"a potential is below minus the marginal penalty. {BUG_NOTE}")
        return self._bound(f, g)

    def _are_above(self, f: Vector, g: Vector, slack: float = 0.0) -> bool:
        """Tell whether potentials are nowhere below minus the penalties."""
        are_above = (f >= -self.price_a - slack).all(), (g >= -self.price_b - slack).all()
        return all(are_above)

    def _excess(self, f: Vector, g: Vector) -> float:
        """Return how far potentials are below minus the penalties."""
        sides = (self.price_a, f), (self.price_b, g)
        return max(
            float(np.max(-kept(price, finite) - x[finite], initial=0.0))
            for price, x in sides
            for finite in [np.broadcast_to(np.isfinite(price), x.shape)]
        )

    def _bound(self, f: Vector, g: Vector) -> float:
        """Return <p, f> + <q, g> with potentials clipped to the penalties from above.

        Some optimal plan moves no more mass than both sides have. So potentials that are below
        minus the penalties prove the rest after a charge on that mass, once per side.
        """
        p, q = self.problem.p, self.problem.q
        charge = 2 * self.total * self._excess(f, g)
        f, g = np.minimum(f, self.price_a), np.minimum(g, self.price_b)
        rounding = TUNING.rounding * (finite_dot(p, np.abs(f)) + finite_dot(q, np.abs(g)))
        return finite_dot(p, f) + finite_dot(q, g) - rounding - charge

    @property
    def slopes(self) -> Slopes | None:
        """The potentials themselves, since weights are free."""
        return free_slopes


def is_unbounded(geometry: Geometry, price_a: Price, price_b: Price) -> bool:
    """Tell whether some arc costs less than minus the penalties at both its ends."""
    return bool((cheapest_rows(geometry, price_b) < -price_a).any())


def cheapest_rows(geometry: Geometry, price: Price) -> Vector:
    """Return min_j C_ij + λ_j."""
    if isinstance(price, np.ndarray):
        return geometry.ctransform_rows(-price)
    return price + geometry.ctransform_rows(np.zeros(geometry.shape[1]))


def cheapest_cols(geometry: Geometry, price: Price) -> Vector:
    """Return min_i C_ij + λ_i."""
    if isinstance(price, np.ndarray):
        return geometry.ctransform_cols(-price)
    return price + geometry.ctransform_cols(np.zeros(geometry.shape[0]))


def price_excess(geometry: Geometry, price_a: Price, price_b: Price, cost: float) -> float:
    """Return the excess of the penalties over those that already make all mass move.

    Where all exceed half of all costs, no mass vanishes while other mass appears on the other side,
    or on the same one, so that optimal plans do not depend on how large they are; methods keep the
    digits of costs. On arcs there is no excess: a way between two points may have many of them, or
    there may be none.
    """
    if geometry.allowed is not None:
        return 0.0
    lowest = min(least(price_a), least(price_b))
    is_high = 0 < TUNING.high_penalty_ratio * cost < lowest
    return lowest - TUNING.lowered_penalty_ratio * cost if is_high else 0.0


def lowered_prices(
    geometry: Geometry, price_a: Price, price_b: Price, cost: float
) -> tuple[Price, Price]:
    """Lower all penalties by the same amount, without a change of the optimal plans."""
    if not price_excess(geometry, price_a, price_b, cost) > 0:
        return price_a, price_b
    lowest, lowered = min(least(price_a), least(price_b)), TUNING.lowered_penalty_ratio * cost
    return lowered + (price_a - lowest), lowered + (price_b - lowest)


@dataclass(frozen=True)
class Detours:
    """Costs of removing and creating mass, and the arcs of cheaper detours."""

    to_rows: Vector  # from each source to the dummy target
    to_cols: Vector  # from the dummy source to each target
    rows: Index  # sources whose surplus goes to the target that takes it at the least cost
    rows_to: Index
    cols: Index  # targets that are filled beyond what there is, and the sources that do it
    cols_from: Index

    @classmethod
    def of(cls, geometry: Geometry, price_a: Price, price_b: Price) -> Detours:
        """Return the cheapest ways to remove and to create mass."""
        size = max(abs(x) for x in geometry.bounds)
        price_a, price_b = lowered_prices(geometry, price_a, price_b, size)
        over_rows, over_cols = cheapest_rows(geometry, price_b), cheapest_cols(geometry, price_a)
        rows, cols = np.flatnonzero(over_rows < price_a), np.flatnonzero(over_cols < price_b)
        # An arc to a dummy that costs this much has no flow if any plan does without it.
        forbidden = 4 * (size + highest(price_a, price_b))
        to_rows, to_cols = np.minimum(price_a, over_rows), np.minimum(price_b, over_cols)
        return cls(
            np.minimum(to_rows, forbidden) if isinstance(price_a, np.ndarray) else to_rows,
            np.minimum(to_cols, forbidden) if isinstance(price_b, np.ndarray) else to_cols,
            rows,
            _cheapest_targets(geometry, rows, price_b),
            cols,
            _cheapest_sources(geometry, cols, price_a),
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


def _cheapest_targets(geometry: Geometry, rows: Index, price: Price) -> Index:
    """Return the target of least C_ij + λ_j of each source."""
    if rows.size == 0:
        return rows
    prices = per_point(price, geometry.shape[1])
    size = max(abs(x) for x in geometry.bounds)
    finite = np.minimum(prices, 4 * (size + highest(price)))
    lowest = float(finite.min()) if not isinstance(price, np.ndarray) else 0.0
    return geometry.k_least(rows, finite - lowest, 1)[0][:, 0]


def _cheapest_sources(geometry: Geometry, cols: Index, price: Price) -> Index:
    """Return the source of least C_ij + λ_i of each target."""
    best, out = np.full(cols.size, np.inf), np.zeros(cols.size, dtype=np.int64)
    if cols.size:
        prices = per_point(price, geometry.shape[0])[:, None]
        for start, stop, C in geometry.blocks():
            priced = C[:, cols] + prices[start:stop]
            rows = np.argmin(priced, axis=0)
            costs = priced[rows, np.arange(cols.size)]
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
    def with_entropy(cls, problem: Problem, price_a: Price, price_b: Price, reg: float) -> Self:
        """Return the objective for a user's penalties and regularisation.

        The entropy of a plan of another mass is no multiple of its own, so that the masses are the
        user's.
        """
        check_regularisation(reg, problem)
        p, q = problem.mass * problem.p, problem.mass * problem.q
        exact = replace(problem, geometry=problem.geometry.exact, p=p, q=q, mass=1.0)
        prices, eta = internal_prices(problem, price_a, price_b, reg), reg / problem.unit
        check_growth(problem, prices, sum(map(least, prices)) / TUNING.max_growth_exponent + eta)
        return cls(exact, *prices, eta)

    # -- facts that a run asks for ------------------------------------------------------------

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
        return self.total * max(self.cost_size or super().size, self.eta)

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
        a, b, (n, m) = least(self.price_a), least(self.price_b), self.problem.shape
        low = max(min(geometry.bounds[0], 0.0), -(a + b))
        share = 1.0 if a == math.inf else 0.0 if b == math.inf else a / (a + b)
        potentials = np.full(n, share * low), np.full(m, (1 - share) * low)
        return potentials, self.dual_value(potentials)

    def dual_value(self, potentials: Potentials) -> float:
        """Return the bound of potentials that are nowhere below minus the penalty."""
        f, g = potentials
        if not self._are_above(f, g):
            raise CertificateError(f"a potential is below minus the marginal penalty. {BUG_NOTE}")
        lse = self.problem.geometry.lse_rows(g, self.eta) - 1
        mass = float(exp(f / self.eta + lse).sum()) * rounding_factor(f, g, self.eta)
        bound = self._bound(f, g) - self.eta * mass
        return bound if bound > -math.inf else -math.inf


@dataclass(frozen=True)
class VariationTarget(PenalisedMarginals, Clipped):
    """The entropic problem in total variation."""

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
        self, f: Vector, weights: Vector, price: Price, g: Vector, other: Price
    ) -> float:
        """Return how far f can be lowered and g raised; an exact marginal sets no limit.

        Where there is no mass f stays as low as it can be: exponents must not become positive.
        """
        used = weights > 0
        room = min(float((other - g).min()), float((kept(price, used) + f[used]).min()))
        if not used.all():
            lowest = least(per_point(price, f.size)[~used])
            room = min(room, lowest + self.geometry.bounds[0] - float(g.max()))
        return max(room, 0.0)
