"""Accelerated primal-dual coordinate descent, random and greedy (Guo, Ho, Jordan 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from .._types import Matrix, Potentials, Vector
from ..errors import InvalidProblem
from ..kernels import coordinate as kernels
from ..problems.plan import Core, Explicit, Gibbs
from ..problems.problem import Entropic
from ..problems.work import Work
from .base import EntropicSolver, Pace, SolverState, l1
from .entropic_dual import is_near_optimal_at, mix
from .method_info import MethodInfo, Order


@dataclass(slots=True, kw_only=True)
class APDRCDState(SolverState):
    """Dual iterates (τ, λ) in one vector each, and the weighted average of the plans met."""

    lam: Vector  # iterate
    z: Vector  # momentum point
    X: Matrix  # averaged plan
    average: Vector  # its row sums, then its column sums
    theta: float = 1.0  # θ
    weight: float = 0.0  # sum of the averaging weights 1/θ
    violation: float = math.inf  # l1 marginal violation of the last plan averaged
    mean_violation: float = math.inf  # l1 marginal violation of the averaged plan


@dataclass(frozen=True, kw_only=True)
class APDRCD(EntropicSolver[APDRCDState]):
    r"""Minimise the sum-exp dual by accelerated steps along single coordinates.

    .. math:: ψ(τ, λ) = η \sum_{ij} e^{(τ_i+λ_j-C_{ij})/η} - <τ, p> - <λ, q>

    A step is an epoch of n + m coordinate steps. The exact average of the plans would need the
    whole plan after every one of them. Instead the plan of one step of the epoch, drawn with
    probability proportional to its weight, replaces all: an unbiased average at O(n) per step.

    Parameters
    ----------
    smoothness : float
        L in units of 1/η. The published value is 4; smaller ones are faster where they work
        (1 halves the steps) but nothing guarantees them.

    References
    ----------
    Guo, Ho, Jordan 2020, *Fast Algorithms for Computational Optimal Transport and Wasserstein
    Barycenter*, Algorithm 1.
    """

    smoothness: float = 4.0

    about: ClassVar[MethodInfo] = MethodInfo(
        family="accelerated",
        paper="Guo, Ho, Jordan 2020",
        year=2020,
        orders=(Order(2.5, eps=1, log=0.5),),
        is_in_table1=True,
        departure="one plan of each n + m steps stands for them in the average, which is unbiased",
        needs_dense=True,
    )
    pace: ClassVar[Pace] = Pace(start=0.025, factor=4.0, share=2.0)

    def __post_init__(self) -> None:
        if not 0 < self.smoothness < math.inf:
            raise InvalidProblem(
                f"smoothness is {self.smoothness}; it must be positive (4 is the published value)."
            )

    def init(
        self, problem: Entropic, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[APDRCDState, Work]:
        """Start from zero potentials, or from the given ones, shifted to a plan of mass 1."""
        n, m = problem.shape
        if potentials is None:
            # The paper's plan is exp((τ + λ - C) / η - 1): its zero is our τ = -η.
            lam, work = np.repeat([-problem.eta, 0.0], [n, m]), Work()
        else:
            lam, work = np.concatenate(potentials), Work.of(both_marginals=n * m)
            lam[:n] -= problem.eta * problem.geometry.log_marginals(*potentials, problem.eta)[2]
        X, average = np.zeros((n, m)), np.zeros(n + m)
        return APDRCDState(lam=lam, z=lam.copy(), X=X, average=average), work

    def step(self, problem: Entropic, state: APDRCDState, rng: Generator) -> Work:
        """Take n + m coordinate steps and average the plan of one of them."""
        n, m = problem.shape
        eta = problem.eta
        chosen = rng.integers(n + m, size=n + m)
        b, y = np.concatenate([problem.p, problem.q]), np.empty(n + m)
        state.theta, weight = kernels.random_coordinates(
            problem.geometry.matrix(), b, 1 / eta, eta / self.smoothness, state.theta,
            rng.random(), chosen, state.lam, state.z, y,
        )  # fmt: skip
        state.weight += weight
        share = weight / state.weight
        mix(problem.geometry, state.X, y[:n], y[n:], eta, share)
        average = np.concatenate([state.X.sum(axis=1), state.X.sum(axis=0)])
        last = (average - (1 - share) * state.average) / share
        state.average = average
        state.violation, state.mean_violation = l1(last - b), l1(average - b)
        n_exp = int(np.where(chosen < n, m, n).sum())
        return Work.of(lse=n_exp, gibbs=n * m, vector=3 * (n + m) ** 2 + n_exp + 4 * n * m)

    def meets_published_rule(self, problem: Entropic, state: APDRCDState, tolerance: float) -> bool:
        """Apply Appendix C to the average: violation <= ε'/2 and f(X) + φ <= ε/4."""
        return state.mean_violation <= tolerance and is_near_optimal_at(problem, state.X, state.lam)

    def candidates(self, problem: Entropic, state: APDRCDState) -> list[tuple[Core, Vector]]:
        """Return the averaged plan and the plan of the current iterate."""
        n = problem.shape[0]
        row, lam = state.lam[:n].copy(), state.lam[n:].copy()
        return [
            (Explicit(state.X.copy()), row),
            (Gibbs(problem.geometry, row, lam, problem.eta), row),
        ]

    def potentials(self, problem: Entropic, state: APDRCDState) -> Potentials:
        """Return the potentials of the current iterate, NaN once the average has overflowed."""
        n = problem.shape[0]
        lam = state.lam if np.isfinite(state.average).all() else np.full_like(state.lam, np.nan)
        return lam[:n], lam[n:]


#: Matrix entries per epoch of greedy steps: many steps where the matrix is small.
_EPOCH_ENTRIES = 1 << 18


@dataclass(frozen=True, kw_only=True)
class APDGCD(APDRCD):
    """Run APDRCD along the coordinate of the largest gradient.

    The full gradient costs a pass over the plan, so the exact average is free. There is no
    proof of convergence. It takes about as many steps as APDRCD, each n times as expensive. It
    is included for comparison.

    Parameters
    ----------
    smoothness
        As in :class:`APDRCD`.

    References
    ----------
    Guo, Ho, Jordan 2020, *Fast Algorithms for Computational Optimal Transport and Wasserstein
    Barycenter*, Algorithm 3.
    """

    about: ClassVar[MethodInfo] = MethodInfo(
        family="accelerated",
        paper="Guo, Ho, Jordan 2020",
        year=2020,
        needs_dense=True,
    )
    patience: ClassVar[int] = 100_000  # a minute or two

    def step(self, problem: Entropic, state: APDRCDState, rng: Generator) -> Work:
        """Take the greedy steps of one epoch."""
        n, m = problem.shape
        n_steps = steps_per_epoch(n, m)
        b, sums = np.concatenate([problem.p, problem.q]), np.empty(n + m)
        state.theta, state.weight = kernels.greedy_coordinates(
            problem.geometry.matrix(), b, 1 / problem.eta, problem.eta / self.smoothness,
            state.theta, state.weight, n_steps, state.lam, state.z, state.X, state.average,
            sums,
        )  # fmt: skip
        state.violation, state.mean_violation = l1(sums - b), l1(state.average - b)
        return Work.of(both_marginals=n_steps * n * m, vector=n_steps * (2 * n * m + 6 * (n + m)))


def steps_per_epoch(n: int, m: int) -> int:
    """Return the number of greedy steps that make up one epoch."""
    return max(1, _EPOCH_ENTRIES // (n * m))
