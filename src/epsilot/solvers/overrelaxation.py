"""Safeguarded overrelaxation of Sinkhorn's algorithm.

A plain update multiplies a scaling by t = p_i / r_i; an overrelaxed one by t**ω, 1 < ω < 2. Near
the solution this is successive overrelaxation, whose best ω follows from the rate of the plain
method (Young 1954; Thibault, Chizat, Dossal, Papadakis 2021; Lehmann, von Renesse, Sambale,
Uschmajew 2022). Far from it an update may raise the dual, so every coordinate is checked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from .._types import Vector
from ..kernels.vectors import exp, power

#: Sweeps between two choices of ω, and those before the rate is measured: the violation of an
#: overrelaxed iterate grows with ω, so that violations of two different ω do not compare.
WINDOW, SETTLING = 12, 4
#: Sweeps without overrelaxation after each change of η: the first updates are too large for it.
PLAIN_SWEEPS = 3
#: ω to begin with, and its limit.
FIRST, LARGEST = 1.5, 1.85
#: By which ω - 1 shrinks when the violation has not fallen.
RETREAT = 0.7


@lru_cache(maxsize=256)
def safe_limit(omega: float) -> float:
    r"""Return the largest log t for which an update with ω is safe.

    Multiplying row i by t**ω lowers the exp-dual by
    :math:`p_i (ω \log t - t^{ω-1} + 1/t)`, a plain update by :math:`p_i(\log t - 1 + 1/t)`. Safe
    is what reaches half of the ratio ω(2 - ω) that the two have near t = 1, so that the dual
    falls at every update by a fixed share of what Sinkhorn would do.
    """
    if omega == 1:
        return math.inf
    share = 0.5 * omega * (2 - omega)

    def is_safe(s: float) -> bool:
        plain = s - 1 + exp(-s)
        return omega * s - exp((omega - 1) * s) + exp(-s) >= share * plain

    low, high = 1e-3, 60.0
    if is_safe(high):
        return high
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_safe(middle) else (low, middle)
    return low


def next_omega(omega: float, rate: float) -> float:
    r"""Return the ω to use after the error fell by ``rate`` a sweep with the current one.

    The rate λ of an underrelaxed iteration tells the rate μ² of the plain one,
    :math:`(λ + ω - 1)^2 = λ ω^2 μ^2`, and that the best :math:`ω = 2 / (1 + \sqrt{1 - μ^2})`.
    An error that does not fall sends ω back towards plain updates.
    """
    if not rate < 1:
        return 1 + RETREAT * (omega - 1)
    if rate <= omega - 1:  # at or beyond the best ω: the rate no longer tells μ
        return omega
    excess = rate + omega - 1
    plain = min(excess * excess / (rate * omega * omega), 1.0)
    return min(2 / (1 + math.sqrt(1 - plain)), LARGEST)


@dataclass(slots=True, kw_only=True)
class Relaxed:
    """Potentials under overrelaxed sweeps, and what the choice of ω needs."""

    row: Vector  # row potential τ
    lam: Vector  # column potential λ
    omega: float  # overrelaxation in use
    violation: float = math.inf  # l1 marginal violation of the current plan
    reference: float = math.inf  # violation since which the rate is measured
    n_steps: int = 0  # steps done

    @property
    def n_sweeps(self) -> float:
        """Sweeps over rows and columns done."""
        return self.n_steps

    @property
    def step_omega(self) -> float:
        """The overrelaxation of the next step; the first sweeps after a new η are plain."""
        return self.omega if self.n_sweeps >= PLAIN_SWEEPS else 1.0

    def adapt(self) -> None:
        """Choose ω again after each window, from the rate at which the violation fell."""
        n_sweeps = self.n_sweeps % WINDOW
        if n_sweeps == SETTLING:
            self.reference = self.violation
        elif n_sweeps == 0 and 0 < self.violation < math.inf and 0 < self.reference < math.inf:
            rate = power(self.violation / self.reference, 1 / (WINDOW - SETTLING))
            self.omega = next_omega(self.omega, rate)
