r"""Mirror maps: how the sequence z moves (step 10 of the paper's Algorithm 1).

A map w must be 1-strongly convex in the norm H. Its γ enters the theorems through the proof's
:math:`V_0(u) \le γ \|u\|_H^2 / 2` alone, that is at z = 0 where the method starts, so a map need
not be smooth everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from .._types import Vector
from ..kernels.vectors import log
from .norms import dual_exponent, exponent, half_square_gradient, power


def _unknown(size: int, norm: str) -> float:
    return math.nan


@dataclass(frozen=True)
class Mirror:
    """A mirror map w given by its gradient and the inverse of that gradient.

    w must be 1-strongly convex in the chosen norm; ``gamma(size, norm)`` is its constant γ there,
    V_0(u) <= γ ‖u‖² / 2, which only the bounds of :mod:`epsilot.theory` need. The ``name`` stands
    for the map in files and texts.
    """

    gradient: Callable[[Vector], Vector] = field(repr=False)
    inverse: Callable[[Vector], Vector] = field(repr=False)
    gamma: Callable[[int, str], float] = field(default=_unknown, repr=False)
    name: str = "custom"

    def step(self, z: Vector, direction: Vector) -> Vector:
        """Return argmin_u V_z(u) + <direction, u> = (∇w)⁻¹(∇w(z) - direction)."""
        return self.inverse(self.gradient(z) - direction)


def _identity(x: Vector) -> Vector:
    return x


def _euclidean_gamma(size: int, norm: str) -> float:
    p = exponent(norm)
    return power(size, 1.0 if math.isinf(p) else max(1 - 2 / p, 0.0))


#: w = ‖·‖₂² / 2: 1-strongly convex in lp for p >= 2 only, with γ = size^(1 - 2/p) there.
EUCLIDEAN = Mirror(_identity, _identity, _euclidean_gamma, "euclidean")


def euclidean(size: int, norm: str) -> Mirror:
    """Return w = s ‖·‖₂² / 2 with the least s that makes it 1-strongly convex in the norm.

    s = 1 for p >= 2, where γ = size^(1 - 2/p): 1 in l2 and the size in l∞. For p < 2 both s and
    γ are size^(2/p - 1).
    """
    p = exponent(norm)
    if p >= 2:
        return EUCLIDEAN
    scale = power(size, 2 / p - 1)
    return Mirror(
        partial(_times, scale), partial(_times, 1 / scale), partial(_constant, scale), "euclidean"
    )


def p_norm(size: int, norm: str) -> Mirror:
    """Return w = s ‖·‖_r² / (2 (r - 1)), which has γ of order log(size) in l1.

    For lp with 1 < p <= 2, r = p and s = 1: γ = 1/(p - 1). For l1, r = 1 + 1/log(size) and s makes
    up for ‖u‖_1 <= size^(1 - 1/r) ‖u‖_r: γ <= e² log(size).
    """
    p = exponent(norm)
    if p >= 2:
        return EUCLIDEAN
    r = 1 + 1 / log(max(size, 3)) if p == 1 else p
    scale = (power(size, 2 * (1 - 1 / r)) if p == 1 else 1.0) / (r - 1)
    return Mirror(
        partial(_slope, r, scale),
        partial(_slope, dual_exponent(r), 1 / scale),
        partial(_constant, scale),
        f"p-norm, r = {r:.3g}",
    )


def _times(scale: float, x: Vector) -> Vector:
    return scale * x


def _constant(value: float, size: int, norm: str) -> float:
    return value


def _slope(r: float, scale: float, x: Vector) -> Vector:
    return scale * half_square_gradient(x, r)
