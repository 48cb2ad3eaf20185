"""Accelerated primal-dual greedy coordinate descent (Guo, Ho, Jordan 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from ..kernels import coordinate as kernels
from ..problems.problem import Entropic
from ..problems.work import Work
from .apdrcd import APDRCD, State
from .base import l1
from .method_info import MethodInfo

#: Matrix entries that one epoch goes through: many steps where the matrix is small.
_EPOCH_ENTRIES = 1 << 18


@dataclass(frozen=True, kw_only=True)
class APDGCD(APDRCD):
    """APDRCD along the coordinate of largest gradient.

    The full gradient costs a pass over the plan, so the exact average is free. There is no
    proof of convergence, and the steps are about as many as APDRCD's at n times the price: it
    is here for comparison.

    Parameters
    ----------
    smoothness
        As in :class:`~epsilot.solvers.apdrcd.APDRCD`.

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
    patience: ClassVar[int] = 100_000  # a minute or two; more would not be a result but a wait

    def step(self, problem: Entropic, state: State, rng: Generator) -> Work:
        """Take as many greedy steps as make up an epoch."""
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
