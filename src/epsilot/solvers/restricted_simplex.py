"""Exact transport by a network simplex on the few arcs that entropic potentials point at.

Crude potentials from float32 Sinkhorn sweeps with falling η leave few arcs of small reduced
cost per row and column; POT's sparse network simplex solves the problem on them; arcs whose
reduced cost is negative under its duals are added, and it is solved again, until the
certificate (over *all* arcs, in float64) meets the goal or no such arc is left.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from .._types import Potentials, Vector
from ..errors import InvalidProblem
from ..geometry.base import n_chunks
from ..kernels import pipeline as kernels
from ..kernels import threads
from ..plan import Arcs, Core, Gibbs
from ..problem import Additive, Problem
from ..work import Work
from .base import About, DirectSolver, Pace

#: Groups of rows whose minima are compared, for each arc that is wanted of a column.
GROUPS = 8
#: Costs up to which two sweeps at each η are enough.
FEW_ENTRIES = 1 << 21


@dataclass(slots=True)
class State:
    """Potentials first, then a basis; ``round`` counts simplex solves."""

    row: Vector  # row potential
    lam: Vector  # column potential
    sweep: int  # sweeps done
    round: int  # restricted problems solved
    arcs: Any  # keys i m + j of the arcs of the restricted problem, sorted
    used: Any  # keys of the arcs that carry the plan of the last restricted problem
    flow: Vector  # what they carry
    is_done: bool  # no arc has a negative reduced cost


@dataclass(frozen=True, kw_only=True)
class RestrictedSimplex(DirectSolver):
    """Sweeps, then simplex rounds; a step is one sweep or one round.

    Parameters
    ----------
    n_arcs : int
        Arcs kept per row and per column.
    etas : tuple of float
        Regularisations of the sweeps, as shares of the largest cost.
    sweeps : int, optional
        Sweeps at each η; by default 2, and 4 where a simplex round costs more than they do.
    omega : float
        Overrelaxation of the sweeps, 1 <= omega < 2.
    """

    n_arcs: int = 12
    etas: tuple[float, ...] = (0.1, 0.03, 0.01, 0.003, 0.001)
    sweeps: int | None = None
    omega: float = 1.6

    about: ClassVar[About] = About(
        family="exact",
        paper="column generation on POT's network simplex",
        year=2026,
        complexity="n² + simplex on O(n) arcs",
        exactness="exact",
        solves_entropic=False,
        needs_rows=True,
    )
    pace: ClassVar[Pace] = Pace(evaluate_after=math.inf, warm_up=40)

    def __post_init__(self) -> None:
        if self.n_arcs < 1 or (self.sweeps or 0) < 0 or not 1 <= self.omega < 2:
            raise InvalidProblem(
                f"n_arcs={self.n_arcs}, sweeps={self.sweeps}, omega={self.omega} were given; they "
                "must satisfy n_arcs >= 1, sweeps >= 0 and 1 <= omega < 2."
            )

    def resolved(self, stop: str, problem: Problem) -> RestrictedSimplex:
        """Fill in the number of sweeps."""
        n, m = problem.shape
        sweeps = (2 if n * m <= FEW_ENTRIES else 4) if self.sweeps is None else self.sweeps
        return replace(self, sweeps=sweeps)

    @property
    def _sweeps(self) -> int:
        return 4 if self.sweeps is None else self.sweeps

    def init(
        self, problem: Additive, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[State, Work]:
        """Start from zero potentials; given ones replace the sweeps but the last η's."""
        n, m = problem.shape
        row, lam = (np.zeros(n), np.zeros(m)) if potentials is None else potentials
        done = 0 if potentials is None else self._sweeps * (len(self.etas) - 1)
        empty = np.zeros(0, dtype=np.int64)
        return State(row.copy(), lam.copy(), done, 0, empty, empty, np.zeros(0), False), Work()

    def step(self, problem: Additive, state: State, rng: Generator) -> Work:
        """Do one sweep, or solve one restricted problem."""
        if state.sweep < self._sweeps * len(self.etas):
            return self._sweep(problem, state)
        return self._round(problem, state)

    def _eta(self, problem: Additive, state: State) -> float:
        stage = min(max(state.sweep - 1, 0) // max(self._sweeps, 1), len(self.etas) - 1)
        return self.etas[stage] * (problem.geometry.bounds[1] or 1.0)

    def _sweep(self, problem: Additive, state: State) -> Work:
        n, m = problem.shape
        state.sweep += 1
        eta = self._eta(problem, state)
        unit = np.float32(problem.geometry.bounds[1] or 1.0)
        inv_eta = np.float32(unit / eta)
        f, g = (np.asarray(x / unit, dtype=np.float32) for x in (state.row, state.lam))
        log_p, columns = np.log(np.maximum(problem.p, 1e-300)), np.zeros(m)
        for start, stop, C in problem.geometry.single_blocks(float(unit)):
            parts = np.zeros((n_chunks(C.size), m), dtype=np.float32)
            threads.share(
                kernels.sweep, len(parts), C.size,
                C, f[start:stop], g, inv_eta, log_p[start:stop], self.omega, parts,
            )  # fmt: skip
            columns += parts.sum(axis=0, dtype=np.float64)
        with np.errstate(divide="ignore"):
            move = np.log(np.maximum(problem.q, 1e-300)) - np.log(columns)
        state.row = f.astype(np.float64) * unit
        move *= np.where(np.abs(move) < kernels.NEAR, self.omega, 1.0)
        # A column out of float32's range is brought back step by step.
        state.lam = state.lam + eta * np.clip(move, -60.0, 60.0)
        return Work.of(both_marginals=n * m)

    def _round(self, problem: Additive, state: State) -> Work:
        n, m = problem.shape
        found = self._promising(problem, state)
        if state.round == 0:
            found = np.concatenate([found, staircase(problem.p, problem.q)])
        arcs = np.union1d(state.arcs, found)
        if state.round > 0 and arcs.size == state.arcs.size:
            state.is_done = True
            return Work.of(ctransform=2 * n * m)
        state.arcs = arcs
        i, j = np.divmod(arcs, m)
        state.used, state.flow, state.row, state.lam = simplex(
            problem, i, j, (state.row, state.lam)
        )
        state.round += 1
        return Work.of(ctransform=2 * n * m, pivot=arcs.size)

    def _promising(self, problem: Additive, state: State) -> Any:
        """Return the arcs of least reduced cost; after the first round, negative ones only."""
        m = problem.shape[1]
        found, values = least_arcs(problem, state.row, state.lam, self.n_arcs)
        if state.round == 0:
            return found
        near = found[values < 1e-6]  # float32 proposes, float64 decides
        i, j = np.divmod(near, m)
        reduced = problem.geometry.entries(i, j) - state.row[i] - state.lam[j]
        return near[reduced < -1e-13 * problem.geometry.bounds[1]]

    def violation(self, problem: Additive, state: State) -> float:
        """Return 0 after a simplex round, which is when certifying makes sense."""
        return 0.0 if state.round > 0 else math.inf

    def candidates(self, problem: Additive, state: State) -> list[tuple[Core, Vector]]:
        """Return the plan of the last round, or of the sweeps if there was none."""
        if state.round > 0:
            i, j = np.divmod(state.used, problem.shape[1])
            return [(Arcs(problem.shape, i, j, state.flow), state.row)]
        core = Gibbs(problem.geometry, state.row, state.lam, self._eta(problem, state))
        return [(core, state.row)]

    def potentials(self, problem: Additive, state: State) -> Potentials:
        """Return the current duals."""
        return state.row, state.lam


def least_arcs(problem: Additive, row: Vector, lam: Vector, k: int) -> tuple[Any, Any]:
    """Return keys i m + j and values of the k least reduced costs of every row and column."""
    n, m = problem.shape
    unit = float(problem.geometry.bounds[1] or 1.0)
    f, g = (np.asarray(x / unit, dtype=np.float32) for x in (row, lam))
    slack = 4 * np.finfo(np.float32).eps * (1 + np.abs(f).max() + np.abs(g).max())
    rows, row_values = _no_arcs(n, min(k, m))
    group_least = []
    for start, stop, C in problem.geometry.single_blocks(unit):
        least = np.full((-(-GROUPS * k * (stop - start) // n), m), np.inf, dtype=np.float32)
        threads.share(
            kernels.least_of_rows, len(least), C.size,
            C, f[start:stop], g, slack, row_values[start:stop], rows[start:stop], least,
        )  # fmt: skip
        group_least.append(least)
    cols, col_values = _no_arcs(m, min(k, n))
    # The k-th least of the minima over groups of rows bounds a column's k-th least entry.
    bars = np.partition(np.concatenate(group_least), cols.shape[1] - 1, axis=0)
    bars = bars[cols.shape[1] - 1] - g + slack
    for start, stop, C in problem.geometry.single_blocks(unit):
        threads.share(
            kernels.least_of_cols, m, C.size,
            C, f[start:stop], g, start, bars, col_values, cols,
        )  # fmt: skip
    keys = np.arange(n)[:, None] * m + rows, cols * m + np.arange(m)[:, None]
    values = np.concatenate([row_values.ravel(), col_values.ravel()])
    is_found = values < np.inf
    return np.concatenate([x.ravel() for x in keys])[is_found], values[is_found]


def _no_arcs(n: int, k: int) -> tuple[Any, Any]:
    """Return room for the places and values of k arcs for each of n nodes."""
    return np.zeros((n, k), dtype=np.int64), np.full((n, k), np.inf, dtype=np.float32)


def staircase(p: Vector, q: Vector) -> Any:
    """Return the arcs of the north-west corner plan, so that a feasible plan always exists."""
    n, m = p.size, q.size
    ends = np.concatenate([np.cumsum(p)[:-1], np.cumsum(q)[:-1]])
    is_row = np.repeat([True, False], [n - 1, m - 1])[np.argsort(ends, kind="stable")]
    i = np.concatenate([[0], np.cumsum(is_row)])
    j = np.concatenate([[0], np.cumsum(~is_row)])
    keys = i * m + j
    corners = keys[:-1] + np.where(is_row, 1, m)  # both ways round a corner, for ties
    inside = (np.where(is_row, j[:-1], i[:-1]) + 1) < np.where(is_row, m, n)
    return np.concatenate([keys, corners[inside]])


def simplex(
    problem: Additive, i: Any, j: Any, start: Potentials
) -> tuple[Any, Vector, Vector, Vector]:
    """Solve on the arcs (i, j) by POT's sparse network simplex.

    Return the keys of the arcs with flow, the flow, and the duals.
    """
    from ot.lp.emd_wrap import emd_c_sparse

    unit = problem.geometry.bounds[1] or 1.0
    costs = problem.geometry.entries(i, j) / unit
    q = problem.q * (problem.p.sum() / problem.q.sum())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source, target, flow, _, u, v, _ = emd_c_sparse(
            np.array(problem.p), q, i.astype(np.uint64), j.astype(np.uint64), costs, 10**8,
            start[0] / unit, start[1] / unit,
        )  # fmt: skip
    keys = source.astype(np.int64) * problem.shape[1] + target.astype(np.int64)
    level = np.median(u)  # POT's duals may be far from zero, where float32 tells no arcs apart
    return keys, np.asarray(flow), unit * (u - level), unit * (v + level)
