"""Assignments on the arcs of a sparse cost: an auction with falling ε, then shortest paths.

The auction gives prices only. Rows and columns are matched again, without ε, and every row that
is left without a column gets one by a shortest augmenting path (Jonker and Volgenant 1987).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._types import Index, Vector
from ..geometry import Geometry
from ..kernels import arc_assignment as kernels
from ..problems.plan import Arcs, Core
from ..problems.problem import Additive
from ..problems.work import Work
from .base import no_entries
from .cost_models import median_arc_cost


@dataclass(frozen=True, kw_only=True)
class ArcMatchingTuning:
    """Tuning parameters of assignments on arcs."""

    first_eps: float = 0.05  # share of the largest cost
    eps_factor: float = 5.0  # by which ε falls from phase to phase
    last_eps: float = 0.01  # in units of the median cost
    # Rows that may be unmatched when a phase ends: a share of all rows, and a number.
    left_rows: float = 0.0003
    few_rows: int = 3
    max_bids_per_row: int = 100  # and phase
    bids_per_step: int = 500_000  # so that limits are checked in time
    reduction_passes: int = 2  # that match rows without a search
    evictions_per_row: int = 2  # and pass
    arcs_per_step: int = 2_000_000  # read by searches
    max_searches: int = 200  # arcs read by all searches, in units of the number of arcs


TUNING = ArcMatchingTuning()

#: Stages: bids with falling ε, matching without ε, searches for paths.
BIDS, REDUCTION, PATHS = range(3)


@dataclass(kw_only=True)
class MatchingState:
    """Matched arcs, the prices of columns, and the rows that wait for a column."""

    lam: Vector  # prices of columns
    # Whether rows are matched to columns; if False, an auction of mass follows.
    is_matching: bool = False
    stage: int = BIDS  # BIDS, REDUCTION or PATHS
    matched: Index = no_entries(np.int64)  # arc of each row, or -1
    owners: NDArray[np.int32] = no_entries(np.int32)  # row of each column, or -1
    # While rows bid, a ring buffer of rows; later the rows without a column.
    waiting: NDArray[np.int32] = no_entries(np.int32)
    first: int = 0  # first place in use
    n_waiting: int = 0
    bids: int = 0  # in this phase
    bid_eps: float = 0.0  # ε of the phase
    last_eps: float = 0.0  # below which no phase begins
    n_read: int = 0  # arcs read by searches

    @property
    def is_matched(self) -> bool:
        """Whether every row has a column."""
        return self.is_matching and self.stage == PATHS and self.n_waiting == 0

    def is_matching_of(self, n: int, n_arcs: int) -> bool:
        """Tell whether a saved matching has consistent sizes and indices."""
        if not self.is_matching:
            return True
        if not self.matched.size == self.owners.size == self.waiting.size == self.lam.size == n:
            return False
        places = (self.matched, n_arcs), (self.owners, n), (self.waiting, n)
        is_inside = all(x.min() >= -1 and x.max() < end for x, end in places)
        is_list = 0 <= self.first <= n >= self.n_waiting >= 0
        return bool(is_inside and is_list and self.waiting.min() >= 0)


def is_assignment(problem: Additive) -> bool:
    """Tell whether all rows and columns have the same mass, and there may be an arc for each."""
    arcs, (n, m), p, q = problem.geometry.allowed, problem.shape, problem.p, problem.q
    has_arcs = arcs is not None and arcs.costs.size >= n == m
    return has_arcs and bool(p[0] > 0 and np.ptp(p) == 0 == np.ptp(q))


def open_matching(problem: Additive) -> dict[str, Any]:
    """Return the fields of a state in which all rows wait, without prices."""
    n = problem.shape[0]
    return {
        "is_matching": True,
        "last_eps": TUNING.last_eps * median_arc_cost(problem.geometry),
        "matched": np.full(n, -1),
        "owners": np.full(n, -1, dtype=np.int32),
        "waiting": np.arange(n, dtype=np.int32),
        "n_waiting": n,
        "bid_eps": TUNING.first_eps * problem.geometry.bounds[1],
    }


def least_costs(geometry: Geometry) -> Vector:
    """Return the least cost of every column, 0 without arcs."""
    arcs = geometry.allowed
    assert arcs is not None
    least = np.empty(geometry.shape[1])
    kernels.least_costs(arcs.cols, arcs.costs, least)
    least[least == np.inf] = 0.0
    return least


def match(problem: Additive, state: MatchingState) -> tuple[Work, bool]:
    """Bid or search; return the work, and whether rows may still be matched in good time."""
    arcs, n = problem.geometry.allowed, problem.shape[0]
    assert arcs is not None
    held = arcs.starts, arcs.cols, arcs.costs, state.lam, state.matched, state.owners, state.waiting
    if state.stage == BIDS:
        enough = max(TUNING.few_rows, int(TUNING.left_rows * n))
        limits = state.bid_eps, enough, TUNING.bids_per_step
        state.first, state.n_waiting, bids = kernels.bid(
            *held, state.first, state.n_waiting, *limits
        )
        state.bids += bids
        if state.n_waiting <= enough or state.bids >= TUNING.max_bids_per_row * n:
            _end_phase(state)
        return Work.of(arc_tested=bids * arcs.costs.size // n), True
    if state.stage == REDUCTION:
        rounds = TUNING.reduction_passes, TUNING.evictions_per_row
        state.n_waiting, n_read = kernels.reduce(*held, *rounds)
        state.stage, state.first = PATHS, 0
        return Work.of(arc_tested=n_read), True
    last = state.first + state.n_waiting
    done, n_read = kernels.augment(*held, state.first, last, TUNING.arcs_per_step)
    state.n_read += n_read
    if done >= 0:
        state.first, state.n_waiting = state.first + done, state.n_waiting - done
    is_quick = state.is_matched or state.n_read <= TUNING.max_searches * arcs.costs.size
    return Work.of(arc_tested=n_read), done >= 0 and is_quick


def _end_phase(state: MatchingState) -> None:
    """Begin a phase with a smaller ε, in which all rows bid again, or end the bids."""
    n = state.waiting.size
    state.bid_eps /= TUNING.eps_factor
    state.bids, state.first = 0, 0
    if state.bid_eps < state.last_eps:
        state.stage = REDUCTION
        return
    state.matched[:] = state.owners[:] = -1
    state.waiting[:], state.n_waiting = np.arange(n), n


def matching_row(problem: Additive, state: MatchingState) -> Vector:
    """Return the row potential of a matching, 0 for rows without a column."""
    arcs = problem.geometry.allowed
    assert arcs is not None
    places = np.maximum(state.matched, 0)
    return np.where(state.matched >= 0, arcs.costs[places] - state.lam[arcs.cols[places]], 0.0)


def matching_plan(problem: Additive, state: MatchingState) -> Core:
    """Return the plan of the rows that are matched."""
    arcs = problem.geometry.allowed
    assert arcs is not None
    places = state.matched[state.matched >= 0]
    i = arcs.rows[places]
    return Arcs(problem.shape, i, arcs.cols[places].astype(np.int64), problem.p[i])
