"""Box-constrained Newton's method (Blanchet et al. 2018, Cohen, Madry, Tsipras, Vladu 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from .._types import Matrix, Potentials, Vector
from ..geometry.sweeps import row_blocks
from ..kernels.products import cholesky_solve, schur_factor
from ..kernels.vectors import dot, exp, finite_dot, matvec, rmatvec
from ..problems.duals import softmin
from ..problems.plan import Core, Explicit, Gibbs
from ..problems.problem import Entropic
from ..problems.work import Work
from .base import DualPlan, EntropicSolver, Pace, RowState, l1, with_least_sup_norm
from .method_info import MethodInfo, Order
from .options import HasConstants


@dataclass(frozen=True, kw_only=True)
class BoxNewtonTuning:
    """Tuning parameters of box-constrained Newton's method."""

    proved_radius: float = 0.75  # of the box, for which the second-order bounds are proved
    max_radius: float = 4.0  # of the box that is tried
    first_sweeps: int = 30  # before a Cholesky solve
    max_sweeps: int = 2000  # where that is not enough, or not possible
    max_rounds: int = 12  # of the active set
    max_solve_size: int = 2000  # rows or columns up to which a Cholesky solve pays


TUNING = BoxNewtonTuning()


class Quadratic(NamedTuple):
    r"""The problem min g·δ + c δᵀHδ over |δ| <= ρ, with H = [[diag d1, X], [Xᵀ, diag d2]]."""

    X: Core
    d1: Vector
    d2: Vector
    g_rows: Vector
    g_cols: Vector
    radius: float
    factor: float


class Move(NamedTuple):
    """A step, the model's value there, and the work it took."""

    rows: Vector
    cols: Vector
    value: float
    gap: float  # proved bound on value - minimum
    s: Vector  # X δ_cols
    t: Vector  # Xᵀ δ_rows
    n_sweeps: int = 0
    n_solves: int = 0
    work: Work = Work()

    @property
    def is_good(self) -> bool:
        """Whether at least two thirds of the possible decrease were found."""
        return self.gap <= max(0.5 * abs(self.value), 1e-15)


def measure(model: Quadratic, rows: Vector, cols: Vector, s: Vector, t: Vector) -> Move:
    """Return a step with its value and the gap ρ‖r‖₁ + r·δ, where r is the model's gradient."""
    c = model.factor
    h_rows, h_cols = model.d1 * rows + s, model.d2 * cols + t
    r_rows, r_cols = 2 * c * h_rows + model.g_rows, 2 * c * h_cols + model.g_cols
    linear = dot(model.g_rows, rows) + dot(model.g_cols, cols)
    value = linear + c * (dot(rows, h_rows) + dot(cols, h_cols))
    slope = dot(r_rows, rows) + dot(r_cols, cols)
    gap = model.radius * (np.abs(r_rows).sum() + np.abs(r_cols).sum()) + slope
    return Move(rows, cols, value, float(gap), s, t)


def sweep(model: Quadratic, s: Vector) -> Move:
    """Minimise over all rows given the columns, then over all columns, by clipping."""
    c, radius = 2 * model.factor, model.radius
    d1, d2 = np.maximum(model.d1, 1e-300), np.maximum(model.d2, 1e-300)
    with np.errstate(over="ignore"):  # a row without mass is clipped
        rows = np.clip(-(model.g_rows / c + s) / d1, -radius, radius)
        t = model.X.cols(rows)
        cols = np.clip(-(model.g_cols / c + t) / d2, -radius, radius)
    return measure(model, rows, cols, model.X.rows(cols), t)


def minimise(model: Quadratic, is_exact: bool = False) -> Move:
    """Sweep until two thirds of the possible decrease are proved; solve exactly if that fails."""
    n, m = model.X.shape
    zeros = np.zeros(n), np.zeros(m)
    move = measure(model, *zeros, *zeros)
    can_solve = isinstance(model.X, Explicit) and max(n, m) <= TUNING.max_solve_size
    if not (is_exact and can_solve):
        move = sweeps(model, move, TUNING.first_sweeps)
    if can_solve and not move.is_good:
        move = active_set(model, move)
    return move if move.is_good else sweeps(model, move, TUNING.max_sweeps)


def sweeps(model: Quadratic, move: Move, limit: int) -> Move:
    """Sweep until the step is good enough, at most ``limit`` times."""
    n, m = model.X.shape
    n_sweeps, before = 0, move
    while not move.is_good and n_sweeps < limit:
        move = sweep(model, move.s)
        n_sweeps += 1
    work = Work.of(inner=2 * n_sweeps * n * m, vector=20 * n_sweeps * (n + m))
    return move._replace(
        n_sweeps=before.n_sweeps + n_sweeps, n_solves=before.n_solves, work=before.work + work
    )


def active_set(model: Quadratic, move: Move) -> Move:
    """Fix the entries that the multipliers push against the box, solve for the rest, repeat."""
    c, radius = 2 * model.factor, model.radius
    n = model.d1.size
    d = np.maximum(np.concatenate([model.d1, model.d2]), 1e-300)
    delta = np.concatenate([move.rows, move.cols])
    held = np.abs(delta) >= radius
    best, n_solves, work = move, 0, move.work
    push = np.where(held, -_gradient(model, move), 0.0)
    for _ in range(TUNING.max_rounds):
        aim = delta + push / (c * d)
        fixed = np.where(aim > radius, radius, np.where(aim < -radius, -radius, 0.0))
        solved = _solve_free(model, fixed)
        n_rows, n_cols = int((fixed[:n] == 0).sum()), int((fixed[n:] == 0).sum())
        cost = 2 * n_rows * n_cols**2 + n_cols**3 // 3 + 6 * n * (d.size - n)
        work += Work.of(vector=cost)
        n_solves += 1
        if solved is None:
            break
        delta = np.clip(solved, -radius, radius)
        rows, cols = delta[:n], delta[n:]
        found = measure(model, rows, cols, model.X.rows(cols), model.X.cols(rows))
        best = found if found.value <= best.value else best
        if best.is_good:
            break
        delta = solved
        push = np.where(fixed != 0, -_gradient(model, found), 0.0)
    return best._replace(n_sweeps=move.n_sweeps, n_solves=n_solves, work=work)


def _gradient(model: Quadratic, move: Move) -> Vector:
    c = 2 * model.factor
    by_rows = c * (model.d1 * move.rows + move.s) + model.g_rows
    by_cols = c * (model.d2 * move.cols + move.t) + model.g_cols
    return np.concatenate([by_rows, by_cols])


def _solve_free(model: Quadratic, fixed: Vector) -> Vector | None:
    """Return the minimiser with the nonzero entries of ``fixed`` held, by a Schur complement."""
    n = model.d1.size
    assert isinstance(model.X, Explicit)
    X = model.X.X
    hold_rows, hold_cols = fixed[:n], fixed[n:]
    R, K = np.flatnonzero(hold_rows == 0), np.flatnonzero(hold_cols == 0)
    c = 2 * model.factor
    b_rows = (-model.g_rows / c - matvec(X, hold_cols))[R]
    b_cols = (-model.g_cols / c - rmatvec(X, hold_rows))[K]
    d1, d2 = np.maximum(model.d1[R], 1e-300), model.d2[K]
    free = X if R.size == n and K.size == X.shape[1] else X[np.ix_(R, K)]
    out = fixed.copy()
    if K.size:
        factor = schur_factor(free, d1, d2, is_free=R.size == n and K.size == X.shape[1])
        if factor is None:
            return None
        out[n + K] = cholesky_solve(factor, b_cols - rmatvec(free, b_rows / d1))
    out[R] = (b_rows - matvec(free, out[n + K])) / d1
    if R.size == n and K.size == X.shape[1]:  # free to move along (1, -1): least sup norm
        out[:n], out[n:] = with_least_sup_norm(out[:n], out[n:])
    return out if np.isfinite(out).all() else None


@dataclass(slots=True, kw_only=True)
class BoxNewtonState(RowState):
    """Potentials, the plan they define, and the trust radius."""

    row: Vector  # row potential τ
    lam: Vector  # column potential λ
    X: Matrix  # the plan, on stored costs; else empty
    spare: Matrix  # buffer for the plan of a trial step
    r: Vector  # X 1
    c: Vector  # Xᵀ 1
    objective: float = math.inf  # sum X - <p, τ/η> - <q, λ/η>
    radius: float = TUNING.proved_radius  # of the box, in units of η
    violation: float = math.inf  # l1 marginal violation
    n_sweeps: int = 0  # over rows and columns of the box QPs
    n_solves: int = 0  # Cholesky factorisations


@dataclass(frozen=True, kw_only=True)
class BoxNewton(HasConstants, EntropicSolver[BoxNewtonState], DualPlan):
    r"""Minimise quadratic models of the entropic dual over boxes.

    With a = τ/η, b = λ/η the dual is :math:`f = \sum_{ij} e^{a_i+b_j-C_{ij}/η} - p·a - q·b`. In the
    box :math:`\|δ\|_\infty \le ρ` it lies below :math:`f + g·δ + c δ^\top Hδ` with
    :math:`c = (e^{2ρ}-1-2ρ)/(2ρ)^2`, which the step minimises by sweeps over rows and columns
    (H has diagonal blocks), with a Cholesky solve where these do not pass the test of box_qp.
    A step is one Newton step.

    Parameters
    ----------
    constants : {"practical", "published"}, optional
        "published": radius 0.75 and exact solves by Cholesky factors, both ours where the papers
        name no constant and rest on nearly linear solvers. "practical" (default): sweeps first,
        and a radius up to 4 while the decrease that the model promises is seen. Published with
        ``stop="paper"``.

    References
    ----------
    Blanchet, Jambulapati, Kent, Sidford (2018), Towards optimal running times for optimal
    transport. Cohen, Madry, Tsipras, Vladu (2017), Matrix scaling and balancing via box
    constrained Newton's method and interior point methods.
    """

    about: ClassVar[MethodInfo] = MethodInfo(
        family="Newton",
        paper="Blanchet, Jambulapati, Kent, Sidford 2018",
        year=2018,
        orders=(Order(2, eps=1, log=2),),
        is_in_table1=True,
        departure=(
            "ρ = 0.75 and its curvature are derived here; box problems are solved by dense "
            "Cholesky factors, in n³, in place of the papers' nearly linear solvers"
        ),
    )
    pace: ClassVar[Pace] = Pace()

    def init(
        self, problem: Entropic, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[BoxNewtonState, Work]:
        """Scale the rows, then the columns, of the plan of the given potentials or of zeros."""
        n, m = problem.shape
        lam = np.zeros(m) if potentials is None else potentials[1]
        rough = problem.geometry.rough
        row = softmin(problem.log_p, rough.lse_rows(lam, problem.eta), problem.eta)
        lam = softmin(problem.log_q, rough.lse_cols(row, problem.eta), problem.eta)
        kept = problem.shape if problem.geometry.is_dense else (0, 0)
        X, spare = np.empty(kept), np.empty(kept)
        state = BoxNewtonState(row=row, lam=lam, X=X, spare=spare, r=np.empty(n), c=np.empty(m))
        _accept(problem, state, evaluate(problem, row, lam, state.spare))
        return state, Work.of(scale=n * m, lse=2 * n * m, newton_plan=n * m)

    def step(self, problem: Entropic, state: BoxNewtonState, rng: Generator) -> Work:
        """Minimise the model in the box; shrink the box first if it was too large."""
        n, m = problem.shape
        is_exact = self.constants == "published"
        work = Work()
        while True:
            is_proved = state.radius <= TUNING.proved_radius
            factor = curvature(2 * state.radius) if is_proved else 0.5
            model = Quadratic(
                _plan(problem, state),
                state.r,
                state.c,
                state.r - problem.p,
                state.c - problem.q,
                state.radius,
                factor,
            )
            move = minimise(model, is_exact)
            state.n_sweeps += move.n_sweeps
            state.n_solves += move.n_solves
            row = state.row + problem.eta * move.rows
            lam = state.lam + problem.eta * move.cols
            trial = evaluate(problem, row, lam, state.spare)
            work += move.work + Work.of(newton_plan=n * m)
            decrease = state.objective - trial.objective
            if is_proved or decrease >= 0.1 * abs(move.value):
                break
            state.radius = max(TUNING.proved_radius, state.radius / 4)
        size = max(np.abs(move.rows).max(), np.abs(move.cols).max())
        if not is_exact and size >= state.radius and decrease >= 0.4 * abs(move.value):
            state.radius = min(2 * state.radius, TUNING.max_radius)
        _accept(problem, state, trial)
        return work


def curvature(t: float) -> float:
    """Return (e^t - 1 - t) / t², the factor of the upper model for steps |δ_i + δ_j| <= t."""
    return (exp(t) - 1 - t) / (t * t)


def _plan(problem: Entropic, state: BoxNewtonState) -> Core:
    """Return the current plan: the stored one, or its potentials."""
    if state.X.size:
        return Explicit(state.X)
    return Gibbs(problem.geometry, state.row, state.lam, problem.eta)


class NewtonTrial(NamedTuple):
    """Potentials, the marginals of their plan, and the dual objective there."""

    row: Vector
    lam: Vector
    r: Vector
    c: Vector
    objective: float


def evaluate(problem: Entropic, row: Vector, lam: Vector, out: Matrix) -> NewtonTrial:
    """Return a trial point, with its plan in ``out`` unless that is empty."""
    geometry, eta = problem.geometry, problem.eta
    with np.errstate(over="ignore"):  # a step that is too long overflows, and is rejected
        if out.size:
            for rows in row_blocks(*out.shape):
                out[rows] = geometry.gibbs(row, lam, eta, rows.start, rows.stop)
            r, c = out.sum(axis=1), out.sum(axis=0)
        else:
            log_r, log_c, _ = geometry.log_marginals(row, lam, eta)
            r, c = exp(log_r), exp(log_c)
    linear = finite_dot(problem.p, row) + finite_dot(problem.q, lam)
    return NewtonTrial(row, lam, r, c, float(r.sum()) - linear / eta)


def _accept(problem: Entropic, state: BoxNewtonState, trial: NewtonTrial) -> None:
    """Move to a trial point; its plan is in the spare matrix."""
    state.row, state.lam, state.r, state.c, state.objective = trial
    state.X, state.spare = state.spare, state.X
    state.violation = l1(state.r - problem.p) + l1(state.c - problem.q)
