r"""Partial transport: a given mass is moved, and the rest stays where it is.

.. math:: \min_X \langle M, X\rangle \quad X 1 \le a,\; X^\top 1 \le b,\; 1^\top X 1 = s,\; X \ge 0

Its dual is :math:`\max \langle f, a\rangle + \langle g, b\rangle + s\mu` over :math:`f, g \le 0`,
:math:`f_i + g_j + \mu \le M_{ij}`. Methods see a balanced problem with a dummy source and a dummy
target, at no cost; between these two nothing is ever sent at any cost, since the costs
begin at 0. So no penalty enters: plan and potentials are made feasible, and priced, without them.
No row or column carries more than s, so that methods see weights of at most s: the mass that stays
does not drown a small mass that is moved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from .._types import Potentials, Vector
from ..arguments import check_positive
from ..errors import CertificateError, InvalidProblem
from ..geometry import as_geometry
from ..kernels.proof import SMALLEST, to_user
from ..kernels.vectors import below, dot, exp, log, shortfall, shrink
from .balanced import DEFAULT_ENTROPIC_GAP, check_regularisation
from .duals import free_slopes, softmin
from .kinds import UserProblem
from .objective import BUG_NOTE, Objective, Slopes, linear
from .plan import Core, Correction, Plan
from .problem import BestPotential, Clipped, Problem, check_size, checked_weights, scaled_problem
from .rounding import Rounded, remove_overflow, round_on_arcs
from .support import Dummies, Support


@dataclass(frozen=True)
class PartialTuning:
    """Limits of partial problems."""

    # Largest missing share of the mass at which a plan is scaled instead of completed.
    max_scaled_shortfall: float = 1e-14
    # Relative excess of the mass to move over the totals that counts as round-off.
    mass_rtol: float = 1e-12
    min_share: float = 1e-250  # smallest share of the total mass that can be moved


TUNING = PartialTuning()


@dataclass(frozen=True)
class PartialTransport(Objective):
    """min <C, X> over plans of mass ``share``."""

    share: float

    quantity: ClassVar[str] = "partial transport cost"
    paper_refusal: ClassVar[str | None] = (
        "stop='paper' follows procedures for balanced problems; leave it out with mass."
    )

    @property
    def shift(self) -> float:
        """The offset of the costs, for the mass that is moved."""
        return self.problem.offset * self.share

    @property
    def size(self) -> float:
        """The largest cost."""
        return self.problem.cost_max

    @property
    def round_off_size(self) -> float:
        """The largest cost, for the mass that is moved."""
        return self.share * self.size

    @property
    def scale(self) -> float:
        """The largest cost before the shift, for the mass that is moved."""
        return self.share * super().scale

    @property
    def optimum_scale(self) -> float:
        """The same."""
        return self.scale

    @property
    def feasible_mass(self) -> float:
        """The share."""
        return self.share

    def support(self) -> Support:
        """Return the balanced problem with dummies."""
        inner = Support.of(self.problem)
        p, q = (np.minimum(x, self.share) for x in (inner.problem.p, inner.problem.q))
        appears, vanishes = (max(float(x.sum()) - self.share, 0.0) for x in (q, p))
        p, q = np.append(p, appears), np.append(q, vanishes)
        corner = inner.problem.cost_max or 1.0
        costs = np.zeros(p.size - 1), np.zeros(q.size - 1), corner
        total = float(p.sum())
        if total > 1 - TUNING.max_scaled_shortfall:
            return Dummies.added_to(inner, costs, (p, q))
        return DummiesOfLowerMass.added_to(inner, costs, (p, q), total=total)

    # -- plans -------------------------------------------------------------------------------

    def value(self, plan: Plan, cost: float) -> float:
        """Return <C, X>."""
        return cost

    def to_user_cost(self, cost: float) -> float:
        """Return <C, X> in the user's units."""
        problem = self.problem
        return to_user(cost, problem.offset * self.share, problem.mass, problem.unit)

    def rounded(self, core: Core) -> Rounded:
        """Round any matrix to a plan of mass ``share`` with marginals of at most p and q.

        Rows, then columns, that carry too much are scaled down; then all is scaled down to the
        share, or what is missing is added where something is left, as a rank-one term.
        """
        p, q, share = self.problem.p, self.problem.q, self.share
        core, r, c = remove_overflow(core, p)
        if self.problem.geometry.allowed is not None:
            problem = self.problem
            return round_on_arcs(core, p, q, problem.geometry, problem.mass, share)
        s, t, e, d = (np.empty_like(x) for x in (p, q, p, q))
        error = float(np.maximum(r - p, 0).sum() + np.maximum(c - q, 0).sum())
        error += abs(float(r.sum()) - share)
        shrink(r, p, s)
        c = core.cols(s)
        shrink(c, q, t)
        total = dot(t, c)
        if total >= share * (1 - TUNING.max_scaled_shortfall):
            s *= share / total
            e[:], d[:] = 0.0, 0.0
        else:
            d /= shortfall(c, t, q, d)
        mass, cost, shipped = core.price(self.problem.geometry, t, d)
        if total < share * (1 - TUNING.max_scaled_shortfall):
            e *= (share - total) / shortfall(mass, s, p, e)
        plan = Plan(core, Correction(s, t, e, d))
        return Rounded(plan, plan.priced(cost, shipped), error)

    def infeasibility(self, plan: Plan) -> float:
        """Return the excess of marginals and the error of the mass, relative to the share."""
        r, c = plan.marginals()
        p, q = self.problem.p, self.problem.q
        excess = np.maximum(r - p, 0).sum() + np.maximum(c - q, 0).sum()
        return float(excess + abs(r.sum() - self.share)) / self.share

    # -- potentials --------------------------------------------------------------------------

    def row_potential(self, g: Vector) -> Vector:
        """Return the c-transform of a column potential, shifted to be nonpositive."""
        return self.problem.geometry.ctransform_rows(g - g.max())

    def dual(self, f: Vector) -> tuple[Potentials, float]:
        """Make any row potential feasible; return both potentials and the bound they prove."""
        problem, geometry = self.problem, self.problem.geometry
        k = geometry.ctransform_cols(f - f.max())
        g = np.minimum(k - quantile(k, problem.q, self.share), 0.0)
        h = geometry.ctransform_rows(g)
        f = np.minimum(h - quantile(h, problem.p, self.share), 0.0)
        return (f, g), self._bound((f, g), h)

    def dual_value(self, potentials: Potentials) -> float:
        """Return the bound of nonpositive potentials with the optimal µ."""
        f, g = potentials
        if not (f.max() <= 0 and g.max() <= 0):
            raise CertificateError(f"a potential is positive. {BUG_NOTE}")
        return self._bound(potentials, self.problem.geometry.ctransform_rows(g))

    def _bound(self, potentials: Potentials, h: Vector) -> float:
        """Return <p, f> + <q, g> + share µ, where µ = min h - f and h is the c-transform of g."""
        error = self.problem.geometry.ctransform_error(h, potentials[1])
        µ = float(below(below(h - error) - potentials[0]).min())
        return linear(self.problem, potentials) + self.share * µ

    def mass_price(self, potentials: Potentials, lower: float) -> float:
        """Return µ, the derivative of the bound in the mass."""
        µ = (lower - linear(self.problem, potentials)) / self.share
        return self.problem.unit * (µ + self.shift / self.share)

    def from_user(self, f: Vector) -> Vector:
        """Return a row potential in internal units."""
        return f / self.problem.unit

    @property
    def slopes(self) -> Slopes | None:
        """The potentials themselves, since weights are free."""
        return free_slopes

    def to_user_potentials(self, potentials: Potentials) -> Potentials:
        """Return nonpositive potentials in the user's units."""
        f, g = potentials
        return self.problem.unit * f, self.problem.unit * g


@dataclass(frozen=True)
class DummiesOfLowerMass(Dummies):
    """Dummies for lowered weights: methods see plans of mass 1 instead of ``total``."""

    total: float

    def without_dummies(self, core: Core, row: Vector) -> tuple[Core, Vector]:
        """Remove the dummies, and return to the unit of mass of the whole problem."""
        core, row = super().without_dummies(core, row)
        arcs = core.arcs()
        if arcs is None:
            return Plan(core, None, self.total), row
        return replace(arcs, flow=self.total * arcs.flow), row


def quantile(values: Vector, weights: Vector, share: float) -> float:
    """Return the weighted quantile of values at a share: the optimal µ."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order[min(int(np.searchsorted(reached, share)), values.size - 1)]])


@dataclass(frozen=True)
class EntropicPartial(PartialTransport):
    r"""min <C, X> - η H(X) over plans that move a share of the unit of mass.

    Its dual is :math:`\max \langle f, p\rangle + \langle g, q\rangle + sµ - η \sum e^{(f + g + µ -
    C)/η - 1}` over :math:`f, g \le 0`. The best µ for f and g has a closed form. The best rows
    and µ together need a search among n numbers. Dummies would add entropies of their own, so that
    methods see the problem without them.
    """

    eta: float

    quantity: ClassVar[str] = "entropic partial objective"
    form: ClassVar[str] = Clipped.form
    is_entropic: ClassVar[bool] = True
    accuracy: ClassVar[str] = "tol"
    method_refusal: ClassVar[str] = (
        "solves other problems than mass with reg; use clipped_sinkhorn, which is what auto takes, "
        "or eps or rtol instead of reg."
    )
    default_method: ClassVar[tuple[str, str] | None] = (
        "clipped_sinkhorn",
        "it keeps the bounds of potentials",
    )

    @classmethod
    def of(cls, problem: Problem, share: float, reg: float) -> Self:
        """Return the objective for a user's regularisation, or raise InvalidProblem."""
        check_regularisation(reg, problem)
        exact = replace(problem, geometry=problem.geometry.exact)
        return cls(exact, share, reg / problem.unit)

    # -- facts that a run asks for ------------------------------------------------------------

    def support(self) -> Support:
        """Return the problem without rows and columns of negligible mass."""
        return Support.of(self.problem)

    def fixed_target(self, inner: Problem) -> PartialTarget:
        """Return the problem with this η."""
        return PartialTarget(inner.geometry, self.eta, inner.p, inner.q, self.share)

    @property
    def default_gap(self) -> float:
        """A share of the largest cost, for the mass that is moved."""
        return DEFAULT_ENTROPIC_GAP * self.scale

    @property
    def scale(self) -> float:
        """The largest cost, or the regularisation, for the mass that is moved."""
        return self.share * max(self.problem.scale, self.eta)

    @property
    def slack(self) -> float:
        """Error that the conversion to the user's units may add to a gap."""
        return max(super().slack, 1e-15 * self.share * self.eta)

    @property
    def shift(self) -> float:
        """The offset of the costs, and the change of H when the mass is not 1."""
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
        """Return the best row potential, after the columns are shifted to be nowhere positive."""
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
        """Return the bound of nonpositive potentials with the optimal µ."""
        f, g = potentials
        if not (f.max() <= 0 and g.max() <= 0):
            raise CertificateError(f"a potential is positive. {BUG_NOTE}")
        return self._entropic_bound(potentials, self.problem.geometry.lse_rows(g, self.eta))

    def mass_price(self, potentials: Potentials, lower: float) -> float:
        """Return µ; the bound counts η less for each unit of mass."""
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

    def best_rows(self, lse: Vector) -> BestPotential:
        """Return the best f <= 0 and µ together."""
        return best_clipped(softmin(self.log_p, lse, self.eta), self.p, self.share, self.eta)

    def best_cols(self, lse: Vector) -> BestPotential:
        """Return the best g <= 0 and µ together."""
        return best_clipped(softmin(self.log_q, lse, self.eta), self.q, self.share, self.eta)


def best_clipped(h: Vector, weights: Vector, share: float, eta: float) -> BestPotential:
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
    return BestPotential(np.minimum(h - level, 0.0), level)


@dataclass(frozen=True)
class Partial:
    """The mass to move."""

    mass: float

    def __post_init__(self) -> None:
        """Reject a mass that is not a positive number."""
        object.__setattr__(self, "mass", check_positive("mass", self.mass))
        if not self.mass >= SMALLEST:
            raise InvalidProblem(
                f"mass is {self.mass:.3g}; it must be at least {SMALLEST:.0e} for float64 to hold "
                "parts of it (rescale the weights)."
            )

    @property
    def keywords(self) -> dict[str, object]:
        """The keywords that ask for it."""
        return {"mass": self.mass}

    def problem(self, given: UserProblem) -> Problem:
        """Return a problem whose unit of mass is what sources, targets and dummies have."""
        geometry = as_geometry(given.M)
        p, q = checked_weights(geometry, given.a, given.b, normalize=given.normalize)
        totals = float(p.sum()), float(q.sum())
        if not self.mass <= min(totals) * (1 + TUNING.mass_rtol):
            raise InvalidProblem(
                f"mass is {self.mass:.10g}, a sums to {totals[0]:.10g} and b to {totals[1]:.10g}; "
                "no more can be moved than either has (pass a smaller mass)."
            )
        unit = max(sum(totals) - self.mass, *totals)
        can_shift = given.can_shift or geometry.bounds[0] < 0
        return scaled_problem(geometry, p / unit, q / unit, unit, can_shift=can_shift)

    def objective(self, problem: Problem, reg: float | None) -> PartialTransport:
        """Return the cost of the mass that is moved, or the entropic objective."""
        check_size(problem.unit * problem.scale, self.mass, "mass is")
        share = min(self.mass / problem.mass, float(problem.p.sum()), float(problem.q.sum()))
        if not share >= TUNING.min_share:
            raise InvalidProblem(
                f"mass is {self.mass:.3g} and the weights sum to {problem.mass:.3g}; float64 takes "
                f"shares down to {TUNING.min_share:.0e} (lower the weights: none needs to exceed "
                "mass)."
            )
        if reg is not None and problem.geometry.allowed is not None:
            raise InvalidProblem(
                "mass and reg were given and the cost forbids some pairs; whether the arcs can "
                "take the mass is proved without an entropy only (leave out reg)."
            )
        if reg is not None:
            return EntropicPartial.of(problem, share, reg)
        return PartialTransport(problem, share)
