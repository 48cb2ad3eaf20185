"""The levels of a multiscale auction: from cells of both clouds to the points themselves.

A level is a transport problem between the cells of a depth of two trees, or between the points.
Its prices come from the level before by two c-transforms, its lists from searches in the tree of
its columns. All of it is plain arrays of a state, so that a run can be saved at any step.
"""

from __future__ import annotations

import math

import numpy as np

from .._types import Index, Integers, Matrix, Vector
from ..geometry import Geometry
from ..geometry.tree_index import Embedding, Priced, Tree, cells, pair_costs
from ..kernels import auction as kernels
from ..kernels.vectors import dot, matvec, rmatvec
from ..metrics import metric_of
from ..problems.work import Work
from .auction_state import MarketState

#: Columns in a row's list: at least, and at most where columns are many times the rows.
SHORTEST, LONGEST = 12, 48
#: Cells of the coarsest level, at most; each level has four times the cells of the one before.
COARSEST, HALVINGS = 512, 2
#: First ε of a level in units of the spacing of its values (of the coarsest: of its lists), the
#: factor by which it falls, and the last: on coarse levels, with weights, and of an assignment.
FIRST_EPS, EPS_FACTOR, LAST_COARSE, LAST_WEIGHTED, LAST_ASSIGNED = 4.0, 4.0, 0.1, 0.25, 0.03
#: Multiple of the last ε below which one is not worth a phase of its own.
NEARLY = 2.6
#: Mass that may be left when a phase ends, likewise, and rows of an assignment that may be. What is
#: left last has far to go: bids move it in steps of ε, and a simplex is quicker.
LEFT_COARSE, LEFT_WEIGHTED, LEFT_ASSIGNED, ROWS_LEFT = 4e-3, 2e-3, 4e-3, 400
#: Mass that may be left with weights when a phase ends that is not the last.
LEFT_EARLY = 4e-3
#: Shares of a row's and of a column's mass that are not worth a bid.
DUST, SPECK = 1e-9, 1e-9
#: Bids in one step: at most, and a row; four times as many a row, and a level is given up.
BIDS, GIVE_UP = 1_000_000, 25
#: Share of costs and prices below which differences between their sums are rounding, and the share
#: that steps are assumed to have where all of a list are: bids below rounding would change nothing.
LEVEL_ROUNDING, LEVEL_STEP = 1e-13, 1e-3
#: Mass that is nothing.
NONE = 1e-19


class Market:
    """The auction on a problem, whose state is elsewhere: levels, phases and what they find.

    Parameters
    ----------
    geometry : Geometry
        Its costs.
    p, q : (n,), (m,) arrays
        Its masses.
    """

    def __init__(self, geometry: Geometry, p: Vector, q: Vector) -> None:
        self.geometry, self.p, self.q = geometry, p, q

    def step(self, state: MarketState) -> Work:
        """Open a level, or sell for a while in a phase of it."""
        if state.rows.size == 0:
            self.arrange(state)
        if state.level == 0 or state.is_over:
            self._open(state)
            return Work.of(arc_tested=state.list_cols.size)
        state.is_ripe, read = False, state.counts[kernels.READ]
        if not state.is_selling:
            state.eps /= EPS_FACTOR
            if state.eps < NEARLY * state.last_eps:
                state.eps = state.last_eps
            kernels.begin(state.market, state.leasts, state.eps)
            state.is_selling = True
        self._sell(state)
        return Work.of(arc_tested=int(state.counts[kernels.READ] - read))

    # -- what depends on the kind of cost: here, any ---------------------------------------

    def arrange(self, state: MarketState) -> None:
        """Choose who bids, and the order of rows and columns: the fewer bid for the others."""
        rows, cols = np.flatnonzero(self.p > 0), np.flatnonzero(self.q > 0)
        state.is_flipped = False
        state.rows, state.cols = rows, cols
        state.weights, state.quotas = self.p[rows], self.q[cols]

    def depths(self, state: MarketState) -> list[int]:
        """Return the depths of the levels' cells; the last is that of the points themselves."""
        return [0]

    def is_finest(self, state: MarketState) -> bool:
        """Tell whether the level under way is that of the points themselves."""
        return state.level == len(self.depths(state))

    def masses(self, state: MarketState) -> tuple[Vector, Vector]:
        """Return the masses of the rows and columns of the level under way."""
        return state.weights, state.quotas

    def _level(self, state: MarketState) -> tuple[Vector, Vector, Vector]:
        """Return masses of the next level's rows and columns, and first prices."""
        return state.weights, state.quotas, np.zeros(state.cols.size)

    def search(self, state: MarketState, rows: Integers) -> None:
        """Write new lists for some rows."""
        market = state.market
        prices = np.full(self.q.size, np.inf)
        prices[state.cols] = market.prices
        k = market.cols.shape[1]
        cols, costs, thresholds = self.geometry.k_least(state.rows[rows], prices, k)
        place = np.zeros(self.q.size, dtype=np.int32)
        place[state.cols] = np.arange(state.cols.size, dtype=np.int32)
        market.cols[rows], market.costs[rows] = place[cols], costs
        market.thresholds[rows] = thresholds
        state.leasts[rows] = costs[:, 0] + prices[cols[:, 0]]

    def _bid(self, state: MarketState, until: int) -> tuple[int, float]:
        """Let rows bid until they wait for lists, or enough bids are made."""
        why, small = kernels.bid(state.market, state.eps, state.may_be_left, until, state.small)
        return int(why), float(small)

    def refresh(self, state: MarketState) -> None:
        """Prepare searches under prices that have risen."""

    def costs(self, state: MarketState, i: Index, j: Index) -> Vector:
        """Return the costs of pairs of rows and columns in the auction's order."""
        return self.geometry.entries(state.rows[i], state.cols[j])

    def cheap_arcs(
        self, state: MarketState, f: Vector, g: Vector, k: int, bar: float
    ) -> tuple[Index, Index]:
        """Return the arcs of reduced cost below ``bar`` among the k least of every row."""
        prices = np.full(self.q.size, np.inf)
        prices[state.cols] = -g
        cols, costs, _ = self.geometry.k_least(state.rows, prices, min(k, state.cols.size))
        place = np.zeros(self.q.size, dtype=np.int64)
        place[state.cols] = np.arange(state.cols.size)
        i, s = np.nonzero(costs - f[:, None] - g[place[cols]] < bar)
        return i, place[cols[i, s]]

    def rough_row(self, state: MarketState) -> Vector:
        """Return a row potential for all bidding rows from the level under way."""
        return state.leasts.copy()

    # -- levels and phases -----------------------------------------------------------------

    def _open(self, state: MarketState) -> None:
        """Begin a level: masses, prices, lists and the first ε."""
        before = self.dual(state) if state.level else None
        p, q, prices = self._level(state)
        n, m = p.size, q.size
        k = min(m, max(SHORTEST, min(LONGEST, SHORTEST * m // n)))
        state.by_column = np.concatenate([prices, prices, q, SPECK * q])
        state.heads = np.full(m, -1, dtype=np.int32)
        state.by_row = np.concatenate([p, DUST * p, p, p])
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

    def _set_pace(self, state: MarketState, off: float) -> None:
        """Set the level's ε's, in units of the usual step from one value of a list to the next.

        The first is not below what the level before and the dual of this one differ by: prices
        that are further off than their steps would take very many bids.
        """
        market = state.market
        k = market.cols.shape[1]
        farthest = market.costs[:, -1] + market.prices[market.cols[:, -1]]
        spread = float((farthest - state.leasts).mean()) / k
        size = float(np.abs(market.costs).max() + np.abs(market.prices).max())
        if not spread > LEVEL_ROUNDING * size:  # as many equal columns as a list has
            spread = LEVEL_STEP * size or 1.0
        is_last = state.level + 1 == len(self.depths(state))
        is_even = bool(np.ptp(market.excess) == 0 == np.ptp(market.unsold))
        if not is_last:
            last, state.early, state.enough = LAST_COARSE, LEFT_COARSE, LEFT_COARSE
        elif is_even and market.excess.size == market.unsold.size:
            left = min(LEFT_ASSIGNED, ROWS_LEFT / market.excess.size)
            last, state.early, state.enough = LAST_ASSIGNED, left, left
        else:
            last, state.early, state.enough = LAST_WEIGHTED, LEFT_EARLY, LEFT_WEIGHTED
        first = k * spread if state.level == 0 else max(FIRST_EPS * spread, off)
        state.eps = EPS_FACTOR * first
        state.last_eps = last * spread

    def _sell(self, state: MarketState) -> None:
        """Let rows bid, renewing lists on the way; end the phase when enough is sold."""
        counts = state.counts
        n = state.leasts.size
        until = counts[kernels.BIDS] + min(BIDS, GIVE_UP * n)
        is_hopeless = until > 4 * GIVE_UP * n
        bids, n_idle = -1, 0  # bids at the last search, and rows searched for since the last bid
        while True:
            why, state.small = self._bid(state, until)
            if why == kernels.FULL:
                _grow(state)
            elif why == kernels.WAIT and n_idle <= n:
                n_idle = counts[kernels.WAITING] + (n_idle if counts[kernels.BIDS] == bids else 0)
                bids = counts[kernels.BIDS]
                self.refresh(state)
                market = state.market
                self.search(state, market.waiting[: counts[kernels.WAITING]].copy())
                kernels.rejoin(market)
            else:
                break
        if why != kernels.ENOUGH or is_hopeless:
            self._end(state)

    def _end(self, state: MarketState) -> None:
        """End a phase: every row's least value under the prices it ended with."""
        self.refresh(state)
        market = state.market
        stale = np.arange(state.leasts.size, dtype=np.int32)
        state.is_selling, state.is_over = False, state.eps <= state.last_eps
        if not state.is_over:
            stale = stale[: kernels.stale_rows(market, state.leasts, stale)]
        self.search(state, stale)
        state.ripen(self.gap(state) if self.is_finest(state) else math.inf)

    def adopt(self, state: MarketState, g: Vector) -> float:
        """Let a column potential be the prices of the level under way; return its dual value."""
        state.asked[:] = -g
        self.search(state, np.arange(state.leasts.size, dtype=np.int32))
        return self.dual(state)

    def dual(self, state: MarketState) -> float:
        """Return the dual value of the level under way."""
        p, q = self.masses(state)
        return dot(p, state.leasts) - dot(q, state.asked)

    def gap(self, state: MarketState) -> float:
        """Return the relative gap of what the finest level has sold, with a corner for the rest.

        Nothing is proved by it: it tells whether a proof is worth its while.
        """
        market = state.market
        i, j, flow = kernels.corner(market.excess, market.unsold, NONE)
        cost = dot(market.piece_cost, market.mass) + dot(self.costs(state, i, j), flow)
        return relative_gap(cost, self.dual(state))


class PointMarket(Market):
    """The auction between points in few dimensions: trees are searched, cells make the levels."""

    def __init__(self, embedding: Embedding, p: Vector, q: Vector) -> None:
        self.embedding, self.p, self.q = embedding, p, q

    def arrange(self, state: MarketState) -> None:
        """Put the points in the order of their trees; the fewer ones bid for the others."""
        X, Y, *_ = self.embedding
        rows, cols = np.flatnonzero(self.p > 0), np.flatnonzero(self.q > 0)
        state.is_flipped = rows.size > cols.size
        sides = [(X, self.p, rows), (Y, self.q, cols)][:: -1 if state.is_flipped else 1]
        (state.rows, state.weights, state.fine_x), (state.cols, state.quotas, state.fine_y) = (
            self._ordered(*side) for side in sides
        )

    def _ordered(self, points: Matrix, masses: Vector, kept: Index) -> tuple[Index, Vector, Vector]:
        """Return the kept points' numbers in tree order, their masses and the points, flat."""
        tree = self.embedding.tree_of(points if kept.size == len(points) else points[kept])
        order = kept[tree.order]
        return order, masses[order], tree.points.ravel()

    def depths(self, state: MarketState) -> list[int]:
        """Return the depths of the levels' cells; the last is that of the points themselves."""
        size = max(state.rows.size, state.cols.size)
        deepest = (size * size).bit_length() // 2  # log2 of the size, rounded
        n_coarse = max(0, -(-(deepest + 1 - COARSEST.bit_length()) // HALVINGS))
        return [deepest - HALVINGS * s for s in range(n_coarse, 0, -1)] + [2 * deepest + 2]

    def _points(self, state: MarketState) -> tuple[Matrix, Matrix]:
        width = state.fine_x.size // state.rows.size
        return state.x.reshape(-1, width), state.y.reshape(-1, width)

    def _fine(self, state: MarketState) -> Embedding:
        """Return the points in the auction's order."""
        X, Y = state.fine_x.reshape(state.rows.size, -1), state.fine_y.reshape(state.cols.size, -1)
        return self.embedding._replace(X=X, Y=Y)

    def _priced(self, state: MarketState) -> Priced:
        """Return the tree of the level's columns."""
        _, Y = self._points(state)
        nodes = state.nodes.reshape(-1, 3 * Y.shape[1] + 1)
        return Priced(Y, state.asked, self.embedding.metric, self.embedding.shift, nodes)

    def masses(self, state: MarketState) -> tuple[Vector, Vector]:
        """Return the masses of the rows and columns of the level under way."""
        X, Y, *_ = self._fine(state)
        depth = self.depths(state)[state.level - 1]
        return cells(X, state.weights, depth)[1], cells(Y, state.quotas, depth)[1]

    def adopt(self, state: MarketState, g: Vector) -> float:
        """Let a column potential be the prices of the level under way; return its dual value."""
        _, Y = self._points(state)
        metric, shift = self.embedding.metric, self.embedding.shift
        state.nodes = Tree.ordered(Y).priced(-g, metric, shift).nodes.ravel()
        return super().adopt(state, g)

    def _level(self, state: MarketState) -> tuple[Vector, Vector, Vector]:
        """Set the next level's points; return its masses and prices from the level before."""
        metric, shift = self.embedding.metric, self.embedding.shift
        X, Y, *_ = self._fine(state)
        depth = self.depths(state)[state.level]
        (X, p), (Y, q) = cells(X, state.weights, depth), cells(Y, state.quotas, depth)
        if state.level == 0:
            prices = self._first_prices(X, Y, p, q)
        else:
            rows = Tree.ordered(self._points(state)[0])
            prices = -self.embedding.ctransform(rows.priced(-state.leasts, metric, shift), Y)
        nodes = Tree.ordered(Y).priced(prices, metric, shift).nodes
        state.x, state.y, state.nodes = X.ravel(), Y.ravel(), nodes.ravel()
        return p, q, prices

    def _first_prices(self, X: Matrix, Y: Matrix, p: Vector, q: Vector) -> Vector:
        """Return prices for which a translation is optimal where that is what costs ask for."""
        square = metric_of(self.embedding.metric).square
        if square == 0:
            return np.zeros(len(Y))
        move = rmatvec(X, p) - rmatvec(Y, q)
        return 2 * square * matvec(Y - Y.mean(axis=0), move)

    def search(self, state: MarketState, rows: Integers) -> None:
        """Write new lists for some rows."""
        market, (X, _) = state.market, self._points(state)
        room = market.cols, market.costs, state.leasts, market.thresholds
        self.embedding.least_columns(self._priced(state), X, rows, *room)

    def _bid(self, state: MarketState, until: int) -> tuple[int, float]:
        """Let rows bid, and search while few of them wait."""
        priced, (X, Y) = self._priced(state), self._points(state)
        why, small = kernels.bid_and_search(
            state.market, state.eps, state.may_be_left, until, state.small, X, Y, *priced.args
        )
        return int(why), float(small)

    def refresh(self, state: MarketState) -> None:
        """Raise the bounds of the tree to the prices."""
        self._priced(state).refresh()
        state.counts[kernels.SEARCHED] = 0

    def costs(self, state: MarketState, i: Index, j: Index) -> Vector:
        """Return the costs of pairs of rows and columns in the auction's order."""
        X, Y = self._points(state)
        return pair_costs(self.embedding._replace(X=X, Y=Y), i, j)

    def cheap_arcs(
        self, state: MarketState, f: Vector, g: Vector, k: int, bar: float
    ) -> tuple[Index, Index]:
        """Return the arcs of reduced cost below ``bar`` among the k least of every row."""
        X, Y = self._points(state)
        metric, shift = self.embedding.metric, self.embedding.shift
        n, k = len(X), min(k, len(Y))
        cols, costs = np.zeros((n, k), dtype=np.int32), np.empty((n, k))
        rows = np.arange(n, dtype=np.int32)
        priced = Tree.ordered(Y).priced(-g, metric, shift)
        self.embedding.least_columns(priced, X, rows, cols, costs, np.empty(n), np.empty(n))
        i, s = np.nonzero(costs - f[:, None] - g[cols] < bar)
        return i, cols[i, s].astype(np.int64)

    def rough_row(self, state: MarketState) -> Vector:
        """Return a row potential for all bidding rows from the level under way."""
        if self.is_finest(state):
            return state.leasts.copy()
        return self.embedding.ctransform(self._priced(state), self._fine(state).X)


def relative_gap(cost: float, dual: float) -> float:
    """Return how far a plan's cost is above a lower bound, as a share of it."""
    return (cost - dual) / cost if cost > 0 else math.inf


def _grow(state: MarketState) -> None:
    """Make room for twice as many pieces."""
    size = state.pieces.size // 3
    pieces, links = np.zeros((3, 2 * size)), np.full((4, 2 * size), -1, dtype=np.int32)
    pieces[:, :size], links[:, :size] = (
        state.pieces.reshape(3, -1),
        state.piece_links.reshape(4, -1),
    )
    links[1, size:-1] = np.arange(size + 1, 2 * size)
    state.pieces, state.piece_links = pieces.ravel(), links.ravel()
    state.counts[kernels.FREE] = size
