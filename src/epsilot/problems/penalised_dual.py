r"""The finite-sum dual of unbalanced transport, and a box on which its rows are smooth.

To the objective is added η KL(X | K), up to a constant, where K = exp(U ⊕ V - κ C): the entropy is
U = -1, V = 0 and κ = 0, and K may be a plan that was found before. Without the row potentials the
dual is to minimise over g, with k = λ_a + η,

.. math:: φ(g) = \sum_i k A_i(g) - λ_a |p| - λ_b \sum_j q_j (1 - e^{-g_j/λ_b}), \quad
          A_i = p_i^{λ_a/k} \Big(\sum_j K_{ij} e^{(g_j - C_{ij})/η}\Big)^{η/k},

whose gradient is :math:`\sum_i A_i s_i - q e^{-g/λ_b}`, s_i being the softmax of row i and A_i its
mass. Row i is A_i/η-smooth, and no A_i has a bound; but where the optimum can be, it has one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._types import Vector
from ..kernels.proof import ROUND_OFF
from ..kernels.vectors import exp, log
from .kullback_leibler import gained, log_charge, penalised_softmin
from .problem import Penalised

#: Potential of a column without mass: no plan uses it, and differences of it are numbers.
UNUSED = -1e40


class Box(NamedTuple):
    """Ends between which the optimal g lies, and a bound on the mass of the optimal plan."""

    low: Vector
    high: Vector
    mass: float


@dataclass(frozen=True)
class SemiDual:
    """φ for a problem with η > 0 and a reference K = exp(U ⊕ V - κ C)."""

    problem: Penalised
    U: Vector
    V: Vector
    sharpness: float  # κ + 1/η

    @property
    def zeta(self) -> float:
        """What plans divide their costs by: 1 / (κ + 1/η)."""
        return 1 / self.sharpness

    @property
    def own(self) -> float:
        """What log p counts for in the mass of a row, λ_a / k."""
        return 1 - self.share

    @property
    def share(self) -> float:
        """What its log-normaliser counts for, η / k."""
        return self.problem.eta / (self.problem.price_a + self.problem.eta)

    def row_scaling(self, f: Vector) -> Vector:
        """Return ζ (U + f / η), the row potential of the plan with respect to ζ."""
        return self.zeta * (self.U + f / self.problem.eta)

    def column_scaling(self, g: Vector) -> Vector:
        """Return ζ (V + g / η), the column potential of the plan with respect to ζ."""
        return self.zeta * (self.V + g / self.problem.eta)

    def gibbs_column(self, g: Vector) -> Vector:
        """Return the same with -inf for columns without mass, as plans and geometries have it."""
        return np.where(self.problem.q > 0, self.column_scaling(g), -np.inf)

    def row_masses(self, lse: Vector) -> Vector:
        """Return the A_i, given log-normalisers."""
        return exp(self.own * self.problem.log_p + self.share * (self.U + lse))

    def most_masses(self, high: Vector) -> Vector:
        """Return the A_i an η above the upper ends of a box, where no A_i is larger.

        Gradients of row i on the box differ by at most A_i there, so that steps of η / A_i along
        them stay below that point.
        """
        if self.share == 0:
            return self.problem.p.copy()
        lse = self.problem.geometry.lse_rows(self.gibbs_column(high), self.zeta)
        return self.row_masses(lse + 1)

    def row_potential(self, lse: Vector) -> Vector:
        """Return the best row potential beside the g of these log-normalisers."""
        problem = self.problem
        return penalised_softmin(problem.log_p, self.U + lse, problem.eta, problem.price_a)

    def log_wanted(self, g: Vector) -> Vector:
        """Return log(q exp(-g/λ_b)): what the penalty wishes columns to hold."""
        return self.problem.log_q - g / self.problem.price_b

    def value(self, g: Vector, lse: Vector, mass: float) -> float:
        """Return φ(g), given log-normalisers and the mass Σ A_i of the plan."""
        problem, f = self.problem, self.row_potential(lse)
        of_f = gained(problem.price_a, problem.p, f)
        return problem.eta * mass - of_f - gained(problem.price_b, problem.q, g)

    def best_shift(self, g: Vector, mass: float) -> float:
        """Return the t for which φ(g - t) is least: the plan then has the mass columns wish.

        A plan whose mass is not a positive number is not moved.
        """
        problem = self.problem
        if not 0 < mass < math.inf:
            return 0.0
        slope = 1 / (problem.price_a + problem.eta) + 1 / problem.price_b
        return (log(mass) - log_charge(problem.q, g, problem.price_b)) / slope

    def column_move(self, g: Vector, columns: Vector) -> Vector:
        """Return what brings g to the best one beside its f, where the plan has these columns."""
        used, out = self.problem.q > 0, np.zeros_like(g)
        held = np.maximum(columns[used], np.finfo(float).tiny)
        slope = 1 / self.problem.eta + 1 / self.problem.price_b
        out[used] = (self.log_wanted(g)[used] - log(held)) / slope
        return out

    def box(self, lower: float) -> Box:
        r"""Return a box that holds the optimal g, from a value of the dual, a lower bound.

        The optimal plan has the mass (λ_a |p| + λ_b |q| - OPT) / (λ_a + λ_b + η), so at most m̄ with
        the bound in place of OPT, and no row or column of it has more:

        .. math:: f_i \ge λ_a \log(p_i / m̄), \quad g_j \ge λ_b \log(q_j / m̄), \quad
                  g_j \le \frac{\log q_j - \log \sum_i K_{ij} e^{(λ_a \log(p_i/m̄) - C_{ij})/η}}
                               {1/η + 1/λ_b},

        the last as g is the best one beside the optimal f. A side that is kept tells the mass; then
        g has no lower end (columns) or no upper one (rows), and needs none.
        """
        problem = self.problem
        a, b, p, q = problem.price_a, problem.price_b, problem.p, problem.q
        of_p, of_q = float(p.sum()), float(q.sum())
        low, high = np.full(q.size, -np.inf), np.full(q.size, np.inf)
        if a == math.inf:
            mass = of_p
        else:
            mass = of_q if b == math.inf else self._most_mass(of_p, of_q, lower)
            lowest = self.row_scaling(a * (problem.log_p - log(mass)))
            lse = problem.geometry.lse_cols(lowest, self.zeta) + self.V
            high = penalised_softmin(problem.log_q, lse, problem.eta, b)
        if b < math.inf:
            low = b * (problem.log_q - log(mass))
        low[q == 0] = high[q == 0] = UNUSED
        return Box(np.minimum(low, high), high, mass)

    def _most_mass(self, of_p: float, of_q: float, lower: float) -> float:
        """Return m̄, and what rounding may have taken from it."""
        a, b, eta = self.problem.price_a, self.problem.price_b, self.problem.eta
        size = a * of_p + b * of_q
        return (size - lower + ROUND_OFF * (size + abs(lower))) / (a + b + eta)
