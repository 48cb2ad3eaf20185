"""Potentials of entropic problems, found where Sinkhorn's algorithm takes long.

They are only a start: :func:`epsilot.solve` takes them on, and proves what comes of them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, repeat, takewhile
from operator import mul

import numpy as np

from .._types import Array, Potentials, Vector
from ..geometry import Geometry
from ..kernels.products import cholesky_solve, schur_factor
from ..kernels.vectors import distance, exp, power, rmatvec
from ..problems.balanced import check_regularisation
from ..problems.duals import semi_dual, softmin, softmin_cols, softmin_rows
from ..problems.plan import spread
from ..problems.problem import Entropic, make_problem
from ..problems.support import Support

#: Most updates of the potential of a cloud with itself, and the change, as shares of the
#: regularisation and of the potential, that ends them; the change below which they gain speed.
UPDATES, SETTLED, ROUND_OFF, LINEAR = 60, 1e-12, 1e-14, 0.1
#: Parts of the new direction and of the last one, where averages would take half of the new one.
AHEAD, ON = 0.686, 0.0294
#: Share that is left of the regularisation from one sweep to the next, on its way down.
COOLING = 0.7
#: Steps of Newton's that are expected, and rows for which one takes as long as one more sweep.
NEWTON, WORTH = 5, 50
#: Steps of either kind at most, and the shortest part of one of Newton's.
STEPS, SHORTEST = 60, 1e-4
#: Farthest that a step of Newton's first moves a potential, in units of the regularisation:
#: clusters that do not touch at all would be moved without end.
REACH = 32.0
#: Mass in wrong places, at the largest cost, that a gap allows; and the least that float64 shows.
SHARE, LEAST_ERROR = 0.2, 1e-14
#: Change of the dual, as a share of the costs, that is rounding.
ROUNDING = 1e-14


def shared_potential(geometry: Geometry, weights: Array | None, reg: float) -> Vector:
    r"""Return the potential f = g of a cloud's entropic transport to itself, by averaged updates.

    .. math::
        f_i \leftarrow \tfrac12 f_i
        + \tfrac12 \mathrm{reg} \big(\log a_i - \log \sum_j e^{(f_j - C_{ij})/\mathrm{reg}}\big)

    Alternating updates take the longer, the closer the plan is to the identity. The averaged one
    multiplies errors by (1 - λ) / 2, with λ >= 0 the eigenvalues of the plan (the metrics' kernels
    are positive definite), so by at most 1/2. Once they are small, a part of the last change is
    added (Polyak's heavy ball for eigenvalues 1 + λ between 1 and 2): at most 0.172 remains.

    References
    ----------
    Knight, Ruiz, Uçar (2014), "A symmetry preserving algorithm for matrix scaling"; Feydy et al.
    (2019), "Interpolating between optimal transport and MMD using Sinkhorn divergences".
    """
    support, target = _entropic(geometry, weights, weights, reg)
    problem = support.problem
    f, change, ahead, on = np.zeros(problem.p.size), np.zeros(problem.p.size), 0.5, 0.0
    for _ in range(UPDATES):
        change = ahead * (softmin_rows(target, f) - f) + on * change
        f = f + change
        moved = float(np.abs(change).max())
        if moved <= max(SETTLED * target.eta, ROUND_OFF * float(np.abs(f).max())):
            break
        if moved <= LINEAR * target.eta:
            ahead, on = AHEAD, ON
    return spread(problem.unit * f, support.rows, geometry.shape[0], 0.0)


def newton_potentials(
    geometry: Geometry, a: Array | None, b: Array | None, reg: float, gap: float
) -> Potentials:
    r"""Return potentials whose plan, once its marginals are right, is optimal within about ``gap``.

    Sweeps of Sinkhorn's algorithm at regularisations that fall to ``reg``, and then, wherever the
    sweeps that are left would take longer, steps of Newton's method for the semi-dual, whose
    Hessian is (diag(Xᵀ1) - Xᵀ diag(1/p) X) / reg. Its damped steps never lower the dual.

    References
    ----------
    Brauer, Clason, Lorenz, Wirth (2017), "A Sinkhorn-Newton method for entropic optimal transport".
    """
    support, target = _entropic(geometry, a, b, reg)
    problem, (n, m) = support.problem, geometry.shape
    zero = np.zeros(problem.q.size)
    g = min((zero, _cooled(target, zero)), key=lambda g: _value(target, g))
    size = max(problem.scale, target.eta)
    error = max(SHARE * gap / (problem.mass * problem.unit * size), LEAST_ERROR)
    f, g = (problem.unit * z for z in _settled(target, g, error, ROUNDING * size))
    return spread(f, support.rows, n, 0.0), spread(g, support.cols, m, 0.0)


def _entropic(
    geometry: Geometry, a: Array | None, b: Array | None, reg: float
) -> tuple[Support, Entropic]:
    """Return the part of a problem that has mass, and its target, unless reg is out of range."""
    problem = make_problem(geometry, a, b)
    check_regularisation(reg, problem)
    support = Support.of(problem)
    inner = support.problem
    return support, Entropic(inner.geometry, reg / inner.unit, inner.p, inner.q)


def _cooled(target: Entropic, g: Vector) -> Vector:
    """Return the column potential after a sweep at each of some falling regularisations."""
    levels = accumulate(repeat(COOLING, STEPS), mul, initial=target.geometry.bounds[1] / 2)
    for eta in takewhile(lambda eta: eta > target.eta, levels):
        level = replace(target, eta=eta)
        g = softmin_cols(level, softmin_rows(level, g))
    return g


def _settled(target: Entropic, g: Vector, error: float, rounding: float) -> Potentials:
    """Return potentials at which the columns miss their masses by at most ``error``."""
    before, patience = np.inf, NEWTON * max(target.geometry.shape) / WORTH
    for _ in range(STEPS):
        f = softmin_rows(target, g)
        swept = softmin_cols(target, f)
        columns = target.q * exp((g - swept) / target.eta)
        missed = distance(columns, target.q)
        if missed <= error:
            return f, g
        is_slow = missed > before * power(error / missed, 1 / patience)
        before = missed
        g = _stepped(target, swept, rounding) if is_slow else swept
    return softmin_rows(target, g), g


def _stepped(target: Entropic, g: Vector, rounding: float) -> Vector:
    """Return the column potential after a step of Newton's, or as it is if none is any good.

    The step is halved until it does not raise the semi-dual, or doubled while that lowers it:
    between clusters that hardly touch it is an exponential, in which a whole step is a short one.
    """
    lse = target.geometry.lse_rows(g, target.eta)
    f = softmin(target.log_p, lse, target.eta)
    X = target.geometry.gibbs(f, g, target.eta, 0, f.size)
    columns = rmatvec(X, np.ones(f.size))
    factor = schur_factor(X, target.p, columns, is_free=True)
    if factor is None:
        return g
    move = target.eta * np.clip(cholesky_solve(factor, target.q - columns), -REACH, REACH)
    size, found = 1.0, _value(target, g + move)
    while not found <= semi_dual(target, g, lse) + rounding:
        if size < SHORTEST:
            return g
        size /= 2
        found = _value(target, g + size * move)
    while size >= 1 and (farther := _value(target, g + 2 * size * move)) < found:
        size, found = 2 * size, farther
    return g + size * move


def _value(target: Entropic, g: Vector) -> float:
    """Return the semi-dual at a column potential."""
    return semi_dual(target, g, target.geometry.lse_rows(g, target.eta))
