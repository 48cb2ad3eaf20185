"""Potentials of entropic problems, found where Sinkhorn's algorithm takes long.

They are only a start: :func:`epsilot.solve` takes them on, and proves what comes of them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

import numpy as np

from ..._types import Array, Matrix, Potentials, Vector
from ...geometry import Geometry
from ...kernels.products import cholesky_solve, schur_factor
from ...kernels.vectors import distance, rmatvec
from ...transport.duals import semi_dual, softmin, softmin_cols, softmin_rows
from ...transport.plan.core import spread
from ...transport.problem import Entropic, make_problem
from ...transport.support import Support

#: Most updates of the potential of a cloud with itself, and the change, as shares of the
#: regularisation and of the potential, that ends them; the change below which they gain speed.
UPDATES, SETTLED, ROUND_OFF, LINEAR = 60, 1e-12, 1e-14, 0.1
#: Parts of the new direction and of the last one, where averages would take half of the new one.
AHEAD, ON = 0.686, 0.0294
#: Share that is left of the regularisation from one sweep to the next, on its way down.
COOLING = 0.7
#: Share of an error that a sweep must leave for a step of Newton's to be worth more.
SLOW = 0.25
#: Steps of either kind at most, and the shortest one of Newton's.
STEPS, SHORTEST = 60, 1e-4
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
    support = Support.of(make_problem(geometry, weights, weights))
    problem = support.problem
    target = Entropic(problem.geometry, reg / problem.unit, problem.p, problem.q)
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

    Sweeps of Sinkhorn's algorithm at regularisations that fall to ``reg``, and then, wherever one
    more leaves over a quarter of the error, steps of Newton's method for the semi-dual, whose
    Hessian is (diag(Xᵀ1) - Xᵀ diag(1/p) X) / reg. Its damped steps never lower the dual.

    References
    ----------
    Brauer, Clason, Lorenz, Wirth (2017), "A Sinkhorn-Newton method for entropic optimal transport".
    """
    support = Support.of(make_problem(geometry, a, b))
    problem, (n, m) = support.problem, geometry.shape
    target = Entropic(problem.geometry, reg / problem.unit, problem.p, problem.q)
    g = np.zeros(problem.q.size)
    levels = (COOLING**k * problem.cost_max / 2 for k in range(1, STEPS))
    for eta in takewhile(lambda eta: eta > target.eta, levels):
        g = _swept(replace(target, eta=eta), g)
    size = max(problem.scale, target.eta)
    error = max(SHARE * gap / (problem.mass * problem.unit * size), LEAST_ERROR)
    f, g = (problem.unit * z for z in _settled(target, g, error, ROUNDING * size))
    return spread(f, support.rows, n, 0.0), spread(g, support.cols, m, 0.0)


def _swept(target: Entropic, g: Vector) -> Vector:
    """Return the column potential after updates of rows and columns."""
    return softmin_cols(target, softmin_rows(target, g))


def _settled(target: Entropic, g: Vector, error: float, rounding: float) -> Potentials:
    """Return potentials at which the columns miss their masses by at most ``error``."""
    missed, eta = np.inf, target.eta
    for _ in range(STEPS):
        g = _swept(target, g)
        lse = target.geometry.lse_rows(g, eta)
        f = softmin(target.log_p, lse, eta)
        X = target.geometry.gibbs(f, g, eta, 0, f.size)
        columns = rmatvec(X, np.ones(f.size))
        before, missed = missed, distance(columns, target.q)
        if missed <= error:
            break
        if missed > SLOW * before:
            g = _stepped(target, g, X, columns, semi_dual(target, g, lse) + rounding)
    return f, g


def _stepped(target: Entropic, g: Vector, X: Matrix, columns: Vector, most: float) -> Vector:
    """Return the column potential after a step of Newton's, or as it is if none is any good.

    The step is halved until the semi-dual is at most so much, or doubled while that lowers it:
    between clusters that hardly touch it is an exponential, in which a whole step is a short one.
    """
    factor = schur_factor(X, target.p, columns, is_free=True)
    if factor is None:
        return g
    move = target.eta * cholesky_solve(factor, target.q - columns)

    def value(size: float) -> float:
        moved = g + size * move
        return semi_dual(target, moved, target.geometry.lse_rows(moved, target.eta))

    size, found = 1.0, value(1.0)
    while not found <= most:
        if size < SHORTEST:
            return g
        size /= 2
        found = value(size)
    while size >= 1 and (farther := value(2 * size)) < found:
        size, found = 2 * size, farther
    return g + size * move
