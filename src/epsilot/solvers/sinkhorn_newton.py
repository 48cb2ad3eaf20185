"""Sinkhorn's algorithm, then Newton steps where the remaining sweeps would take longer.

Sweeps converge fast for a large η, and slowly where the plan is almost a permutation. Newton's
method for the semi-dual (Brauer, Clason, Lorenz, Wirth 2017) then needs a few steps. The rate at
which the violation falls decides, not the size of the problem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from .._types import Potentials, Vector
from ..kernels.products import cholesky_solve, schur_factor
from ..kernels.vectors import distance, exp, log, rmatvec
from ..problems.duals import semi_dual, softmin, softmin_cols, softmin_rows
from ..problems.problem import Entropic, Problem
from ..problems.work import Work
from . import sinkhorn
from .base import DualPlan, EntropicSolver, Pace
from .method_info import MethodInfo
from .sinkhorn import KernelState


@dataclass(frozen=True, kw_only=True)
class SinkhornNewtonTuning:
    """Tuning parameters of the Newton steps, and of the choice between them and sweeps."""

    # Predicted seconds of a sweep and of a Newton step, per call, entry and multiplication.
    sweep_seconds: float = 2e-5
    sweep_entry_seconds: float = 3e-10
    newton_seconds: float = 1.5e-4
    newton_entry_seconds: float = 8e-9
    newton_product_seconds: float = 2e-11
    expected_newton_steps: int = 10
    remaining_factor: float = 1e-4  # by which the violation is assumed to have to fall
    first_choice: int = 24  # sweeps before the first choice
    # Newton steps.
    least_step: float = 1e-4  # share of a Newton step below which none is made
    max_move_per_eta: float = 32.0  # clusters that do not touch move without end
    round_off: float = 1e-14  # change of the dual, per cost, that is rounding
    passes_per_step: int = 7  # over the cost, about


TUNING = SinkhornNewtonTuning()


@dataclass(slots=True, kw_only=True)
class SinkhornNewtonState(KernelState):
    """The state of Sinkhorn's algorithm; Newton steps use its potentials alone."""

    is_newton: bool = False  # whether Newton steps have begun


@dataclass(frozen=True, kw_only=True)
class SinkhornNewton(EntropicSolver[SinkhornNewtonState], DualPlan):
    r"""Sweep with overrelaxation; change to Newton steps where sweeps converge slowly.

    After every window of sweeps, the rate of the violation predicts the remaining sweeps. If they
    take longer than some Newton steps, all further steps are such: a sweep, then a damped step for
    the semi-dual in λ, whose Hessian is :math:`(\mathrm{diag}(X^\top 1) - X^\top \mathrm{diag}(1/p)
    X) / η`. The dual never falls.

    References
    ----------
    Brauer, Clason, Lorenz, Wirth (2017), "A Sinkhorn-Newton method for entropic optimal transport".
    """

    about: ClassVar[MethodInfo] = MethodInfo(
        family="Newton",
        paper="Brauer, Clason, Lorenz, Wirth 2017; Dvurechensky, Gasnikov, Kroshnin 2018",
        year=2017,
        note="n² per sweep, n³ per Newton step",
        needs_dense=True,
    )
    pace: ClassVar[Pace] = Pace(start=0.05, factor=4.0, share=1.0)

    def memory(self, problem: Problem) -> int:
        """Return the bytes of the kernel, the plan, its transpose and the Hessian."""
        _, m = problem.shape
        return 3 * problem.geometry.nbytes + 8 * m * m

    def init(
        self, problem: Entropic, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[SinkhornNewtonState, Work]:
        """Start from zero potentials, or from the given ones."""
        n, m = problem.shape
        row, lam = (np.zeros(n), np.zeros(m)) if potentials is None else potentials
        span = problem.geometry.bounds[1] / problem.eta
        is_plain = span < sinkhorn.TUNING.max_exponent
        state, work = SinkhornNewtonState.of(
            problem, row, lam, sinkhorn.TUNING.first_omega, is_plain
        )
        assert isinstance(state, SinkhornNewtonState)
        return state, work

    def step(self, problem: Entropic, state: SinkhornNewtonState, rng: Generator) -> Work:
        """Make a sweep, or a sweep and a Newton step."""
        if not state.is_newton:
            work = state.advance(problem)
            state.adapt()
            state.is_newton = is_slow(problem.shape, state)
            return work
        n, m = problem.shape
        f, g, state.violation = swept(problem, state.lam)
        if state.violation > 0:
            state.lam = newton_step(problem, g)
            f = softmin_rows(problem, state.lam)
        state.row = f
        state.n_steps += 1
        return Work.of(lse=TUNING.passes_per_step * n * m, vector=n * m * m + m**3 // 3)


def is_slow(shape: tuple[int, int], state: KernelState) -> bool:
    """Tell whether the remaining sweeps are predicted to take longer than Newton steps."""
    window, settling = sinkhorn.TUNING.window_sweeps, sinkhorn.TUNING.settling_sweeps
    if state.n_steps < TUNING.first_choice or state.n_steps % window:
        return False
    if not 0 < state.violation < math.inf or not 0 < state.reference < math.inf:
        return False
    gained = float(log(state.reference / state.violation)) / (window - settling)
    needed = -float(log(TUNING.remaining_factor))
    n, m = shape
    sweep = TUNING.sweep_seconds + TUNING.sweep_entry_seconds * n * m
    newton = (
        TUNING.newton_seconds
        + TUNING.newton_entry_seconds * n * m
        + TUNING.newton_product_seconds * (n * m * m + m**3 / 3)
    )
    return sweep * needed > gained * TUNING.expected_newton_steps * newton


def swept(problem: Entropic, g: Vector) -> tuple[Vector, Vector, float]:
    """Return the potentials after a sweep from g, and the l1 error of the columns before it."""
    f = softmin_rows(problem, g)
    after = softmin_cols(problem, f)
    columns = problem.q * exp((g - after) / problem.eta)
    return f, after, float(distance(columns, problem.q))


def newton_step(problem: Entropic, g: Vector) -> Vector:
    """Return the column potential after a Newton step, or unchanged if no step helps.

    The step is halved until it does not lower the semi-dual, or doubled while that raises it.
    Between clusters that hardly touch the semi-dual is exponential, and full steps are too short.
    """
    geometry, eta = problem.geometry, problem.eta
    rounding = TUNING.round_off * max(abs(x) for x in (*geometry.bounds, eta))
    lse = geometry.lse_rows(g, eta)
    f = softmin(problem.log_p, lse, eta)
    X = geometry.gibbs(f, g, eta, 0, f.size)
    columns = rmatvec(X, np.ones(f.size))
    factor = schur_factor(X, problem.p, columns, is_free=True)
    if factor is None:
        return g
    limit = TUNING.max_move_per_eta
    move = eta * np.clip(cholesky_solve(factor, problem.q - columns), -limit, limit)
    size, found = 1.0, semi_dual_at(problem, g + move)
    while not found <= semi_dual(problem, g, lse) + rounding:
        if size < TUNING.least_step:
            return g
        size /= 2
        found = semi_dual_at(problem, g + size * move)
    while size >= 1 and (farther := semi_dual_at(problem, g + 2 * size * move)) < found:
        size, found = 2 * size, farther
    return g + size * move


def semi_dual_at(problem: Entropic, g: Vector) -> float:
    """Return the semi-dual, which is minimised, at a column potential."""
    return semi_dual(problem, g, problem.geometry.lse_rows(g, problem.eta))
