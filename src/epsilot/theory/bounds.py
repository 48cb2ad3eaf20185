"""Compute the papers' bounds, and list how well each is proved.

Errata are numbered as in ``docs/errata.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from .._types import Vector
from ..errors import InvalidProblem
from ..finite_sum.algorithm import euclidean, exponent
from ..solvers import solver_class
from ..solvers.hybrid_primal_dual import plain_iterations
from ..solvers.method_info import MethodInfo
from ..solvers.stochastic_steps import step_operations


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
        γ of the mirror map, ``mirror.gamma(size, norm)``: 1 for l2 and the number of dual
        variables for l∞, with the Euclidean one.
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


def dual_radius(
    cost_max: float, eta: float, p: Vector, q: Vector, *, printed: bool = False
) -> float:
    """Bound ‖λ*‖∞ of the semi-dual for one of its shifts.

    (‖C‖∞ + η log(q_max / q_min)) / 2; printed: ‖C‖∞ + η (log n - 2 log min(p, q) + 1/2).
    In lp it is m^(1/p) times as large.
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
    gamma: float | None = None,
    printed: bool = False,
) -> int:
    """Return the outer loops that Theorem 2 and Corollary 1 allow for an ε-solution.

    ``p`` and ``q`` are the smoothed marginals p', q' of Appendix C, and there are ⌈n/B⌉ inner
    loops; ``gamma`` is that of the mirror map, the Euclidean one by default. Both conditions of
    step 2 are met: violation at most ε'/2 in l1, and f(E x) - f* at most ε/4.
    """
    n, m = p.size, q.size
    eta = epsilon / (2 * math.log(n * m))
    slack = epsilon / (8 * cost_max)
    radius = dual_radius(cost_max, eta, p, q, printed=printed)
    # From the dual norm of the violation to the l1 norm that Appendix C asks for.
    to_l1 = math.pow(m, 1 / exponent(norm))
    radius *= to_l1
    factor = 5.0 if norm == "linf" and smoothness == "paper" else 1.0
    if norm == "l2" and smoothness == "least":
        factor = 0.5
    violation = min(slack / (2 * to_l1), epsilon / (4 * radius))
    return outer_loops(
        violation,
        smoothness=factor / eta,
        radius=radius,
        inner_loops=-(-n // batch_size),
        batch_size=batch_size,
        gamma=euclidean(m, norm).gamma(m, norm) if gamma is None else gamma,
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
    inner = loops * m * (8 * batch_size + step_operations(norm))
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


def apdagd_iterations(
    violation: float,
    cost_max: float,
    eta: float,
    p: Vector,
    q: Vector,
    *,
    objective: float | None = None,
) -> int:
    """Return √(16 L R √(2n) / δ) with L = 2/η and the l2 radius (Dvurechensky et al. 2018).

    The bound of AAM is the same: a step on one of two blocks, whose constants are L/2, gains what
    a gradient step with twice L gains. With ``objective`` also f(x) + φ is at most that, after
    √(16 L R² / objective) iterations.
    """
    size = p.size + q.size
    radius = math.sqrt(size) * max(
        dual_radius(cost_max, eta, p, q), dual_radius(cost_max, eta, q, p)
    )
    least = min(violation / math.sqrt(size), math.inf if objective is None else objective / radius)
    return math.ceil(math.sqrt(16 * (2 / eta) * radius / least))


def apdamd_iterations(
    violation: float,
    cost_max: float,
    eta: float,
    p: Vector,
    q: Vector,
    *,
    objective: float | None = None,
) -> int:
    """Return √(32 n L R / δ) with L = 4/η and the l∞ radius, for V = ‖·‖²/(2n) (Lin et al. 2019).

    The steps add up to k²/(8 n L), and V(u) is at most 4R² where ‖u‖∞ <= 2R. With ``objective``
    also f(x) + φ is at most that.
    """
    radius = max(dual_radius(cost_max, eta, p, q), dual_radius(cost_max, eta, q, p))
    least = min(violation, math.inf if objective is None else objective / radius)
    return math.ceil(math.sqrt(32 * max(p.size, q.size) * (4 / eta) * radius / least))


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
    """Return the published order of a method's operations (Table 1); only ratios are meaningful.

    >>> order("apdagd", 10_000, 0.05) / order("pdasmd", 10_000, 0.05)
    100.0
    """
    about: MethodInfo = solver_class(method).about
    if not about.orders:
        raise InvalidProblem(f"{method} has no published order ({about.complexity}).")
    return sum(term.at(n, epsilon / cost_max) for term in about.orders)


class Standing(Enum):
    """Whether a statement is proved."""

    PROVED = "proved"  # as printed, or by a proof of ours that is given where it is used
    CORRECTED = "corrected"  # proved after a correction, which the functions have by default
    UNPROVED = "printed, not proved"  # a step of the printed proof fails, and none replaces it


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement of a paper, the function that computes it, and whether it is proved."""

    name: str
    says: str
    function: str  # of epsilot.theory
    standing: Standing
    why: str
    errata: tuple[str, ...] = ()


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        name="Theorem 1",
        says="violation and gap of the expected average of x(v) fall as 1/S²",
        function="violation_bound",
        standing=Standing.CORRECTED,
        why="the weights sum to S (S + 7) / 4, so the constant 2 is 4 / (1 + 7/S)",
        errata=("E3", "E8"),
    ),
    Statement(
        name="Theorem 1, the average as sampled",
        says="the same of the algorithm's own average, which samples y",
        function="violation_bound",
        standing=Standing.UNPROVED,
        why="the proof averages x(v), where the gradient is taken, and nothing is said of x(y)",
        errata=("E4",),
    ),
    Statement(
        name="Theorem 1 in any mirror map",
        says="the same with γ from V_0(u) <= γ ‖u‖² / 2 alone",
        function="violation_bound",
        standing=Standing.PROVED,
        why="the proof uses the smoothness of w only in V at the start z = 0",
    ),
    Statement(
        name="Batch theorem, l2",
        says="Theorem 1 with 1 + (l - 1)/B in place of l",
        function="violation_bound",
        standing=Standing.CORRECTED,
        why="as Theorem 1; in a Hilbert norm the variance of a mean falls by B",
        errata=("E3",),
    ),
    Statement(
        name="Batch theorem, l∞",
        says="the same in l∞",
        function="violation_bound",
        standing=Standing.UNPROVED,
        why="the l1 norm of a mean of B independent vectors need not fall at all",
        errata=("E7",),
    ),
    Statement(
        name="Smoothness lemma",
        says="row i is n p_i / η-smooth in l∞, printed with a factor 5, and n p_i / (2η) in l2",
        function="pdasmd_outer_loops",
        standing=Standing.CORRECTED,
        why="the printed factors are proved and not sharp: a variance is at most ‖u‖∞², ‖u‖₂²/2",
        errata=("E5", "E15"),
    ),
    Statement(
        name="Dual radius",
        says="‖λ*‖∞ <= (‖C‖∞ + η log(q_max / q_min)) / 2 for one shift",
        function="dual_radius",
        standing=Standing.PROVED,
        why="the printed bound is Lin, Ho, Jordan's and at least twice as large",
    ),
    Statement(
        name="Theorem 2",
        says="an ε-solution in expectation in n² ‖C‖ √log n / ε operations (l∞), n^2.5 (l2)",
        function="pdasmd_operations",
        standing=Standing.UNPROVED,
        why=(
            "the conditions bound the expected plan, and the rounding cost of a plan is not that "
            "of its expectation; n^2.5 is an artefact of bounding φ(0) - φ* by L̄R²/2"
        ),
        errata=("E6", "E9"),
    ),
    Statement(
        name="Corollary 1",
        says="√B times the operations with batches of B, in l∞",
        function="pdasmd_operations",
        standing=Standing.UNPROVED,
        why="it rests on the batch theorem in l∞ and on Theorem 2",
        errata=("E6", "E7"),
    ),
    Statement(
        name="Theorem 3's lemma",
        says="2 + 224 n R / δ updates of Stochastic Sinkhorn, printed with 112",
        function="stochastic_sinkhorn_iterations",
        standing=Standing.CORRECTED,
        why="the minimum over the split is 224, and the start must have mass 1",
        errata=("E12", "A1"),
    ),
    Statement(
        name="Theorem 3",
        says="an ε-solution in expectation in n² ‖C‖² log n / ε² operations",
        function="stochastic_sinkhorn_iterations",
        standing=Standing.UNPROVED,
        why=(
            "from the printed start u = v = 1, where the lemma behind its step is false; and the "
            "lemma bounds a mean at a fixed update, where the algorithm stops path by path"
        ),
        errata=("E12", "E16", "A1"),
    ),
    Statement(
        name="Sinkhorn",
        says="2 + 4 R / δ half-steps (Dvurechensky et al. 2018)",
        function="sinkhorn_iterations",
        standing=Standing.PROVED,
        why="as printed",
    ),
    Statement(
        name="Accelerated Sinkhorn",
        says="1 + (16 √n R / δ)^(2/3) iterations (Lin, Ho, Jordan 2022)",
        function="accelerated_sinkhorn_iterations",
        standing=Standing.CORRECTED,
        why="for the variant whose last update takes the other block",
        errata=("L1", "L2", "L3"),
    ),
    Statement(
        name="APDAGD",
        says="√(16 L R √(2n) / δ) iterations (Dvurechensky et al. 2018)",
        function="apdagd_iterations",
        standing=Standing.PROVED,
        why="as printed",
    ),
    Statement(
        name="AAM",
        says="as many iterations as APDAGD (Guminov et al. 2021)",
        function="apdagd_iterations",
        standing=Standing.PROVED,
        why="by our own constants: a block is L/2-smooth, and a step gains half its gradient",
        errata=("M1",),
    ),
    Statement(
        name="APDAMD",
        says="√(32 n L R / δ) iterations with L = 4/η (Lin, Ho, Jordan 2019)",
        function="apdamd_iterations",
        standing=Standing.PROVED,
        why="by our own constants, from the printed recursion",
    ),
    Statement(
        name="Hybrid primal-dual, without regularisation",
        says="⌈‖C‖ √((n + m) log nm) / ε⌉ iterations",
        function="hybrid_primal_dual_iterations",
        standing=Standing.PROVED,
        why="by our own proof, with the sharp bound of rounding",
    ),
    Statement(
        name="Dijkstra's search and DFS",
        says="⌊2 ‖C‖ / ((1 - s) ε)⌋ + 1 phases (Lahn, Mulchandani, Raghvendra 2019)",
        function="dijkstra_phases",
        standing=Standing.PROVED,
        why="as printed",
    ),
)
