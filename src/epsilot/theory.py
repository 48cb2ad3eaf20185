"""Proved bounds as functions, to hold measured runs against.

PDASMD's bounds (Luo, Xie, Huo: Theorems 1 to 3 and Corollary 1) come in two forms: with
``printed=True`` as in the paper, otherwise with its arithmetic corrected. The corrections: the
weights of S outer loops sum to S (S + 7) / 4, not to S (2S + 3) / 4 >= S² / 2; L̄ = 1/η suffices
in l∞ too; the proof of Theorem 3 gives 224, not 112; and the dual radius is half as large.

>>> round(violation_bound(100, smoothness=1.0, radius=1.0, inner_loops=50, gamma=50.0), 5)
0.0071
"""

from __future__ import annotations

import math

from ._types import Vector
from .errors import InvalidProblem
from .solvers import solver_class
from .solvers.about import About

# -- Theorem 1, its batch version, and the outer loops they ask for --------------------------


def weight_total(n_outer: int) -> float:
    """Return the sum of 1/τ₁ over S outer loops, S (S + 7) / 4."""
    return n_outer * (n_outer + 7) / 4


def violation_bound(
    n_outer: int,
    *,
    smoothness: float,
    radius: float,
    inner_loops: int,
    batch_size: int = 1,
    gamma: float = 1.0,
    step_constant: float = 9.0,
    initial_gap: float | None = None,
    printed: bool = False,
) -> float:
    r"""Bound the constraint violation of the expected average after S outer loops.

    .. math:: \|E[b - A x^{S-1}]\|_{H,*} \le
        \frac{2 (1 + (l-1)/B) δ_0 / R + 2 c \bar L R γ}{l \sum_s 1/τ_{1,s}}

    Parameters
    ----------
    n_outer : int
        Outer loops S.
    smoothness : float
        L̄, the mean of the components' constants in the norm H.
    radius : float
        R >= ‖λ*‖_H.
    inner_loops, batch_size : int
        l and B.
    gamma : float
        Smoothness of the mirror map: 1 for l2 and the number of dual variables for l∞, with the
        Euclidean one.
    step_constant : float
        c; 9 in general, 3 for l2.
    initial_gap : float, optional
        δ₀ = φ(0) - φ*, by default its bound L̄ R² / 2.
    printed : bool
        The paper's 2 / (S² l) [(1 + (l-1)/B) L̄ R + 18 L̄ R γ].

    References
    ----------
    Theorem 1 (B = 1) and the convergence theorem of Appendix D.
    """
    spread = 1 + (inner_loops - 1) / batch_size
    if printed:
        total = spread * smoothness * radius + 18 * smoothness * radius * gamma
        return 2 * total / (n_outer**2 * inner_loops)
    delta = smoothness * radius**2 / 2 if initial_gap is None else initial_gap
    total = 2 * spread * delta / radius + 2 * step_constant * smoothness * radius * gamma
    return total / (inner_loops * weight_total(n_outer))


def objective_bound(n_outer: int, *, radius: float, printed: bool = False, **terms: float) -> float:
    """Bound f(E x^{S-1}) - f(x*): the radius times :func:`violation_bound`."""
    terms["radius"] = radius
    return radius * violation_bound(n_outer, printed=printed, **terms)  # type: ignore[arg-type]


def outer_loops(violation: float, *, printed: bool = False, **terms: float) -> int:
    """Return the least S at which :func:`violation_bound` is within ``violation``.

    >>> outer_loops(0.01, smoothness=1.0, radius=1.0, inner_loops=50, gamma=50.0)
    84
    """
    at_one = violation_bound(1, printed=printed, **terms)  # type: ignore[arg-type]
    if printed:
        return math.ceil(math.sqrt(at_one / violation))
    product = 8 * at_one / violation  # S (S + 7), and 8 = 1 (1 + 7)
    return max(1, math.ceil((math.sqrt(49 + 4 * product) - 7) / 2))


# -- transport: radius, smoothness, Theorem 2 and Corollary 1 --------------------------------


def dual_radius(
    cost_max: float, eta: float, p: Vector, q: Vector, *, printed: bool = False
) -> float:
    """Bound ‖λ*‖∞ of the semi-dual for one of its shifts.

    (‖C‖∞ + η log(q_max / q_min)) / 2; printed: ‖C‖∞ + η (log n - 2 log min(p, q) + 1/2).
    The l2 radius is √m times as large.
    """
    if printed:
        low = min(float(p.min()), float(q.min()))
        return cost_max + eta * (math.log(q.size) - 2 * math.log(low) + 0.5)
    return (cost_max + eta * math.log(float(q.max() / q.min()))) / 2


def pdasmd_outer_loops(
    epsilon: float,
    cost_max: float,
    p: Vector,
    q: Vector,
    *,
    norm: str = "linf",
    batch_size: int = 1,
    smoothness: str = "paper",
    step_constant: float = 9.0,
    printed: bool = False,
) -> int:
    """Return the outer loops that Theorem 2 and Corollary 1 allow for an ε-solution.

    ``p`` and ``q`` are the smoothed marginals p', q' of Appendix C; the mirror map is Euclidean
    and there are ⌈n/B⌉ inner loops. Both conditions of step 2 are met: violation at most ε'/2 in
    l1, and f(E x) - f* at most ε/4.
    """
    n, m = p.size, q.size
    eta = epsilon / (2 * math.log(n * m))
    slack = epsilon / (8 * cost_max)
    radius = dual_radius(cost_max, eta, p, q, printed=printed)
    # From the l2 norm of the violation to the l1 norm that Appendix C asks for.
    if norm == "l2":
        radius, gamma, to_l1 = radius * math.sqrt(m), 1.0, math.sqrt(m)
    else:
        gamma, to_l1 = float(m), 1.0
    factor = 5.0 if norm == "linf" and smoothness == "paper" else 1.0
    violation = min(slack / (2 * to_l1), epsilon / (4 * radius))
    return outer_loops(
        violation,
        smoothness=factor / eta,
        radius=radius,
        inner_loops=-(-n // batch_size),
        batch_size=batch_size,
        gamma=gamma,
        step_constant=step_constant,
        printed=printed,
    )


def pdasmd_loop_operations(
    n: int,
    m: int,
    *,
    norm: str = "linf",
    batch_size: int = 1,
    inner_loops: int | None = None,
    average: str = "sampled",
) -> int:
    """Return the operations of one outer loop: snapshot, inner steps, averaged plan.

    >>> pdasmd_loop_operations(100, 100) / 100**2
    41.02
    """
    loops = -(-n // batch_size) if inner_loops is None else inner_loops
    snapshot = 9 * n * m + n
    inner = loops * m * (8 * batch_size + (14 if norm == "linf" else 11))
    plan = {"sampled": 10 * n * m + n, "snapshot": 3 * n * m + n, "none": 0}[average]
    return snapshot + inner + plan


def pdasmd_operations(
    epsilon: float,
    cost_max: float,
    p: Vector,
    q: Vector,
    *,
    norm: str = "linf",
    batch_size: int = 1,
    smoothness: str = "paper",
    step_constant: float = 9.0,
    printed: bool = False,
) -> int:
    """Return the operations of Theorem 2 (B = 1) and Corollary 1, with their constants."""
    loops = pdasmd_outer_loops(
        epsilon,
        cost_max,
        p,
        q,
        norm=norm,
        batch_size=batch_size,
        smoothness=smoothness,
        step_constant=step_constant,
        printed=printed,
    )
    return loops * pdasmd_loop_operations(p.size, q.size, norm=norm, batch_size=batch_size)


# -- the other methods -----------------------------------------------------------------------


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
    """Return ⌈2 ‖C‖∞ √(n log n) / ε⌉ for the unregularised version, rectangular by √(nm)."""
    size = math.sqrt(n * m)
    return math.ceil(2 * cost_max * math.sqrt(size * math.log(max(size, 2.0))) / epsilon)


def dijkstra_phases(epsilon: float, cost_max: float, share: float = 0.5) -> int:
    """Return ⌊2‖C‖∞ / ((1 - s) ε)⌋ + 1 phases (Lahn, Mulchandani, Raghvendra 2019)."""
    return math.floor(2 * cost_max / ((1 - share) * epsilon)) + 1


def order(method: str, n: int, epsilon: float, cost_max: float = 1.0) -> float:
    """Return the published order of a method's operations (Table 1); only ratios mean anything.

    >>> order("apdagd", 10_000, 0.05) / order("pdasmd", 10_000, 0.05)
    100.0
    """
    about: About = solver_class(method).about
    if not about.orders:
        raise InvalidProblem(f"{method} has no published order ({about.complexity}).")
    return sum(term.at(n, epsilon / cost_max) for term in about.orders)
