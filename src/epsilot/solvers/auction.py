"""Exact transport by a multiscale auction, completed by a network simplex.

An auction with falling ε solves coarse versions of the problem first, then the problem itself. Each
row bids for a short list of columns only. The simplex starts from the result: the arcs of the lists
and a basis from the flow that the auction found. Negative arcs then join round by round
(``arc_simplex``). No step needs the cost matrix.

A level is a transport problem between the cells of a depth of two trees, or between the points.
Its prices come from the level before by two c-transforms, its lists from searches in the tree of
its columns. The state consists of plain arrays, so that a run can be saved at any step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.random import Generator

from .._types import Index, Integers, Matrix, Potentials, Vector
from ..geometry import Geometry
from ..geometry.tree_index import Embedding, LeastColumns, PricedTree, Tree, cells, pair_costs
from ..kernels import auction as kernels
from ..kernels import network
from ..kernels.proof import ROUND_OFF
from ..kernels.vectors import dot, matvec, rmatvec
from ..metrics import metric_of
from ..problems.plan import Arcs, Core, spread
from ..problems.problem import Additive, Problem
from ..problems.rounding import round_onto
from ..problems.work import Work
from .arc_simplex import (
    RoundState,
    basic_arcs,
    basic_flow,
    begin,
    crash,
    duals,
    negative_arcs,
    pivot,
    reopen,
)
from .base import DirectSolver, Pace, Signal, no_entries
from .cost_models import Offer, cloud_features, cost_model
from .method_info import A_PRIORI, MethodInfo


@dataclass(frozen=True, kw_only=True)
class AuctionTuning:
    """Tuning parameters of the auction."""

    # Lists and levels.
    min_list_columns: int = 12  # columns in the list of a row
    min_list_columns_of_distances: int = 24  # the same: distances differ less than their squares
    max_list_columns: int = 48  # in the list of a row, where columns are many times the rows
    max_coarsest_cells: int = 512
    halvings_per_level: int = 2  # a level has 2 ** halvings times the cells of the one before
    # Phases: the first ε of a level is in units of the spacing of its values.
    first_eps: float = 4.0
    eps_factor: float = 4.0  # by which ε falls from phase to phase
    last_eps_coarse: float = 0.1  # last ε on coarse levels, in the same unit
    last_eps_weighted: float = 0.25  # on the finest level, with weights
    last_eps_assignment: float = 0.03  # on the finest level, for an assignment
    min_phase_ratio: float = 2.6  # an ε below this multiple of the last one has no phase
    # Share of the mass that may be unsold when a phase ends. The rest has far to go: bids would
    # move it in steps of ε, and the simplex is faster.
    unsold_coarse: float = 4e-3
    unsold_early: float = 4e-3  # with weights, in phases before the last
    unsold_weighted: float = 2e-3
    unsold_assignment: float = 4e-3
    max_unsold_rows: int = 400  # of an assignment
    row_dust: float = 1e-9  # share of a row's mass that is not worth a bid
    column_dust: float = 1e-9  # share of a column's mass that is not worth a bid
    negligible_mass: float = 1e-19
    # Bids.
    max_bids_per_step: int = 1_000_000
    max_bids_per_row: int = 25  # per step; a level ends after four times as many
    # In the first phase from given prices: those that need more are worse than coarse levels.
    max_trial_bids_per_row: int = 10
    rounding: float = 1e-13  # share of costs and prices that is round-off
    assumed_spacing: float = 1e-3  # share of costs and prices, where a list has equal values
    # Relative gaps from which a plan on the way is worth a certificate.
    certified_gaps: tuple[float, ...] = (0.1, 0.01, 0.001)
    # The simplex that follows.
    tolerance: float = 1e-13  # reduced costs that count as negative, as a share of max C
    coarse_tolerance: float = 1e-2  # the same on coarse levels, as a share of the last ε
    max_coarse_rounds: int = 4
    artificial_price: float = 16.0  # first price of artificial arcs, in units of the last ε
    min_artificial_price: float = 1e-10  # as a share of max C
    # Offers to "auto": the cost models are those of uniform points in the plane.
    max_sides_ratio: int = 16  # of the larger side to the smaller one: beyond, times vary much
    # Growth of the seconds per dimension of the clouds beyond two.
    growth_of_squares: float = 1.42
    growth_of_distances: float = 1.28
    # Distances that are not squared hardly differ along a ray, so the lists of points are soon used
    # up: seconds per pair where the means are a spread apart.
    separated_pair_seconds: float = 1.8e-8
    stored_entry_seconds: float = 1.5e-9  # of the passes over a stored cost, with recovered points
    node_bytes: int = 1200  # bytes per row and column, at most


TUNING = AuctionTuning()


@dataclass(kw_only=True)
class LevelState:
    """The auction of one level; some arrays hold several quantities, one after the other."""

    is_flipped: bool = False  # whether the problem's columns are the rows that bid
    rows: Index = no_entries(np.int64)  # rows that bid, in the order of their tree
    cols: Index = no_entries(np.int64)  # columns, in the order of theirs
    weights: Vector = no_entries()  # masses of those rows
    quotas: Vector = no_entries()  # masses of those columns
    fine_x: Vector = no_entries()  # points of the rows
    fine_y: Vector = no_entries()
    level: int = 0  # levels begun
    is_selling: bool = False  # whether a phase has begun and not ended
    is_promising: bool = False  # whether the last phase may satisfy a loose goal
    # Relative gap from which an intermediate plan is worth a certificate.
    certified_gap: float = TUNING.certified_gaps[0]
    is_over: bool = False  # whether the last phase of the level has ended
    is_trial: bool = False  # whether the phase began from given prices, which may be poor
    eps: float = 0.0
    last_eps: float = 0.0
    early: float = 0.0  # mass that may be unsold when a phase ends
    enough: float = 0.0  # mass that may be unsold when the last phase ends
    small: float = 0.0  # mass below which rows bid last
    x: Vector = no_entries()  # points or cells of the level
    y: Vector = no_entries()
    nodes: Vector = no_entries()  # tree of the level's columns
    by_column: Vector = no_entries()  # prices, base, unsold, specks
    heads: kernels.Places = no_entries(np.int32)  # cheapest pieces of the columns
    by_row: Vector = no_entries()  # excess, dust, thresholds, leasts
    pieces: Vector = no_entries()  # costs, masses and limits of pieces
    piece_links: kernels.Places = no_entries(np.int32)  # child, sibling, row and column of pieces
    list_cols: kernels.Places = no_entries(np.int32)
    list_costs: Vector = no_entries()
    line: kernels.Places = no_entries(np.int32)  # queue, is_queued, waiting
    counts: Index = field(default_factory=lambda: np.zeros(kernels.N_COUNTS, np.int64))

    @property
    def arrays(self) -> kernels.AuctionArrays:
        """The arrays as kernels take them."""
        prices, base, unsold, specks = self.by_column.reshape(4, -1)
        excess, dust, thresholds, _ = self.by_row.reshape(4, -1)
        costs, mass, limit = self.pieces.reshape(3, -1)
        queue, is_queued, waiting = self.line.reshape(3, -1)
        child, sibling, piece_row, piece_col = self.piece_links.reshape(4, -1)
        n = excess.size
        return kernels.AuctionArrays(
            prices=prices,
            base=base,
            unsold=unsold,
            specks=specks,
            heads=self.heads,
            excess=excess,
            dust=dust,
            child=child,
            sibling=sibling,
            piece_row=piece_row,
            piece_col=piece_col,
            piece_cost=costs,
            mass=mass,
            limit=limit,
            cols=self.list_cols.reshape(n, -1),
            costs=self.list_costs.reshape(n, -1),
            thresholds=thresholds,
            queue=queue,
            is_queued=is_queued,
            waiting=waiting,
            counts=self.counts,
        )

    @property
    def leasts(self) -> Vector:
        """Least cost + price of every row, under the prices at the end of a phase."""
        return np.asarray(self.by_row.reshape(4, -1)[3])

    @property
    def prices(self) -> Vector:
        """Prices of the level's columns."""
        return np.asarray(self.by_column.reshape(4, -1)[0])

    @property
    def allowed_unsold(self) -> float:
        """Mass that may be unsold when the current phase ends."""
        return self.early if self.eps > self.last_eps else self.enough

    def record_gap(self, gap: float) -> None:
        """Record the relative gap of a plan, and whether it is worth a certificate."""
        self.is_promising = gap <= self.certified_gap
        if self.is_promising:
            self.certified_gap = next((x for x in TUNING.certified_gaps if x < gap), 0.0)

    def is_arranged(self, n: int, m: int) -> bool:
        """Tell whether saved rows, columns, masses and points have consistent sizes."""
        sides = (
            (self.rows, self.weights, self.fine_x, n),
            (self.cols, self.quotas, self.fine_y, m),
        )
        return all(
            index.size == weights.size
            and points.size % max(index.size, 1) == 0
            and (index.size == 0 or 0 <= index.min() <= index.max() < size)
            for index, weights, points, size in sides
        )

    def is_level(self) -> bool:
        """Tell whether a saved level has consistent sizes and indices."""
        n, m, size = self.by_row.size // 4, self.heads.size, self.pieces.size // 3
        k = self.list_cols.size // max(n, 1)
        sizes = (
            (self.by_row.size, 4 * n),
            (self.by_column.size, 4 * m),
            (self.pieces.size, 3 * size),
            (self.piece_links.size, 4 * size),
            (self.list_cols.size, n * k),
            (self.list_costs.size, n * k),
            (self.line.size, 3 * n),
            (self.counts.size, kernels.N_COUNTS),
        )
        if any(found != wanted for found, wanted in sizes):
            return False
        links = self.piece_links.reshape(4, -1)
        places = (
            (self.heads, size),
            (links[:2], size),
            (links[2], n),
            (links[3], m),
            (self.list_cols, m),
            (self.line, max(n, 2)),
            (self.counts[: kernels.BIDS], n + size + 1),
        )
        return all(x.size == 0 or -1 <= x.min() <= x.max() < end for x, end in places)


#: Rows, columns and masses of a flow.
Flow: TypeAlias = tuple[Index, Index, Vector]


def completed(state: LevelState, flow: Flow) -> Flow:
    """Complete a flow between the points by a north-west corner plan."""
    rest = _left(state.weights, state.quotas, *flow)
    i, j, mass = (np.concatenate(pair) for pair in zip(flow, rest, strict=True))
    return i, j, mass


class AuctionLevels:
    """The levels and phases of an auction on any cost; a separate state holds the arrays.

    Parameters
    ----------
    geometry : Geometry
        The costs.
    p, q : (n,), (m,) arrays
        The masses.
    """

    def __init__(self, geometry: Geometry, p: Vector, q: Vector) -> None:
        self.geometry, self.p, self.q = geometry, p, q

    def step(self, state: LevelState) -> Work:
        """Open a level, or make a number of bids in the current phase."""
        if state.rows.size == 0:
            self.arrange(state)
        if state.level == 0 or state.is_over:
            self._open(state)
            return Work.of(arc_tested=state.list_cols.size)
        state.is_promising, read = False, state.counts[kernels.READ]
        if not state.is_selling:
            state.eps /= TUNING.eps_factor
            if state.eps < TUNING.min_phase_ratio * state.last_eps:
                state.eps = state.last_eps
            kernels.begin(state.arrays, state.leasts, state.eps)
            state.is_selling = True
        self._sell(state)
        return Work.of(arc_tested=int(state.counts[kernels.READ] - read))

    # -- parts that depend on the kind of cost: here, any cost ------------------------------

    @property
    def max_bids_per_row(self) -> int:
        """Bids per row and step; a level ends after four times as many."""
        return TUNING.max_bids_per_row

    @property
    def list_columns(self) -> int:
        """Columns in the list of a row, and new arcs per row and round."""
        return TUNING.min_list_columns

    def arrange(self, state: LevelState) -> None:
        """Choose the rows and columns with mass, in their order."""
        rows, cols = np.flatnonzero(self.p > 0), np.flatnonzero(self.q > 0)
        state.is_flipped = False
        state.rows, state.cols = rows, cols
        state.weights, state.quotas = self.p[rows], self.q[cols]

    def depths(self, state: LevelState) -> list[int]:
        """Return the depths of the levels' cells; the last is that of the points themselves."""
        return [0]

    def is_finest(self, state: LevelState) -> bool:
        """Tell whether the current level is that of the points themselves."""
        return state.level == len(self.depths(state))

    def masses(self, state: LevelState) -> tuple[Vector, Vector]:
        """Return the masses of the rows and columns of the current level."""
        return state.weights, state.quotas

    def _level(self, state: LevelState, given: Vector | None) -> tuple[Vector, Vector, Vector]:
        """Return the masses of the next level's rows and columns, and its first prices."""
        prices = np.zeros(state.cols.size) if given is None else given
        return state.weights, state.quotas, prices

    def search(self, state: LevelState, rows: Integers) -> None:
        """Write new lists for some rows."""
        arrays = state.arrays
        prices = np.full(self.q.size, np.inf)
        prices[state.cols] = arrays.prices
        k = arrays.cols.shape[1]
        cols, costs, thresholds = self.geometry.k_least(state.rows[rows], prices, k)
        place = _places(state.cols, self.q.size)
        arrays.cols[rows], arrays.costs[rows] = place[cols], costs
        arrays.thresholds[rows] = thresholds
        state.leasts[rows] = costs[:, 0] + prices[cols[:, 0]]

    def _bid(self, state: LevelState, until: int) -> tuple[int, float]:
        """Bid until rows need new lists, or the number of bids is reached."""
        why, small = kernels.bid(state.arrays, state.eps, state.allowed_unsold, until, state.small)
        return int(why), float(small)

    def refresh(self, state: LevelState) -> None:
        """Prepare searches under higher prices."""

    def costs(self, state: LevelState, i: Index, j: Index) -> Vector:
        """Return the costs of pairs of rows and columns in the auction's order."""
        return self.geometry.entries(state.rows[i], state.cols[j])

    def cheap_arcs(
        self, state: LevelState, f: Vector, g: Vector, k: int, bar: float
    ) -> tuple[Index, Index]:
        """Return the arcs of reduced cost below ``bar`` among the k least of every row."""
        prices = np.full(self.q.size, np.inf)
        prices[state.cols] = -g
        cols, costs, _ = self.geometry.k_least(state.rows, prices, min(k, state.cols.size))
        place = _places(state.cols, self.q.size)
        i, s = np.nonzero(costs - f[:, None] - g[place[cols]] < bar)
        return i, place[cols[i, s]]

    def potentials(self, state: LevelState) -> Potentials:
        """Return potentials of the rows and columns with mass from the current level.

        Either one proves a bound; those of a coarse level are not feasible together.
        """
        return state.leasts.copy(), -state.prices

    def gap_of_points(self, state: LevelState, between_cells: Flow) -> float:
        """Return the relative gap of a coarse level's plan and prices, as those of the points."""
        return math.inf  # there are no coarse levels

    def divided(self, state: LevelState, i: Index, j: Index, flow: Vector) -> Flow:
        """Divide a flow between the cells of the level among their points."""
        return i, j, flow

    # -- levels and phases -----------------------------------------------------------------

    def start_at(self, state: LevelState, potentials: Potentials) -> None:
        """Open the finest level with the prices of given potentials.

        The coarse levels follow if the first phase shows that these prices are poor.
        """
        self.arrange(state)
        g = potentials[0 if state.is_flipped else 1]
        state.level, state.is_trial = len(self.depths(state)) - 1, True
        self._open(state, -g[state.cols])

    def _open(self, state: LevelState, given: Vector | None = None) -> None:
        """Open a level: masses, prices, lists and the first ε."""
        before = self.dual(state) if state.level and given is None else None
        p, q, prices = self._level(state, given)
        n, m = p.size, q.size
        k = min(
            m,
            max(
                self.list_columns,
                min(TUNING.max_list_columns, self.list_columns * m // n),
            ),
        )
        state.by_column = np.concatenate([prices, prices, q, TUNING.column_dust * q])
        state.heads = np.full(m, -1, dtype=np.int32)
        state.by_row = np.concatenate([p, TUNING.row_dust * p, p, p])
        state.pieces = np.zeros(3 * (n + m))
        state.piece_links = np.full(4 * (n + m), -1, dtype=np.int32)
        state.list_cols, state.list_costs = np.zeros(n * k, dtype=np.int32), np.zeros(n * k)
        state.line = np.zeros(3 * n, dtype=np.int32)
        state.counts[:] = 0
        self.search(state, np.arange(n, dtype=np.int32))
        now = dot(p, state.leasts) - dot(q, prices)
        self._set_pace(state, 0.0 if before is None else abs(before - now))
        state.level += 1
        state.is_over = False

    def _set_pace(self, state: LevelState, off: float) -> None:
        """Set the first and last ε of the level, in units of the mean spacing of values in a list.

        The first ε is at least the difference between the duals of this level and the previous
        one: prices that are off by many steps of ε would take very many bids.
        """
        arrays = state.arrays
        k = arrays.cols.shape[1]
        farthest = arrays.costs[:, -1] + arrays.prices[arrays.cols[:, -1]]
        spread = float((farthest - state.leasts).mean()) / k
        size = float(np.abs(arrays.costs).max() + np.abs(arrays.prices).max())
        if not spread > TUNING.rounding * size:  # as many equal columns as a list has
            spread = TUNING.assumed_spacing * size or 1.0
        is_last = state.level + 1 == len(self.depths(state))
        is_even = bool(np.ptp(arrays.excess) == 0 == np.ptp(arrays.unsold))
        if not is_last:
            last, state.early, state.enough = (
                TUNING.last_eps_coarse,
                TUNING.unsold_coarse,
                TUNING.unsold_coarse,
            )
        elif is_even and arrays.excess.size == arrays.unsold.size:
            left = min(TUNING.unsold_assignment, TUNING.max_unsold_rows / arrays.excess.size)
            last, state.early, state.enough = TUNING.last_eps_assignment, left, left
        else:
            last, state.early, state.enough = (
                TUNING.last_eps_weighted,
                TUNING.unsold_early,
                TUNING.unsold_weighted,
            )
        is_cold = state.level == 0 and not state.is_trial
        first = k * spread if is_cold else max(TUNING.first_eps * spread, off)
        state.eps = TUNING.eps_factor * first
        state.last_eps = last * spread

    def _sell(self, state: LevelState) -> None:
        """Bid and renew lists; end the phase when little mass is unsold."""
        counts = state.counts
        n = state.leasts.size
        until = counts[kernels.BIDS] + min(TUNING.max_bids_per_step, self.max_bids_per_row * n)
        is_hopeless = until > 4 * self.max_bids_per_row * n
        if state.is_trial:
            most = TUNING.max_trial_bids_per_row * n
            until, is_hopeless = min(until, most), until >= most
        bids, n_idle = -1, 0  # bids at the last search; rows searched since the last bid
        while True:
            why, state.small = self._bid(state, until)
            if why == kernels.FULL:
                _grow(state)
            elif why == kernels.WAIT and n_idle <= n:
                n_idle = counts[kernels.WAITING] + (n_idle if counts[kernels.BIDS] == bids else 0)
                bids = counts[kernels.BIDS]
                self.refresh(state)
                arrays = state.arrays
                self.search(state, arrays.waiting[: counts[kernels.WAITING]].copy())
                kernels.rejoin(arrays.queue, arrays.waiting, arrays.counts)
            else:
                break
        if why == kernels.ENOUGH and not is_hopeless:
            return
        if why == kernels.ENOUGH and state.is_trial:
            state.level, state.is_selling = 0, False  # the next step opens the coarsest level
        else:
            self._end(state)
        state.is_trial = False

    def _end(self, state: LevelState) -> None:
        """End a phase: compute the least value of every row under its last prices."""
        self.refresh(state)
        arrays = state.arrays
        stale = np.arange(state.leasts.size, dtype=np.int32)
        state.is_selling, state.is_over = False, state.eps <= state.last_eps
        if not state.is_over:
            n_stale = kernels.stale_rows(*arrays.for_stale_rows, state.leasts, stale)
            stale = stale[:n_stale]
        self.search(state, stale)
        state.record_gap(self.gap(state) if self.is_finest(state) else math.inf)

    def adopt(self, state: LevelState, g: Vector) -> float:
        """Set the prices of the current level from a column potential; return the dual value."""
        state.prices[:] = -g
        self.search(state, np.arange(state.leasts.size, dtype=np.int32))
        return self.dual(state)

    def dual(self, state: LevelState) -> float:
        """Return the dual value of the current level."""
        p, q = self.masses(state)
        return dot(p, state.leasts) - dot(q, state.prices)

    def gap(self, state: LevelState) -> float:
        """Return the relative gap of the flow so far, completed by a north-west corner plan.

        This estimate proves nothing. It decides whether a certificate is worth its time.
        """
        arrays = state.arrays
        i, j, flow = kernels.corner(arrays.excess, arrays.unsold, TUNING.negligible_mass)
        cost = dot(arrays.piece_cost, arrays.mass) + dot(self.costs(state, i, j), flow)
        return relative_gap(cost, self.dual(state))


class CloudAuctionLevels(AuctionLevels):
    """The auction between points in few dimensions, with searches in k-d trees."""

    def __init__(self, embedding: Embedding, p: Vector, q: Vector) -> None:
        self.embedding, self.p, self.q = embedding, p, q

    @property
    def list_columns(self) -> int:
        """Columns in the list of a row, and new arcs per row and round."""
        is_square = metric_of(self.embedding.metric).square > 0
        return TUNING.min_list_columns if is_square else TUNING.min_list_columns_of_distances

    def arrange(self, state: LevelState) -> None:
        """Sort the points by their trees; the smaller cloud bids for the larger one."""
        X, Y, *_ = self.embedding
        rows, cols = np.flatnonzero(self.p > 0), np.flatnonzero(self.q > 0)
        state.is_flipped = rows.size > cols.size
        sides = [(X, self.p, rows), (Y, self.q, cols)][:: -1 if state.is_flipped else 1]
        (state.rows, state.weights, state.fine_x), (state.cols, state.quotas, state.fine_y) = (
            self._ordered(*side) for side in sides
        )

    def _ordered(self, points: Matrix, masses: Vector, kept: Index) -> tuple[Index, Vector, Vector]:
        """Return the indices of the kept points in tree order, their masses and coordinates."""
        tree = self.embedding.tree_of(points if kept.size == len(points) else points[kept])
        order = kept[tree.order]
        return order, masses[order], tree.points.ravel()

    def depths(self, state: LevelState) -> list[int]:
        """Return the depths of the levels' cells; the last is that of the points themselves."""
        size = max(state.rows.size, state.cols.size)
        deepest = (size * size).bit_length() // 2  # log2 of the size, rounded
        n_coarse = max(
            0,
            -(-(deepest + 1 - TUNING.max_coarsest_cells.bit_length()) // TUNING.halvings_per_level),
        )
        return [deepest - TUNING.halvings_per_level * s for s in range(n_coarse, 0, -1)] + [
            2 * deepest + 2
        ]

    def _points(self, state: LevelState) -> tuple[Matrix, Matrix]:
        width = state.fine_x.size // state.rows.size
        return state.x.reshape(-1, width), state.y.reshape(-1, width)

    def _fine(self, state: LevelState) -> Embedding:
        """Return the points in the auction's order."""
        X, Y = state.fine_x.reshape(state.rows.size, -1), state.fine_y.reshape(state.cols.size, -1)
        return self.embedding._replace(X=X, Y=Y)

    def _priced(self, state: LevelState) -> PricedTree:
        """Return the tree of the level's columns."""
        _, Y = self._points(state)
        nodes = state.nodes.reshape(-1, 3 * Y.shape[1] + 1)
        return PricedTree(Y, state.prices, self.embedding.metric, self.embedding.shift, nodes)

    def masses(self, state: LevelState) -> tuple[Vector, Vector]:
        """Return the masses of the rows and columns of the current level."""
        X, Y, *_ = self._fine(state)
        depth = self.depths(state)[state.level - 1]
        return cells(X, state.weights, depth)[1], cells(Y, state.quotas, depth)[1]

    def adopt(self, state: LevelState, g: Vector) -> float:
        """Set the prices of the current level from a column potential; return the dual value."""
        _, Y = self._points(state)
        metric, shift = self.embedding.metric, self.embedding.shift
        state.nodes = Tree.ordered(Y).priced(-g, metric, shift).nodes.ravel()
        return super().adopt(state, g)

    def _level(self, state: LevelState, given: Vector | None) -> tuple[Vector, Vector, Vector]:
        """Set the next level's points; return its masses, and prices from the previous level."""
        metric, shift = self.embedding.metric, self.embedding.shift
        X, Y, *_ = self._fine(state)
        depth = self.depths(state)[state.level]
        (X, p), (Y, q) = cells(X, state.weights, depth), cells(Y, state.quotas, depth)
        if given is not None:
            prices = given
        elif state.level == 0:
            prices = self._first_prices(X, Y, p, q)
        else:
            prices = -self._column_potential(state, Y)
        nodes = Tree.ordered(Y).priced(prices, metric, shift).nodes
        state.x, state.y, state.nodes = X.ravel(), Y.ravel(), nodes.ravel()
        return p, q, prices

    def _column_potential(self, state: LevelState, Y: Matrix) -> Vector:
        """Return the c-transform of the level's row potential at any points."""
        rows = Tree.ordered(self._points(state)[0])
        priced = rows.priced(-state.leasts, self.embedding.metric, self.embedding.shift)
        return self.embedding.ctransform(priced, Y)

    def _first_prices(self, X: Matrix, Y: Matrix, p: Vector, q: Vector) -> Vector:
        """Return first prices: zero, or with squared distances those of a translation."""
        square = metric_of(self.embedding.metric).square
        if square == 0:
            return np.zeros(len(Y))
        move = rmatvec(X, p) - rmatvec(Y, q)
        return 2 * square * matvec(Y - Y.mean(axis=0), move)

    def search(self, state: LevelState, rows: Integers) -> None:
        """Write new lists for some rows."""
        arrays, (X, _) = state.arrays, self._points(state)
        out = LeastColumns(arrays.cols, arrays.costs, state.leasts, arrays.thresholds)
        self.embedding.least_columns(self._priced(state), X, rows, out)

    def _bid(self, state: LevelState, until: int) -> tuple[int, float]:
        """Bid, and search new lists while few rows need them."""
        priced, (X, Y) = self._priced(state), self._points(state)
        why, small = kernels.bid_and_search(
            state.arrays, state.eps, state.allowed_unsold, until, state.small, X, Y, *priced.args
        )
        return int(why), float(small)

    def refresh(self, state: LevelState) -> None:
        """Update the bounds of the tree to the current prices."""
        self._priced(state).refresh()
        state.counts[kernels.SEARCHED] = 0

    def costs(self, state: LevelState, i: Index, j: Index) -> Vector:
        """Return the costs of pairs of rows and columns in the auction's order."""
        X, Y = self._points(state)
        return pair_costs(self.embedding._replace(X=X, Y=Y), i, j)

    def cheap_arcs(
        self, state: LevelState, f: Vector, g: Vector, k: int, bar: float
    ) -> tuple[Index, Index]:
        """Return the arcs of reduced cost below ``bar`` among the k least of every row."""
        X, Y = self._points(state)
        metric, shift = self.embedding.metric, self.embedding.shift
        n, k = len(X), min(k, len(Y))
        found, rows = LeastColumns.empty(n, k), np.arange(n, dtype=np.int32)
        priced = Tree.ordered(Y).priced(-g, metric, shift)
        self.embedding.least_columns(priced, X, rows, found)
        i, s = np.nonzero(found.costs - f[:, None] - g[found.cols] < bar)
        return i, found.cols[i, s].astype(np.int64)

    def potentials(self, state: LevelState) -> Potentials:
        """Return potentials of the rows and columns with mass from the current level."""
        if self.is_finest(state):
            return super().potentials(state)
        fine = self._fine(state)
        return self._row_potential(state), self._column_potential(state, fine.Y)

    def _row_potential(self, state: LevelState) -> Vector:
        """Return the c-transform of the level's prices at the points of the rows."""
        return self.embedding.ctransform(self._priced(state), self._fine(state).X)

    def gap_of_points(self, state: LevelState, between_cells: Flow) -> float:
        """Return the relative gap of a coarse level's plan and prices, as those of the points.

        It is not computed if the plan alone shows that it is too large for a certificate.
        """
        fine = self._fine(state)
        i, j, flow = completed(state, self.divided(state, *between_cells))
        cost = dot(pair_costs(fine, i, j), flow)
        if relative_gap(cost, self.dual(state)) > state.certified_gap:
            return math.inf
        f = self._row_potential(state)
        rows = Tree.ordered(fine.X).priced(-f, fine.metric, fine.shift)
        g = self.embedding.ctransform(rows, fine.Y)
        return relative_gap(cost, dot(state.weights, f) + dot(state.quotas, g))

    def divided(self, state: LevelState, i: Index, j: Index, flow: Vector) -> Flow:
        """Divide a flow between the cells of the level among their points."""
        left, right = state.weights.copy(), state.quotas.copy()
        edges = cell_edges(left.size, state.leasts.size), cell_edges(right.size, state.prices.size)
        found: Flow = kernels.divided(i, j, flow, *edges, left, right, TUNING.negligible_mass)
        return found


class RecoveredAuctionLevels(CloudAuctionLevels):
    """The auction between points that were recovered from a stored cost.

    The points propose; the simplex of the finest level has the costs as given, and its later
    rounds look for negative arcs in the cost itself. So the plan is optimal for those costs.
    """

    def __init__(self, geometry: Geometry, embedding: Embedding, p: Vector, q: Vector) -> None:
        super().__init__(embedding, p, q)
        self.geometry = geometry

    def costs(self, state: LevelState, i: Index, j: Index) -> Vector:
        """Return the costs of pairs of rows and columns in the auction's order."""
        if not self.is_finest(state):
            return super().costs(state, i, j)
        rows, cols = state.rows[i], state.cols[j]
        return self.geometry.entries(*((cols, rows) if state.is_flipped else (rows, cols)))

    def cheap_arcs(
        self, state: LevelState, f: Vector, g: Vector, k: int, bar: float
    ) -> tuple[Index, Index]:
        """Return the arcs of reduced cost below ``bar`` among the k least of every matrix row."""
        if not self.is_finest(state):
            return super().cheap_arcs(state, f, g, k, bar)
        n, m = self.geometry.shape
        sides = (state.rows, f, n), (state.cols, g, m)
        (rows, f, _), (cols, g, _) = sides[::-1] if state.is_flipped else sides
        potentials = spread(f, rows, n, -np.inf), spread(g, cols, m, -np.inf)
        i, j = negative_arcs(self.geometry, *potentials, k, bar)
        i, j = _places(rows, n)[i], _places(cols, m)[j]
        return (j, i) if state.is_flipped else (i, j)


def cell_edges(n_points: int, n_cells: int) -> Index:
    """Return the first point of every cell, and the number of points."""
    return n_points * np.arange(n_cells + 1, dtype=np.int64) // n_cells


def _places(order: Index, size: int) -> Index:
    """Return the place of every number in an order of some of them."""
    place = np.zeros(size, dtype=np.int64)
    place[order] = np.arange(order.size)
    return place


def relative_gap(cost: float, dual: float) -> float:
    """Return the gap between a plan's cost and a lower bound, divided by the bound."""
    return (cost - dual) / dual if dual > 0 else math.inf


def _grow(state: LevelState) -> None:
    """Double the capacity for pieces of flow."""
    size = state.pieces.size // 3
    pieces, links = np.zeros((3, 2 * size)), np.full((4, 2 * size), -1, dtype=np.int32)
    pieces[:, :size], links[:, :size] = (
        state.pieces.reshape(3, -1),
        state.piece_links.reshape(4, -1),
    )
    links[1, size:-1] = np.arange(size + 1, 2 * size)
    state.pieces, state.piece_links = pieces.ravel(), links.ravel()
    state.counts[kernels.FREE] = size


@dataclass(kw_only=True)
class AuctionState(LevelState, RoundState):
    """The auction's arrays, then the simplex's, in the auction's order of rows and columns."""

    far: float = 0.0  # cost per unit of mass that a north-west corner plan moves

    def fits(self, problem: Additive) -> bool:
        """Tell whether saved arrays have consistent sizes and indices."""
        n, m = problem.shape
        if self.is_flipped:
            n, m = m, n
        is_same = self.is_arranged(n, m) and self.is_level() and self.is_basis()
        return bool(is_same)


@dataclass(frozen=True, kw_only=True)
class Auction(DirectSolver[AuctionState]):
    """Solve by an auction from coarse to fine, then by simplex rounds.

    A step is a number of bids, or a number of pivots.
    """

    about: ClassVar[MethodInfo] = MethodInfo(
        family="exact",
        paper="multiscale lazy auction with a simplex crossover",
        year=2026,
        note="n log n a phase in low dimension, simplex on O(n) arcs",
        exactness="exact",
        solves_entropic=False,
        rule=A_PRIORI,
    )
    pace: ClassVar[Pace] = Pace(evaluate_after=None, warm_up=20)
    starts_itself: ClassVar[bool] = True

    @classmethod
    def offer(cls, problem: Problem) -> Offer | None:
        """Offer to solve clouds in up to 16 dimensions, and images with squared distances."""
        geometry, (n, m) = problem.geometry, problem.shape
        embedding = geometry.embedding or geometry.recovered
        if embedding is None:
            return None
        is_square = metric_of(embedding.metric).square == 1
        if geometry.is_separable and not is_square:
            return None
        # The auction leaves out rows and columns without mass; images may have many.
        n, m = int((problem.p > 0).sum()), int((problem.q > 0).sum())
        model = cost_model("auction" if is_square else "auction of distances")
        # The smaller side bids: its time is that of a square problem of about as many pairs.
        few, many = sorted((n, m))
        side = math.isqrt(max(few, many // TUNING.max_sides_ratio) * many)
        seconds, coarse_gap, fine_seconds = model.seconds(side, side), 0.0, 0.0
        if not geometry.is_separable:
            shape = cloud_features(embedding)
            growth = TUNING.growth_of_squares
            if not is_square:
                growth, coarse_gap = TUNING.growth_of_distances, shape.coarse_gap
                pairs = min(shape.separation, 1.0) * n * m
                fine_seconds = TUNING.separated_pair_seconds * pairs
            seconds *= growth ** max(shape.dimension - 2, 0.0)
        if geometry.embedding is None:
            seconds += TUNING.stored_entry_seconds * n * m
        reason = "an auction from coarse to fine needs few columns of each point"
        n_bytes = int(model.bytes * (n + m))
        return Offer(reason, seconds, n_bytes, coarse_gap=coarse_gap, fine_seconds=fine_seconds)

    def memory(self, problem: Problem) -> int:
        """Return the bytes of trees, lists, pieces, arcs and the basis."""
        return TUNING.node_bytes * sum(problem.shape)

    def init(
        self, problem: Additive, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[AuctionState, Work]:
        """Return an empty state, or one at the finest level if there are potentials."""
        none, work = np.zeros(0), Work()
        state = AuctionState(row=none, lam=none)
        if potentials is not None:
            _levels(problem).start_at(state, potentials)
            work.record(Work.of(arc_tested=state.list_cols.size))
        return state, work

    def step(self, problem: Additive, state: AuctionState, rng: Generator) -> Work:
        """Bid; when the auction of a level has ended, pivot."""
        levels = _levels(problem)
        if not state.is_over:
            return levels.step(state)
        is_finest = levels.is_finest(state)
        if not is_finest and (state.is_promising or self._is_settled(levels, state)):
            return _leave_level(levels, state)
        work, unit = Work(), problem.geometry.cost_unit
        tolerance = TUNING.tolerance if is_finest else TUNING.coarse_tolerance * state.eps / unit
        if not state.is_open:
            work.record(self._open(levels, state, unit, tolerance))
            if state.is_done and not is_finest:
                work.record(_leave_level(levels, state))
        if state.is_open:
            work.record(pivot(state, unit, tolerance))
            state.record_gap(self._gap(levels, state) if is_finest else math.inf)
        return work

    def _is_settled(self, levels: AuctionLevels, state: AuctionState) -> bool:
        """Set a coarse level's prices from the simplex; tell whether they are accurate enough."""
        if not state.is_between_rounds:
            return False
        arcs, flow = basic_arcs(state)
        off = dot(state.arc_costs[arcs], flow) - levels.adopt(state, state.lam)
        return off <= state.eps or state.round >= TUNING.max_coarse_rounds

    def _gap(self, levels: AuctionLevels, state: AuctionState) -> float:
        """Return the relative gap of the basis under the auction's prices, infinite if large."""
        if state.round > 0 or not state.certified_gap > 0:
            return math.inf
        arcs, flow = basic_arcs(state)
        cost = dot(state.arc_costs[arcs], flow)
        dual = dot(state.weights, state.row) + dot(state.quotas, state.lam)
        missing = network.shortage(state.tree, 0.0)
        expected = relative_gap(cost + missing * state.far, dual)
        if missing <= ROUND_OFF or expected > state.certified_gap:
            return expected if missing <= ROUND_OFF else math.inf
        plan = _basic_plan(state)
        return relative_gap(dot(levels.costs(state, plan.i, plan.j), plan.flow), dual)

    def _open(
        self, levels: AuctionLevels, state: AuctionState, unit: float, tolerance: float
    ) -> Work:
        """Open the first round from the auction's flow, or another with negative arcs."""
        if state.round == 0:
            p, q = levels.masses(state)
            i, j, flow = kernels.arcs(*state.arrays.for_arcs)
            rest = _left(p, q, i, j, flow)
            first, mass = i.size, float(rest[2].sum())
            i, j = np.concatenate((i, rest[0])), np.concatenate((j, rest[1]))
            state.row, state.lam = state.leasts.copy(), -state.prices
            begin(state, (p.size, q.size), i, j, levels.costs(state, i, j), unit)
            state.far = dot(state.arc_costs[first:], rest[2]) / mass if mass > 0 else 0.0
            # The tree takes arcs of large flow first, then of small reduced cost.
            key = np.abs(state.reduced)
            key[:first][flow > 0] = -flow[flow > 0]
            state.big = max(TUNING.artificial_price * state.eps / unit, TUNING.min_artificial_price)
            crash(state, (p, q), np.argsort(key, kind="stable"))
        else:
            bar = -2 * tolerance * unit
            i, j = levels.cheap_arcs(state, state.row, state.lam, levels.list_columns, bar)
            reopen(state, i, j, levels.costs(state, i, j), unit, tolerance)
        return Work.of(arc_tested=state.sources.size)

    def signal(self, problem: Additive, state: AuctionState) -> Signal:
        """Request certificates of promising plans, and after every round."""
        is_finest = state.rows.size == 0 or _levels(problem).is_finest(state)
        is_between = is_finest and state.is_between_rounds
        return Signal(
            is_finished=is_finest and state.is_done,
            wants_certificate=is_between or state.is_promising,
        )

    def candidates(self, problem: Additive, state: AuctionState) -> list[tuple[Core, Vector]]:
        """Return the plan of the basis, or the auction's flow completed by a corner plan."""
        if state.rows.size == 0:
            return []
        levels = _levels(problem)
        if state.has_basis and levels.is_finest(state):
            plan = _basic_plan(state)
            i, j, flow = plan.i, plan.j, plan.flow
        else:
            i, j, flow = self._sold(levels, state)
        row, _ = self.potentials(problem, state)
        if state.is_flipped:
            return [(Arcs(problem.shape, state.cols[j], state.rows[i], flow), row)]
        return [(Arcs(problem.shape, state.rows[i], state.cols[j], flow), row)]

    def _sold(self, levels: AuctionLevels, state: AuctionState) -> tuple[Index, Index, Vector]:
        """Return the flow of the level between the points."""
        none = np.zeros(0, dtype=np.int64)
        i, j, flow = none, none, np.zeros(0)
        if levels.is_finest(state):
            i, j, flow = kernels.arcs(*state.arrays.for_arcs)
            held = flow > 0
            i, j, flow = i[held], j[held], flow[held]
        elif state.has_basis:
            i, j, flow = levels.divided(state, *basic_flow(state))
        i, j, flow = completed(state, (i, j, flow))
        keys, place = np.unique(i * state.cols.size + j, return_inverse=True)
        i, j = np.divmod(keys, state.cols.size)
        return i, j, np.bincount(place, flow, keys.size).astype(np.float64, copy=False)

    def _potentials(
        self, problem: Additive, levels: AuctionLevels, state: AuctionState
    ) -> Potentials:
        """Return potentials in the auction's order; those of the first basis are inaccurate."""
        if state.has_basis and levels.is_finest(state):
            is_first = state.round == 0
            return (state.row, state.lam) if is_first else duals(state, problem.geometry.cost_unit)
        return levels.potentials(state)

    def potentials(self, problem: Additive, state: AuctionState) -> Potentials:
        """Return the current duals; columns and rows without mass have -inf."""
        n, m = problem.shape
        if state.rows.size == 0:
            return np.zeros(n), np.zeros(m)
        f, g = self._potentials(problem, _levels(problem), state)
        if state.is_flipped:
            return spread(g, state.cols, n, -np.inf), spread(f, state.rows, m, -np.inf)
        return spread(f, state.rows, n, -np.inf), spread(g, state.cols, m, -np.inf)


def _levels(problem: Additive) -> AuctionLevels:
    """Return the levels of an auction for a problem's kind of cost."""
    geometry = problem.geometry
    if geometry.embedding is not None:
        return CloudAuctionLevels(geometry.embedding, problem.p, problem.q)
    if geometry.recovered is not None:
        return RecoveredAuctionLevels(geometry, geometry.recovered, problem.p, problem.q)
    return AuctionLevels(geometry, problem.p, problem.q)


def _leave_level(levels: AuctionLevels, state: AuctionState) -> Work:
    """Open the next level, unless the plan of the coarse one is worth a certificate first."""
    if not state.is_promising and state.certified_gap > 0:
        state.record_gap(levels.gap_of_points(state, basic_flow(state)))
        if state.is_promising:
            return Work.of(arc_tested=state.rows.size + state.cols.size)
    state.is_promising = False
    fresh = AuctionState(row=state.row, lam=state.lam)
    for part in fields(RoundState):
        setattr(state, part.name, getattr(fresh, part.name))
    return levels.step(state)


def _left(p: Vector, q: Vector, i: Index, j: Index, flow: Vector) -> tuple[Index, Index, Vector]:
    """Return the north-west corner plan of the masses that arcs leave."""
    left, right = p - np.bincount(i, flow, p.size), q - np.bincount(j, flow, q.size)
    found: tuple[Index, Index, Vector] = kernels.corner(left, right, TUNING.negligible_mass)
    return found


def _basic_plan(state: AuctionState) -> Arcs:
    """Return the plan of the basis, rounded where artificial arcs carry mass."""
    basis = Arcs((state.rows.size, state.cols.size), *basic_flow(state))
    if network.shortage(state.tree, 0.0) <= ROUND_OFF:
        return basis
    plan = round_onto(basis, state.weights, state.quotas).plan.core.arcs()
    return basis if plan is None else plan
