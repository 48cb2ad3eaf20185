"""Exact transport on the arcs of a sparse cost: an auction, completed by a network simplex.

Sinkhorn sweeps over the arcs give crude potentials. A short auction improves them and finds a flow
that lacks little mass. The simplex starts from that flow, on the cheapest arcs of every row; arcs
of negative reduced cost then join round by round. Small problems are given to the simplex at once,
with all arcs. Artificial arcs to a root take the missing mass. What is still on them at the optimum
becomes a plan, or a cut, when the plan is rounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .._types import Index, Integers, Potentials, Vector
from ..kernels import auction as kernels
from ..kernels.vectors import log
from ..problems.plan import Arcs, Core
from ..problems.problem import Additive, Problem
from ..problems.work import Work
from . import auction
from .arc_matching import (
    MatchingState,
    is_assignment,
    least_costs,
    match,
    matching_plan,
    matching_row,
    open_matching,
)
from .arc_simplex import (
    RoundState,
    basic_flow,
    begin,
    crash,
    duals,
    is_short,
    may_raise_price,
    pivot,
    raise_price,
    reopen,
)
from .auction import AuctionLevels, LevelState
from .base import DirectSolver, Pace
from .cost_models import Offer, median_arc_cost
from .method_info import A_PRIORI, MethodInfo


@dataclass(frozen=True, kw_only=True)
class NetworkSimplexTuning:
    """Tuning parameters of the network simplex on all arcs."""

    etas: tuple[float, ...] = (1, 0.25, 0.06)  # of the first sweeps, in units of the median cost
    # ε of the auction, in units of the spacing of the values in a list.
    first_eps: float = 0.1
    last_eps_weighted: float = 0.1
    last_eps_assignment: float = 0.03
    max_bids_per_row: int = 2  # per step; the auction ends after four times as many
    # A step ends after either, so that limits are checked in time.
    operations_per_step: int = 2_000_000
    phases_per_step: int = 64  # of bids, searches or pivots
    # The simplex.
    tolerance: float = 5e-14  # share of max C below which a reduced cost is negative
    artificial_price: float = 0.1  # first price of artificial arcs, in units of max C
    #: Most arcs, and most rows and columns, of a first round with all arcs and without an auction.
    max_whole_arcs: int = 100_000
    max_whole_nodes: int = 4000
    whole_artificial_price: float = 1.0  # first price of artificial arcs then, in the same unit
    sorted_arcs: int = 3  # per node, from which the first basis is built
    # Arcs that are priced together, in units of the root of their number: in a first round with all
    # arcs, and otherwise.
    whole_block: float = 5.0
    block: float = 16.0
    arc_seconds: float = 1e-6  # predicted time per arc
    arc_bytes: int = 60  # predicted memory per arc
    node_bytes: int = 1200  # predicted memory per row and column


TUNING = NetworkSimplexTuning()


class ArcLevels(AuctionLevels):
    """The auction on the arcs of a sparse cost, between the rows and columns with mass."""

    def __init__(self, problem: Additive) -> None:
        geometry, p, q = problem.geometry, problem.p, problem.q
        self.kept_rows, self.kept_cols = np.flatnonzero(p > 0), np.flatnonzero(q > 0)
        if (self.kept_rows.size, self.kept_cols.size) != geometry.shape:
            kept = geometry.restricted(self.kept_rows, self.kept_cols)
            assert kept is not None
            geometry = kept
        super().__init__(geometry, p[self.kept_rows], q[self.kept_cols])

    @property
    def max_bids_per_row(self) -> int:
        """Bids per row and step; the auction ends after four times as many."""
        return TUNING.max_bids_per_row

    def _level(  # type: ignore[override]
        self, state: NetworkState, given: Vector | None
    ) -> tuple[Vector, Vector, Vector]:
        """Return the masses and the first prices; rows without arcs cannot bid."""
        arcs = self.geometry.allowed
        assert arcs is not None
        weights = np.where(np.diff(arcs.starts) > 0, state.weights, 0.0)
        return weights, state.quotas, -state.lam[self.kept_cols]

    def search(self, state: LevelState, rows: Integers) -> None:
        """Write new lists for some rows."""
        arrays = state.arrays
        cols, costs, thresholds = self.geometry.k_least(
            rows.astype(np.int64), arrays.prices, arrays.cols.shape[1]
        )
        arrays.cols[rows], arrays.costs[rows] = cols, costs
        arrays.thresholds[rows] = thresholds
        leasts = costs[:, 0] + arrays.prices[cols[:, 0]]
        state.leasts[rows] = np.where(cols[:, 0] >= 0, leasts, 0.0)

    def _set_pace(self, state: LevelState, off: float) -> None:
        """Set both ε by the median over the rows of the spacing in the cheaper half of a list."""
        arrays = state.arrays
        values = arrays.costs + arrays.prices[arrays.cols]
        middle = np.maximum((arrays.cols >= 0).sum(axis=1) // 2, 1)
        spacings = (np.take_along_axis(values, middle[:, None], 1)[:, 0] - state.leasts) / middle
        spacings = spacings[np.isfinite(spacings)]
        spread = float(np.median(spacings)) if spacings.size else 0.0
        size = self.geometry.cost_unit
        if not spread > auction.TUNING.rounding * size:
            spread = auction.TUNING.assumed_spacing * size or 1.0
        is_even = bool(np.ptp(arrays.excess) == 0 == np.ptp(arrays.unsold))
        if is_even and arrays.excess.size == arrays.unsold.size:
            left = min(
                auction.TUNING.unsold_assignment,
                auction.TUNING.max_unsold_rows / arrays.excess.size,
            )
            state.early = state.enough = left
            last = TUNING.last_eps_assignment
        else:
            state.early = auction.TUNING.unsold_early
            state.enough = auction.TUNING.unsold_weighted
            last = TUNING.last_eps_weighted
        state.eps = auction.TUNING.eps_factor * TUNING.first_eps * spread
        state.last_eps = last * spread

    def gap(self, state: LevelState) -> float:
        """Return no estimate: the flow may lack mass that no arc can take."""
        return math.inf

    def sold(self, state: LevelState) -> tuple[Index, Index, Vector]:
        """Return the arcs of the lists and their flow."""
        i, j, flow = kernels.arcs(*state.arrays.for_arcs)
        listed = j >= 0
        return i[listed], j[listed], flow[listed]


@dataclass(kw_only=True)
class NetworkState(MatchingState, LevelState, RoundState):
    """The matching's arrays, the auction's and the simplex's, on the rows and columns with mass.

    Before the first round, ``lam`` holds the first potentials of all columns.
    """

    def fits(self, problem: Additive) -> bool:
        """Tell whether saved arrays have consistent sizes and indices."""
        n, m = int((problem.p > 0).sum()), int((problem.q > 0).sum())
        if self.has_basis:
            is_whole = (self.row.size, self.lam.size, self.flow.size) == (n, m, n + m + 1)
        else:
            is_whole = (self.row.size, self.lam.size) == problem.shape
        arcs = problem.geometry.allowed
        is_matching = arcs is not None and self.is_matching_of(n, arcs.costs.size)
        is_level = self.is_arranged(n, m) and self.is_level()
        return is_whole and is_matching and is_level and self.is_basis()


@dataclass(frozen=True, kw_only=True)
class NetworkSimplex(DirectSolver[NetworkState]):
    """Solve a sparse transport problem by an auction, and a network simplex on its arcs.

    A step is a number of bids, or a number of pivots.
    """

    about: ClassVar[MethodInfo] = MethodInfo(
        family="exact",
        paper="Dantzig 1951; Cunningham 1976; Bertsekas 1981",
        year=1951,
        note="auction and simplex on the given arcs",
        exactness="exact",
        solves_entropic=False,
        rule=A_PRIORI,
        needs_arcs=True,
    )
    pace: ClassVar[Pace] = Pace(evaluate_after=None, warm_up=20)
    starts_itself: ClassVar[bool] = True

    @classmethod
    def offer(cls, problem: Problem) -> Offer | None:
        """Offer to solve sparse costs."""
        arcs = problem.geometry.allowed
        if arcs is None:
            return None
        size = arcs.costs.size
        reason = "a network simplex on the arcs is fastest for sparse costs"
        n_bytes = TUNING.arc_bytes * size + TUNING.node_bytes * sum(problem.shape)
        return Offer(reason, TUNING.arc_seconds * size, n_bytes)

    def init(
        self, problem: Additive, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[NetworkState, Work]:
        """Start from given potentials, or from those of a few Sinkhorn sweeps.

        Where all masses are equal, rows are matched from the least costs of the columns. Few arcs
        are all given to the simplex.
        """
        is_matching, work = is_assignment(problem), Work()
        is_whole = _is_whole(problem)
        if potentials is not None:
            row, lam = (x.copy() for x in potentials)
        elif is_matching or is_whole:
            row, lam = np.zeros(problem.shape[0]), least_costs(problem.geometry)
        else:
            (row, lam), work = crude_potentials(problem)
        matching = open_matching(problem) if is_matching else {}
        return NetworkState(row=row, lam=lam, is_over=is_whole, **matching), work

    def step(self, problem: Additive, state: NetworkState, rng: Generator) -> Work:
        """Match rows to columns; or bid and, when the auction has ended, pivot."""
        work, levels = Work(), ArcLevels(problem)
        for _ in range(TUNING.phases_per_step):
            work.record(self._advance(problem, levels, state))
            if state.is_done or work.operations >= TUNING.operations_per_step:
                break
        return work

    def _advance(self, problem: Additive, levels: ArcLevels, state: NetworkState) -> Work:
        """Make one phase of a matching or of the auction, or a number of pivots."""
        if state.is_matching:
            work, is_quick = match(problem, state)
            state.is_done = state.is_matched
            if not is_quick:
                state.is_matching = False
                if not state.is_over:
                    (state.row, state.lam), more = crude_potentials(problem)
                    work.record(more)
            return work
        if not state.is_over:
            return levels.step(state)
        unit, work = problem.geometry.cost_unit, Work()
        if not state.is_open:
            if state.round == 0 and state.level == 0:
                open_whole(levels, state, unit)
            elif state.round == 0:
                open_round(levels, state, unit)
            else:
                open_next(levels, state, unit)
            work.record(Work.of(arc_tested=state.sources.size))
        if state.is_open:
            share = TUNING.whole_block if _is_whole(problem) else TUNING.block
            block = math.ceil(share * math.sqrt(state.sources.size))
            work.record(pivot(state, unit, TUNING.tolerance, (block, block), True))
        return work

    def candidates(self, problem: Additive, state: NetworkState) -> list[tuple[Core, Vector]]:
        """Return the plan of the basis, or the flow so far, and the row potentials."""
        if state.is_matching:
            return [(matching_plan(problem, state), matching_row(problem, state))]
        levels = ArcLevels(problem)
        if state.has_basis:
            i, j, flow = basic_flow(state)
        elif state.level > 0:
            i, j, flow = levels.sold(state)
        else:
            i = j = np.zeros(0, dtype=np.int64)
            flow = np.zeros(0)
        core = Arcs(problem.shape, levels.kept_rows[i], levels.kept_cols[j], flow)
        return [(core, _whole_potentials(problem, levels, state)[0])]

    def potentials(self, problem: Additive, state: NetworkState) -> Potentials:
        """Return the current duals; rows and columns without mass have 0."""
        if state.is_matching:
            return matching_row(problem, state), state.lam
        return _whole_potentials(problem, ArcLevels(problem), state)


def _whole_potentials(problem: Additive, levels: ArcLevels, state: NetworkState) -> Potentials:
    """Return the duals of the simplex, or the first ones; nodes without mass have 0."""
    if not state.has_basis:
        return state.row, state.lam
    row, lam = (np.zeros(size) for size in problem.shape)
    row[levels.kept_rows], lam[levels.kept_cols] = duals(state, problem.geometry.cost_unit)
    return row, lam


def crude_potentials(problem: Additive) -> tuple[Potentials, Work]:
    """Return the potentials after Sinkhorn sweeps with falling η, and their work."""
    geometry, (n, m) = problem.geometry, problem.shape
    row, lam = np.zeros(n), np.zeros(m)
    arcs = geometry.allowed
    if arcs is None or arcs.costs.size == 0:
        return (row, lam), Work()
    log_p, log_q = (log(np.maximum(x, 1e-300)) for x in (problem.p, problem.q))
    unit, usual = geometry.cost_unit, median_arc_cost(geometry)
    for share in TUNING.etas:
        eta = share * usual
        row = bounded(eta * (log_p - geometry.lse_rows(lam, eta)), unit)
        lam = bounded(eta * (log_q - geometry.lse_cols(row, eta)), unit)
    return (row, lam), Work.of(lse=2 * len(TUNING.etas) * geometry.pass_entries)


def bounded(x: Vector, unit: float) -> Vector:
    """Clip potentials: those of nodes without arcs are infinite."""
    most = 1e3 * unit
    return np.clip(x, -most, most)


def _is_whole(problem: Additive) -> bool:
    """Tell whether the arcs are few enough for one round of the simplex."""
    arcs = problem.geometry.allowed
    is_small = sum(problem.shape) <= TUNING.max_whole_nodes
    return arcs is not None and is_small and arcs.costs.size <= TUNING.max_whole_arcs


def open_whole(levels: ArcLevels, state: NetworkState, unit: float) -> None:
    """Open the first round with all arcs, and build a basis of those of least reduced cost."""
    levels.arrange(state)
    arcs = levels.geometry.allowed
    assert arcs is not None
    state.lam = state.lam[levels.kept_cols]
    least = levels.geometry.ctransform_rows(state.lam)
    state.row = np.where(np.isfinite(least), least, 0.0)
    shape = state.row.size, state.lam.size
    begin(state, shape, arcs.rows, arcs.cols.astype(np.int64), arcs.costs, unit)
    state.big = TUNING.whole_artificial_price
    crash(state, levels.masses(state), np.argsort(ranks(state.reduced), kind="stable"))


def open_round(levels: ArcLevels, state: NetworkState, unit: float) -> None:
    """Open the first round with the arcs of the lists, and build a basis from their flow."""
    i, j, flow = levels.sold(state)
    state.row, state.lam = state.leasts.copy(), -state.prices
    shape = state.row.size, state.lam.size
    begin(state, shape, i, j, levels.costs(state, i, j), unit)
    # The tree takes arcs of large flow first, then of small reduced cost.
    key = np.abs(state.reduced)
    used = np.flatnonzero(flow)
    key[used] = -flow[used]
    size = TUNING.sorted_arcs * sum(shape)
    rank = ranks(key)
    most = np.partition(rank, size)[size] if size < key.size else np.iinfo(rank.dtype).max
    first = np.flatnonzero(rank <= most)  # with all ties, whose order depends on the processor
    state.big = TUNING.artificial_price
    crash(state, levels.masses(state), first[np.argsort(rank[first], kind="stable")])


def open_next(levels: ArcLevels, state: NetworkState, unit: float) -> None:
    """Open a round with arcs of negative reduced cost, or at a higher price, or end the run."""
    arcs = levels.geometry.allowed
    assert arcs is not None
    bar, k = -2 * TUNING.tolerance * unit, auction.TUNING.min_list_columns
    found = arcs.negative(state.row, state.lam, bar, k)
    may_rise = is_short(state) and may_raise_price(state)
    if found[0].size == 0 and not may_rise:
        state.is_done = True
        return
    reopen(state, *found, unit, TUNING.tolerance)
    if state.is_done and may_rise:
        raise_price(state)
        state.is_open, state.is_done = True, False


def ranks(x: Vector) -> NDArray[np.uint16]:
    """Return the order of numbers to two digits in 16 bits, which are sorted in linear time."""
    bits = (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    sign = np.uint16(1 << 15)
    return np.where(bits >= sign, ~bits, bits | sign)
