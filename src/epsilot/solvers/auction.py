"""Exact transport by a multiscale auction that hands over to a network simplex.

An auction with falling ε runs through coarse versions of the problem and then the problem itself,
every row looking at a short list of columns only (``market``). Its prices and pieces leave a
simplex little to do: the arcs of the lists, a basis from the pieces, rounds in which negative arcs
join (``rounds``). Nothing needs the cost matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from .._types import Index, Potentials, Vector
from ..kernels import auction as kernels
from ..kernels import network
from ..kernels.proof import ROUND_OFF
from ..kernels.vectors import dot
from ..metrics import metric_of
from ..problems.plan import Arcs, Core
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
    no_rounds,
    pivot,
    reopen,
)
from .auction_levels import NONE, Market, PointMarket, relative_gap
from .auction_state import MarketState, empty_market
from .base import DirectSolver, Pace, Signal
from .cost_models import Offer, cost_model
from .method_info import A_PRIORI, MethodInfo

#: Share of the largest cost: reduced costs that count as negative; arcs that join later must be
#: below twice that.
TOLERANCE = 1e-13
#: Arcs of a row that may join in a round.
JOINING = 12
#: The same on coarse levels, as a share of the last ε, and rounds there, at most.
COARSE, ROUNDS = 1e-2, 4
#: First price of artificial arcs: in units of the last ε, and at least, as a share of the largest
#: cost. What is unsold first goes where it can for little; the price rises for what is left.
NEAR, NEAREST = 16.0, 1e-10
#: "auto" chooses an auction in at most so many dimensions; for l1 distances, which have ties, only
#: beyond so many entries; and on grids up to so many cells, since filters need less memory.
MAX_DIMENSION, MAX_TIED_ENTRIES, MAX_CELLS = 3, 1 << 27, 1 << 18
#: Bytes a row or column of trees, market, arcs and basis, at most.
BYTES = 1200


@dataclass(kw_only=True)
class State(MarketState, RoundState):
    """A market first, then the rounds of a simplex, in the market's order of rows and columns."""

    far: float  # cost of what a corner plan moves, a unit of mass

    def fits(self, problem: Additive) -> bool:
        """Tell whether arrays that were read have sizes and places that belong together."""
        n, m = problem.shape
        if self.is_flipped:
            n, m = m, n
        is_same = self.is_arranged(n, m) and self.is_market() and self.is_basis()
        return bool(is_same)


@dataclass(frozen=True, kw_only=True)
class Auction(DirectSolver[State]):
    """Auction from coarse to fine, then simplex rounds; a step is some bids or some pivots."""

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
        """Offer to solve clouds in few dimensions, and images with squared distances."""
        geometry, (n, m) = problem.geometry, problem.shape
        if geometry.embedding is None:
            return None
        metric = metric_of(geometry.embedding.metric)
        is_square = metric.square == 1
        if geometry.is_separable:
            is_served = is_square and max(n, m) <= MAX_CELLS
        else:
            is_flat = geometry.embedding.X.shape[1] <= MAX_DIMENSION
            is_served = is_flat and (n * m > MAX_TIED_ENTRIES or not metric.has_ties)
        if not is_served:
            return None
        # Rows and columns without mass are left out, of which images may have many.
        n, m = int((problem.p > 0).sum()), int((problem.q > 0).sum())
        model = cost_model("auction" if is_square else "auction of distances")
        reason = "an auction from coarse to fine needs few columns of each point"
        return Offer(reason, model.seconds(n, m), int(model.bytes * (n + m)))

    def memory(self, problem: Problem) -> int:
        """Return the bytes of trees, lists, pieces, arcs and the basis."""
        return BYTES * sum(problem.shape)

    def init(
        self, problem: Additive, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[State, Work]:
        """Start with nothing: the first step opens the coarsest level."""
        none = np.zeros(0)
        return State(row=none, lam=none, far=0.0, **empty_market(), **no_rounds()), Work()

    def step(self, problem: Additive, state: State, rng: Generator) -> Work:
        """Sell for a while; when a level is sold, hand over to the simplex and pivot."""
        market = _market(problem)
        if not state.is_over:
            return market.step(state)
        is_finest = market.is_finest(state)
        if not (is_finest or state.is_open or state.round == 0) and self._is_settled(market, state):
            return _leave_level(market, state)
        work, unit = Work(), problem.geometry.cost_unit
        tolerance = TOLERANCE if is_finest else COARSE * state.eps / unit
        if not state.is_open:
            work.record(self._open(market, state, unit, tolerance))
            if state.is_done and not is_finest:
                work.record(_leave_level(market, state))
        if state.is_open:
            work.record(pivot(state, unit, tolerance))
            state.ripen(self._gap(market, state) if is_finest else math.inf)
        return work

    def _is_settled(self, market: Market, state: State) -> bool:
        """Take a coarse level's prices from the simplex; tell whether they are good enough."""
        arcs, flow = basic_arcs(state)
        off = dot(state.arc_costs[arcs], flow) - market.adopt(state, state.lam)
        return off <= state.eps or state.round >= ROUNDS

    def _gap(self, market: Market, state: State) -> float:
        """Return the relative gap of the basis to the auction's prices; infinite if far."""
        if state.round > 0 or not state.wanted > 0:
            return math.inf
        arcs, flow = basic_arcs(state)
        cost = dot(state.arc_costs[arcs], flow)
        dual = dot(state.weights, state.row) + dot(state.quotas, state.lam)
        missing = network.shortage(state.tree, 0.0)
        expected = relative_gap(cost + missing * state.far, dual)
        if missing <= ROUND_OFF or expected > state.wanted:
            return expected if missing <= ROUND_OFF else math.inf
        plan = _basic_plan(state)
        return relative_gap(dot(market.costs(state, plan.i, plan.j), plan.flow), dual)

    def _open(self, market: Market, state: State, unit: float, tolerance: float) -> Work:
        """Begin the first round from the auction's pieces, or another with negative arcs."""
        if state.round == 0:
            p, q = market.masses(state)
            i, j, flow = kernels.arcs(state.market)
            rest = _left(p, q, i, j, flow)
            first, mass = i.size, float(rest[2].sum())
            i, j = np.concatenate((i, rest[0])), np.concatenate((j, rest[1]))
            state.row, state.lam = state.leasts.copy(), -state.asked
            begin(state, (p.size, q.size), i, j, market.costs(state, i, j), unit)
            state.far = dot(state.arc_costs[first:], rest[2]) / mass if mass > 0 else 0.0
            # The tree prefers much flow, then small reduced costs.
            key = np.abs(state.reduced)
            key[:first][flow > 0] = -flow[flow > 0]
            state.big = max(NEAR * state.eps / unit, NEAREST)
            crash(state, (p, q), np.argsort(key, kind="stable"))
        else:
            bar = -2 * tolerance * unit
            i, j = market.cheap_arcs(state, state.row, state.lam, JOINING, bar)
            reopen(state, i, j, market.costs(state, i, j), unit, tolerance)
        return Work.of(arc_tested=state.sources.size)

    def signal(self, problem: Additive, state: State) -> Signal:
        """Ask for certificates on the way to a first optimum, and after every round."""
        is_between = state.round > 0 and not state.is_open and _market(problem).is_finest(state)
        return Signal(is_finished=state.is_done, wants_certificate=is_between or state.is_ripe)

    def candidates(self, problem: Additive, state: State) -> list[tuple[Core, Vector]]:
        """Return the plan of the basis, or what the auction has sold with a corner for the rest."""
        if state.rows.size == 0:
            return []
        market = _market(problem)
        if state.has_basis and market.is_finest(state):
            plan = _basic_plan(state)
            i, j, flow = plan.i, plan.j, plan.flow
        else:
            i, j, flow = self._sold(market, state)
        f, g = self._potentials(problem, market, state)
        if state.is_flipped:
            row, i, j = _spread(g, state.cols, problem.shape[0]), state.cols[j], state.rows[i]
        else:
            row, i, j = _spread(f, state.rows, problem.shape[0]), state.rows[i], state.cols[j]
        return [(Arcs(problem.shape, i, j, flow), row)]

    def _sold(self, market: Market, state: State) -> tuple[Index, Index, Vector]:
        """Return what is sold on the finest level, and a corner plan of the rest."""
        none = np.zeros(0, dtype=np.int64)
        i, j, flow = none, none, np.zeros(0)
        if market.is_finest(state):
            i, j, flow = kernels.arcs(state.market)
            held = flow > 0
            i, j, flow = i[held], j[held], flow[held]
        rest = _left(state.weights, state.quotas, i, j, flow)
        i, j, flow = (np.concatenate(pair) for pair in zip((i, j, flow), rest, strict=True))
        keys, place = np.unique(i * state.cols.size + j, return_inverse=True)
        i, j = np.divmod(keys, state.cols.size)
        return i, j, np.bincount(place, flow, keys.size).astype(np.float64, copy=False)

    def _potentials(self, problem: Additive, market: Market, state: State) -> Potentials:
        """Return potentials in the market's order; a first basis' own are far off for long."""
        if state.has_basis and market.is_finest(state):
            is_first = state.round == 0
            return (state.row, state.lam) if is_first else duals(state, problem.geometry.cost_unit)
        f = market.rough_row(state)
        if not market.is_finest(state):
            return f, np.zeros(state.cols.size)
        return f, -state.asked

    def potentials(self, problem: Additive, state: State) -> Potentials:
        """Return the current duals; columns and rows without mass have -inf."""
        n, m = problem.shape
        if state.rows.size == 0:
            return np.zeros(n), np.zeros(m)
        f, g = self._potentials(problem, _market(problem), state)
        if state.is_flipped:
            return _spread(g, state.cols, n), _spread(f, state.rows, m)
        return _spread(f, state.rows, n), _spread(g, state.cols, m)


def _market(problem: Additive) -> Market:
    """Return the auction for a problem's kind of cost."""
    embedding = problem.geometry.embedding
    if embedding is None:
        return Market(problem.geometry, problem.p, problem.q)
    return PointMarket(embedding, problem.p, problem.q)


def _leave_level(market: Market, state: State) -> Work:
    """Forget the simplex of a coarse level, whose prices the market has, and open the next."""
    for name, value in no_rounds().items():
        setattr(state, name, value)
    return market.step(state)


def _left(p: Vector, q: Vector, i: Index, j: Index, flow: Vector) -> tuple[Index, Index, Vector]:
    """Return the corner plan of what arcs leave of the masses."""
    left, right = p - np.bincount(i, flow, p.size), q - np.bincount(j, flow, q.size)
    found: tuple[Index, Index, Vector] = kernels.corner(left, right, NONE)
    return found


def _basic_plan(state: State) -> Arcs:
    """Return the plan of the basis, with a corner for what artificial arcs carry."""
    basis = Arcs((state.rows.size, state.cols.size), *basic_flow(state))
    if network.shortage(state.tree, 0.0) <= ROUND_OFF:
        return basis
    plan = round_onto(basis, state.weights, state.quotas).plan.core.arcs()
    return basis if plan is None else plan


def _spread(x: Vector, index: Index, size: int) -> Vector:
    """Return a potential for all rows, -inf for those without mass."""
    out = np.full(size, -np.inf)
    out[index] = x
    return out
