r"""The semi-dual of the entropic barycentre: smooth, over column potentials with Σ w_k g_k = 0.

.. math:: φ(g) = \sum_k w_k \sum_i p_{ki} η \log \sum_j e^{(g_{kj} - C_{kij})/η}

Its slope in direction s is Σ w_k <c_k, s_k>, where c_k are the column sums of the plan whose rows
are right. In the norm Σ w_k ‖g_k‖², in which y_k = √w_k g_k are the variables of the orthogonal
projection, the gradient is c_k - Σ_l w_l c_l, and φ is 1/η-smooth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._types import Matrix, Vector
from ..geometry.sweeps import ByRow, ColumnSums
from ..kernels import pdasmd as kernels
from ..kernels.vectors import dot, exp, log
from ..problems.duals import softmin
from ..problems.problem import Problem
from ..problems.work import Work
from .family import Family


class Evaluated(NamedTuple):
    """The semi-dual at column potentials."""

    columns: Matrix  # g_k, the potentials
    value: float  # φ
    gradient: Matrix  # c_k - Σ w_l c_l
    mean: Vector  # Σ w_k c_k
    error: float  # Σ w_k ‖c_k - Σ w_l c_l‖₁
    log_sums: tuple[Vector, ...]  # log Σ_j exp((g_kj - C_kij)/η), of all rows


def evaluate(family: Family, G: Matrix, eta: float, near: Evaluated | None = None) -> Evaluated:
    """Return φ and its gradient, in one pass over stored costs, or in two along axes.

    What is known at a point nearby, at the same η, saves the search for largest exponents.
    """
    brought, log_sums = np.empty(family.shape), []
    for k, support in enumerate(family.supports):
        known = None if near is None else (near.columns[k], near.log_sums[k])
        brought[k], lse = _summed(support.problem, G[k], eta, known)
        log_sums.append(lse)
    problems = [support.problem for support in family.supports]
    value = eta * family.mean_of([dot(x.p, lse) for x, lse in zip(problems, log_sums, strict=True)])
    mean = family.mean(brought)
    return Evaluated(G, value, brought - mean, mean, family.spread(brought), tuple(log_sums))


def _summed(
    problem: Problem, g: Vector, eta: float, known: tuple[Vector, Vector] | None
) -> tuple[Vector, Vector]:
    """Return column sums of the plan whose rows are right, and log-sums of its rows."""
    geometry, p = problem.geometry, problem.p
    if geometry.is_separable:
        lse = geometry.lse_rows(g, eta)
        return exp(geometry.lse_cols(softmin(log(p), lse, eta), eta) + g / eta), lse
    before, lse = (g, np.full(p.size, np.inf)) if known is None else (known[0], known[1].copy())
    columns = ColumnSums(g.size)
    geometry.sweep(kernels.snapshot, g, before, ByRow(p), 1 / eta, ByRow(lse), columns)
    return columns.total, lse


def evaluation_work(family: Family) -> Work:
    """Return the work of one evaluation."""
    if any(support.problem.geometry.is_separable for support in family.supports):
        return Work.of(lse=2 * family.pass_entries)
    return Work.of(softmax=family.pass_entries, inner=family.pass_entries)


def inner(family: Family, X: Matrix, Y: Matrix) -> float:
    """Return Σ w_k <x_k, y_k>."""
    return family.mean_of([dot(x, y) for x, y in zip(X, Y, strict=True)])
