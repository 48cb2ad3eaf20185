"""Sinkhorn with Katyusha momentum: the second suggestion of Luo, Xie, Huo's Section 6."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from .._types import Potentials, Vector
from ..arguments import check_positive
from ..geometry.sweeps import ByRow, ColumnSums
from ..kernels import katyusha as kernels
from ..kernels.pdasmd import snapshot
from ..problems.duals import column_move, semi_dual, softmin
from ..problems.plan import Core, Gibbs
from ..problems.problem import Entropic
from ..problems.work import Work
from .base import EntropicSolver, Pace, SolverState, l1
from .method_info import MethodInfo, Order
from .stochastic_steps import TUNING, adapted, coupling, draw_rows, sampled_rows

#: First multiple of the proved mirror step; it is halved, down to 1, where φ rises.
MAX_MIRROR_STEP = 24.0


@dataclass(slots=True, kw_only=True)
class KatyushaState(SolverState):
    """The three sequences of Katyusha, and values at the snapshot."""

    lam: Vector  # snapshot ṽ
    y: Vector  # points after Sinkhorn's update
    z: Vector  # mirror sequence
    lse: Vector  # log-normalisers of all rows at ṽ
    columns: Vector  # column sums of the plan at ṽ
    value: float = np.inf  # φ(ṽ)
    violation: float = np.inf  # l1, of the columns at ṽ
    step_scale: float = MAX_MIRROR_STEP  # multiple of the proved mirror step
    n_outer: int = 0  # s, since the last restart


@dataclass(frozen=True, kw_only=True)
class KatyushaSinkhorn(EntropicSolver[KatyushaState]):
    r"""Take accelerated stochastic steps between two sweeps of Sinkhorn.

    Accelerated Sinkhorn couples its points by Nesterov's estimate sequence; here Katyusha's three
    points are coupled, v = τ₁ z + τ₂ ṽ + (1 - τ₁ - τ₂) y, and the column sums at v are those at the
    snapshot ṽ, corrected by a batch of rows. With them z takes a mirror step and y is v after
    Sinkhorn's column update. The mean of the y becomes the snapshot if φ is no higher there, and
    then its columns are updated exactly. So for any samples φ falls by η KL(q | Xᵀ1) in each outer
    loop, as in a sweep of Sinkhorn.

    Parameters
    ----------
    batch_size : int
        Rows B drawn for an inner step; an outer loop has ⌈n / B⌉ of them.
    """

    batch_size: int = 16

    about: ClassVar[MethodInfo] = MethodInfo(
        family="Sinkhorn",
        paper="after Luo, Xie, Huo 2023, Section 6",
        year=2023,
        orders=(Order(2, eps=2, log=1),),
        departure="the paper suggests the method without a listing; this one is ours",
        needs_rows=True,
    )
    pace: ClassVar[Pace] = Pace(start=0.03, factor=3.0, share=1.0)

    def __post_init__(self) -> None:
        check_positive("batch_size", self.batch_size)

    def init(
        self, problem: Entropic, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[KatyushaState, Work]:
        """Start all sequences at zero, or at the given column potential."""
        n, m = problem.shape
        lam = np.zeros(m) if potentials is None else potentials[1].copy()
        state = KatyushaState(
            lam=lam, y=lam.copy(), z=lam.copy(), lse=np.full(n, np.inf), columns=np.zeros(m)
        )
        return state, self._move(problem, state, lam)

    def step(self, problem: Entropic, state: KatyushaState, rng: Generator) -> Work:
        """Do one outer loop: inner steps, the choice of a snapshot, and its column update."""
        n, m = problem.shape
        n_inner = -(-n // self.batch_size)
        lam, lse, columns, value = state.lam, state.lse.copy(), state.columns, state.value
        candidate = self._inner_loop(problem, state, rng, n_inner)
        work = Work.of(
            softmax=n_inner * self.batch_size * m, vector=n_inner * m * (self.batch_size + 16)
        )
        work += self._move(problem, state, candidate)
        state.n_outer += 1
        has_fallen = state.value <= value + self._slack(problem, value)
        state.step_scale = adapted(state.step_scale, MAX_MIRROR_STEP, has_fallen=has_fallen)
        if not has_fallen:
            state.lam, state.lse, state.columns = lam, lse, columns
            state.y, state.z, state.n_outer = lam, lam, 0
        return work + self._sweep(problem, state)

    def _inner_loop(
        self, problem: Entropic, state: KatyushaState, rng: Generator, n_inner: int
    ) -> Vector:
        """Advance y and z through the samples of an outer loop; return the mean of the y."""
        m, q = problem.shape[1], problem.q
        metric = (q + 1 / m) / 2  # as large as q, and rows differ by at most 2m in it
        smoothness, tau2 = coupling(
            "long", self.batch_size, 2.0 * m, float((state.columns / metric).max())
        )
        tau1 = 2 / (state.n_outer + 4)
        alpha = state.step_scale * problem.eta / (TUNING.euclidean_constant * tau1 * smoothness)
        _, sample = draw_rows(rng, problem.p, n_inner, self.batch_size, "long")
        z, y, y_sum = state.z - state.lam, state.y - state.lam, np.zeros(m)
        work = np.empty((4, m))
        for _, C, rows, part in sampled_rows(problem.geometry, sample, 1.0, np.float64):
            kernels.inner_loop(
                C, rows, part, state.lam, state.lse, state.columns, q, metric, 1 / problem.eta,
                tau1, 1 - tau1 - tau2, alpha, z, y, y_sum, work,
            )  # fmt: skip
        state.z, state.y = state.lam + z, state.lam + y
        return state.lam + y_sum / n_inner

    def _sweep(self, problem: Entropic, state: KatyushaState) -> Work:
        """Update the columns of the snapshot exactly, as Sinkhorn does, and y and z with them."""
        move = column_move(problem, state.columns)
        state.y, state.z = state.y + move, state.z + move
        return Work.of(vector=7 * move.size) + self._move(problem, state, state.lam + move)

    def _move(self, problem: Entropic, state: KatyushaState, lam: Vector) -> Work:
        """Take the snapshot at λ: log-normalisers, column sums and φ."""
        n, m = problem.shape
        columns, p = ColumnSums(m), problem.p.view()
        p.setflags(write=False)
        problem.geometry.sweep(
            snapshot, lam, state.lam, ByRow(p), 1 / problem.eta, ByRow(state.lse), columns
        )
        state.lam, state.columns = lam, columns.total
        state.violation = l1(state.columns - problem.q)
        state.value = semi_dual(problem, lam, state.lse)
        return Work.of(softmax=n * m, inner=n * m, vector=n)

    def _slack(self, problem: Entropic, value: float) -> float:
        """Return the rise of φ that round-off alone can cause."""
        return 1e-14 * (abs(value) + problem.geometry.bounds[1])

    def candidates(self, problem: Entropic, state: KatyushaState) -> list[tuple[Core, Vector]]:
        """Return the plan of the snapshot."""
        row, lam = self.potentials(problem, state)
        return [(Gibbs(problem.geometry, row, lam.copy(), problem.eta), row)]

    def potentials(self, problem: Entropic, state: KatyushaState) -> Potentials:
        """Return the row potential of the snapshot, and the snapshot."""
        return softmin(problem.log_p, state.lse, problem.eta), state.lam
