"""PDASMD for Kullback-Leibler unbalanced transport, on the finite-sum dual of Section 6."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from .._types import Potentials, Vector
from ..arguments import check_positive
from ..geometry.sweeps import ByRow, ColumnSums
from ..kernels import unbalanced_pdasmd as kernels
from ..kernels.vectors import exp
from ..problems.kullback_leibler import UNUSED_POTENTIAL, SemiDual
from ..problems.plan import Core, Gibbs
from ..problems.problem import Penalised
from ..problems.work import Work
from . import stochastic_steps
from .base import Pace, Signal, SolverState, UnpublishedSolver, l1
from .method_info import MethodInfo
from .options import check_choices
from .stochastic_steps import Steps, adapted, draw_rows, sampled_rows
from .unbalanced_sinkhorn import cost_size, independent, is_sharpest, proximal_eta


@dataclass(frozen=True, kw_only=True)
class UnbalancedPDASMDTuning:
    """Tuning parameters of unbalanced PDASMD."""

    max_mirror_step: float = 24.0  # multiple of the proved mirror step that is tried first
    min_mirror_step: float = 1 / 64  # it is halved where φ rises, down to this
    eta_ratio: float = 0.5  # proximal η over Sinkhorn's; momentum helps on harder problems
    reference_ratio: float = 0.7  # share of the first violation at which a plan is the reference
    negligible_violation: float = 1e-14  # as a share of the mass


TUNING = UnbalancedPDASMDTuning()


@dataclass(slots=True, kw_only=True)
class UnbalancedPDASMDState(SolverState):
    """The three sequences of Katyusha, values at the snapshot, the box and the reference."""

    lam: Vector  # snapshot ṽ
    y: Vector  # gradient sequence
    z: Vector  # mirror sequence
    lse: Vector  # log-normalisers of all rows at ṽ
    masses: Vector  # of the rows at ṽ, the A_i
    columns: Vector  # column sums of the plan at ṽ
    low: Vector  # lower ends of the box
    high: Vector
    most: Vector  # largest masses of rows on the box; empty in adaptive runs
    U: Vector  # reference exp(U ⊕ V - κ C): -1, 0 and κ = 0 for the entropy
    V: Vector
    sharpness: float  # κ + 1/η
    step_scale: float  # multiple of the mirror step
    mass: float = math.inf  # upper bound on the mass of the optimal plan
    value: float = math.inf  # φ(ṽ)
    violation: float = math.inf  # ‖∇φ(ṽ)‖₁
    first_violation: float = math.inf  # at the start of the reference
    n_outer: int = 0  # s, since the last restart
    n_loops: int = 0  # outer loops since the last reference that lowered φ


@dataclass(frozen=True, kw_only=True)
class UnbalancedPDASMD(UnpublishedSolver):
    r"""Descend the semi-dual by variance-reduced, accelerated steps, each projected onto a box.

    Rows are drawn by their masses. An outer loop has ⌈n / B⌉ inner steps and one pass over the cost
    for the next snapshot, to which the best constant is added. Without an entropy, a few outer
    loops minimise the objective plus :math:`η KL(X | X_k)`, and their plan is the next X_k.

    Parameters
    ----------
    batch_size : int
        Rows B drawn for an inner step.
    hybrid : {"sinkhorn"}, optional
        After each outer loop, update the columns of the snapshot exactly, as Sinkhorn would.
    is_adaptive : bool
        Take the smoothness of the snapshot instead of that of the whole box, lengthen the mirror
        step while φ falls, and start again from the snapshot with half the step where it rises.
    step_share : float, optional
        η of the proximal term as a share of the largest cost; 0.01 where missing a marginal
        costs at most half of the largest cost, else 0.025.
    """

    batch_size: int = 16
    hybrid: str | None = None
    is_adaptive: bool = True
    step_share: float | None = None

    about: ClassVar[MethodInfo] = MethodInfo(
        family="accelerated stochastic",
        paper="after Luo, Xie, Huo 2023, Section 6",
        year=2023,
        note="φ within order 1/s² after s outer loops, for fixed η and λ",
        needs_rows=True,
        form=Penalised.form,
        takes_point_prices=False,
    )
    pace: ClassVar[Pace] = Pace()

    def __post_init__(self) -> None:
        check_positive("batch_size", self.batch_size)
        check_choices(self, hybrid=("sinkhorn",))
        if self.step_share is not None:
            check_positive("step_share", self.step_share)

    # -- the iteration -----------------------------------------------------------------------

    def init(
        self, problem: Penalised, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[UnbalancedPDASMDState, Work]:
        """Start all sequences at zero, or at the given column potential, in the box."""
        n, m = problem.shape
        lam = np.zeros(m) if potentials is None else potentials[1]
        U, V = (np.full(n, -1.0), np.zeros(m)) if problem.eta else independent(problem)
        state = UnbalancedPDASMDState(
            lam=np.where(problem.q > 0, lam, UNUSED_POTENTIAL), y=lam, z=lam, lse=np.empty(n),
            masses=np.empty(n), columns=np.empty(m), low=lam, high=lam, most=np.empty(0),
            U=np.where(problem.p > 0, U, 0.0), V=np.where(problem.q > 0, V, 0.0),
            sharpness=1 / self._eta(problem),
            step_scale=TUNING.max_mirror_step if self.is_adaptive else 1.0,
        )  # fmt: skip
        return state, self._begin(self._dual(problem, state), state)

    def step(self, problem: Penalised, state: UnbalancedPDASMDState, rng: Generator) -> Work:
        """Do one outer loop; without an entropy, update the reference first if it is due."""
        before = self._refer(problem, state)
        dual, n_inner = self._dual(problem, state), -(-problem.shape[0] // self.batch_size)
        kept = dataclasses.replace(state, lse=state.lse.copy(), masses=state.masses.copy())
        work = before + self._inner_work(problem, n_inner)
        work += self._move(dual, state, self._inner_loop(dual, state, rng, n_inner))
        state.n_outer += 1
        has_fallen = state.value <= kept.value + self._slack(dual, kept.value)
        if self.is_adaptive:
            longest, shortest = TUNING.max_mirror_step, TUNING.min_mirror_step
            state.step_scale = adapted(
                state.step_scale, longest, has_fallen=has_fallen, shortest=shortest
            )
        if has_fallen or not self.is_adaptive:
            state.n_loops += 1
        else:
            state.lam, state.lse, state.masses = kept.lam, kept.lse, kept.masses
            state.columns, state.value, state.violation = kept.columns, kept.value, kept.violation
            state.y = state.z = state.lam
            state.n_outer = 0
        if self.hybrid:
            work += self._update_columns(dual, state)
        return work

    def _eta(self, problem: Penalised) -> float:
        """Return the η of the entropy, or of the proximal term."""
        usual = 1.0 if self.step_share else TUNING.eta_ratio
        return problem.eta or usual * proximal_eta(problem, self.step_share)

    def _dual(self, problem: Penalised, state: UnbalancedPDASMDState) -> SemiDual:
        """Return the semi-dual that the current steps minimise."""
        if not problem.eta:
            problem = dataclasses.replace(problem, eta=self._eta(problem))
        return SemiDual(problem, state.U, state.V, state.sharpness)

    def _begin(self, dual: SemiDual, state: UnbalancedPDASMDState) -> Work:
        """Compute the box and the constants of a reference, and start in the box."""
        n, m = dual.problem.shape
        state.low, state.high = np.full(m, -np.inf), np.full(m, np.inf)
        state.lse[:] = np.inf
        work = self._move(dual, state, state.lam)
        state.low, state.high, state.mass = dual.box(-state.value)
        work += Work.of(lse=n * m, vector=8 * (n + m))
        inside = np.clip(state.lam, state.low, state.high)
        if not np.array_equal(inside, state.lam):
            work += self._move(dual, state, inside)
        if not self.is_adaptive:
            state.most = dual.most_masses(state.high)
            work += Work.of(lse=n * m, vector=4 * n)
        state.y = state.z = state.lam
        state.n_outer = state.n_loops = 0
        state.first_violation = state.violation
        return work

    def _refer(self, problem: Penalised, state: UnbalancedPDASMDState) -> Work:
        """Without an entropy, make the plan of the snapshot the reference once it is accurate.

        The column potential is updated exactly first: errors of references would add up.
        """
        is_near = (
            state.n_loops > 0 and state.violation <= TUNING.reference_ratio * state.first_violation
        )
        if problem.eta or not is_near or is_sharpest(problem, state.sharpness):
            return Work()
        dual = self._dual(problem, state)
        eta, f = dual.problem.eta, dual.row_potential(state.lse)
        state.lam = state.lam + dual.column_move(state.lam, state.columns)
        state.U = np.where(problem.p > 0, state.U + f / eta, 0.0)
        state.V = np.where(problem.q > 0, state.V + state.lam / eta, 0.0)
        state.sharpness += 1 / eta
        return Work.of(vector=9 * sum(problem.shape)) + self._begin(
            self._dual(problem, state), state
        )

    def _update_columns(self, dual: SemiDual, state: UnbalancedPDASMDState) -> Work:
        """Update the columns of the snapshot exactly, given its rows; move y and z along."""
        move = dual.column_move(state.lam, state.columns)
        lam, state.y, state.z = (
            np.clip(x + move, state.low, state.high) for x in (state.lam, state.y, state.z)
        )
        return Work.of(vector=18 * lam.size) + self._move(dual, state, lam)

    def _steps(self, dual: SemiDual, state: UnbalancedPDASMDState) -> tuple[Steps, Vector]:
        """Return the constants of an outer loop, and the weights by which rows are drawn."""
        eta, curvature = dual.problem.eta, dual.problem.eta / dual.price_b  # of the penalty
        if self.is_adaptive:
            law, wanted = state.masses, exp(dual.log_wanted(state.lam))
            smoothness = stochastic_steps.TUNING.column_growth * float(
                (state.columns + curvature * wanted).max()
            )
        else:
            law = state.most
            smoothness = float(law.sum()) + curvature * state.mass
        share = float(law.sum()) / self.batch_size
        smoothness = max(smoothness, share)
        tau1, h = (
            2 / (state.n_outer + 4),
            eta / (stochastic_steps.TUNING.euclidean_constant * smoothness),
        )
        return Steps(tau1, share / (2 * smoothness), state.step_scale * h / tau1, h), law

    def _inner_loop(
        self, dual: SemiDual, state: UnbalancedPDASMDState, rng: Generator, n_inner: int
    ) -> Vector:
        """Advance y and z through the samples of an outer loop; return the mean of the y."""
        problem, snap = dual.problem, state.lam
        (tau1, tau2, alpha, h), law = self._steps(dual, state)
        _, sample = draw_rows(rng, law, n_inner, self.batch_size, "long")
        weights = state.masses * (float(law.sum()) / np.where(law > 0, law, 1.0))
        z, y, y_sum = state.z - snap, state.y - snap, np.zeros(snap.size)
        x, wanted, work = dual.column_scaling(snap), dual.log_wanted(snap), np.empty((4, snap.size))
        for _, C, rows, part in sampled_rows(problem.geometry, sample, 1.0, np.float64):
            kernels.inner_loop(
                C, rows, part, x, state.lse, weights, state.columns, wanted, state.low - snap,
                state.high - snap, dual.sharpness, 1 / problem.eta, dual.share,
                1 / dual.price_b, tau1, 1 - tau1 - tau2, alpha, h, z, y, y_sum, work,
            )  # fmt: skip
        state.z, state.y = snap + z, snap + y
        return snap + y_sum / n_inner

    def _inner_work(self, problem: Penalised, n_inner: int) -> Work:
        """Return the work of the inner steps."""
        m, n_rows = problem.shape[1], n_inner * self.batch_size
        return Work.of(softmax=n_rows * m, vector=n_rows * (m + 6) + n_inner * 20 * m)

    def _move(self, dual: SemiDual, state: UnbalancedPDASMDState, lam: Vector) -> Work:
        """Take the snapshot at λ plus the best constant that keeps it in the box."""
        problem, used = dual.problem, dual.problem.q > 0
        n, m = problem.shape
        columns = ColumnSums(m)
        problem.geometry.sweep(
            kernels.snapshot, dual.column_scaling(lam), dual.column_scaling(state.lam),
            ByRow(problem.log_p), ByRow(dual.U), dual.own, dual.share, dual.sharpness,
            ByRow(state.lse), ByRow(state.masses), columns,
        )  # fmt: skip
        t = dual.best_shift(lam, float(state.masses.sum()))
        t = min(max(t, float((lam - state.high)[used].max())), float((lam - state.low)[used].min()))
        shrunk = exp(-t / (dual.price_a + problem.eta))
        state.lam = np.where(used, lam - t, lam)
        state.lse -= t / problem.eta
        state.masses *= shrunk
        state.columns = shrunk * columns.total
        state.value = dual.value(state.lam, state.lse, float(state.masses.sum()))
        state.violation = l1(state.columns - exp(dual.log_wanted(state.lam)))
        return Work.of(softmax=n * m, inner=n * m, vector=12 * n + 16 * m)

    def _slack(self, dual: SemiDual, value: float) -> float:
        """Return the rise of φ that round-off alone can cause."""
        size = cost_size(dual.problem) * float(dual.problem.p.sum())
        return 1e-14 * (abs(value) + size)

    # -- plans and potentials ------------------------------------------------------------------

    def signal(self, problem: Penalised, state: UnbalancedPDASMDState) -> Signal:
        """Return the violation, and whether it is negligible or exponents are at their limit."""
        if problem.eta:
            is_finished = state.violation <= TUNING.negligible_violation * float(state.masses.sum())
        else:
            is_finished = is_sharpest(problem, state.sharpness)
        return Signal(state.violation, is_finished, is_finished)

    def candidates(
        self, problem: Penalised, state: UnbalancedPDASMDState
    ) -> list[tuple[Core, Vector]]:
        """Return the plan of the snapshot, and its row potential."""
        dual = self._dual(problem, state)
        f = dual.row_potential(state.lse)
        row, column = dual.row_scaling(f), dual.gibbs_column(state.lam)
        return [(Gibbs(problem.geometry, row, column, dual.zeta), f)]

    def potentials(self, problem: Penalised, state: UnbalancedPDASMDState) -> Potentials:
        """Return the row potential of the snapshot, and the snapshot."""
        return self._dual(problem, state).row_potential(state.lse), state.lam
