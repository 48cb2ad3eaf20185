"""Compute warm starts for balanced entropic problems on which Sinkhorn's algorithm is slow.

:func:`epsilot.solve` continues from these potentials and certifies its own result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, repeat, takewhile
from operator import mul

import numpy as np

from .._types import Array, Potentials, Vector
from ..geometry import Geometry
from ..kernels.vectors import power
from ..problems.balanced import check_regularisation
from ..problems.duals import softmin_cols, softmin_rows
from ..problems.plan import spread
from ..problems.problem import Entropic, make_problem
from ..problems.support import Support
from ..solvers.sinkhorn_newton import newton_step, semi_dual_at, swept


@dataclass(frozen=True)
class StartTuning:
    """Tuning parameters of both starts."""

    # -- the potential of a cloud with itself
    max_updates: int = 60
    end_change_per_reg: float = 1e-12  # change of the potential that ends the updates
    end_change_per_potential: float = 1e-14
    momentum_change_per_reg: float = 0.1  # change below which momentum is used
    momentum_step: float = 0.686  # share of the new direction (0.5 without momentum)
    momentum: float = 0.0294  # share of the last change
    # -- sweeps at falling regularisations, then Newton's method
    cooling: float = 0.7  # ratio of consecutive regularisations
    max_steps: int = 60  # of either kind
    expected_newton_steps: int = 5
    rows_per_sweep: int = 50  # rows for which a Newton step takes one sweep longer
    gap_share_of_marginals: float = 0.2  # of the gap that wrong marginals may cause
    least_marginal_error: float = 1e-14  # that float64 can show


TUNING = StartTuning()


def shared_potential(geometry: Geometry, weights: Array | None, reg: float) -> Vector:
    r"""Return the potential f = g of a cloud's entropic transport to itself, by averaged updates.

    .. math::
        f_i \leftarrow \tfrac12 f_i
        + \tfrac12 \mathrm{reg} \big(\log a_i - \log \sum_j e^{(f_j - C_{ij})/\mathrm{reg}}\big)

    Alternating updates are slow where the plan is near the identity. The averaged update multiplies
    errors by (1 - λ) / 2, with λ >= 0 the eigenvalues of the plan (the metrics' kernels are
    positive definite), so by at most 1/2. Once changes are small, momentum is added (Polyak's heavy
    ball for eigenvalues 1 + λ between 1 and 2), and errors are multiplied by at most 0.172.

    References
    ----------
    Knight, Ruiz, Uçar (2014), "A symmetry preserving algorithm for matrix scaling"; Feydy et al.
    (2019), "Interpolating between optimal transport and MMD using Sinkhorn divergences".
    """
    support, target = _entropic(geometry, weights, weights, reg)
    problem = support.problem
    f, change, step, momentum = np.zeros(problem.p.size), np.zeros(problem.p.size), 0.5, 0.0
    for _ in range(TUNING.max_updates):
        change = step * (softmin_rows(target, f) - f) + momentum * change
        f = f + change
        moved = float(np.abs(change).max())
        if moved <= max(
            TUNING.end_change_per_reg * target.eta,
            TUNING.end_change_per_potential * float(np.abs(f).max()),
        ):
            break
        if moved <= TUNING.momentum_change_per_reg * target.eta:
            step, momentum = TUNING.momentum_step, TUNING.momentum
    return spread(problem.unit * f, support.rows, geometry.shape[0], 0.0)


def newton_potentials(
    geometry: Geometry, a: Array | None, b: Array | None, reg: float, gap: float
) -> Potentials:
    r"""Return potentials whose plan, once its marginals are right, is optimal within about ``gap``.

    The method makes sweeps of Sinkhorn's algorithm at regularisations that fall to ``reg``. Where
    the remaining sweeps would take longer, it makes Newton steps for the semi-dual, whose Hessian
    is (diag(Xᵀ1) - Xᵀ diag(1/p) X) / reg. Its damped steps never lower the dual.

    References
    ----------
    Brauer, Clason, Lorenz, Wirth (2017), "A Sinkhorn-Newton method for entropic optimal transport".
    """
    support, target = _entropic(geometry, a, b, reg)
    problem, (n, m) = support.problem, geometry.shape
    zero = np.zeros(problem.q.size)
    g = min((zero, _cooled(target, zero)), key=partial(semi_dual_at, target))
    size = max(problem.scale, target.eta)
    error = max(
        TUNING.gap_share_of_marginals * gap / (problem.mass * problem.unit * size),
        TUNING.least_marginal_error,
    )
    f, g = (problem.unit * z for z in _settled(target, g, error))
    return spread(f, support.rows, n, 0.0), spread(g, support.cols, m, 0.0)


def _entropic(
    geometry: Geometry, a: Array | None, b: Array | None, reg: float
) -> tuple[Support, Entropic]:
    """Return the support of a problem and its entropic target; reject reg out of range."""
    problem = make_problem(geometry, a, b)
    check_regularisation(reg, problem)
    support = Support.of(problem)
    inner = support.problem
    return support, Entropic(inner.geometry, reg / inner.unit, inner.p, inner.q)


def _cooled(target: Entropic, g: Vector) -> Vector:
    """Return the column potential after one sweep at each of several falling regularisations."""
    levels = accumulate(
        repeat(TUNING.cooling, TUNING.max_steps), mul, initial=target.geometry.bounds[1] / 2
    )
    for eta in takewhile(lambda eta: eta > target.eta, levels):
        level = replace(target, eta=eta)
        g = softmin_cols(level, softmin_rows(level, g))
    return g


def _settled(target: Entropic, g: Vector, error: float) -> Potentials:
    """Return potentials whose column marginals err by at most ``error``."""
    before, patience = (
        np.inf,
        TUNING.expected_newton_steps * max(target.geometry.shape) / TUNING.rows_per_sweep,
    )
    for _ in range(TUNING.max_steps):
        f, after, missed = swept(target, g)
        if missed <= error:
            return f, g
        is_slow = missed > before * power(error / missed, 1 / patience)
        before = missed
        g = newton_step(target, after) if is_slow else after
    return softmin_rows(target, g), g
