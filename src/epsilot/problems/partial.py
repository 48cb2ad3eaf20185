r"""Partial transport: a given mass is moved, and the rest stays where it is.

.. math:: \min_X \langle M, X\rangle \quad X 1 \le a,\; X^\top 1 \le b,\; 1^\top X 1 = s,\; X \ge 0

Its dual is :math:`\max \langle f, a\rangle + \langle g, b\rangle + s\mu` over :math:`f, g \le 0`,
:math:`f_i + g_j + \mu \le M_{ij}`. Methods see a balanced problem with a dummy source and a dummy
target, at no cost; between these two nothing is ever sent, whatever it costs, since the costs
begin at 0. So no penalty enters: plan and potentials are made feasible, and priced, without them.
No row or column carries more than s, so that methods see weights of at most s: the mass that stays
does not drown a small mass that is moved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from .._types import Potentials, Vector
from ..errors import CertificateError
from ..kernels.proof import to_user
from ..kernels.vectors import below, dot, shortfall, shrink
from .certificate import BUG
from .duals import as_they_are
from .dummies import Dummies
from .objective import Objective, Slopes, linear
from .plan import Around, Core, Plan
from .rounding import Rounded, tame
from .support import Support

#: Share of the mass that may be missing of a plan for it to be scaled instead of completed.
MISSING = 1e-14


@dataclass(frozen=True)
class PartialTransport(Objective):
    """min <C, X> over plans that move a share of the unit of mass."""

    share: float

    quantity: ClassVar[str] = "partial transport cost"
    unpublished: ClassVar[str | None] = (
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
    def movable(self) -> float:
        """The share."""
        return self.share

    def support(self) -> Support:
        """Return the balanced problem with dummies, and the way back from it."""
        inner = Support.of(self.problem)
        p, q = (np.minimum(x, self.share) for x in (inner.problem.p, inner.problem.q))
        appears, vanishes = (max(float(x.sum()) - self.share, 0.0) for x in (q, p))
        p, q = np.append(p, appears), np.append(q, vanishes)
        corner = inner.problem.cost_max or 1.0
        costs = np.zeros(p.size - 1), np.zeros(q.size - 1), corner
        total = float(p.sum())
        if total > 1 - MISSING:
            return Dummies.around(inner, costs, (p, q))
        return OfLowerMass.around(inner, costs, (p, q), total=total)

    # -- plans -------------------------------------------------------------------------------

    def value(self, plan: Plan, cost: float) -> float:
        """Return <C, X>."""
        return cost

    def to_user_cost(self, cost: float) -> float:
        """Return <C, X> in the user's units."""
        problem = self.problem
        return to_user(cost, problem.offset * self.share, problem.mass, problem.unit)

    def rounded(self, core: Core) -> Rounded:
        """Return a plan that moves the share, and no more than there is, near any matrix.

        Rows, then columns, that carry too much are scaled down; then all is scaled down to the
        share, or what is missing is added where something is left, as a rank-one term.
        """
        p, q, share = self.problem.p, self.problem.q, self.share
        core, r, c = tame(core, p)
        s, t, e, d = (np.empty_like(x) for x in (p, q, p, q))
        error = float(np.maximum(r - p, 0).sum() + np.maximum(c - q, 0).sum())
        error += abs(float(r.sum()) - share)
        shrink(r, p, s)
        c = core.cols(s)
        shrink(c, q, t)
        total = dot(t, c)
        if total >= share * (1 - MISSING):
            s *= share / total
            e[:], d[:] = 0.0, 0.0
        else:
            d /= shortfall(c, t, q, d)
        mass, cost, shipped = core.price(self.problem.geometry, t, d)
        if total < share * (1 - MISSING):
            e *= (share - total) / shortfall(mass, s, p, e)
        plan = Plan(core, Around(s, t, e, d))
        return Rounded(plan, plan.priced(cost, shipped), error)

    def infeasibility(self, plan: Plan) -> float:
        """Return the share of what is moved by which a plan takes, brings or moves too much."""
        r, c = plan.marginals()
        p, q = self.problem.p, self.problem.q
        excess = np.maximum(r - p, 0).sum() + np.maximum(c - q, 0).sum()
        return float(excess + abs(r.sum() - self.share)) / self.share

    # -- potentials --------------------------------------------------------------------------

    def row_potential(self, g: Vector) -> Vector:
        """Return the c-transform of a column potential that is nowhere positive."""
        return self.problem.geometry.ctransform_rows(g - g.max())

    def dual(self, f: Vector) -> tuple[Potentials, float]:
        """Return feasible potentials made from any row potential, and the bound they prove."""
        problem, geometry = self.problem, self.problem.geometry
        k = geometry.ctransform_cols(f - f.max())
        g = np.minimum(k - quantile(k, problem.q, self.share), 0.0)
        h = geometry.ctransform_rows(g)
        f = np.minimum(h - quantile(h, problem.p, self.share), 0.0)
        return (f, g), self._bound((f, g), h)

    def dual_value(self, potentials: Potentials) -> float:
        """Return the bound of potentials that are nowhere positive, with the best µ."""
        f, g = potentials
        if not (f.max() <= 0 and g.max() <= 0):
            raise CertificateError(f"a potential is positive. {BUG}")
        return self._bound(potentials, self.problem.geometry.ctransform_rows(g))

    def _bound(self, potentials: Potentials, h: Vector) -> float:
        """Return <p, f> + <q, g> + share µ, where µ = min h - f and h is the c-transform of g."""
        error = self.problem.geometry.ctransform_error(h, potentials[1])
        µ = float(below(below(h - error) - potentials[0]).min())
        return linear(self.problem, potentials) + self.share * µ

    def mass_price(self, potentials: Potentials, lower: float) -> float:
        """Return µ, which is what the bound has beside <p, f> + <q, g> for each unit of mass."""
        µ = (lower - linear(self.problem, potentials)) / self.share
        return self.problem.unit * (µ + self.shift / self.share)

    def from_user(self, f: Vector) -> Vector:
        """Return a row potential in internal units."""
        return f / self.problem.unit

    @property
    def slopes(self) -> Slopes | None:
        """The potentials: weights are free."""
        return as_they_are

    def to_user_potentials(self, potentials: Potentials) -> Potentials:
        """Return potentials in the user's units, nowhere positive."""
        f, g = potentials
        return self.problem.unit * f, self.problem.unit * g


@dataclass(frozen=True)
class OfLowerMass(Dummies):
    """Dummies beside weights that were lowered: methods see plans of mass 1, not of ``total``."""

    total: float

    def without_dummies(self, core: Core, row: Vector) -> tuple[Core, Vector]:
        """Return what is left of a plan, in the unit of mass of the whole problem."""
        core, row = super().without_dummies(core, row)
        arcs = core.arcs()
        if arcs is None:
            return Plan(core, None, self.total), row
        return replace(arcs, flow=self.total * arcs.flow), row


def quantile(values: Vector, weights: Vector, share: float) -> float:
    """Return the least value up to which the weights reach a share, which is the best µ."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order[min(int(np.searchsorted(reached, share)), values.size - 1)]])
