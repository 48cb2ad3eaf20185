"""Sinkhorn's algorithm in the log domain (Dvurechensky, Gasnikov, Kroshnin 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from .._types import Potentials, Vector
from ..problem import Entropic
from ..work import Work
from .base import About, DualPlan, EntropicSolver, l1


@dataclass(slots=True)
class State:
    """Potentials, and the log-sums that the next half-step needs."""

    row: Vector  # row potential τ
    lam: Vector  # column potential λ
    lse: Vector  # log-sum-exp of the block to be updated next
    is_row_next: bool  # which block that is
    violation: float  # l1 marginal violation of the current plan


@dataclass(frozen=True, kw_only=True)
class Sinkhorn(EntropicSolver, DualPlan):
    """Alternate exact minimisation of the dual over τ and λ.

    A step is one half-step: a block update, then one pass over C whose sums are both the
    stopping test and what the next half-step starts from.
    """

    about: ClassVar[About] = About(
        family="Sinkhorn",
        paper="Dvurechensky, Gasnikov, Kroshnin 2018",
        year=2018,
        complexity="n² ‖C‖² log n / ε²",
    )

    def init(
        self, problem: Entropic, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[State, Work]:
        """Start from zero potentials, or from the given ones."""
        n, m = problem.shape
        row, lam = (np.zeros(n), np.zeros(m)) if potentials is None else potentials
        lam = np.where(problem.q > 0, lam, -np.inf)
        lse = problem.geometry.lse_rows(lam, problem.eta)
        return State(row.copy(), lam, lse, True, np.inf), Work.of(scale=n * m, lse=n * m)

    def step(self, problem: Entropic, state: State, rng: Generator) -> Work:
        """Update one block exactly and measure the other."""
        geometry, eta = problem.geometry, problem.eta
        n, m = problem.shape
        if state.is_row_next:
            state.row = eta * (problem.log_p - state.lse)
            state.lse = geometry.lse_cols(state.row, eta)
            state.violation = l1(np.exp(state.lam / eta + state.lse) - problem.q)
            size = m
        else:
            state.lam = eta * (problem.log_q - state.lse)
            state.lse = geometry.lse_rows(state.lam, eta)
            state.violation = l1(np.exp(state.row / eta + state.lse) - problem.p)
            size = n
        state.is_row_next = not state.is_row_next
        return Work.of(lse=n * m, vector=8 * size)
