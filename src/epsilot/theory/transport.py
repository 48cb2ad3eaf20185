"""The bounds for transport: radius, smoothness, Theorem 2 and Corollary 1."""

from __future__ import annotations

import math

from .._types import Vector
from ..finite_sum.mirrors import euclidean
from ..finite_sum.norms import exponent
from ..solvers.stochastic_steps import step_operations
from .finite_sum import outer_loops


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
