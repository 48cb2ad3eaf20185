"""Shared pieces of methods on the entropic dual: stacked potentials and averaged plans.

Methods that move both potentials at once keep them in one vector ``z``: τ, then λ, in cost units.
The log-scalings (u, v) of the papers are z / η.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

import numpy as np

from .._types import Matrix, Potentials, Vector
from ..geometry import Geometry
from ..geometry.sweeps import MAX_SAFE_SUM, ByRow, ColumnSums
from ..kernels import coordinate as kernels
from ..kernels.vectors import entropy, exp, log
from ..problems.duals import lse_dual, lse_oracle, softmin
from ..problems.plan import Core, Gibbs
from ..problems.problem import Entropic, Problem


def masses(problem: Entropic) -> Vector:
    """Return p followed by q."""
    return np.concatenate([problem.p, problem.q])


def log_masses(problem: Entropic) -> Vector:
    """Return log p followed by log q, with log 1e-300 for zero masses."""
    out: Vector = np.maximum(np.concatenate([problem.log_p, problem.log_q]), -690.0)
    return out


def joined(problem: Entropic, potentials: Potentials | None) -> Vector:
    """Return a new z from a pair of potentials, or zeros."""
    return np.zeros(sum(problem.shape)) if potentials is None else np.concatenate(potentials)


def block(problem: Entropic, is_row: bool) -> slice:
    """Return the slice of z that holds the rows, or the columns."""
    n = problem.shape[0]
    return slice(0, n) if is_row else slice(n, None)


def log_sums(problem: Entropic, z: Vector) -> tuple[Vector, float]:
    """Return the logarithms of both marginals of X(z), and of its mass."""
    n = problem.shape[0]
    log_r, log_c, log_mass = problem.geometry.log_marginals(z[:n], z[n:], problem.eta)
    return np.concatenate([log_r, log_c]), log_mass


def log_block_sums(problem: Entropic, z: Vector, is_row: bool) -> Vector:
    """Return the logarithms of the row sums, or of the column sums, of X(z)."""
    n, eta = problem.shape[0], problem.eta
    if is_row:
        return z[:n] / eta + problem.geometry.rough.lse_rows(z[n:], eta)
    return z[n:] / eta + problem.geometry.rough.lse_cols(z[:n], eta)


def lse_value(problem: Entropic, z: Vector, log_mass: float = 0.0) -> float:
    """Return the lse-dual at z in cost units, given the logarithm of the mass of X(z)."""
    n = problem.shape[0]
    return lse_dual(problem, z[:n], z[n:], log_mass)


def rescaled(problem: Entropic, z: Vector, own: slice, log_sums: Vector) -> Vector:
    """Return z with one block minimised exactly, given the logarithms of its sums at z."""
    z = z.copy()
    z[own] += softmin(log_masses(problem)[own], log_sums, problem.eta)
    return z


class Joint(Protocol):
    """A state that holds both potentials in one vector."""

    z: Vector


J = TypeVar("J", bound=Joint)


class JointPlan(Generic[J]):
    """Plan and potentials of a state with ``z``."""

    def candidates(self, problem: Entropic, state: J) -> list[tuple[Core, Vector]]:
        """Return the Gibbs plan of the current potentials, and the row potential."""
        row, lam = (x.copy() for x in self.potentials(problem, state))
        return [(Gibbs(problem.geometry, row, lam, problem.eta), row)]

    def potentials(self, problem: Entropic, state: J) -> Potentials:
        """Return the current potentials in cost units."""
        n = problem.shape[0]
        return state.z[:n], state.z[n:]


def keeps_average(average: bool | None, stop: str, problem: Problem) -> bool:
    """Decide whether to keep an averaged plan, a dense array, unless the user decided.

    The published guarantees hold for the average. With a certificate the average is a second
    candidate, worth its memory where the cost is dense too.
    """
    return stop == "paper" or problem.geometry.is_dense if average is None else average


def is_near_optimal(problem: Entropic, X: Matrix, dual: float) -> bool:
    """Tell whether f(X) + φ <= ε/4, given φ: Appendix C's second condition.

    The target is Appendix C's, so that ε = 2 η log nm. φ is a bound: -φ <= f(x*).
    """
    total = dual
    for start, stop, C in problem.geometry.blocks():
        total += float((C * X[start:stop]).sum()) - problem.eta * entropy(X[start:stop])
    return total <= problem.eta * log(max(X.size, 2)) / 2


def is_near_optimal_at(problem: Entropic, X: Matrix, z: Vector) -> bool:
    """Tell whether f(X) + φ(z) <= ε/4, at stacked potentials z."""
    n = problem.shape[0]
    return is_near_optimal(problem, X, lse_oracle(problem, z[:n], z[n:])[0])


def mix(geometry: Geometry, X: Matrix, f: Vector, g: Vector, eta: float, share: float) -> None:
    """Replace X by (1 - share) X + share exp((f + g - C) / η), in one pass."""
    geometry.sweep(kernels.mix_plan, ByRow(X), ByRow(f), g, 1 / eta, 1 - share, share)


def moments(
    geometry: Geometry, f: Vector, g: Vector, eta: float, is_priced: bool = True
) -> tuple[Vector, float, float]:
    """Return A X, <C, X> and log Z of the plan X = exp((f + g - C) / η) / Z of mass 1.

    A X holds the row sums, then the column sums. Dense costs take one pass, others a second one
    for <C, X>, which is 0 if it is not wanted.
    """
    n, m = geometry.shape
    if geometry.is_dense:
        i = int(np.argmax(f))
        level = float(f[i] + (g - geometry.row(i)).max())  # a guess from one row, checked below
        r, costs, c = np.empty(n), np.empty(n), ColumnSums(m)
        geometry.sweep(kernels.moments_at, ByRow(f), g, 1 / eta, level, ByRow(r), ByRow(costs), c)
        mass = float(r.sum())
        if mass < MAX_SAFE_SUM:
            AX = np.concatenate([r, c.total]) / mass
            return AX, float(costs.sum()) / mass, log(mass) + level / eta
    log_r, log_c, log_mass = geometry.log_marginals(f, g, eta)
    AX = exp(np.concatenate([log_r, log_c]) - log_mass)
    if not is_priced:
        return AX, 0.0, log_mass
    _, costs, _ = geometry.price_rows(f - eta * log_mass, g, eta, np.ones(m), np.zeros(m))
    return AX, float(costs.sum()), log_mass
