"""What methods that move both potentials at once share: ``z`` is τ followed by λ.

Potentials are in cost units; :math:`z / η = (u, v)` are the papers' log-scalings.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

import numpy as np

from .._types import Potentials, Vector
from ..problems.duals import lse_dual, softmin
from ..problems.plan import Core, Gibbs
from ..problems.problem import Entropic

#: Stands for the logarithm of an empty mass, so that potentials stay finite.
LOG_EMPTY = -690.0


def masses(problem: Entropic) -> Vector:
    """Return p followed by q."""
    return np.concatenate([problem.p, problem.q])


def log_masses(problem: Entropic) -> Vector:
    """Return the logarithms of p and q, those of empty masses replaced by log 1e-300."""
    out: Vector = np.maximum(np.concatenate([problem.log_p, problem.log_q]), LOG_EMPTY)
    return out


def joined(problem: Entropic, potentials: Potentials | None) -> Vector:
    """Return a new z from a pair of potentials, or zeros."""
    return np.zeros(sum(problem.shape)) if potentials is None else np.concatenate(potentials)


def block(problem: Entropic, is_row: bool) -> slice:
    """Return where the rows, or the columns, are in z."""
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
    """Plan and potentials of a state that holds ``z``."""

    def candidates(self, problem: Entropic, state: J) -> list[tuple[Core, Vector]]:
        """Return the Gibbs plan of the current potentials, and the row potential."""
        row, lam = (x.copy() for x in self.potentials(problem, state))
        return [(Gibbs(problem.geometry, row, lam, problem.eta), row)]

    def potentials(self, problem: Entropic, state: J) -> Potentials:
        """Return the current potentials in cost units."""
        n = problem.shape[0]
        return state.z[:n], state.z[n:]
