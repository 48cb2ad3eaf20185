"""Dual objectives and what follows from them; each formula once.

Potentials ``row`` (τ) and ``lam`` (λ) are in cost units and the plan of a pair is
X_ij = exp((τ_i + λ_j - C_ij) / η). All duals are written as the paper has them, to be minimised.
"""

from __future__ import annotations

import numpy as np

from .._types import Vector
from ..kernels.vectors import dot, exp
from .problem import Entropic


def softmin_rows(problem: Entropic, lam: Vector) -> Vector:
    """Return the row potential that makes the rows of X sum to p, given λ."""
    return problem.eta * (problem.log_p - problem.geometry.lse_rows(lam, problem.eta))


def softmin_cols(problem: Entropic, row: Vector) -> Vector:
    """Return the column potential that makes the columns of X sum to q, given τ."""
    return problem.eta * (problem.log_q - problem.geometry.lse_cols(row, problem.eta))


def lse_dual(problem: Entropic, row: Vector, lam: Vector) -> tuple[float, Vector, Vector]:
    r"""Return φ and its gradient by τ and by λ, for the dual over plans of mass 1.

    .. math:: φ(τ, λ) = η \log \sum_{ij} e^{(τ_i + λ_j - C_{ij})/η} - <τ, p> - <λ, q>
    """
    log_r, log_c, log_mass = problem.geometry.log_marginals(row, lam, problem.eta)
    value = problem.eta * log_mass - dot(row, problem.p) - dot(lam, problem.q)
    return value, exp(log_r - log_mass) - problem.p, exp(log_c - log_mass) - problem.q


def exp_dual(problem: Entropic, row: Vector, lam: Vector) -> tuple[float, Vector, Vector]:
    r"""Return ψ and its gradient by τ and by λ, for the dual over all nonnegative plans.

    .. math:: ψ(τ, λ) = η \sum_{ij} e^{(τ_i + λ_j - C_{ij})/η} - <τ, p> - <λ, q>
    """
    log_r, log_c, log_mass = problem.geometry.log_marginals(row, lam, problem.eta)
    value = problem.eta * exp(log_mass) - dot(row, problem.p) - dot(lam, problem.q)
    return value, exp(log_r) - problem.p, exp(log_c) - problem.q


def semi_dual(problem: Entropic, lam: Vector) -> tuple[float, Vector]:
    r"""Return the semi-dual and its gradient by λ; the rows of its plan sum to p exactly.

    .. math:: φ(λ) = \sum_i p_i η (\log \sum_j e^{(λ_j - C_{ij})/η} - \log p_i) - <λ, q>
    """
    row = softmin_rows(problem, lam)
    held = np.where(problem.p > 0, row, 0.0)
    columns = problem.geometry.apply_cols(row, lam, problem.eta, np.ones_like(row))
    return -dot(held, problem.p) - dot(lam, problem.q), columns - problem.q
