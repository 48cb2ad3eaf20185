"""The box-constrained quadratic program of one step of ``box_newton``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._types import Vector
from ..kernels.products import cholesky_solve, schur_factor
from ..kernels.vectors import dot, matvec, rmatvec
from ..problems.plan import Core, Explicit
from ..problems.work import Work
from .base import centred

N_SWEEPS, MOST_SWEEPS = 30, 2000
N_ROUNDS = 12
#: Rows and columns up to which a Cholesky factorisation is worth its n³.
LARGEST_SOLVE = 2000


class Quadratic(NamedTuple):
    r"""min g·δ + c δᵀHδ over |δ| <= ρ, with H = [[diag d1, X], [Xᵀ, diag d2]]."""

    X: Core
    d1: Vector
    d2: Vector
    g_rows: Vector
    g_cols: Vector
    radius: float
    factor: float


class Move(NamedTuple):
    """A step, the model's value there, and what it took."""

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
    """Minimise over all rows given the columns, then over all columns: each is a clip."""
    c, radius = 2 * model.factor, model.radius
    d1, d2 = np.maximum(model.d1, 1e-300), np.maximum(model.d2, 1e-300)
    with np.errstate(over="ignore"):  # a row without mass: the clip decides
        rows = np.clip(-(model.g_rows / c + s) / d1, -radius, radius)
        t = model.X.cols(rows)
        cols = np.clip(-(model.g_cols / c + t) / d2, -radius, radius)
    return measure(model, rows, cols, model.X.rows(cols), t)


def minimise(model: Quadratic, is_exact: bool = False) -> Move:
    """Sweep until two thirds of the possible decrease are proved; solve if that takes long."""
    n, m = model.X.shape
    zeros = np.zeros(n), np.zeros(m)
    move = measure(model, *zeros, *zeros)
    can_solve = isinstance(model.X, Explicit) and max(n, m) <= LARGEST_SOLVE
    if not (is_exact and can_solve):
        move = sweeps(model, move, N_SWEEPS)
    if can_solve and not move.is_good:
        move = active_set(model, move)
    return move if move.is_good else sweeps(model, move, MOST_SWEEPS)


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
    """Fix what the multipliers push against the box, solve for the rest, and repeat."""
    c, radius = 2 * model.factor, model.radius
    n = model.d1.size
    d = np.maximum(np.concatenate([model.d1, model.d2]), 1e-300)
    delta = np.concatenate([move.rows, move.cols])
    held = np.abs(delta) >= radius
    best, n_solves, work = move, 0, move.work
    push = np.where(held, -_gradient(model, move), 0.0)
    for _ in range(N_ROUNDS):
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
        out[:n], out[n:] = centred(out[:n], out[n:])
    return out if np.isfinite(out).all() else None
