"""Sinkhorn's iterates as scalings of a stored kernel, which absorbs them when they grow large."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import parallel
from .._types import Matrix, Vector
from ..geometry.sweeps import ByRow, n_chunks
from ..kernels import dense as kernels
from ..kernels.dense import gibbs
from ..kernels.vectors import exp, log, power
from ..problems.duals import softmin_cols, softmin_rows
from ..problems.problem import Entropic
from ..problems.work import Work
from .base import l1
from .overrelaxation import Relaxed, safe_limit

#: Scalings beyond this factor are absorbed into the potentials of the kernel.
SCALING_RANGE = 1e60


@dataclass(slots=True, kw_only=True)
class KernelState(Relaxed):
    """X = diag(u) K diag(v), where K is the Gibbs plan of the absorbed potentials."""

    base_row: Vector  # absorbed row potential
    base_lam: Vector  # absorbed column potential
    K: Matrix
    u: Vector
    v: Vector
    sums: Vector  # Kᵀ u; zero before the first sweep

    @classmethod
    def of(
        cls, problem: Entropic, row: Vector, lam: Vector, omega: float, is_plain: bool
    ) -> tuple[KernelState, Work]:
        """Return the state at given potentials, absorbed unless exp(-C/η) itself will do."""
        n, m = problem.shape
        v = exp((lam - lam.max()) / problem.eta)
        state = cls(
            row=row.copy(),
            lam=lam.copy(),
            base_row=np.zeros(n),
            base_lam=np.zeros(m),
            K=np.empty((n, m)),
            u=np.ones(n),
            v=v,
            sums=np.zeros(m),
            omega=omega,
        )
        is_kept = is_plain and v.min() > 1 / SCALING_RANGE
        return state, state.build(problem) if is_kept else state.absorb(problem)

    def advance(self, problem: Entropic) -> Work:
        """Update v from the sums of the last sweep, then u, and sum the columns anew."""
        n, m = problem.shape
        work = Work.of(inner=2 * n * m, vector=8 * (n + m))
        with np.errstate(all="ignore"):
            omega = self.step_omega
            if self.sums.any():
                plain = problem.q / self.sums
                t = plain / self.v
                is_safe = t <= exp(safe_limit(omega))
                self.v = np.where(is_safe, plain * power(t, omega - 1), plain)
            excess = self._update_rows(problem, omega)
            scalings = np.concatenate([self.u, self.v])
            is_tame = scalings.min() > 1 / SCALING_RANGE and scalings.max() < SCALING_RANGE
        if not is_tame:
            if scalings.min() > 0 and scalings.max() < np.inf:
                self._read_potentials(problem)
            work += self.absorb(problem)
            excess = self._update_rows(problem, 1.0)
            work += Work.of(inner=2 * n * m)
        self._read_potentials(problem)
        self.violation = excess + l1(self.v * self.sums - problem.q)
        self.n_steps += 1
        return work

    def _update_rows(self, problem: Entropic, omega: float) -> float:
        """Update u and the column sums; return how far the rows are from p."""
        n, m = problem.shape
        count = n_chunks(n * m, n)
        parts, errors = np.empty((count, m)), np.empty(count)
        limit = exp(safe_limit(omega))
        parallel.share(
            kernels.scaling_sweep, count, n * m,
            self.K, self.v, problem.p, self.u, omega, limit, errors, parts,
        )  # fmt: skip
        self.sums = parts.sum(axis=0)
        return float(errors.sum())

    def _read_potentials(self, problem: Entropic) -> None:
        self.row = self.base_row + problem.eta * log(self.u)
        self.lam = self.base_lam + problem.eta * log(self.v)

    def absorb(self, problem: Entropic) -> Work:
        """Take one iteration in the log domain and make its potentials those of the kernel."""
        n, m = problem.shape
        self.base_lam = softmin_cols(problem, softmin_rows(problem, self.lam))
        self.base_row = softmin_rows(problem, self.base_lam)
        self.u, self.v, self.sums = np.ones(n), np.ones(m), np.zeros(m)
        return Work.of(lse=3 * n * m) + self.build(problem)

    def build(self, problem: Entropic) -> Work:
        """Compute the kernel of the absorbed potentials."""
        n, m = problem.shape
        problem.geometry.sweep(
            gibbs, ByRow(self.base_row), self.base_lam, 1 / problem.eta, ByRow(self.K)
        )
        return Work.of(gibbs=n * m)
