"""What the accelerated methods share: averaged plans, their rule, marginals with a cost."""

from __future__ import annotations

import numpy as np

from .._types import Matrix, Vector
from ..geometry import Geometry
from ..geometry.sweeps import SAFE, ByRow, ColumnSums
from ..kernels import coordinate as kernels
from ..kernels.vectors import entropy, exp, log
from ..problems.problem import Entropic, Problem


def keeps_average(average: bool | None, stop: str, problem: Problem) -> bool:
    """Decide whether to keep an averaged plan, a dense array, where the user left it open.

    The published guarantees are for the average; with a certificate it is a second candidate
    that pays where the cost is dense too.
    """
    return stop == "paper" or problem.geometry.is_dense if average is None else average


def is_near_optimal(problem: Entropic, X: Matrix, dual: float) -> bool:
    """Tell whether f(X) + φ <= ε/4, given φ: Appendix C's condition beside the violation.

    The target is Appendix C's, so that ε = 2 η log nm. φ is a bound: -φ <= f(x*).
    """
    total = dual
    for start, stop, C in problem.geometry.blocks():
        total += float((C * X[start:stop]).sum()) - problem.eta * entropy(X[start:stop])
    return total <= problem.eta * log(max(X.size, 2)) / 2


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
        level = float(f[i] + (g - geometry.row(i)).max())  # guessed from one row, and checked
        r, costs, c = np.empty(n), np.empty(n), ColumnSums(m)
        geometry.sweep(kernels.moments_at, ByRow(f), g, 1 / eta, level, ByRow(r), ByRow(costs), c)
        mass = float(r.sum())
        if mass < SAFE:
            AX = np.concatenate([r, c.total]) / mass
            return AX, float(costs.sum()) / mass, log(mass) + level / eta
    log_r, log_c, log_mass = geometry.log_marginals(f, g, eta)
    AX = exp(np.concatenate([log_r, log_c]) - log_mass)
    if not is_priced:
        return AX, 0.0, log_mass
    _, costs, _ = geometry.price_rows(f - eta * log_mass, g, eta, np.ones(m), np.zeros(m))
    return AX, float(costs.sum()), log_mass
