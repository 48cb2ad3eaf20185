"""Dual objectives and the formulas derived from them, each once.

Potentials ``row`` (τ) and ``lam`` (λ) are in cost units and the plan of a pair is
X_ij = exp((τ_i + λ_j - C_ij) / η). All duals are written as the paper has them, to be minimised.
"""

from __future__ import annotations

import numpy as np

from .._types import Potentials, Vector
from ..kernels.vectors import dot, exp, log
from .problem import Entropic


def softmin(log_mass: Vector, lse: Vector, eta: float) -> Vector:
    """Return η (log p - lse), the potential that gives each row, or column, its mass.

    It is -inf without mass, even where all arcs lead to points without mass (lse = -inf).
    """
    potential = np.full_like(lse, -np.inf)
    np.subtract(log_mass, lse, out=potential, where=log_mass > -np.inf)
    return np.asarray(eta * potential)


def softmin_rows(problem: Entropic, lam: Vector) -> Vector:
    """Return the row potential that makes the rows of X sum to p, given λ."""
    return softmin(problem.log_p, problem.geometry.lse_rows(lam, problem.eta), problem.eta)


def softmin_cols(problem: Entropic, row: Vector) -> Vector:
    """Return the column potential that makes the columns of X sum to q, given τ."""
    return softmin(problem.log_q, problem.geometry.lse_cols(row, problem.eta), problem.eta)


def column_move(problem: Entropic, columns: Vector) -> Vector:
    """Return η log(q / c), by which Sinkhorn moves λ where the plan's column sums are c.

    φ falls by η KL(q | c) at least.
    """
    q = problem.q
    # A smaller share of the mass is not divided by.
    kept = np.maximum(columns, 1e-15 * q)
    return -problem.eta * log(np.divide(kept, q, out=np.ones_like(q), where=q > 0))


def lse_dual(problem: Entropic, row: Vector, lam: Vector, log_mass: float = 0.0) -> float:
    r"""Return the dual over plans of mass 1, given the logarithm of the mass of X.

    .. math:: φ(τ, λ) = η \log \sum_{ij} e^{(τ_i + λ_j - C_{ij})/η} - <τ, p> - <λ, q>
    """
    return problem.eta * log_mass - dot(row, problem.p) - dot(lam, problem.q)


def lse_oracle(problem: Entropic, row: Vector, lam: Vector) -> tuple[float, Vector, Vector]:
    """Return :func:`lse_dual` and its gradient by τ and by λ."""
    log_r, log_c, log_mass = problem.geometry.log_marginals(row, lam, problem.eta)
    value = lse_dual(problem, row, lam, log_mass)
    return value, exp(log_r - log_mass) - problem.p, exp(log_c - log_mass) - problem.q


def semi_dual(problem: Entropic, lam: Vector, lse: Vector) -> float:
    r"""Return the semi-dual but for its constant η H(p), given the log-sums of the rows at λ.

    .. math:: φ(λ) = \sum_i p_i η (\log \sum_j e^{(λ_j - C_{ij})/η} - \log p_i) - <λ, q>
    """
    return problem.eta * dot(problem.p, lse) - dot(problem.q, lam)


def centred(potential: Vector) -> tuple[Vector, float]:
    """Subtract the mean of the finite entries, set infinite ones to 0; return both."""
    is_finite = np.isfinite(potential)
    mean = float(potential[is_finite].mean())
    return np.where(is_finite, potential - mean, 0.0), mean


def centred_slopes(potentials: Potentials) -> Potentials:
    """Return derivatives in weights of fixed totals: the centred potentials."""
    f, g = potentials
    return centred(f)[0], centred(g)[0]


def finite_slopes(slopes: Vector) -> Vector:
    """Return slopes in which the mean of the finite ones replaces the infinite ones."""
    is_finite = np.isfinite(slopes)
    return slopes if is_finite.all() else np.where(is_finite, slopes, slopes[is_finite].mean())


def free_slopes(potentials: Potentials) -> Potentials:
    """Return derivatives in free weights: the potentials themselves."""
    f, g = potentials
    return finite_slopes(f), finite_slopes(g)
