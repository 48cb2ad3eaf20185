"""The packing LP by accelerated coordinate descent (Blanchet et al. 2018, Quanrud 2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from .. import deadline
from .._types import Matrix, Potentials, Vector
from ..kernels.packing import coordinate_steps
from ..kernels.vectors import exp, log
from ..problems.plan import Core, Explicit
from ..problems.problem import Additive
from ..problems.work import Work
from .base import DirectSolver, Pace, RowState
from .method_info import A_PRIORI, MethodInfo, Order
from .options import HasConstants

#: Attempts: (L in units of 1/μ, μ in units of the practical one). Each follows T failed steps.
LADDER = {
    "practical": ((1.0, 1.0), (2.0, 1.0), (4.0, 1.0), (4.0, 0.5)),
    "safe": ((4.0, 1.0), (4.0, 0.5)),
    "published": (),
}


@dataclass(frozen=True, kw_only=True)
class PackingTuning:
    """Tuning parameters of the packing LP."""

    draws_per_call: int = 1 << 16  # draws passed to the kernel at once
    epochs_per_sum: int = 8  # after which marginals are summed again, against drift
    max_exponent: float = 50.0  # of a penalty


TUNING = PackingTuning()


class Rung(NamedTuple):
    """The constants of one attempt."""

    epsilon: float  # relative accuracy it aims at
    a: float  # height of the penalty
    mu: float  # smoothing
    L: float  # smoothness per coordinate
    n_entries: float  # entries with W > 0
    n_steps: float  # T

    @property
    def omega(self) -> float:
        """The momentum."""
        return 1 / (3 * self.n_entries * self.L)


@dataclass(slots=True, kw_only=True)
class PackingState(RowState):
    """The two iterates (Z, and Z + g D), their marginals, and the current rung of the ladder."""

    Z: Matrix
    D: Matrix
    z_r: Vector
    z_c: Vector
    d_r: Vector
    d_c: Vector
    scalars: Vector  # A and g
    constants: Vector  # those of the rung
    dual_sum: Vector  # sum of the row duals u over epochs
    row: Vector  # 1 - u, the row potential of the last epoch
    rung: int = -1
    n_epochs: int = 0  # on this rung
    n_steps: int = 0  # on this rung
    n_total: int = 0  # on all rungs
    is_done: bool = False


@dataclass(frozen=True, kw_only=True)
class PackingLP(HasConstants, DirectSolver[PackingState]):
    r"""Maximise <W, X> with X 1 <= p and Xᵀ 1 <= q, where W = 1 - C / ‖C‖∞.

    A relative ε/‖C‖∞ solution of this packing LP, completed to a plan, is an additive ε solution
    of transport. The constraints become exponential penalties of width μ, and randomly chosen
    entries are updated by accelerated coordinate descent. A step is n m coordinates.
    Potentials given as a warm start say nothing about X and are not used.

    Parameters
    ----------
    constants : {"practical", "safe", "published"}, optional
        "practical" (default): μ = ε / (2 max(1, log((n + m) a))), smoothness L = 1/μ, which
        has no proof; after T steps without a certificate L doubles up to 4/μ, then μ is halved,
        then the published constants run. "safe" starts from L = 4/μ. "published" are those of
        Allen-Zhu and Orecchia at ε/4, taken with ``stop="paper"``.

    References
    ----------
    Blanchet, Jambulapati, Kent, Sidford (2018), Towards optimal running times for optimal
    transport. Quanrud (2018), Approximating optimal transport with linear programs. Allen-Zhu,
    Orecchia (2019), Nearly linear-time packing and covering LP solvers.
    """

    about: ClassVar[MethodInfo] = MethodInfo(
        family="linear programming",
        paper="Blanchet, Jambulapati, Kent, Sidford 2018; Quanrud 2018",
        year=2018,
        orders=(Order(2, eps=1, log=2),),
        is_in_table1=True,
        solves_entropic=False,
        rule=A_PRIORI,
        needs_dense=True,
    )
    pace: ClassVar[Pace] = Pace(start=0.0, factor=4.0, evaluate_after=0.3)
    known_constants: ClassVar[tuple[str, ...]] = ("practical", "safe", "published")

    def rung(self, problem: Additive, k: int) -> Rung:
        """Return the constants of attempt k; the last are the published ones."""
        n, m = problem.shape
        C, unit = problem.geometry.matrix(), problem.geometry.cost_unit
        epsilon = min(problem.epsilon / unit, 0.5)
        held = sum(
            int(np.count_nonzero((C[i] < unit) & (problem.q > 0)))
            for i in np.flatnonzero(problem.p > 0)
        )
        held = max(held, 1)
        ladder = LADDER[self.constants or "practical"]
        if k < len(ladder):
            a = float(max(problem.p.max(), problem.q.max()))
            mu = ladder[k][1] * epsilon / (2 * max(1.0, log((n + m) * a)))
            L = ladder[k][0] / mu
        else:
            epsilon /= 4
            a = max(
                float((np.minimum(problem.p[i], problem.q) * (1 - C[i] / unit)).max())
                for i in range(n)
            )
            a = a or 1.0  # all costs are equal: there is nothing to pack
            mu = epsilon / (4 * log(held * (n + m) / epsilon))
            L = 4 / mu
        n_steps = math.ceil(3 * held * L * log(1 / epsilon))
        return Rung(epsilon, a, mu, L, held, n_steps)

    def init(
        self, problem: Additive, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[PackingState, Work]:
        """Start from an almost empty packing on the first rung."""
        n, m = problem.shape
        state = PackingState(
            Z=np.zeros((n, m)),
            D=np.empty((n, m)),
            z_r=np.zeros(n),
            z_c=np.zeros(m),
            d_r=np.zeros(n),
            d_c=np.zeros(m),
            scalars=np.zeros(2),
            constants=np.zeros(6),
            dual_sum=np.zeros(n),
            row=np.zeros(n),
        )
        self._climb(problem, state)
        return state, Work.of(vector=4 * n * m)

    def _climb(self, problem: Additive, state: PackingState) -> None:
        """Start again on the next rung."""
        state.rung += 1
        rung = self.rung(problem, state.rung)
        state.Z[:] = 0
        np.minimum(problem.p[:, None], problem.q, out=state.D)
        state.D *= (1 - rung.epsilon / 2) / rung.n_entries
        state.D[problem.geometry.matrix() >= problem.geometry.cost_unit] = 0
        state.scalars[:] = 1 / rung.L, 1.0
        state.constants[:] = rung
        state.dual_sum[:] = 0
        state.n_epochs = state.n_steps = 0
        _recompute(state)

    def step(self, problem: Additive, state: PackingState, rng: Generator) -> Work:
        """Update n m randomly drawn entries."""
        n, m = problem.shape
        if state.is_done:
            return Work()
        C, rung = problem.geometry.matrix(), Rung(*state.constants)
        p, q = problem.p.copy(), problem.q.copy()  # writable: one signature of the kernel
        n_steps = 0
        for start in range(0, n * m, TUNING.draws_per_call):
            deadline.check()
            entries = rng.integers(0, n * m, min(TUNING.draws_per_call, n * m - start))
            n_steps += coordinate_steps(
                C, problem.geometry.cost_unit, p, q, rung.a, 1 / rung.mu, rung.L,
                rung.omega, state.Z, state.D, state.z_r, state.z_c, state.d_r, state.d_c,
                state.scalars, entries,
            )  # fmt: skip
        state.n_steps += n_steps
        state.n_total += n_steps
        state.n_epochs += 1
        is_refreshed = state.n_epochs % TUNING.epochs_per_sum == 0
        if is_refreshed:
            _recompute(state)
        u = self._row_dual(problem, state, rung)
        state.dual_sum += u
        state.row = 1 - u
        if state.n_steps >= rung.n_steps or n_steps == 0:
            if state.rung >= len(LADDER[self.constants or "practical"]):
                state.is_done = True
            else:
                self._climb(problem, state)
        return Work.of(packing_step=n_steps, vector=4 * n * m * is_refreshed + 6 * n)

    def _row_dual(self, problem: Additive, state: PackingState, rung: Rung) -> Vector:
        """Return u = (a / p) exp((r - 1) / μ)."""
        p = np.where(problem.p > 0, problem.p, 1.0)
        load = (state.z_r + state.scalars[1] * state.d_r) / p
        u: Vector = rung.a / p * exp(np.minimum((load - 1) / rung.mu, TUNING.max_exponent))
        return u

    def candidates(self, problem: Additive, state: PackingState) -> list[tuple[Core, Vector]]:
        """Return the packing with the last dual, and with the mean dual of the epochs."""
        unit = problem.geometry.cost_unit
        Y = state.scalars[1] * state.D
        Y += state.Z
        np.maximum(Y, 0, out=Y)
        found: list[tuple[Core, Vector]] = [(Explicit(Y), unit * state.row)]
        if state.n_epochs > 0:
            found.append((Explicit(Y), unit * (1 - state.dual_sum / state.n_epochs)))
        return found

    def potentials(self, problem: Additive, state: PackingState) -> Potentials:
        """Return the row potential and zeros: columns follow by c-transform."""
        return problem.geometry.cost_unit * state.row, np.zeros(problem.shape[1])


def _recompute(state: PackingState) -> None:
    """Sum the rows and columns of both iterates."""
    marginals = (state.Z, state.z_r, state.z_c), (state.D, state.d_r, state.d_c)
    for matrix, rows, cols in marginals:
        matrix.sum(axis=1, out=rows)
        matrix.sum(axis=0, out=cols)
