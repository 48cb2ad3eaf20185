"""Sinkhorn's algorithm (Cuturi 2013; Dvurechensky et al. 2018) with safeguarded overrelaxation.

A plain update multiplies a scaling by t = p_i / r_i; an overrelaxed one by t**ω, 1 < ω < 2. Near
the solution this is successive overrelaxation, whose best ω follows from the rate of the plain
method (Young 1954; Thibault, Chizat, Dossal, Papadakis 2021; Lehmann, von Renesse, Sambale,
Uschmajew 2022). Far from the solution an update may raise the dual, so every coordinate is checked.

Iterates are potentials in the log domain, or scalings of a stored kernel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np
from numpy.random import Generator

from .. import parallel
from .._types import Matrix, Potentials, Vector
from ..errors import InvalidProblem
from ..geometry.sweeps import ByRow, n_chunks
from ..kernels import dense as kernels
from ..kernels.dense import gibbs, missing_mass, relax_block
from ..kernels.vectors import exp, log, power
from ..problems.duals import softmin, softmin_cols, softmin_rows
from ..problems.problem import Entropic, Problem
from ..problems.work import Work
from .base import DualPlan, EntropicSolver, Pace, ResizableState, RowState, l1
from .cost_models import Offer, cost_model
from .method_info import MethodInfo, Order
from .options import check_choices


@dataclass(frozen=True, kw_only=True)
class SinkhornTuning:
    """Tuning parameters of Sinkhorn's algorithm."""

    # Violations under different ω do not compare, since the violation grows with ω. So the rate is
    # measured within a window, after a few sweeps with the new ω.
    window_sweeps: int = 12  # between two choices of ω
    settling_sweeps: int = 4  # of a window, before the rate is measured
    plain_sweeps: int = 3  # after each change of η, whose first updates are large
    first_omega: float = 1.5
    max_omega: float = 1.85
    retreat: float = 0.7  # factor on ω - 1 when the violation has not fallen
    # The stored kernel.
    max_scaling: float = 1e60  # larger ones are absorbed into the potentials
    max_exponent: float = 300.0  # max C/η up to which exp(-C/η) is stored as it is
    max_kernel_bytes: int = 2 << 30  # of a kernel that the user did not request
    # Offers to "auto".
    simplex_ratio: float = 50  # predicted time over that of a simplex, on a cost that is not stored
    node_bytes: int = 200  # predicted bytes per row and column


TUNING = SinkhornTuning()


@lru_cache(maxsize=256)
def safe_limit(omega: float) -> float:
    r"""Return the largest log t for which an update with ω is safe.

    Multiplying row i by t**ω lowers the exp-dual by
    :math:`p_i (ω \log t - t^{ω-1} + 1/t)`, a plain update by :math:`p_i(\log t - 1 + 1/t)`. Near
    t = 1 their ratio is ω(2 - ω). An update is safe if it reaches half of that ratio. So every
    update lowers the dual by a fixed share of the decrease of a plain update.
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
    r"""Return the next ω, given the factor ``rate`` by which the error fell per sweep.

    The rate λ of an underrelaxed iteration tells the rate μ² of the plain one,
    :math:`(λ + ω - 1)^2 = λ ω^2 μ^2`, and that the best :math:`ω = 2 / (1 + \sqrt{1 - μ^2})`.
    An error that does not fall sends ω back towards plain updates.
    """
    if not rate < 1:
        return 1 + TUNING.retreat * (omega - 1)
    if rate <= omega - 1:  # at or beyond the best ω: the rate does not determine μ
        return omega
    excess = rate + omega - 1
    plain = min(excess * excess / (rate * omega * omega), 1.0)
    return min(2 / (1 + math.sqrt(1 - plain)), TUNING.max_omega)


@dataclass(slots=True, kw_only=True)
class Relaxed(RowState):
    """Potentials under overrelaxed sweeps, and the data for the choice of ω."""

    row: Vector  # row potential τ
    lam: Vector  # column potential λ
    omega: float  # overrelaxation in use
    violation: float = math.inf  # l1 marginal violation of the current plan
    reference: float = math.inf  # violation when the measurement of the rate began
    n_steps: int = 0  # steps done

    @property
    def n_sweeps(self) -> float:
        """Sweeps over rows and columns done."""
        return self.n_steps

    @property
    def step_omega(self) -> float:
        """The overrelaxation of the next step; the first sweeps with a new η are plain."""
        return self.omega if self.n_sweeps >= TUNING.plain_sweeps else 1.0

    def adapt(self) -> None:
        """Choose ω after each window, from the rate at which the violation fell."""
        n_sweeps = self.n_sweeps % TUNING.window_sweeps
        if n_sweeps == TUNING.settling_sweeps:
            self.reference = self.violation
        elif n_sweeps == 0 and 0 < self.violation < math.inf and 0 < self.reference < math.inf:
            rate = power(
                self.violation / self.reference, 1 / (TUNING.window_sweeps - TUNING.settling_sweeps)
            )
            self.omega = next_omega(self.omega, rate)


@dataclass(slots=True, kw_only=True)
class LogState(Relaxed, ResizableState):
    """Potentials, and the log-sums for the next half-step."""

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
        """Tell whether the state has the sizes of a problem."""
        n, m = problem.shape
        sizes = self.row.size, self.lam.size, self.lse.size
        return sizes == (n, m, n if self.is_row_next else m)

    @property
    def n_sweeps(self) -> float:
        """Sweeps done: a column update, then a row update; the first one is a row update."""
        return (self.n_steps + 1) / 2

    def advance(self, problem: Entropic) -> Work:
        """Update one block; the pass that measures the other block also prepares its update."""
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
        """Return the updated block, and the l1 error of its marginal."""
        omega = self.step_omega
        if omega == 1:
            return softmin(log_mass, self.lse, eta), 0.0
        new = np.empty_like(old)
        excess = relax_block(old, log_mass, mass, self.lse, eta, omega, safe_limit(omega), new)
        return new, excess


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
        """Return the state at given potentials; absorb them unless exp(-C/η) suffices."""
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
        is_kept = is_plain and v.min() > 1 / TUNING.max_scaling
        return state, state.build(problem) if is_kept else state.absorb(problem)

    def advance(self, problem: Entropic) -> Work:
        """Update v from the sums of the last sweep, then u, and sum the columns again."""
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
            is_tame = (
                scalings.min() > 1 / TUNING.max_scaling and scalings.max() < TUNING.max_scaling
            )
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
        """Update u and the column sums; return the l1 error of the rows."""
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
        """Do one iteration in the log domain; the kernel absorbs its potentials."""
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


SinkhornState = LogState | KernelState


@dataclass(frozen=True, kw_only=True)
class Sinkhorn(EntropicSolver[SinkhornState], DualPlan):
    """Alternate exact minimisation of the dual over τ and λ.

    In the log domain a step is one half-step: a block update, then one pass over C, whose sums
    serve the stopping test and the next half-step. With a stored kernel a step is a whole sweep
    that reads the kernel once.

    Parameters
    ----------
    domain : {"auto", "log", "kernel", "absorption"}
        "log": log-sum-exp over the cost, for any geometry and any η. "kernel": products with a
        stored exp(-C/η), for max C/η < 300. "absorption": products with a stored kernel that
        absorbs the potentials whenever the scalings grow large. "auto" stores a kernel on dense
        costs, and is "log" with ``stop="paper"``.
    relaxation : float, optional
        Exponent ω in [1, 2) of each update; 1 is Sinkhorn's own. Updates that would not lower
        the dual enough fall back to 1. By default adapted to the observed rate, and 1 with
        ``stop="paper"``.
    """

    domain: str = "auto"
    relaxation: float | None = None

    about: ClassVar[MethodInfo] = MethodInfo(
        family="Sinkhorn",
        paper="Cuturi 2013; Dvurechensky, Gasnikov, Kroshnin 2018",
        year=2013,
        orders=(Order(2, eps=2, log=1),),
        is_in_table1=True,
        takes_arcs=True,
    )
    pace: ClassVar[Pace] = Pace(start=0.05, factor=4.0, share=1.0)

    def __post_init__(self) -> None:
        check_choices(self, domain=("auto", "log", "kernel", "absorption"))
        if self.relaxation is not None and not 1 <= self.relaxation < 2:
            raise InvalidProblem(
                f"relaxation is {self.relaxation}; it must be at least 1 and below 2 "
                "(1 is plain Sinkhorn, None adapts it)."
            )

    @classmethod
    def offer(cls, problem: Problem) -> Offer | None:
        """Offer to solve any problem, which "auto" accepts where no exact method makes an offer."""
        n, m = problem.shape
        if problem.geometry.is_separable:
            seconds = 0.0
            reason = "a grid's Gibbs kernel is applied axis by axis, without an n x n array"
        else:
            seconds = TUNING.simplex_ratio * cost_model("restricted_simplex").seconds(
                n, m, is_lazy=True
            )
            reason = "too large for a simplex, or far away; float32 sweeps need O(n + m) memory"
        return Offer(reason, seconds, TUNING.node_bytes * (n + m))

    def resolved(self, stop: str, problem: Problem) -> Self:
        """Choose the printed method with ``stop="paper"``, for options that are unset."""
        geometry = problem.geometry
        if self.domain in ("kernel", "absorption") and not geometry.is_dense:
            raise InvalidProblem(
                f"domain={self.domain!r} stores an n x m kernel, for which "
                f"{geometry.noun} is not meant (use domain='log')."
            )
        if stop != "paper":
            return self
        return replace(
            self,
            domain="log" if self.domain == "auto" else self.domain,
            relaxation=1.0 if self.relaxation is None else self.relaxation,
        )

    def init(
        self, problem: Entropic, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[SinkhornState, Work]:
        """Start from zero potentials, or from the given ones."""
        n, m = problem.shape
        row, lam = (np.zeros(n), np.zeros(m)) if potentials is None else potentials
        omega = TUNING.first_omega if self.relaxation is None else self.relaxation
        geometry = problem.geometry
        is_stored = geometry.is_dense and geometry.nbytes <= TUNING.max_kernel_bytes
        if self.domain == "log" or (self.domain == "auto" and not is_stored):
            return LogState.of(problem, row, lam, omega)
        span = geometry.bounds[1] / problem.eta
        if self.domain == "kernel" and span >= TUNING.max_exponent:
            raise InvalidProblem(
                f"domain='kernel' with max C/η = {span:.0f}; it must be below "
                f"{TUNING.max_exponent:.0f} (use domain='absorption', or 'auto')."
            )
        is_plain = self.domain != "absorption" and span < TUNING.max_exponent
        return KernelState.of(problem, row, lam, omega, is_plain)

    def step(self, problem: Entropic, state: SinkhornState, rng: Generator) -> Work:
        """Update one block and measure the other, or update both with a stored kernel."""
        work = state.advance(problem)
        if self.relaxation is None:
            state.adapt()
        return work
