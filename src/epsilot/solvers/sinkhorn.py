"""Sinkhorn's algorithm (Cuturi 2013; Dvurechensky et al. 2018), overrelaxed where it may be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from .. import parallel
from .._types import Matrix, Potentials, Vector
from ..errors import InvalidProblem
from ..geometry.base import n_chunks
from ..kernels import scaling as kernels
from ..kernels.dense import gibbs, missing_mass, relax_block
from ..kernels.vectors import exp, log, power
from ..transport.duals import softmin_cols, softmin_rows
from ..transport.problem import Entropic, Problem
from ..transport.work import Work
from .about import About, Order
from .base import DualPlan, EntropicSolver, Pace, l1
from .overrelaxation import FIRST, PLAIN_SWEEPS, SETTLING, WINDOW, next_omega, safe_limit

#: exp(-C/η) is stored as it is while max C/η stays below this: scalings need headroom too.
KERNEL_RANGE = 300.0
#: Scalings beyond this factor are absorbed into the potentials of the kernel.
SCALING_RANGE = 1e60
#: Largest kernel that is stored without being asked for, in bytes.
KERNEL_BYTES = 2 << 30


@dataclass(slots=True)
class LogState:
    """Potentials, and the log-sums that the next half-step needs."""

    row: Vector  # row potential τ
    lam: Vector  # column potential λ
    lse: Vector  # log-sum-exp of the block to be updated next
    is_row_next: bool  # which block that is
    violation: float  # l1 marginal violation of the current plan
    omega: float  # overrelaxation in use
    reference: float  # violation since which the rate is measured
    n_steps: int  # half-steps done

    def fits(self, n: int, m: int) -> bool:
        """Tell whether the sizes are those of an n x m problem."""
        sizes = self.row.size, self.lam.size, self.lse.size
        return sizes == (n, m, n if self.is_row_next else m)


@dataclass(slots=True)
class KernelState:
    """X = diag(u) K diag(v), where K is the Gibbs plan of the absorbed potentials."""

    row: Vector  # row potential τ
    lam: Vector  # column potential λ
    base_row: Vector  # absorbed row potential
    base_lam: Vector  # absorbed column potential
    K: Matrix
    u: Vector
    v: Vector
    sums: Vector  # Kᵀ u; zero before the first sweep
    violation: float  # l1 marginal violation of the current plan
    omega: float  # overrelaxation in use
    reference: float  # violation since which the rate is measured
    n_steps: int  # sweeps done


State = LogState | KernelState


@dataclass(frozen=True, kw_only=True)
class Sinkhorn(EntropicSolver[State], DualPlan):
    """Alternate exact minimisation of the dual over τ and λ.

    In the log domain a step is one half-step: a block update, then one pass over C whose sums
    are both the stopping test and what the next half-step starts from. With a stored kernel a
    step is a whole sweep that reads the kernel once.

    Parameters
    ----------
    domain : {"auto", "log", "kernel", "absorption"}
        Log-sum-exp over the cost (any geometry, any η); or products with exp(-C/η) stored, which
        needs max C/η < 300; or with the kernel of absorbed potentials, which are absorbed anew
        whenever the scalings grow large. "auto" stores a kernel on dense costs, and with
        ``stop="paper"`` is "log".
    relaxation : float, optional
        Exponent ω in [1, 2) of each update; 1 is Sinkhorn's own. Updates that would not lower
        the dual enough fall back to 1. By default adapted to the observed rate, and 1 with
        ``stop="paper"``.
    """

    domain: str = "auto"
    relaxation: float | None = None

    about: ClassVar[About] = About(
        family="Sinkhorn",
        paper="Cuturi 2013; Dvurechensky, Gasnikov, Kroshnin 2018",
        year=2013,
        orders=(Order(2, eps=2, log=1),),
        is_in_table1=True,
    )
    pace: ClassVar[Pace] = Pace(start=0.05, factor=4.0, share=1.0)

    def __post_init__(self) -> None:
        if self.domain not in ("auto", "log", "kernel", "absorption"):
            raise InvalidProblem(
                f"domain is {self.domain!r}; it must be 'auto', 'log', 'kernel' or 'absorption'."
            )
        if self.relaxation is not None and not 1 <= self.relaxation < 2:
            raise InvalidProblem(
                f"relaxation is {self.relaxation}; it must be at least 1 and below 2 "
                "(1 is plain Sinkhorn, None adapts it)."
            )

    def resolved(self, stop: str, problem: Problem) -> Any:
        """Run the printed method with ``stop="paper"``, unless told otherwise."""
        geometry = problem.geometry
        if self.domain in ("kernel", "absorption") and not geometry.is_dense:
            raise InvalidProblem(
                f"domain={self.domain!r} stores an n x m kernel, for which "
                f"{type(geometry).__name__} is not meant (use domain='log')."
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
    ) -> tuple[State, Work]:
        """Start from zero potentials, or from the given ones."""
        n, m = problem.shape
        row, lam = (np.zeros(n), np.zeros(m)) if potentials is None else potentials
        omega = FIRST if self.relaxation is None else self.relaxation
        geometry = problem.geometry
        is_stored = geometry.is_dense and geometry.nbytes <= KERNEL_BYTES
        if self.domain == "log" or (self.domain == "auto" and not is_stored):
            lam = np.where(problem.q > 0, lam, -np.inf)
            lse = geometry.lse_rows(lam, problem.eta)
            state = LogState(row.copy(), lam, lse, True, np.inf, omega, np.inf, 0)
            entries = geometry.pass_entries
            return state, Work.of(scale=entries, lse=entries)
        return self._kernel_state(problem, row, lam, omega)

    def _kernel_state(
        self, problem: Entropic, row: Vector, lam: Vector, omega: float
    ) -> tuple[State, Work]:
        n, m = problem.shape
        span = problem.geometry.bounds[1] / problem.eta
        if self.domain == "kernel" and span >= KERNEL_RANGE:
            raise InvalidProblem(
                f"domain='kernel' with max C/η = {span:.0f}; it must be below {KERNEL_RANGE:.0f} "
                "(use domain='absorption', or 'auto')."
            )
        is_plain = self.domain != "absorption" and span < KERNEL_RANGE
        v = exp((lam - lam.max()) / problem.eta)
        state = KernelState(
            row.copy(), lam.copy(), np.zeros(n), np.zeros(m), np.empty((n, m)), np.ones(n), v,
            np.zeros(m), np.inf, omega, np.inf, 0,
        )  # fmt: skip
        if is_plain and v.min() > 1 / SCALING_RANGE:
            return state, self._build(problem, state)
        return state, self._absorb(problem, state)

    def step(self, problem: Entropic, state: State, rng: Generator) -> Work:
        """Update one block and measure the other, or update both with a stored kernel."""
        if isinstance(state, KernelState):
            work = self._sweep(problem, state)
        else:
            work = self._half_step(problem, state)
        if self.relaxation is None:
            _adapt(state)
        return work

    # -- log domain --------------------------------------------------------------------------

    def _half_step(self, problem: Entropic, state: LogState) -> Work:
        geometry, eta = problem.geometry, problem.eta
        n, m = problem.shape
        if state.is_row_next:
            row, excess = _relaxed(state.row, problem.log_p, problem.p, state, eta)
            state.row, state.lse = row, geometry.lse_cols(row, eta)
            missing = missing_mass(state.lam, state.lse, problem.q, 1 / eta)
        else:
            lam, excess = _relaxed(state.lam, problem.log_q, problem.q, state, eta)
            state.lam, state.lse = lam, geometry.lse_rows(lam, eta)
            missing = missing_mass(state.row, state.lse, problem.p, 1 / eta)
        state.violation = excess + missing
        state.is_row_next = not state.is_row_next
        state.n_steps += 1
        entries = problem.geometry.pass_entries
        return Work.of(lse=entries, vector=8 * (n if state.is_row_next else m))

    # -- kernel domain -----------------------------------------------------------------------

    def _sweep(self, problem: Entropic, state: KernelState) -> Work:
        """Update v from the sums of the last sweep, then u, and sum the columns anew."""
        n, m = problem.shape
        work = Work.of(inner=2 * n * m, vector=8 * (n + m))
        with np.errstate(all="ignore"):
            omega = _omega(state)
            if state.sums.any():
                plain = problem.q / state.sums
                t = plain / state.v
                is_safe = t <= exp(safe_limit(omega))
                state.v = np.where(is_safe, plain * power(t, omega - 1), plain)
            excess = self._update_rows(problem, state, omega)
            scalings = np.concatenate([state.u, state.v])
            is_tame = scalings.min() > 1 / SCALING_RANGE and scalings.max() < SCALING_RANGE
        if not is_tame:
            if scalings.min() > 0 and scalings.max() < np.inf:
                self._read_potentials(problem, state)
            work += self._absorb(problem, state)
            excess = self._update_rows(problem, state, 1.0)
            work += Work.of(inner=2 * n * m)
        self._read_potentials(problem, state)
        state.violation = excess + l1(state.v * state.sums - problem.q)
        state.n_steps += 1
        return work

    def _update_rows(self, problem: Entropic, state: KernelState, omega: float) -> float:
        """Update u and the column sums; return how far the rows are from p."""
        n, m = problem.shape
        count = n_chunks(n * m, n)
        parts, errors = np.empty((count, m)), np.empty(count)
        limit = exp(safe_limit(omega))
        parallel.share(
            kernels.sweep, count, n * m,
            state.K, state.v, problem.p, state.u, omega, limit, errors, parts,
        )  # fmt: skip
        state.sums = parts.sum(axis=0)
        return float(errors.sum())

    def _read_potentials(self, problem: Entropic, state: KernelState) -> None:
        state.row = state.base_row + problem.eta * log(state.u)
        state.lam = state.base_lam + problem.eta * log(state.v)

    def _absorb(self, problem: Entropic, state: KernelState) -> Work:
        """Take one iteration in the log domain and make its potentials those of the kernel."""
        n, m = problem.shape
        state.base_lam = softmin_cols(problem, softmin_rows(problem, state.lam))
        state.base_row = softmin_rows(problem, state.base_lam)
        state.u, state.v, state.sums = np.ones(n), np.ones(m), np.zeros(m)
        return Work.of(lse=3 * n * m) + self._build(problem, state)

    def _build(self, problem: Entropic, state: KernelState) -> Work:
        """Compute the kernel of the absorbed potentials."""
        n, m = problem.shape
        parallel.share(
            gibbs, n, n * m,
            problem.geometry.block(0, n), state.base_row, state.base_lam, 1 / problem.eta, state.K,
        )  # fmt: skip
        return Work.of(gibbs=n * m)


def _n_sweeps(state: State) -> float:
    """Return the sweeps done; one is a column update, then a row update, first a row update."""
    return state.n_steps if isinstance(state, KernelState) else (state.n_steps + 1) / 2


def _omega(state: State) -> float:
    """Return the overrelaxation of this step; the first sweeps after a new η are plain."""
    return state.omega if _n_sweeps(state) >= PLAIN_SWEEPS else 1.0


def _adapt(state: State) -> None:
    """Choose ω again after each window, from the rate at which the violation fell."""
    n_sweeps = _n_sweeps(state) % WINDOW
    if n_sweeps == SETTLING:
        state.reference = state.violation
    elif n_sweeps == 0 and 0 < state.violation < np.inf and 0 < state.reference < np.inf:
        rate = power(state.violation / state.reference, 1 / (WINDOW - SETTLING))
        state.omega = next_omega(state.omega, rate)


def _relaxed(
    old: Vector, log_mass: Vector, mass: Vector, state: LogState, eta: float
) -> tuple[Vector, float]:
    """Return the updated block, and how far its marginal is from the mass."""
    omega = _omega(state)
    if omega == 1:
        return eta * (log_mass - state.lse), 0.0
    new = np.empty_like(old)
    excess = relax_block(old, log_mass, mass, state.lse, eta, omega, safe_limit(omega), new)
    return new, excess
