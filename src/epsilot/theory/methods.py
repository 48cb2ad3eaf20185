"""The bounds of the other methods, and every method's published order."""

from __future__ import annotations

import math

from .._types import Vector
from ..errors import InvalidProblem
from ..solvers import solver_class
from ..solvers.hybrid_primal_dual import plain_iterations
from ..solvers.method_info import MethodInfo
from .transport import dual_radius


def entropic_radius(cost_max: float, eta: float, p: Vector, q: Vector) -> float:
    """Return R = ‖C‖∞/η + log n - 2 log min(p, q) of Lin, Ho, Jordan 2019, in units of η."""
    low = min(float(p.min()), float(q.min()))
    return cost_max / eta + math.log(max(p.size, q.size)) - 2 * math.log(low)


def sinkhorn_iterations(violation: float, cost_max: float, eta: float, p: Vector, q: Vector) -> int:
    """Return 2 + 4R/δ half-steps, R = ‖C‖∞/η - log min(p, q) (Dvurechensky et al. 2018, Thm 1)."""
    radius = cost_max / eta - math.log(min(float(p.min()), float(q.min())))
    return math.ceil(2 + 4 * radius / violation)


def stochastic_sinkhorn_iterations(
    violation: float, cost_max: float, eta: float, p: Vector, q: Vector, *, printed: bool = False
) -> int:
    """Return 2 + 224 n R/δ coordinate updates (Theorem 3's Lemma, which prints 112).

    The same count bounds Greenkhorn (Lin, Ho, Jordan 2019).
    """
    factor = 112 if printed else 224
    radius = entropic_radius(cost_max, eta, p, q)
    return math.ceil(2 + factor * max(p.size, q.size) * radius / violation)


def accelerated_sinkhorn_iterations(
    violation: float, cost_max: float, eta: float, p: Vector, q: Vector
) -> int:
    """Return 1 + (16 √n R/δ)^(2/3) (Lin, Ho, Jordan 2022)."""
    low = min(float(p.min()), float(q.min()))
    radius = cost_max / eta + math.log(max(p.size, q.size)) - math.log(low)
    product = 16 * math.sqrt(max(p.size, q.size)) * radius / violation
    return math.ceil(1 + math.pow(product, 2 / 3))


def apdagd_iterations(violation: float, cost_max: float, eta: float, p: Vector, q: Vector) -> int:
    """Return √(16 L R √(2n) / δ) with L = 2/η and the l2 radius (Dvurechensky et al. 2018)."""
    size = p.size + q.size
    radius = math.sqrt(size) * max(
        dual_radius(cost_max, eta, p, q), dual_radius(cost_max, eta, q, p)
    )
    return math.ceil(math.sqrt(16 * (2 / eta) * radius * math.sqrt(size) / violation))


def hybrid_primal_dual_iterations(epsilon: float, cost_max: float, n: int, m: int) -> int:
    """Return ⌈‖C‖∞ √((n + m) log nm) / ε⌉ for the unregularised version.

    For n = m that is 2 ‖C‖∞ √(n log n) / ε.

    >>> hybrid_primal_dual_iterations(0.05, 1.0, 1000, 10)
    1929
    """
    return plain_iterations(epsilon, cost_max, n, m)


def dijkstra_phases(epsilon: float, cost_max: float, share: float = 0.5) -> int:
    """Return ⌊2‖C‖∞ / ((1 - s) ε)⌋ + 1 phases (Lahn, Mulchandani, Raghvendra 2019)."""
    return math.floor(2 * cost_max / ((1 - share) * epsilon)) + 1


def order(method: str, n: int, epsilon: float, cost_max: float = 1.0) -> float:
    """Return the published order of a method's operations (Table 1); only ratios mean anything.

    >>> order("apdagd", 10_000, 0.05) / order("pdasmd", 10_000, 0.05)
    100.0
    """
    about: MethodInfo = solver_class(method).about
    if not about.orders:
        raise InvalidProblem(f"{method} has no published order ({about.complexity}).")
    return sum(term.at(n, epsilon / cost_max) for term in about.orders)
