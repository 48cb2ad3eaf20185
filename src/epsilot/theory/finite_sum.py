"""Theorem 1, its batch version, and the outer loops that they ask for."""

from __future__ import annotations

import math


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
