"""Solve transport by a network simplex on a growing set of arcs.

A round solves the problem restricted to some arcs. Arcs of negative reduced cost then join, and
the next round starts from the last basis.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._types import Array, Index, Potentials, Vector
from ..geometry import Geometry
from ..geometry.sweeps import ByRow
from ..kernels import k_least, network
from ..kernels.forest import MAX_UNSETTLED_MASS
from ..problems.work import Work
from .base import ResizableState, RowState, no_entries


@dataclass(frozen=True, kw_only=True)
class ArcSimplexTuning:
    """Tuning parameters of the simplex on a growing set of arcs."""

    pivots_per_step: int = 4000  # so that limits are checked in time
    artificial_price: float = 4.0  # first price of artificial arcs, in units of max C
    max_artificial_price: float = 1e6  # in the same unit
    # Round-off can make a simplex cycle. Beyond these limits the run ends with the gap it has.
    max_pivots: int = 1_000_000  # per round, plus those per node
    max_pivots_per_node: int = 100
    max_rounds: int = 1000  # per run


TUNING = ArcSimplexTuning()


#: Indices of nodes and arcs, as kernels.network takes them.
Nodes: TypeAlias = NDArray[np.uint32]


@dataclass(kw_only=True)
class RoundState(RowState, ResizableState):
    """Potentials, the arcs of a restricted problem, and a basis."""

    row: Vector  # row potential at the start of the round
    lam: Vector  # column potential at the start of the round
    round: int = 0  # restricted problems solved
    is_open: bool = False  # whether a round has begun and not ended
    sources: Nodes = no_entries(np.uint32)  # source nodes of the arcs; columns are counted from n
    targets: Nodes = no_entries(np.uint32)
    arc_costs: Vector = no_entries()  # their costs
    reduced: Vector = no_entries()  # reduced costs at the start of the round, divided by max C
    at: int = 0  # arc at which pricing continues
    links: Nodes = no_entries(np.uint32)  # the basis: see kernels.network
    is_up: NDArray[np.bool_] = no_entries(np.bool_)
    flow: Vector = no_entries()
    node_prices: Vector = no_entries()
    #: Price of artificial arcs.
    big: float = field(default_factory=lambda: TUNING.artificial_price)
    pivots: int = 0  # pivots in the current round
    is_done: bool = False  # no arc has a negative reduced cost, or a limit is reached

    @property
    def has_basis(self) -> bool:
        """Whether the first round has begun."""
        return self.round > 0 or self.is_open

    @property
    def is_between_rounds(self) -> bool:
        """Whether a round has ended and the next one has not begun."""
        return self.round > 0 and not self.is_open

    @property
    def tree(self) -> tuple[Array, ...]:
        """The basis as kernels take it."""
        return *self.links.reshape(6, -1), self.is_up, self.flow, self.node_prices

    def is_basis(self) -> bool:
        """Tell whether saved arcs and a saved basis have consistent sizes and indices."""
        nodes, arcs = self.flow.size, self.sources.size
        sizes = (
            (self.links.size, 6 * nodes),
            (self.is_up.size, nodes),
            (self.node_prices.size, nodes),
            (self.targets.size, arcs),
            (self.arc_costs.size, arcs),
            (self.reduced.size, arcs),
        )
        if any(found != wanted for found, wanted in sizes):
            return False
        if arcs == 0 or nodes == 0:
            return bool(arcs == nodes == 0)
        is_inside = max(self.sources.max(), self.targets.max()) < nodes - 1
        return bool(is_inside and 0 <= self.at <= arcs and are_links(self.links, arcs))


def are_links(flat: Nodes, n_arcs: int) -> bool:
    """Tell whether the links of a saved basis have nodes and arcs that exist."""
    links = flat.reshape(6, -1)
    preds = links[1][links[1] != network.ARTIFICIAL]
    is_tree = np.delete(links, (1, 5), axis=0).max() < links.shape[1]
    return bool(is_tree and (preds.size == 0 or preds.max() < n_arcs))


def begin(
    state: RoundState, shape: tuple[int, int], i: Index, j: Index, costs: Vector, unit: float
) -> None:
    """Open the first round with arcs and their costs; ``crash`` then builds the basis."""
    n, m = shape
    nodes = n + m + 1
    state.sources, state.targets = i.astype(np.uint32), (j + n).astype(np.uint32)
    state.arc_costs = costs
    state.reduced = _reduced(state, n, unit)
    state.links = np.zeros(6 * nodes, dtype=np.uint32)
    state.is_up = np.zeros(nodes, dtype=np.bool_)
    state.flow, state.node_prices = np.zeros(nodes), np.zeros(nodes)
    state.at, state.is_open = 0, True


def crash(state: RoundState, masses: tuple[Vector, Vector], order: Index) -> None:
    """Build a basis from the forest of the first arcs in an order.

    A cycle through the root costs ``big`` plus a reduced cost. ``big`` must outweigh the least
    reduced cost, else flow on that cycle would grow without bound.
    """
    p, q = masses
    state.big = max(state.big, -2 * float(state.reduced.min(initial=0.0)))
    supply = np.concatenate([p, -q * (p.sum() / q.sum())])
    network.crash(state.sources, state.targets, state.reduced, order, supply, state.big, state.tree)


def reopen(
    state: RoundState, i: Index, j: Index, costs: Vector, unit: float, tolerance: float
) -> None:
    """Open another round with more arcs; without negative arcs the last basis is optimal."""
    n = state.row.size
    state.at = state.sources.size  # new arcs are priced first
    state.sources = np.concatenate([state.sources, i.astype(np.uint32)])
    state.targets = np.concatenate([state.targets, (j + n).astype(np.uint32)])
    state.arc_costs = np.concatenate([state.arc_costs, costs])
    state.reduced = _reduced(state, n, unit)
    state.is_done = not (state.reduced[state.at :] < -tolerance).any()
    state.is_open = not state.is_done
    state.at, state.pivots = 0 if state.is_done else state.at, 0


def negative_arcs(
    geometry: Geometry, f: Vector, g: Vector, k: int, bar: float
) -> tuple[Index, Index]:
    """Return the arcs of reduced cost below ``bar`` among the k least of every row."""
    n, m = geometry.shape
    cols = np.zeros((n, min(k, m)), dtype=np.int64)
    values = np.full(cols.shape, np.inf)
    geometry.sweep(k_least.negative_of_rows, ByRow(f), g, bar, ByRow(values), ByRow(cols))
    i, s = np.nonzero(values < np.inf)
    return i, cols[i, s]


def _reduced(state: RoundState, n: int, unit: float) -> Vector:
    """Return the reduced costs of the arcs under the potentials, divided by max C."""
    rows, cols = state.sources, state.targets - np.uint32(n)
    reduced: Vector = (state.arc_costs - state.row[rows] - state.lam[cols]) / unit
    return reduced


def pivot(
    state: RoundState,
    unit: float,
    tolerance: float,
    block: tuple[int, int] = (network.MIN_PRICED_ARCS, network.MAX_PRICED_ARCS),
    keep_short: bool = False,
) -> Work:
    """Pivot; at an optimal basis, end the round with the new potentials.

    ``block`` holds the fewest and the most arcs that are priced together. With ``keep_short``, mass
    on artificial arcs stays there: other arcs may take it in the next round.
    """
    pivots, state.at, priced, walked = network.pivots(
        state.sources,
        state.targets,
        state.reduced,
        state.tree,
        state.at,
        tolerance,
        TUNING.pivots_per_step,
        *block,
    )
    state.pivots += pivots
    is_endless = state.pivots > TUNING.max_pivots + TUNING.max_pivots_per_node * state.flow.size
    if pivots < TUNING.pivots_per_step or is_endless:
        is_stuck = is_short(state)
        if is_stuck and not keep_short and not is_endless and may_raise_price(state):
            raise_price(state)
        else:
            _refresh_prices(state)
            state.row, state.lam = duals(state, unit)
            state.node_prices[:] = 0
            if not (is_stuck and keep_short):
                _release(state)
            state.round, state.is_open = state.round + 1, False
            state.is_done = is_endless or state.round >= TUNING.max_rounds
    return Work.of(arc_tested=priced, vector=walked)


def is_short(state: RoundState) -> bool:
    """Tell whether artificial arcs bring mass; less is round-off, and the plan is feasible.

    A single artificial arc carries the round-off of all masses, at any price.
    """
    return len(_tops(state)) > 1 and network.shortage(state.tree, 0.0) > MAX_UNSETTLED_MASS


def _tops(state: RoundState) -> Index:
    """Return the nodes that artificial arcs join to the root, one for each part of the basis."""
    parents = state.links.reshape(6, -1)[0]
    return np.flatnonzero(parents[:-1] == parents.size - 1)


def _release(state: RoundState) -> None:
    """Reverse and empty the root's outgoing arcs, so that they bound every cycle."""
    tops = _tops(state)
    tops = tops[~state.is_up[tops]]
    state.is_up[tops], state.flow[tops] = True, 0.0


def _refresh_prices(state: RoundState) -> None:
    """Compute the prices of the basis again, free of the round-off of pivots and of ``big``."""
    tops = _tops(state)
    if tops.size == 1:  # only differences of prices matter
        state.node_prices[tops] = 0.0
    network.refresh(state.reduced, state.tree)


def may_raise_price(state: RoundState) -> bool:
    """Tell whether the price of artificial arcs may still rise."""
    return state.big < TUNING.max_artificial_price


def raise_price(state: RoundState) -> None:
    """Multiply the price of artificial arcs by eight."""
    network.shortage(state.tree, 7 * state.big)
    state.big *= 8


def duals(state: RoundState, unit: float) -> Potentials:
    """Return the current potentials; between rounds, prices of nodes are 0."""
    if not state.is_open:
        return state.row, state.lam
    n = state.row.size
    y = (state.node_prices - np.median(state.node_prices)) * unit
    return state.row - y[:n], state.lam + y[n:-1]


def basic_arcs(state: RoundState) -> tuple[Nodes, Vector]:
    """Return the basic arcs that carry flow, without artificial ones, and their flow."""
    preds = state.links.reshape(6, -1)[1]
    used = np.flatnonzero((preds[:-1] != network.ARTIFICIAL) & (state.flow[:-1] > 0))
    return preds[used], state.flow[used]


def basic_flow(state: RoundState) -> tuple[Index, Index, Vector]:
    """Return rows, columns and flow of the basic arcs that carry flow."""
    arcs, flow = basic_arcs(state)
    i, j = state.sources[arcs].astype(np.int64), state.targets[arcs].astype(np.int64)
    return i, j - state.row.size, flow
