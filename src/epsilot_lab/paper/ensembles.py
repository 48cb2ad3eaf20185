"""PDASMD in NumPy, on many problems or seeds at once, with parts that can be switched off."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from epsilot._types import Matrix, Vector

from ..instances import images
from .numpy_pdasmd import Settings


@dataclass(frozen=True)
class Variant:
    """The parts of Algorithm 1, as printed by default but for L̄ = 1/η."""

    norm: str = "linf"
    has_proximal_step: bool = True
    tau2: float = 0.5
    is_reduced: bool = True
    constant: float = 9.0
    smoothness: float = 1.0  # L̄ η
    inner_share: float = 1.0  # l B / n
    batch_size: int = 1  # with more rows, τ₂ is divided by it
    gamma: float = 1.0  # γ is this power of n: mirror steps are n / γ times as long as proved


@dataclass
class Ensemble:
    """Problems of one size, stacked: row r is problem r, or run r of one problem."""

    C: np.ndarray  # (runs, n, n)
    p: Matrix
    q: Matrix
    eta: float
    tolerance: float

    @classmethod
    def of_images(cls, side: int, pairs: int, eps: float) -> Ensemble:
        """Stack pairs of images with Appendix C's η, p', q' and ε'/2."""
        made = [Settings.of(*images(side, k, "synthetic"), eps, 1, 1.0) for k in range(pairs)]
        C, p, q = (np.stack([getattr(x, name) for x in made]) for name in ("C", "p", "q"))
        return cls(C, p, q, made[0].eta, made[0].tolerance)

    def softmax(self, v: Matrix) -> np.ndarray:
        """Return the softmax of all rows of (v - C) / η, run by run."""
        T = (v[:, None, :] - self.C) / self.eta
        T -= T.max(axis=2, keepdims=True)
        np.exp(T, out=T)
        T /= T.sum(axis=2, keepdims=True)
        return np.asarray(T)

    def row_softmax(self, rows: np.ndarray, v: Matrix) -> np.ndarray:
        """Return the softmax of the drawn rows of each run."""
        T = (v[:, None, :] - self.C[np.arange(len(rows))[:, None], rows]) / self.eta
        T -= T.max(axis=2, keepdims=True)
        np.exp(T, out=T)
        T /= T.sum(axis=2, keepdims=True)
        return np.asarray(T)


@dataclass
class Course:
    """What became of an ensemble: sums over outer loops, and when each run met the tolerance."""

    loops: np.ndarray  # first outer loop within the tolerance, 0 where none was
    violation: Vector  # of the average at the end
    sampled: np.ndarray = field(default_factory=lambda: np.zeros(0))  # mean of x(y), step 15
    proved: np.ndarray = field(default_factory=lambda: np.zeros(0))  # mean of x(v), the proof's


def run(
    problems: Ensemble,
    variant: Variant,
    rng: Generator,
    max_loops: int,
    *,
    keeps_plans: bool = False,
    is_stopped: bool = True,
) -> Course:
    """Run Algorithm 1 on every problem, until all violations are within the tolerance.

    With ``keeps_plans`` the averaged plans are returned, of the sampled y and of all v.
    """
    R, n = problems.p.shape
    B = variant.batch_size
    inner = max(1, -(-round(variant.inner_share * n) // B))
    h = problems.eta / (variant.constant * variant.smoothness)
    tau2 = variant.tau2 / B
    cumulative = np.cumsum(problems.p, axis=1)
    snap, y, z = np.zeros((3, R, n))
    columns, weight = np.zeros((R, n)), 0.0
    plans = np.zeros((2, R, n, n)) if keeps_plans else None
    loops = np.zeros(R, dtype=int)
    for s in range(max_loops):
        tau1 = 2 / (s + 4)
        alpha = h / tau1 * n ** (1 - variant.gamma)
        S = problems.softmax(snap)
        mu = np.einsum("ri,rij->rj", problems.p, S) - problems.q
        picked = rng.integers(inner, size=R)
        chosen, y_sum = np.zeros((R, n)), np.zeros((R, n))
        for step in range(inner):
            v = tau1 * z + tau2 * snap + (1 - tau1 - tau2) * y
            uniform = rng.random((R, B)) * cumulative[:, -1:]
            passed = cumulative[:, None, :] < uniform[:, :, None]
            rows = np.minimum(passed.sum(axis=2), n - 1)
            change = problems.row_softmax(rows, v)
            if variant.is_reduced:
                change -= S[np.arange(R)[:, None], rows]
            g = (mu if variant.is_reduced else -problems.q) + change.mean(axis=1)
            z = z - alpha * g
            y = v
            if variant.has_proximal_step:
                size = np.abs(g).sum(axis=1, keepdims=True)
                y = v - h * (size * np.sign(g) if variant.norm == "linf" else g)
            y_sum += y
            chosen[picked == step] = y[picked == step]
            if plans is not None:
                plans[1] += problems.p[:, :, None] * problems.softmax(v) / (inner * tau1)
        snap = y_sum / inner
        X = problems.p[:, :, None] * problems.softmax(chosen)
        columns += X.sum(axis=1) / tau1
        weight += 1 / tau1
        if plans is not None:
            plans[0] += X / tau1
        violation = np.abs(columns / weight - problems.q).sum(axis=1)
        loops[(loops == 0) & (violation <= problems.tolerance)] = s + 1
        if is_stopped and loops.all():
            break
    if plans is None:
        return Course(loops, violation)
    return Course(loops, violation, plans[0] / weight, plans[1] / weight)
