"""Transport between two marginals of equal mass: the linear and the entropic objective."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from .._types import Potentials, Vector
from ..errors import CertificateError, InvalidProblem
from ..geometry import Geometry
from ..kernels.proof import LARGEST
from ..kernels.vectors import are_at_most, below, exp, log
from .duals import centred_slopes, softmin
from .kinds import UserProblem
from .objective import BUG_NOTE, MIN_DEFAULT_GAP, MethodForm, Objective, Slopes, linear
from .plan import Plan
from .problem import Entropic, Problem, make_problem


@dataclass(frozen=True)
class BalancedTuning:
    """Limits of balanced problems."""

    tight_rtol: float = 2e-12  # largest reduced cost of a tight arc, as a share of the largest cost
    # Bytes of a stored cost up to which "auto" lets Newton steps follow Sinkhorn's sweeps.
    max_newton_bytes: int = 1 << 28
    max_reg_ratio: float = 1e30  # largest regularisation, as a multiple of the largest cost
    max_logarithm: float = 1e4  # above the logarithm of any float64


TUNING = BalancedTuning()


@dataclass(frozen=True)
class Transport(Objective):
    """min <C, X>; potentials are feasible if f_i + g_j <= C_ij."""

    quantity: ClassVar[str] = "transport cost"

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
        return row_feasible(self.problem.geometry, g)

    def dual(self, f: Vector) -> tuple[Potentials, float]:
        """Return c-transforms of a row potential, and <p, f> + <q, g>."""
        potentials = dual_feasible(self.problem.geometry, f)
        return potentials, linear(self.problem, potentials)

    def dual_value(self, potentials: Potentials) -> float:
        """Return <p, f> + <q, g> of feasible potentials."""
        f, g = potentials
        if not are_at_most(f, self.problem.geometry.ctransform_rows(g)):
            raise CertificateError(f"the potentials exceed the costs. {BUG_NOTE}")
        return linear(self.problem, potentials)

    def is_tight(self, plan: Plan, potentials: Potentials) -> bool:
        """Tell whether every arc with mass has a reduced cost of zero."""
        arcs = plan.core.arcs()
        if arcs is None:
            return True
        (f, g), geometry = potentials, self.problem.geometry
        excess = geometry.entries(arcs.i, arcs.j) - f[arcs.i] - g[arcs.j]
        return bool((excess <= TUNING.tight_rtol * self.problem.scale).all())

    @property
    def slopes(self) -> Slopes | None:
        """The centred potentials, since weights keep their totals."""
        return centred_slopes

    def to_user_potentials(self, potentials: Potentials) -> Potentials:
        """Return potentials with f_i + g_j <= M_ij in floating point.

        Shift and scaling of the costs were rounded, so f is lowered by that error.
        """
        f, g = potentials
        problem = self.problem
        if problem.offset != 0:
            margin = np.finfo(float).eps * (problem.cost_max + np.abs(f).max())
            f = np.nextafter(f - margin + problem.offset, -np.inf)
        if problem.unit == 1:
            return f, g
        if problem.unit < 1:  # a product may be subnormal, and then is rounded
            return below(problem.unit * f), below(problem.unit * g)
        return problem.unit * f, problem.unit * g


def dual_feasible(geometry: Geometry, f: Vector) -> Potentials:
    """Return c-transforms (f', g') of a row potential: f'_i + g'_j <= C_ij in floating point.

    A constant in f would cost digits, so that the largest entry becomes (nearly) 0. Where all costs
    are equal, constants are optimal, whatever f is.
    """
    low, high = geometry.bounds
    if low == high:
        return np.full(geometry.shape[0], low), np.zeros(geometry.shape[1])
    g = _finite(geometry, geometry.round_down(geometry.ctransform_cols(f - f.max())))
    return row_feasible(geometry, g), g


def row_feasible(geometry: Geometry, g: Vector) -> Vector:
    """Return the c-transform f of a column potential: f_i + g_j <= C_ij in floating point."""
    f = _finite(geometry, geometry.ctransform_rows(g))
    error = geometry.ctransform_error(f, g)
    return below(f - error if error else f)


def _finite(geometry: Geometry, x: Vector) -> Vector:
    """Return a potential that is 0 where no arc bounds it."""
    return x if geometry.allowed is None else np.where(x < np.inf, x, 0.0)


#: Default gap with ``reg``, as a share of the largest cost.
DEFAULT_ENTROPIC_GAP = 1e-6


@dataclass(frozen=True)
class EntropicObjective(Objective):
    """min <C, X> - η H(X); any potentials prove <p, f> + <q, g> - η log Σ exp((f + g - C) / η)."""

    eta: float

    quantity: ClassVar[str] = "entropic objective"
    is_entropic: ClassVar[bool] = True
    accuracy: ClassVar[str] = "tol"
    method_refusal: ClassVar[str] = (
        "does not solve the entropic problem; use eps or rtol with it, or another "
        "method with reg (sinkhorn)."
    )
    paper_refusal: ClassVar[str | None] = (
        "stop='paper' chooses η from eps; pass eps instead of reg."
    )

    @classmethod
    def of(cls, problem: Problem, reg: float) -> Self:
        """Return the objective for a user's regularisation, or raise InvalidProblem.

        Costs are then computed in float64 throughout: float32 sweeps are not accurate enough.
        """
        check_regularisation(reg, problem)
        return cls(replace(problem, geometry=problem.geometry.exact), reg / problem.unit)

    @property
    def default_method(self) -> tuple[str, str] | None:
        """Sinkhorn's algorithm, with Newton steps if their matrices can be stored."""
        geometry = self.problem.geometry
        if not geometry.is_dense or geometry.nbytes > TUNING.max_newton_bytes:
            return "sinkhorn", "the entropic problem is Sinkhorn's own"
        return "sinkhorn_newton", "Newton steps follow where Sinkhorn's sweeps converge slowly"

    def is_served_by(self, method: MethodForm) -> bool:
        """Tell whether a method solves the entropic problem."""
        return method.solves_entropic and super().is_served_by(method)

    def fixed_target(self, inner: Problem) -> Entropic:
        """Return the problem with this η."""
        return Entropic(inner.geometry, self.eta, inner.p, inner.q)

    @property
    def default_gap(self) -> float:
        """A share of the largest cost (of η where all are zero), or what float64 can certify."""
        size = self.problem.scale or self.eta
        return max(DEFAULT_ENTROPIC_GAP * size, MIN_DEFAULT_GAP * self.scale)

    @property
    def scale(self) -> float:
        """The largest cost, or the regularisation."""
        return max(self.problem.scale, self.eta)

    @property
    def slack(self) -> float:
        """Error that the conversion to the user's units may add to a gap."""
        return max(super().slack, 1e-15 * self.eta)

    @property
    def shift(self) -> float:
        """The offset of the costs, and the change of H when the mass is not 1."""
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
        lse = self.problem.geometry.lse_rows(g, self.eta)
        return softmin(log(self.problem.p), lse, self.eta)

    def dual(self, f: Vector) -> tuple[Potentials, float]:
        """Return the potentials after one exact column and one exact row update from f.

        A constant in f would cost digits and is subtracted.
        """
        problem, eta = self.problem, self.eta
        g = softmin(log(problem.q), problem.geometry.lse_cols(f - f.max(), eta), eta)
        lse = problem.geometry.lse_rows(g, eta)
        f = softmin(log(problem.p), lse, eta)
        return (f, g), self._bound((f, g), lse)

    def dual_value(self, potentials: Potentials) -> float:
        """Return the dual value of any potentials."""
        lse = self.problem.geometry.lse_rows(potentials[1], self.eta)
        return self._bound(potentials, lse)

    def _bound(self, potentials: Potentials, lse: Vector) -> float:
        """Return the dual value, given log Σ_j exp((g_j - C_ij) / η)."""
        mass = float(exp(potentials[0] / self.eta + lse).sum())  # 1 but for rounding, after `dual`
        return linear(self.problem, potentials) - self.eta * float(log(mass))

    @property
    def slopes(self) -> Slopes | None:
        """The centred potentials, since weights keep their totals."""
        return centred_slopes

    def to_user_potentials(self, potentials: Potentials) -> Potentials:
        """Return potentials whose plan exp((f + g - M) / reg) has the user's mass."""
        f, g = potentials
        return self.problem.unit * (f + self.shift), self.problem.unit * g


def check_regularisation(reg: float, problem: Problem) -> None:
    """Reject a regularisation out of proportion to the costs."""
    size = problem.unit * problem.scale
    least, most = (
        share * (size or 1.0) for share in (problem.geometry.finest_eta, TUNING.max_reg_ratio)
    )
    if not least <= reg <= most:
        raise InvalidProblem(
            f"reg is {reg:.3g} for costs of size {size:.3g}; it must be at least {least:.1g} and "
            f"at most {most:.1g} to be within the range of float64 (use eps or rtol for the "
            "problem without regularisation)."
        )
    if not max(problem.mass, 1.0) * reg <= LARGEST / TUNING.max_logarithm:
        raise InvalidProblem(
            f"reg is {reg:.3g} and the weights sum to {problem.mass:.3g}; their product must be at "
            f"most {LARGEST / TUNING.max_logarithm:.0e} for float64 to hold entropies (rescale)."
        )


@dataclass(frozen=True)
class Balanced:
    """Plans with the marginals a and b: the kind that no keyword selects."""

    def problem(self, given: UserProblem) -> Problem:
        """Return a problem whose weights have equal totals."""
        M, a, b, normalize, can_shift = given
        return make_problem(M, a, b, normalize=normalize, can_shift=can_shift)

    def objective(self, problem: Problem, reg: float | None) -> Objective:
        """Return the cost, or the entropic objective."""
        return objective_of(problem, reg=reg)

    @property
    def keywords(self) -> dict[str, object]:
        """No keywords."""
        return {}


def objective_of(problem: Problem, *, reg: float | None = None) -> Objective:
    """Return the objective to minimise: the cost, or with ``reg`` the entropic objective."""
    return Transport(problem) if reg is None else EntropicObjective.of(problem, float(reg))
