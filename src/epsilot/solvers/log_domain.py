"""Sinkhorn's iterates as potentials: log-sum-exp over the cost, any geometry and any η."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._types import Vector
from ..kernels.dense import missing_mass, relax_block
from ..problems.duals import softmin
from ..problems.problem import Entropic
from ..problems.work import Work
from .overrelaxation import Relaxed, safe_limit


@dataclass(slots=True, kw_only=True)
class LogState(Relaxed):
    """Potentials, and the log-sums that the next half-step needs."""

    lse: Vector  # log-sum-exp of the block to be updated next
    is_row_next: bool = True  # which block that is

    @classmethod
    def of(cls, problem: Entropic, row: Vector, lam: Vector, omega: float) -> tuple[LogState, Work]:
        """Return the state at given potentials, and the work of its log-sums."""
        lam = np.where(problem.q > 0, lam, -np.inf)
        lse = problem.geometry.rough.lse_rows(lam, problem.eta)
        entries = problem.geometry.pass_entries
        state = cls(row=row.copy(), lam=lam, lse=lse, omega=omega)
        return state, Work.of(scale=entries, lse=entries)

    def fits(self, problem: Entropic) -> bool:
        """Tell whether the sizes are those of a problem."""
        n, m = problem.shape
        sizes = self.row.size, self.lam.size, self.lse.size
        return sizes == (n, m, n if self.is_row_next else m)

    @property
    def n_sweeps(self) -> float:
        """Sweeps done; one is a column update, then a row update, and the first a row update."""
        return (self.n_steps + 1) / 2

    def advance(self, problem: Entropic) -> Work:
        """Update one block; the pass that measures the other is what its update needs."""
        geometry, eta = problem.geometry, problem.eta
        n, m = problem.shape
        if self.is_row_next:
            self.row, excess = self._relaxed(self.row, problem.log_p, problem.p, eta)
            self.lse = geometry.rough.lse_cols(self.row, eta)
            missing = missing_mass(self.lam, self.lse, problem.q, 1 / eta)
        else:
            self.lam, excess = self._relaxed(self.lam, problem.log_q, problem.q, eta)
            self.lse = geometry.rough.lse_rows(self.lam, eta)
            missing = missing_mass(self.row, self.lse, problem.p, 1 / eta)
        self.violation = excess + missing
        self.is_row_next = not self.is_row_next
        self.n_steps += 1
        return Work.of(lse=geometry.pass_entries, vector=8 * (n if self.is_row_next else m))

    def _relaxed(
        self, old: Vector, log_mass: Vector, mass: Vector, eta: float
    ) -> tuple[Vector, float]:
        """Return the updated block, and how far its marginal is from the mass."""
        omega = self.step_omega
        if omega == 1:
            return softmin(log_mass, self.lse, eta), 0.0
        new = np.empty_like(old)
        excess = relax_block(old, log_mass, mass, self.lse, eta, omega, safe_limit(omega), new)
        return new, excess
