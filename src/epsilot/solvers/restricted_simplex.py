"""Exact transport by a network simplex on the few arcs that entropic potentials select.

Float32 Sinkhorn sweeps with falling η give crude potentials. Under these, few arcs per row have a
small reduced cost. A network simplex solves the problem on them, from a tree of the least ones.
Arcs whose reduced cost is negative under its duals then join, and the simplex continues from its
last basis. The run ends when the certificate (over *all* arcs, in float64) meets the goal, or when
no negative arc is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from .._types import Index, Potentials, Vector
from ..errors import InvalidProblem
from ..geometry import Geometry
from ..geometry.sweeps import ByRow, ColumnSums
from ..geometry.tuning import TUNING as GEOMETRY_TUNING
from ..kernels import k_least
from ..kernels import sinkhorn as kernels
from ..kernels.vectors import log
from ..metrics import metric_of
from ..problems.plan import Arcs, Core, Gibbs
from ..problems.problem import Additive, Problem
from ..problems.work import Work
from ..wording import shown
from .arc_simplex import (
    RoundState,
    basic_flow,
    begin,
    crash,
    duals,
    negative_arcs,
    pivot,
    reopen,
)
from .base import DirectSolver, Pace, Signal
from .cost_models import Offer, cloud_features, cost_model, tie_measure
from .method_info import A_PRIORI, MethodInfo


@dataclass(frozen=True, kw_only=True)
class RestrictedSimplexTuning:
    """Tuning parameters of the restricted simplex."""

    #: Regularisations of the sweeps, as shares of the usual cost.
    etas: tuple[float, ...] = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0004, 0.00015)
    min_eta_nodes: float = 0.6  # least η times n + m: smaller ones select arcs no better
    min_eta: float = 5e-7  # as a share of max C: below, float32 exponents are round-off
    max_potential_range: float = 16.0  # in units of max C; potentials beyond are noise
    n_sampled_rows: int = 16  # rows that give the median cost
    max_median_ratio: int = 16  # multiple of the median above which costs are unusual
    max_listed_arcs: int = 64  # per row; more are found by sorting the row
    first_tolerance: float = 1e-12  # share of max C below which arcs are negative, in round 1
    tolerance: float = 5e-14  # in later rounds; arcs that join are below twice that
    # Offers to "auto".
    cached_entries: int = 1 << 21  # of the cost of a cloud: more take memory that is new
    cached_copies: int = 1 << 22  # in float32, of the entries of a stored cost
    uncached_seconds: float = 1.5e-8  # per entry beyond
    max_slower_apart: float = 2.5  # times the seconds of a coarse plan: see _slower_apart
    slower_by_ties: float = 8.0  # times the measure of ties: see cost_models
    entry_bytes: int = 4  # predicted bytes per entry of a stored cost
    node_bytes: int = 600  # predicted bytes per row and column


TUNING = RestrictedSimplexTuning()


#: Least and largest normal float32 numbers.
FLOAT32_RANGE = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


@dataclass(kw_only=True)
class RestrictedState(RoundState):
    """Potentials of the sweeps, then the rounds of the simplex."""

    usual: float  # unit of the regularisations: see ``usual_cost``
    sweep: int  # sweeps done

    def fits(self, problem: Additive) -> bool:
        """Tell whether saved arrays have consistent sizes and indices."""
        n, m = problem.shape
        is_whole = self.flow.size == (n + m + 1 if self.has_basis else 0)
        return (self.row.size, self.lam.size) == (n, m) and is_whole and self.is_basis()


@dataclass(frozen=True, kw_only=True)
class RestrictedSimplex(DirectSolver[RestrictedState]):
    """Select arcs by Sinkhorn sweeps, then solve by rounds of a simplex on them.

    A step is one sweep, or a number of pivots.

    Parameters
    ----------
    n_arcs : int
        Arcs kept per row; more if there are fewer rows than columns, so that each column may
        expect as many.
    etas : tuple of float, optional
        Regularisations of the sweeps, as shares of the largest cost, or of sixteen times the
        median if that is less; by default from 0.1 to about 0.6 / (n + m).
    sweeps : int
        Sweeps at each η.
    omega : float
        Overrelaxation of the sweeps, 1 <= omega < 2.
    """

    n_arcs: int = 16
    etas: tuple[float, ...] | None = None
    sweeps: int = 2
    omega: float = 1.6

    about: ClassVar[MethodInfo] = MethodInfo(
        family="exact",
        paper="column generation on a network simplex",
        year=2026,
        note="n² + simplex on O(n) arcs",
        exactness="exact",
        solves_entropic=False,
        rule=A_PRIORI,
        needs_rows=True,
    )
    pace: ClassVar[Pace] = Pace(evaluate_after=None, warm_up=20)

    def __post_init__(self) -> None:
        if self.n_arcs < 1 or self.sweeps < 0 or not 1 <= self.omega < 2:
            raise InvalidProblem(
                f"n_arcs={self.n_arcs}, sweeps={self.sweeps}, omega={self.omega} were given; they "
                "must satisfy n_arcs >= 1, sweeps >= 0 and 1 <= omega < 2."
            )
        if self.etas is not None and not (self.etas and min(self.etas) > 0):
            raise InvalidProblem(
                f"etas is {shown(self.etas)}; it must hold at least one number, and positive ones "
                "only (shares of the largest cost, falling)."
            )

    @classmethod
    def offer(cls, problem: Problem) -> Offer | None:
        """Offer to solve costs that are stored, can be stored, or have rows."""
        geometry, (n, m) = problem.geometry, problem.shape
        if geometry.is_separable:
            is_lazy, is_served = False, n * m <= GEOMETRY_TUNING.max_kept_entries
        else:
            is_lazy = not geometry.is_dense
            is_served = not is_lazy or geometry.has_rows
        if not is_served:
            return None
        seconds = cost_model("restricted_simplex").seconds(n, m, is_lazy=is_lazy)
        if not is_lazy and geometry.embedding is not None:
            seconds += TUNING.uncached_seconds * max(n * m - TUNING.cached_entries, 0)
        elif not is_lazy and geometry.recovered is not None:
            seconds += TUNING.uncached_seconds * max(n * m - TUNING.cached_copies, 0)
        elif not is_lazy and geometry.is_dense:
            seconds *= 1 + TUNING.slower_by_ties * tie_measure(geometry)
        n_bytes = (0 if is_lazy else TUNING.entry_bytes * n * m) + TUNING.node_bytes * (n + m)
        reason = (
            "a simplex on the arcs that crude entropic potentials select is fastest at this size"
        )
        coarse_gap, slower = _slower_apart(geometry)
        return Offer(reason, seconds, n_bytes, coarse_gap=coarse_gap, fine_seconds=slower * seconds)

    def resolved(self, stop: str, problem: Problem) -> RestrictedSimplex:
        """Fill in the regularisations."""
        n_sharp = sum(x >= TUNING.min_eta_nodes / sum(problem.shape) for x in TUNING.etas)
        return self if self.etas is not None else replace(self, etas=TUNING.etas[: max(n_sharp, 1)])

    @property
    def _n_sweeps(self) -> int:
        return self.sweeps * len(self.etas or TUNING.etas)

    def init(
        self, problem: Additive, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[RestrictedState, Work]:
        """Start from zero potentials; given ones replace all sweeps but those of the last η."""
        n, m = problem.shape
        row, lam = (np.zeros(n), np.zeros(m)) if potentials is None else potentials
        done = 0 if potentials is None else self._n_sweeps - self.sweeps
        usual = usual_cost(problem)
        return RestrictedState(row=row.copy(), lam=lam.copy(), usual=usual, sweep=done), Work()

    def step(self, problem: Additive, state: RestrictedState, rng: Generator) -> Work:
        """Do one sweep, or pivot on a restricted problem, and choose its arcs first."""
        if state.sweep < self._n_sweeps:
            return self._sweep(problem, state)
        work = Work()
        if not state.is_open:
            work.record(self._open(problem, state))
        if not state.is_done:
            work.record(self._pivots(problem, state))
        return work

    def _eta(self, problem: Additive, state: RestrictedState) -> float:
        etas = self.etas or TUNING.etas
        stage = min(max(state.sweep - 1, 0) // max(self.sweeps, 1), len(etas) - 1)
        return max(etas[stage] * state.usual, TUNING.min_eta * problem.geometry.cost_unit)

    def _sweep(self, problem: Additive, state: RestrictedState) -> Work:
        n, m = problem.shape
        state.sweep += 1
        eta = self._eta(problem, state)
        exact_unit = problem.geometry.cost_unit
        is_held = FLOAT32_RANGE[0] < exact_unit < FLOAT32_RANGE[1]
        unit = np.float32(exact_unit) if is_held else np.float64(exact_unit)
        inv_eta = np.float32(unit / eta)
        f, g = (np.asarray(x / unit, dtype=np.float32) for x in (state.row, state.lam))
        log_p, columns = log(np.maximum(problem.p, 1e-300)), ColumnSums(m, np.float32)
        problem.geometry.sweep(
            kernels.sweep, ByRow(f), g, inv_eta, ByRow(log_p), self.omega, columns, unit=float(unit)
        )
        move = log(np.maximum(problem.q, 1e-300)) - log(columns.total)
        state.row = f.astype(np.float64) * unit
        move *= np.where(np.abs(move) < kernels.MAX_RELAXED_MOVE, self.omega, 1.0)
        # The clip returns a column beyond the range of float32 step by step.
        state.lam = state.lam + eta * np.clip(move, -60.0, 60.0)
        return Work.of(both_marginals=n * m)

    def _open(self, problem: Additive, state: RestrictedState) -> Work:
        """Open a round: choose the first arcs and a basis, or add negative arcs."""
        n, m = problem.shape
        if state.round == 0:
            tame_potentials(problem, state)
            k = min(m, -(-self.n_arcs * max(n, m) // n))
            keys = least_arcs(problem, state.row, state.lam, k)
            heavy = arcs_of_heavy(problem.p, problem.q, self.n_arcs)
            keys = mixed(np.concatenate([keys, heavy, staircase(problem.p, problem.q)]))
            i, j = np.divmod(keys, m)
        else:
            bar = -2 * TUNING.tolerance * problem.geometry.cost_unit
            i, j = negative_arcs(problem.geometry, state.row, state.lam, self.n_arcs, bar)
        costs, unit = problem.geometry.entries(i, j), problem.geometry.cost_unit
        if state.round == 0:
            begin(state, (n, m), i, j, costs, unit)
            first_basis(problem, state)
        else:
            reopen(state, i, j, costs, unit, TUNING.tolerance)
        return Work.of(ctransform=n * m)

    def _pivots(self, problem: Additive, state: RestrictedState) -> Work:
        """Improve the basis; at its optimum, end the round with the new potentials."""
        return pivot(
            state,
            problem.geometry.cost_unit,
            TUNING.tolerance if state.round else TUNING.first_tolerance,
        )

    def signal(self, problem: Additive, state: RestrictedState) -> Signal:
        """Request a certificate after a simplex round."""
        return Signal(is_finished=state.is_done, wants_certificate=state.is_between_rounds)

    def candidates(self, problem: Additive, state: RestrictedState) -> list[tuple[Core, Vector]]:
        """Return the plan of the basis, and the plan of the sweeps until the first round ends."""
        found: list[tuple[Core, Vector]] = []
        if state.round == 0:
            core = Gibbs(problem.geometry, state.row, state.lam, self._eta(problem, state))
            found.append((core, state.row))
        if state.has_basis:
            row, _ = self.potentials(problem, state)
            found.append((Arcs(problem.shape, *basic_flow(state)), row))
        return found

    def potentials(self, problem: Additive, state: RestrictedState) -> Potentials:
        """Return the current duals."""
        return duals(state, problem.geometry.cost_unit)


def _slower_apart(geometry: Geometry) -> tuple[float, float]:
    """Return the gap of coarse plans between distant clouds, and how much longer finer ones take.

    Distances that are not squared hardly differ along a ray: few selected arcs are useful.
    """
    embedding = geometry.embedding or geometry.recovered
    if embedding is None:
        return 0.0, 0.0
    metric = metric_of(embedding.metric)
    if metric.is_separable or metric.square > 0:
        return 0.0, 0.0
    shape = cloud_features(embedding)
    flat = min(max((4 - shape.dimension) / 2, 0.0), 1.0)
    return shape.coarse_gap, min(shape.separation, TUNING.max_slower_apart) * flat


def usual_cost(problem: Additive) -> float:
    """Return max C or, if a few costs are much larger than most, a multiple of the median."""
    n, _ = problem.shape
    rows = np.unique(np.linspace(0, n - 1, TUNING.n_sampled_rows).astype(np.int64))
    costs = np.concatenate([problem.geometry.row(i) for i in rows])
    typical = float(np.median(costs) or costs.mean())
    return min(
        problem.geometry.cost_unit, TUNING.max_median_ratio * typical or problem.geometry.cost_unit
    )


def tame_potentials(problem: Additive, state: RestrictedState) -> None:
    """Clip and c-transform potentials whose range is far beyond that of the costs."""
    unit = problem.geometry.cost_unit
    if max(np.ptp(state.row), np.ptp(state.lam)) <= TUNING.max_potential_range * unit:
        return
    state.row = np.clip(state.row - np.median(state.row), -unit, unit)
    state.lam = problem.geometry.ctransform_cols(state.row)


def first_basis(problem: Additive, state: RestrictedState) -> None:
    """Build a basis from a tree of arcs of least reduced cost."""
    order = np.argsort(np.abs(state.reduced).astype(np.float32), kind="stable")
    crash(state, (problem.p, problem.q), order)


def mixed(keys: Index) -> Index:
    """Return the keys in an order whose neighbours come from distant parts of the problem."""
    stride = max(math.isqrt(keys.size), 1)
    padded = np.pad(keys, (0, -keys.size % stride), constant_values=-1)
    turned = padded.reshape(-1, stride).T.ravel()
    return turned[turned >= 0]


def least_arcs(problem: Additive, row: Vector, lam: Vector, k: int) -> Index:
    """Return keys i m + j of the k least reduced costs of every row, in float32."""
    n, m = problem.shape
    unit = problem.geometry.cost_unit
    f, g = (np.asarray(x / unit, dtype=np.float32) for x in (row, lam))
    slack = 4 * np.finfo(np.float32).eps * (1 + np.abs(f).max() + np.abs(g).max())
    cols, values = np.zeros((n, k), dtype=np.int64), np.full((n, k), np.inf, dtype=np.float32)
    if k <= TUNING.max_listed_arcs:
        out = ByRow(values), ByRow(cols)
        problem.geometry.sweep(k_least.least_of_rows, ByRow(f), g, slack, *out, unit=unit)
    else:
        for start, stop, C in problem.geometry.single_blocks(unit):
            cols[start:stop] = np.argsort(C - g, axis=1, kind="stable")[:, :k]
    return (np.arange(n)[:, None] * m + cols).ravel()


def arcs_of_heavy(p: Vector, q: Vector, k: int) -> Index:
    """Return the keys of all arcs of rows, and columns, that serve more than k others.

    These are the k heaviest rows and columns, as far as each has the mass of k others. So they
    add at most as many arcs as are kept anyway.
    """
    n, m = p.size, q.size
    rows, cols = _heaviest(p, k, k / m), _heaviest(q, k, k / n)
    of_rows, of_cols = rows[:, None] * m + np.arange(m), np.arange(n)[:, None] * m + cols
    return np.concatenate([of_rows.ravel(), of_cols.ravel()])


def _heaviest(masses: Vector, k: int, least: float) -> Index:
    """Return the indices of the k largest masses that are at least ``least``."""
    order = np.argsort(-masses, kind="stable")[:k]
    return order[masses[order] >= least]


def staircase(p: Vector, q: Vector) -> Index:
    """Return the arcs of the north-west corner plan, so that a feasible plan always exists."""
    n, m = p.size, q.size
    ends = np.concatenate([np.cumsum(p)[:-1], np.cumsum(q)[:-1]])
    is_row = np.repeat([True, False], [n - 1, m - 1])[np.argsort(ends, kind="stable")]
    i = np.concatenate([[0], np.cumsum(is_row)])
    j = np.concatenate([[0], np.cumsum(~is_row)])
    keys = i * m + j
    corners = keys[:-1] + np.where(is_row, 1, m)  # both ways around a corner, for ties
    inside = (np.where(is_row, j[:-1], i[:-1]) + 1) < np.where(is_row, m, n)
    return np.concatenate([keys, corners[inside]])
