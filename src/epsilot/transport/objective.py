"""The proof: a feasible plan above, a feasible dual below, recomputed from the result itself.

Nothing here trusts a solver. The plan is rounded onto the transport polytope and priced; the
potentials are made feasible; both in float64. Their values bracket the optimum, whatever the
method did. Each problem kind is an *objective* that owns its bracket: the value of a plan, the
feasible potentials near given ones, and the value of potentials.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._types import Potentials, Vector
from ..errors import CertificateError
from ..geometry import Geometry
from ..kernels.vectors import dot, exp, log
from .plan import Core, Plan
from .problem import Problem
from .rounding import round_onto

#: Relative accuracy of a bound: what a sum of float64 products may be off by.
ROUND_OFF = 1e-13
#: l1 distance from its marginals that a plan of mass 1 may have.
FEASIBLE = 1e-12

BUG = "This is a bug in epsilot; please report it with the problem."


@dataclass(frozen=True)
class Certificate:
    """The bracket ``lower <= OT <= upper`` proved for somebody's output.

    ``is_feasible`` tells whether the plan was feasible as given (to 1e-9 of the mass, in l1);
    ``upper`` is the cost of its rounding in any case.
    """

    upper: float
    lower: float
    gap: float
    marginal_error: float
    is_feasible: bool


class Bracket(NamedTuple):
    """One evaluation, in the problem's internal units."""

    plan: Plan
    upper: float
    potentials: Potentials
    lower: float
    marginal_error: float


class Proof(NamedTuple):
    """What a plan and potentials prove, in the problem's internal units."""

    upper: float
    lower: float
    cost: float  # <C, X>


@dataclass(frozen=True)
class Objective(ABC):
    """What is minimised over the plans of a problem, with the bounds that prove how well."""

    problem: Problem

    @property
    @abstractmethod
    def shift(self) -> float:
        """What the user's objective, per unit of mass, has beyond the internal one."""

    @property
    @abstractmethod
    def size(self) -> float:
        """Size of the numbers that are added up: round-off is a share of it."""

    @abstractmethod
    def value(self, plan: Plan, cost: float) -> float:
        """Return the objective of a feasible plan whose cost <C, X> is known."""

    @abstractmethod
    def row_potential(self, g: Vector) -> Vector:
        """Return the best row potential beside a column potential."""

    @abstractmethod
    def dual(self, f: Vector) -> tuple[Potentials, float]:
        """Return feasible potentials made from any row potential, and the bound they prove."""

    @abstractmethod
    def dual_value(self, potentials: Potentials) -> float:
        """Return the lower bound that potentials prove, or raise if they prove none."""

    @abstractmethod
    def to_user_potentials(self, potentials: Potentials) -> Potentials:
        """Return potentials in the user's units, as feasible as they were."""

    def bracket(self, core: Core, f: Vector) -> Bracket:
        """Return certified bounds on the optimum from any core plan and any row potential."""
        problem = self.problem
        plan, cost, error = round_onto(core, problem.p, problem.q, problem.geometry)
        upper = self.value(plan, cost)
        potentials, lower = self.dual(f)
        self.check(upper, lower)
        return Bracket(plan, upper, potentials, lower, error)

    def prove(self, plan: Plan, potentials: Potentials) -> Proof:
        """Return the bounds that this very plan and these potentials prove, or raise.

        Nothing is rounded or repaired: the plan must be feasible and so must the potentials.
        """
        problem = self.problem
        r, c = plan.marginals()
        error = float(np.abs(r - problem.p).sum() + np.abs(c - problem.q).sum())
        if not (error <= FEASIBLE and plan.is_nonnegative()):
            raise CertificateError(f"the plan misses its marginals by {error:.3g}. {BUG}")
        cost = plan.cost(problem.geometry)
        upper, lower = self.value(plan, cost), self.dual_value(potentials)
        self.check(upper, lower)
        return Proof(upper, lower, cost)

    def check(self, upper: float, lower: float) -> None:
        """Raise unless two bounds are finite and do not contradict each other."""
        size = max(abs(upper), abs(lower), self.size)
        if not (-ROUND_OFF * size <= upper - lower < math.inf):
            raise CertificateError(
                f"the upper bound {upper!r} contradicts the lower bound {lower!r}. {BUG}"
            )

    def to_user(self, value: float) -> float:
        """Return a value of the objective in the user's units."""
        problem = self.problem
        return problem.unit * (problem.mass * (value + self.shift))

    def certificate(self, core: Core, f: Vector) -> Certificate:
        """Return the bracket of a plan of mass 1 and a row potential, in the user's units."""
        found = self.bracket(core, f)
        upper, lower = self.to_user(found.upper), self.to_user(found.lower)
        error = self.problem.mass * found.marginal_error
        return Certificate(upper, lower, upper - lower, error, found.marginal_error <= 1e-9)


@dataclass(frozen=True)
class Transport(Objective):
    """min <C, X>; potentials are feasible if f_i + g_j <= C_ij."""

    @property
    def shift(self) -> float:
        """The offset of the costs."""
        return self.problem.offset

    @property
    def size(self) -> float:
        """The largest cost."""
        return self.problem.cost_max

    def value(self, plan: Plan, cost: float) -> float:
        """Return <C, X>."""
        return cost

    def row_potential(self, g: Vector) -> Vector:
        """Return the c-transform."""
        return self.problem.geometry.ctransform_rows(g)

    def dual(self, f: Vector) -> tuple[Potentials, float]:
        """Return c-transforms of a row potential, and <p, f> + <q, g>."""
        potentials = dual_feasible(self.problem.geometry, f)
        return potentials, linear(self.problem, potentials)

    def dual_value(self, potentials: Potentials) -> float:
        """Return <p, f> + <q, g> of feasible potentials."""
        f, g = potentials
        if not (self.problem.geometry.ctransform_rows(g) >= f).all():
            raise CertificateError(f"the potentials exceed the costs. {BUG}")
        return linear(self.problem, potentials)

    def to_user_potentials(self, potentials: Potentials) -> Potentials:
        """Return potentials with f_i + g_j <= M_ij in floating point.

        What the costs were shifted and scaled by was rounded, so f goes down by as much.
        """
        f, g = potentials
        problem = self.problem
        if problem.offset != 0:
            margin = np.finfo(float).eps * (problem.cost_max + np.abs(f).max())
            f = np.nextafter(f - margin + problem.offset, -np.inf)
        if problem.unit < 1:  # a product may be subnormal, and then is rounded
            return below(problem.unit * f), below(problem.unit * g)
        return problem.unit * f, problem.unit * g


@dataclass(frozen=True)
class EntropicTransport(Objective):
    """min <C, X> - η H(X); any potentials prove <p, f> + <q, g> - η log Σ exp((f + g - C) / η)."""

    eta: float

    @property
    def shift(self) -> float:
        """The offset of the costs, and what H of a plan of another mass than 1 differs by."""
        return self.problem.offset + self.eta * float(log(self.problem.mass))

    @property
    def size(self) -> float:
        """The largest cost, or the regularisation."""
        return max(self.problem.cost_max, self.eta)

    def value(self, plan: Plan, cost: float) -> float:
        """Return <C, X> - η H(X)."""
        return cost - self.eta * plan.entropy()

    def row_potential(self, g: Vector) -> Vector:
        """Return the exact row update."""
        lse = self.problem.geometry.exact.lse_rows(g, self.eta)
        return np.asarray(self.eta * (log(self.problem.p) - lse))

    def dual(self, f: Vector) -> tuple[Potentials, float]:
        """Return the potentials after one exact column and one exact row update from f.

        A constant that f carries would cost digits and is taken off.
        """
        problem, eta = self.problem, self.eta
        geometry = problem.geometry.exact
        g = eta * (log(problem.q) - geometry.lse_cols(f - f.max(), eta))
        lse = geometry.lse_rows(g, eta)
        f = eta * (log(problem.p) - lse)
        return (f, g), self._bound((f, g), lse)

    def dual_value(self, potentials: Potentials) -> float:
        """Return the dual value of any potentials."""
        lse = self.problem.geometry.exact.lse_rows(potentials[1], self.eta)
        return self._bound(potentials, lse)

    def _bound(self, potentials: Potentials, lse: Vector) -> float:
        """Return the dual value, given log Σ_j exp((g_j - C_ij) / η)."""
        mass = float(exp(potentials[0] / self.eta + lse).sum())  # 1 but for rounding, after `dual`
        return linear(self.problem, potentials) - self.eta * float(log(mass))

    def to_user_potentials(self, potentials: Potentials) -> Potentials:
        """Return potentials whose plan exp((f + g - M) / reg) has the user's mass."""
        f, g = potentials
        return self.problem.unit * (f + self.shift), self.problem.unit * g


def objective_of(problem: Problem, reg: float | None) -> Objective:
    """Return what is minimised: the cost, or with a regularisation the entropic objective."""
    return Transport(problem) if reg is None else EntropicTransport(problem, reg)


def linear(problem: Problem, potentials: Potentials) -> float:
    """Return <p, f> + <q, g>."""
    f, g = potentials
    return finite_dot(problem.p, f) + finite_dot(problem.q, g)


def finite_dot(weights: Vector, values: Vector) -> float:
    """Return <weights, values> where empty entries (weight 0) may hold any value."""
    return dot(weights, np.where(weights > 0, values, 0.0))


def dual_feasible(geometry: Geometry, f: Vector) -> Potentials:
    """Return c-transforms (f', g') of a row potential: f'_i + g'_j <= C_ij in floating point.

    A constant that f carries would cost digits and is taken off: the largest becomes (nearly) 0.
    """
    g = geometry.ctransform_cols(f - f.max())
    f = geometry.ctransform_rows(g)
    if geometry.ctransform_roundings:
        size = np.abs(f).max() + np.abs(g).max() + geometry.bounds[1]
        f = f - geometry.ctransform_roundings * np.finfo(float).eps * size
    return below(f), g


def below(x: Vector) -> Vector:
    """Return numbers below those that x was rounded from; a difference of 0 is exact."""
    return np.where(x == 0, 0.0, np.nextafter(x, -np.inf))
