r"""Unbalanced transport with Kullback-Leibler penalties on the marginals.

.. math:: \min_{X \ge 0} \langle M, X\rangle + λ_a KL(X 1 | a) + λ_b KL(X^\top 1 | b) [- reg H(X)]

with KL(r | a) = Σ r log(r/a) - r + a; λ is one number for its side, or one per point. Its dual is
:math:`\max \sum λ_a a (1 - e^{-f/λ_a}) + \sum λ_b b (1 - e^{-g/λ_b})` over
:math:`f \oplus g \le M`; with ``reg`` any potentials will do, and
:math:`reg \sum e^{(f + g - M)/reg - 1}` is taken off. A
constant moves between f and g freely. The best one has a closed form if there is one λ per side,
and is found by Newton's method otherwise. The best multiple of a plan has a closed form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple, Self

import numpy as np

from .._types import Potentials, Vector
from ..errors import CertificateError
from ..kernels.proof import ROUND_OFF
from ..kernels.vectors import below, dot, exp, expm1, finite_dot, log
from .balanced import DEFAULT_ENTROPIC_GAP, check_regularisation
from .duals import finite_slopes
from .objective import BUG_NOTE, MIN_DEFAULT_GAP, MethodForm, Objective, Slopes
from .plan import Core, Plan
from .prices import Price, balancing_constant, kept, least, per_point, weighed
from .problem import Penalised, Problem
from .rounding import Rounded, remove_overflow, round_onto
from .support import Support
from .unbalanced_base import TUNING, UnbalancedObjective, check_growth, internal_prices

#: Largest relative misfit whose divergence is summed as a series, and the terms of that series.
SERIES_RADIUS, SERIES_TERMS = 0.1, 16
#: Potential of a point without arcs, in units of its penalty: exp(-40) is below the round-off of 1.
VANISHED = 40.0


@dataclass(frozen=True)
class KullbackLeibler(UnbalancedObjective):
    """min <C, X> + λ_a KL(X 1 | p) + λ_b KL(Xᵀ 1 | q) - η H(X); λ = ∞: exact marginal."""

    eta: float  # 0: no entropy

    quantity: ClassVar[str] = "unbalanced transport cost (KL)"
    fills_empty_points: ClassVar[bool] = False
    form: ClassVar[str] = Penalised.form
    method_refusal: ClassVar[str] = (
        "solves other problems; use unbalanced_sinkhorn, which is what auto takes, "
        "unbalanced_pdasmd (one penalty per side), or unbalanced_type='tv'."
    )
    default_method: ClassVar[tuple[str, str] | None] = (
        "unbalanced_sinkhorn",
        "it solves unbalanced problems",
    )

    @classmethod
    def of(cls, problem: Problem, price_a: Price, price_b: Price, reg: float | None) -> Objective:
        """Return the objective for a user's penalties and regularisation.

        The entropy of a plan of another mass is no multiple of its own, so that with one the masses
        are the user's.
        """
        prices = internal_prices(problem, price_a, price_b, reg)
        check_growth(problem, prices, sum(map(least, prices)) + (reg or 0.0) / problem.unit)
        if reg is None:
            return cls(problem, *prices, 0.0)
        check_regularisation(reg, problem)
        p, q = problem.mass * problem.p, problem.mass * problem.q
        exact = replace(problem, geometry=problem.geometry.exact, p=p, q=q, mass=1.0)
        return EntropicKullbackLeibler(exact, *prices, reg / problem.unit)

    # -- facts that a run asks for ------------------------------------------------------------

    def is_served_by(self, method: MethodForm) -> bool:
        """Tell whether a method solves the problem, and takes penalties per point if there are."""
        has_vectors = any(isinstance(x, np.ndarray) for x in (self.price_a, self.price_b))
        return super().is_served_by(method) and (method.takes_point_prices or not has_vectors)

    def restricted_to(self, support: Support) -> Self:
        """Return the objective on the part of the problem that has mass."""
        price_a, price_b = kept(self.price_a, support.rows), kept(self.price_b, support.cols)
        return replace(self, problem=support.problem, price_a=price_a, price_b=price_b)

    def fixed_target(self, inner: Problem) -> Penalised:
        """Return the problem with its penalties."""
        return Penalised(inner.geometry, self.eta, inner.p, inner.q, self.price_a, self.price_b)

    @property
    def size(self) -> float:
        """The largest cost, penalty or regularisation, times the total mass."""
        return self.total * max(super().size, self.eta)

    @property
    def round_off_size(self) -> float:
        """The largest cost or regularisation, or else penalty, times the total mass."""
        return self.total * max(self.cost_size, self.eta) or self.size

    # -- plans -------------------------------------------------------------------------------

    @np.errstate(over="ignore", invalid="ignore")
    def value(self, plan: Plan, cost: float) -> float:
        """Return the objective of a plan with the required exact marginals."""
        r, c = plan.marginals()
        p, q = self.problem.p, self.problem.q
        divergences = divergence(r, p, self.price_a) + divergence(c, q, self.price_b)
        return cost + divergences - (self.eta * plan.entropy() if self.eta else 0.0)

    def rounded(self, core: Core) -> Rounded:
        """Return the best multiple of a plan, or the plan scaled to an exact marginal.

        Where missing a marginal costs much more than moving mass, the plan may instead get the
        marginals that are best if moving is free, whichever is cheaper.
        """
        core, *_ = remove_overflow(core, self.problem.p)
        found = self._scaled(core)
        lowest = min(least(self.price_a), least(self.price_b))
        is_low = lowest <= TUNING.high_penalty_ratio * self.cost_size
        if (is_low or self.problem.geometry.allowed is not None) and not self.is_partly_exact:
            return found
        rounded = self._onto_marginals(core)
        return min(found, rounded, key=lambda x: self.value(x.plan, x.cost))

    def _onto_marginals(self, core: Core) -> Rounded:
        """Round to the marginals of least divergence that have equal totals."""
        p, q = self.problem.p, self.problem.q
        t = self._constant(np.zeros_like(p), np.zeros_like(q))
        p = p * exp(-t / per_point(self.price_a, p.size))
        q = q * exp(t / per_point(self.price_b, q.size))
        found = round_onto(core, p, q, self.problem.geometry)
        return self.with_exact_points(found) if self.is_partly_exact else found

    def _scaled(self, core: Core) -> Rounded:
        """Return the best multiple of a plan, or the plan scaled to the exact marginals."""
        p, q = self.problem.p, self.problem.q
        found = self.keeping(core, np.where(p > 0, 1.0, 0.0), np.where(q > 0, 1.0, 0.0))
        if self.is_partly_exact or max(least(self.price_a), least(self.price_b)) == math.inf:
            return found
        factor = self._best_factor(found.plan, found.cost)
        correction = found.plan.correction
        assert correction is not None
        scaled = replace(found.plan, correction=correction._replace(s=factor * correction.s))
        return Rounded(scaled, factor * found.cost, found.marginal_error)

    def _best_factor(self, plan: Plan, cost: float) -> float:
        """Return the factor that minimises the objective over multiples of a plan."""
        r, c = plan.marginals()
        mass = float(r.sum())
        if not 0 < mass < math.inf:
            return 1.0
        entropy = self.eta * plan.entropy() if self.eta else 0.0
        paid = log_ratio(r, self.problem.p, self.price_a)
        paid += cost + log_ratio(c, self.problem.q, self.price_b) - entropy
        total = float(weighed(self.price_a, r).sum() + weighed(self.price_b, c).sum())
        exponent = (paid + self.eta * mass) / (total + self.eta * mass)
        return float(exp(-min(max(exponent, -700.0), 700.0)))

    def infeasibility(self, plan: Plan) -> float:
        """Return the error of exact marginals, and mass on empty rows, as a share of all mass."""
        r, c = plan.marginals()
        missed = 0.0
        for price, x, wanted in (
            (self.price_a, r, self.problem.p),
            (self.price_b, c, self.problem.q),
        ):
            is_kept = np.isinf(price) | (wanted == 0)
            missed += float(np.abs(x - wanted)[is_kept].sum())
        return missed / self.total

    # -- potentials --------------------------------------------------------------------------

    def row_potential(self, g: Vector) -> Vector:
        """Return the c-transform."""
        return bounded_gains(self.problem.geometry.ctransform_rows(g), self.price_a)

    def dual(self, f: Vector) -> tuple[Potentials, float]:
        """Return c-transforms of a row potential with the optimal constant between them."""
        geometry = self.problem.geometry
        g = bounded_gains(geometry.ctransform_cols(f), self.price_b)
        f = self.row_potential(g)
        transformed, balanced = (f, g), self._balanced(f, g)
        # Transforms round on both sides of the constant, which may be much larger than they are.
        rounding = sum(
            geometry.ctransform_error(*pair)
            + np.finfo(float).eps * sum(float(np.abs(x).max()) for x in pair)
            for pair in (transformed, balanced)
        )
        f, g = balanced
        f = below(f - rounding)
        return self._finite((f, g), self._bound(f, g))

    def _finite(self, potentials: Potentials, bound: float) -> tuple[Potentials, float]:
        """Return potentials and their bound, or constants if exponentials have overflowed."""
        if bound > -math.inf:
            return potentials, bound
        low, (n, m) = min(self.problem.geometry.bounds[0], 0.0), self.problem.shape
        a, b = least(self.price_a), least(self.price_b)
        share = 1.0 if a == math.inf else 0.0 if b == math.inf else a / (a + b)
        of_columns = (1 - share) * low
        of_rows = below(np.full(1, low - of_columns))[0]
        f, g = np.full(n, of_rows), np.full(m, of_columns)
        return (f, g), self.dual_value((f, g))

    def _balanced(self, f: Vector, g: Vector) -> Potentials:
        """Return (f + t, g - t) with the t that maximises the bound."""
        t = self._constant(f, g)
        return f + t, g - t

    def _constant(self, f: Vector, g: Vector) -> float:
        """Return the t that maximises the bound of (f + t, g - t)."""
        of_f = charges(self.problem.p, f, self.price_a)
        of_g = charges(self.problem.q, g, self.price_b)
        return balancing_constant(*of_f, *of_g)

    def dual_value(self, potentials: Potentials) -> float:
        """Return the bound of potentials below the costs."""
        f, g = potentials
        if not (self.problem.geometry.ctransform_rows(g) >= f).all():
            raise CertificateError(f"the potentials exceed the costs. {BUG_NOTE}")
        return self._bound(f, g)

    @property
    def slopes(self) -> Slopes | None:
        """λ (1 - exp(-f/λ)) on both sides: the dual is linear in the weights."""
        unit = self.problem.unit
        return partial(penalised_slopes, prices=(unit * self.price_a, unit * self.price_b))

    def _bound(self, f: Vector, g: Vector) -> float:
        """Return λ_a Σ p (1 - exp(-f/λ_a)) + λ_b Σ q (1 - exp(-g/λ_b)), less their rounding."""
        p, q = self.problem.p, self.problem.q
        # NaN and -inf stand for exponentials that overflow, which prove nothing.
        bound = gained(self.price_a, p, f) + gained(self.price_b, q, g)
        bound -= TUNING.rounding * (gain_size(self.price_a, p, f) + gain_size(self.price_b, q, g))
        return bound if bound > -math.inf else -math.inf


@dataclass(frozen=True)
class EntropicKullbackLeibler(KullbackLeibler):
    """The objective with an entropy: strictly convex, and any potentials prove a bound."""

    quantity: ClassVar[str] = "entropic unbalanced objective (KL)"
    is_entropic: ClassVar[bool] = True
    accuracy: ClassVar[str] = "tol"

    @property
    def default_gap(self) -> float:
        """A share of costs times masses."""
        return max(DEFAULT_ENTROPIC_GAP * self.round_off_size, MIN_DEFAULT_GAP * self.scale)

    def row_potential(self, g: Vector) -> Vector:
        """Return the exact row update."""
        lse = self.problem.geometry.lse_rows(g, self.eta) - 1
        return penalised_softmin(log(self.problem.p), lse, self.eta, self.price_a)

    def dual(self, f: Vector) -> tuple[Potentials, float]:
        """Return potentials after exact updates of columns and rows, with the best constant."""
        lse = self.problem.geometry.lse_cols(f, self.eta) - 1
        g = penalised_softmin(log(self.problem.q), lse, self.eta, self.price_b)
        f, g = self._balanced(self.row_potential(g), g)
        return self._finite((f, g), self.dual_value((f, g)))

    def dual_value(self, potentials: Potentials) -> float:
        """Return the bound of any potentials."""
        f, g = potentials
        lse = self.problem.geometry.lse_rows(g, self.eta) - 1
        mass = float(exp(f / self.eta + lse).sum())
        bound = self._bound(f, g) - self.eta * mass * rounding_factor(f, g, self.eta)
        return bound if bound > -math.inf else -math.inf


def penalised_softmin(log_mass: Vector, lse: Vector, eta: float, price: Price) -> Vector:
    """Return (log p - lse) / (1/η + 1/λ), the optimal potential of one side.

    It is -inf where there is no mass, for all sums.
    """
    out, used = np.full_like(log_mass, -np.inf), log_mass > -np.inf
    out[used] = (log_mass[used] - lse[used]) / (1 / eta + 1 / kept(price, used))
    return bounded_gains(out, price)


def bounded_gains(f: Vector, price: Price) -> Vector:
    """Return potentials, finite at points without arcs: their mass vanishes at the full price.

    Exact points without arcs have no mass, and any potential.
    """
    is_alone = f == np.inf
    vanished = VANISHED * np.where(np.isinf(price), 0.0, price)
    return np.where(is_alone, vanished, f) if is_alone.any() else f


def rounding_factor(f: Vector, g: Vector, eta: float) -> float:
    """Return a factor that bounds the true mass of exp((f + g - C) / η) by the computed one."""
    size = sum(float(np.abs(x[np.isfinite(x)]).max(initial=0.0)) for x in (f, g))
    return float(exp(TUNING.rounding * size / eta))


def charges(weights: Vector, f: Vector, price: Price) -> tuple[Vector, Price]:
    """Return log(p exp(-f/λ)) and 1/λ of the points that have mass."""
    used = weights > 0
    fall = 1 / kept(price, used)
    return log(weights[used]) - np.where(fall > 0, f[used], 0.0) * fall, fall


def log_charge(weights: Vector, f: Vector, price: Price) -> float:
    """Return log Σ p exp(-f/λ) over the entries that have mass."""
    terms, _ = charges(weights, f, price)
    highest = float(terms.max())
    return highest + float(log(float(exp(terms - highest).sum())))


def penalised_slopes(potentials: Potentials, prices: tuple[Price, Price]) -> Potentials:
    """Return the slopes λ (1 - exp(-f/λ)) of the optimum in the weights, for free weights.

    They are the potentials themselves where a marginal is exact (λ = ∞). With an entropy, the slope
    at a weight of 0 is infinite; the mean of the others stands for it.
    """
    f, g = (_gains(price, z) for z, price in zip(potentials, prices, strict=True))
    return finite_slopes(f), finite_slopes(g)


def _gains(price: Price, f: Vector) -> Vector:
    """Return λ (1 - exp(-f/λ)), which is f for λ = ∞."""
    is_exact = np.isinf(price)
    finite = np.where(is_exact, 1.0, price)
    return np.where(is_exact, f, -finite * expm1(np.where(is_exact, 0.0, -f / finite)))


def gained(price: Price, weights: Vector, f: Vector) -> float:
    """Return Σ λ p (1 - exp(-f/λ)), which is <p, f> for λ = ∞."""
    return finite_dot(weights, _gains(price, np.where(weights > 0, f, 0.0)))


def gain_size(price: Price, weights: Vector, f: Vector) -> float:
    """Return Σ λ p |1 - exp(-f/λ)|, which is Σ p |f| for λ = ∞."""
    return finite_dot(weights, np.abs(_gains(price, np.where(weights > 0, f, 0.0))))


def log_ratio(r: Vector, p: Vector, price: Price = 1.0) -> float:
    """Return Σ λ r log(r / p) over the entries that have mass."""
    used = (r > 0) & (p > 0)
    return dot(weighed(kept(price, used), r[used]), log(r[used] / p[used]))


def divergence(r: Vector, p: Vector, price: Price = 1.0) -> float:
    """Return Σ λ KL(r | p) over the points whose mass is not exact, without cancellation.

    KL(r | p) is p h((r - p) / p) with h(x) = (1 + x) log(1 + x) - x. Near 0 h is the series
    Σ_k (-x)^k / (k (k - 1)) from k = 2 on.
    """
    used = p > 0
    r, p, price = r[used], p[used], kept(price, used)
    x, is_near = (r - p) / p, np.abs(r - p) < SERIES_RADIUS * p
    series, near = np.zeros_like(x), np.where(is_near, x, 0.0)
    for k in range(SERIES_TERMS, 1, -1):
        series = 1 / (k * (k - 1)) - near * series
    log_ratio_of = log(np.where(r > 0, r / p, 1.0))
    far = np.where(is_near, 0.0, (r * log_ratio_of - (r - p)))
    return float(weighed(price, far).sum()) + dot(weighed(price, p), near * near * series)


#: Potential of a column without mass: finite, so that differences of it are numbers.
UNUSED_POTENTIAL = -1e40


class Box(NamedTuple):
    """Bounds on the optimal g, entry by entry, and on the mass of the optimal plan."""

    low: Vector
    high: Vector
    mass: float


@dataclass(frozen=True)
class SemiDual:
    r"""The finite-sum dual φ of an unbalanced problem, with a box on which its rows are smooth.

    The objective gets the term η KL(X | K), up to a constant, where K = exp(U ⊕ V - κ C). The
    entropy is U = -1, V = 0 and κ = 0; K may also be an earlier plan. After the row potentials are
    eliminated, the dual is to minimise over g, with k = λ_a + η,

    .. math:: φ(g) = \sum_i k A_i(g) - λ_a |p| - λ_b \sum_j q_j (1 - e^{-g_j/λ_b}), \quad
              A_i = p_i^{λ_a/k} \Big(\sum_j K_{ij} e^{(g_j - C_{ij})/η}\Big)^{η/k}.

    The gradient is :math:`\sum_i A_i s_i - q e^{-g/λ_b}`, where s_i is the softmax of row i and A_i
    its mass. Row i is A_i/η-smooth. A_i has no bound in general, but it has one on a box that
    contains the optimum.
    """

    problem: Penalised
    U: Vector
    V: Vector
    sharpness: float  # κ + 1/η

    @property
    def price_a(self) -> float:
        """λ_a, one for all rows."""
        return least(self.problem.price_a)

    @property
    def price_b(self) -> float:
        """λ_b, one for all columns."""
        return least(self.problem.price_b)

    @property
    def zeta(self) -> float:
        """The regularisation ζ = 1 / (κ + 1/η) of the plans."""
        return 1 / self.sharpness

    @property
    def own(self) -> float:
        """Exponent λ_a / k of p in the mass of a row."""
        return 1 - self.share

    @property
    def share(self) -> float:
        """Exponent η / k of the normaliser in the mass of a row."""
        return self.problem.eta / (self.price_a + self.problem.eta)

    def row_scaling(self, f: Vector) -> Vector:
        """Return ζ (U + f / η), the row potential of the plan with respect to ζ."""
        return self.zeta * (self.U + f / self.problem.eta)

    def column_scaling(self, g: Vector) -> Vector:
        """Return ζ (V + g / η), the column potential of the plan with respect to ζ."""
        return self.zeta * (self.V + g / self.problem.eta)

    def gibbs_column(self, g: Vector) -> Vector:
        """Return the column potential of the plan, -inf for columns without mass."""
        return np.where(self.problem.q > 0, self.column_scaling(g), -np.inf)

    def row_masses(self, lse: Vector) -> Vector:
        """Return the A_i, given log-normalisers."""
        return exp(self.own * self.problem.log_p + self.share * (self.U + lse))

    def most_masses(self, high: Vector) -> Vector:
        """Return upper bounds on the A_i, taken an η above the upper ends of a box.

        Gradients of row i on the box differ by at most A_i there, so that steps of η / A_i along
        them stay below that point.
        """
        if self.share == 0:
            return self.problem.p.copy()
        lse = self.problem.geometry.lse_rows(self.gibbs_column(high), self.zeta)
        return self.row_masses(lse + 1)

    def row_potential(self, lse: Vector) -> Vector:
        """Return the optimal row potential for the g of these log-normalisers."""
        problem = self.problem
        return penalised_softmin(problem.log_p, self.U + lse, problem.eta, self.price_a)

    def log_wanted(self, g: Vector) -> Vector:
        """Return log(q exp(-g/λ_b)), the logarithm of the column sums that the dual prefers."""
        return self.problem.log_q - g / self.price_b

    def value(self, g: Vector, lse: Vector, mass: float) -> float:
        """Return φ(g), given log-normalisers and the mass Σ A_i of the plan."""
        problem, f = self.problem, self.row_potential(lse)
        of_f = gained(self.price_a, problem.p, f)
        return problem.eta * mass - of_f - gained(self.price_b, problem.q, g)

    def best_shift(self, g: Vector, mass: float) -> float:
        """Return the t that minimises φ(g - t).

        A plan whose mass is not a positive number is not moved.
        """
        problem = self.problem
        if not 0 < mass < math.inf:
            return 0.0
        slope = 1 / (self.price_a + problem.eta) + 1 / self.price_b
        return (log(mass) - log_charge(problem.q, g, self.price_b)) / slope

    def column_move(self, g: Vector, columns: Vector) -> Vector:
        """Return the step from g to the optimal one for its f, given the column sums."""
        used, out = self.problem.q > 0, np.zeros_like(g)
        held = np.maximum(columns[used], np.finfo(float).tiny)
        slope = 1 / self.problem.eta + 1 / self.price_b
        out[used] = (self.log_wanted(g)[used] - log(held)) / slope
        return out

    def box(self, lower: float) -> Box:
        r"""Return a box that holds the optimal g, from a value of the dual, a lower bound.

        The optimal plan has the mass (λ_a |p| + λ_b |q| - OPT) / (λ_a + λ_b + η), so at most m̄ with
        the bound in place of OPT, and no row or column of it has more:

        .. math:: f_i \ge λ_a \log(p_i / m̄), \quad g_j \ge λ_b \log(q_j / m̄), \quad
                  g_j \le \frac{\log q_j - \log \sum_i K_{ij} e^{(λ_a \log(p_i/m̄) - C_{ij})/η}}
                               {1/η + 1/λ_b},

        where the last holds because g is optimal for f. An exact side determines the mass; then
        g has no lower end (columns) or no upper one (rows), and needs none.
        """
        problem = self.problem
        a, b, p, q = self.price_a, self.price_b, problem.p, problem.q
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
        low[q == 0] = high[q == 0] = UNUSED_POTENTIAL
        return Box(np.minimum(low, high), high, mass)

    def _most_mass(self, of_p: float, of_q: float, lower: float) -> float:
        """Return m̄, increased by its round-off."""
        a, b, eta = self.price_a, self.price_b, self.problem.eta
        size = a * of_p + b * of_q
        return (size - lower + ROUND_OFF * (size + abs(lower))) / (a + b + eta)
