r"""Regularisation relative to a bᵀ, which ``reg_type="kl"`` selects, as a change of the cost.

.. math:: reg \sum X \log\frac{X}{a b^\top} = -reg H(X) - reg \langle \log a \oplus \log b, X\rangle

Where the plan has the marginals a and b, the last term is a constant: only values and potentials
change. Otherwise the cost is tilted by two vectors (:class:`epsilot.geometry.derived.Tilted`).
Where the mass of the plan is free too, the divergence has its mass terms, -ΣX + Σa Σb. Pairs where
a or b is 0 get no mass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._types import Potentials, Vector
from ..arguments import check_choice
from ..geometry.derived import Tilted
from ..kernels.vectors import dot, log
from .balanced import EntropicObjective
from .kinds import Kind, UserProblem
from .objective import Objective
from .prices import highest
from .problem import Problem
from .unbalanced_base import UnbalancedObjective

#: Regularisations of a plan.
REG_TYPES = ("entropy", "kl")


def with_reg_type(kind: Kind, reg_type: object) -> Kind:
    """Return a kind of problem whose plans are regularised relative to a bᵀ."""
    check_choice("reg_type", reg_type, REG_TYPES)
    return Relative(kind)


@dataclass(frozen=True)
class Relative:
    """A kind of problem whose regularisation is the divergence of the plan from a bᵀ."""

    kind: Kind

    def problem(self, given: UserProblem) -> Problem:
        """Return the validated problem."""
        return self.kind.problem(given)

    def objective(self, problem: Problem, reg: float | None) -> Objective:
        """Return the objective with the divergence in place of the entropy."""
        objective = self.kind.objective(problem, reg)
        if reg is None:
            return objective
        if isinstance(objective, EntropicObjective):
            return RelativeEntropic.instead_of(objective)
        return tilted(objective, reg / problem.unit)

    @property
    def keywords(self) -> dict[str, object]:
        """The keywords that select this kind, with their values."""
        return {**self.kind.keywords, "reg_type": "kl"}


@dataclass(frozen=True)
class RelativeEntropic(EntropicObjective):
    """The balanced objective with KL(X | a bᵀ): the same plan, another value and potentials."""

    @classmethod
    def instead_of(cls, objective: EntropicObjective) -> RelativeEntropic:
        """Return the objective that differs by a constant."""
        problem, eta = objective.problem, objective.eta
        sides = problem.p, problem.q
        constant = -eta * sum(dot(w, _log_weights(w, problem.mass)) for w in sides)
        return cls(replace(problem, constant=constant), eta)

    def _tilts(self) -> Potentials:
        """Return η log a and η log b, 0 for empty points."""
        p, q, mass = self.problem.p, self.problem.q, self.problem.mass
        return self.eta * _log_weights(p, mass), self.eta * _log_weights(q, mass)

    def own_potentials(self, f: Vector, g: Vector) -> Potentials:
        """Return the potentials of the entropy, from those of the divergence."""
        u, v = self._tilts()
        return f + u, g + v

    def from_user(self, f: Vector) -> Vector:
        """Return a row potential in internal units."""
        return super().from_user(f) + self._tilts()[0]

    def to_user_potentials(self, potentials: Potentials) -> Potentials:
        """Return potentials whose plan a bᵀ exp((f + g - M) / reg) has the user's mass."""
        problem, (u, v), eta = self.problem, self._tilts(), self.eta
        unit, (f, g) = problem.unit, super().to_user_potentials(potentials)
        f, g = f - unit * u, g - unit * v
        if not problem.p.all():  # empty points have finite potentials
            lse = problem.geometry.lse_rows(potentials[1], eta)
            f = np.where(problem.p > 0, f, unit * (problem.offset - eta * lse))
        if not problem.q.all():
            lse = problem.geometry.lse_cols(potentials[0], eta) + float(log(problem.mass))
            g = np.where(problem.q > 0, g, -unit * eta * lse)
        return f, g


def tilted(objective: Objective, eta: float) -> Objective:
    """Return an entropic objective with the divergence from a bᵀ, by a change of the cost."""
    problem = objective.problem
    u, v = (-eta * _log_weights(w, problem.mass) for w in (problem.p, problem.q))
    constant = 0.0
    if isinstance(objective, UnbalancedObjective):  # the mass of the plan is free
        u, constant = u - eta, eta * float(problem.p.sum()) * float(problem.q.sum())
        if objective.fills_empty_points:
            # A cost of 1500 η more is one of a pair without mass: exp gives 0.
            far = 1500.0 * eta + 4 * (
                objective.cost_size + highest(objective.price_a, objective.price_b)
            )
            u, v = np.where(problem.p > 0, u, far), np.where(problem.q > 0, v, far)
    geometry = Tilted(problem.geometry, u, v)
    return replace(objective, problem=replace(problem, geometry=geometry, constant=constant))


def _log_weights(weights: Vector, mass: float) -> Vector:
    """Return the logarithms of the user's weights, 0 for empty points."""
    used = weights > 0
    return np.where(used, log(np.where(used, weights, 1.0)) + (float(log(mass)) * used), 0.0)
