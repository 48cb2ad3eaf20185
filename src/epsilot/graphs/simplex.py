"""Network simplex on the edges of a graph, with a price on artificial arcs that rises."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from .._types import Array, Index, Vector
from ..kernels import network
from ..problems.work import Work
from ..solvers.arc_simplex import Nodes, are_links
from ..solvers.base import ResizableState, Signal
from ..solvers.method_info import MethodInfo
from ..solvers.network_simplex import NetworkSimplex
from .objective import MAX_MISSING_MASS, Flow, check_cut
from .problem import FlowProblem


@dataclass(frozen=True, kw_only=True)
class FlowSimplexTuning:
    """Tuning parameters of flows on graphs."""

    pivots_per_step: int = 4000  # so that limits are checked in time
    block: float = 4.0  # edges priced together, in units of the root of their number
    tolerance: float = 1e-14  # share of the largest cost below which a reduced cost is negative
    artificial_price: float = 4.0  # first price of artificial arcs, in units of the largest cost
    price_growth: float = 8.0
    max_artificial_price: float = 1e3  # in units of the largest cost times the number of nodes


TUNING = FlowSimplexTuning()


class FlowNetwork(NamedTuple):
    """A problem as nodes and arcs without capacities: the one target of a run.

    An edge that may be full gets a node of its own, which both its ends send to: its source the
    flow, at the edge's cost, and its target the room that is left.
    """

    problem: FlowProblem
    sources: Nodes
    targets: Nodes
    costs: Vector
    supply: Vector  # of all nodes
    full: Index  # the edges that may be full
    eta: float = 0.0
    level: float = 1.0

    @classmethod
    def of(cls, problem: FlowProblem) -> FlowNetwork:
        """Return the network of a problem."""
        edges = problem.edges
        full = np.flatnonzero(edges.capacities < math.inf)
        nodes = np.arange(edges.n_nodes, edges.n_nodes + full.size)
        targets = edges.targets.copy()
        targets[full] = nodes
        rooms = edges.capacities[full]
        supply = np.concatenate([problem.supply, -rooms])
        np.add.at(supply, edges.targets[full], rooms)
        sources = np.concatenate([edges.sources, edges.targets[full]]).astype(np.uint32)
        ends = np.concatenate([targets, nodes]).astype(np.uint32)
        costs = np.concatenate([edges.costs, np.zeros(full.size)])
        return cls(problem, sources, ends, costs, supply, full)


@dataclass(kw_only=True)
class FlowState(ResizableState):
    """A basis of the network: see kernels.network."""

    links: Nodes
    is_up: NDArray[np.bool_]
    flow: Vector
    node_prices: Vector
    at: int  # arc at which pricing continues
    big: float  # price of artificial arcs
    is_done: bool

    @property
    def tree(self) -> tuple[Array, ...]:
        """The basis as kernels take it."""
        return *self.links.reshape(6, -1), self.is_up, self.flow, self.node_prices

    def fits(self, target: FlowNetwork) -> bool:
        """Tell whether a saved basis has consistent sizes and indices."""
        n, n_arcs = target.supply.size + 1, target.sources.size
        sizes = self.is_up.size, self.flow.size, self.node_prices.size, self.links.size
        is_inside = sizes == (n, n, n, 6 * n) and 0 <= self.at <= n_arcs
        return is_inside and are_links(self.links, n_arcs)

    @property
    def missing(self) -> float:
        """Mass that artificial arcs bring."""
        return float(network.shortage(self.tree, 0.0))

    def flows(self, n_arcs: int) -> Vector:
        """Return the flow of every arc."""
        preds, flow = self.tree[1][:-1], self.flow[:-1]
        used = np.flatnonzero(preds != network.ARTIFICIAL)
        out = np.zeros(n_arcs)
        out[preds[used]] = flow[used]
        return out

    def reached(self, target: FlowNetwork) -> NDArray[np.bool_]:
        """Tell which nodes the surplus that goes to the root can reach by other ways.

        No arc leaves these nodes, and no flow enters them.
        """
        n = target.supply.size
        preds, is_up, flow = self.tree[1][:-1], self.is_up[:-1], self.flow[:-1]
        least = MAX_MISSING_MASS / n
        stuck = np.flatnonzero((preds == network.ARTIFICIAL) & is_up & (flow > least))
        back = self.flows(target.sources.size) > least
        i = np.concatenate([target.sources, target.targets[back], np.full(stuck.size, n)])
        j = np.concatenate([target.targets, target.sources[back], stuck])
        ways = sparse.csr_array((np.ones(i.size), (i, j)), shape=(n + 1, n + 1))
        is_reached = np.zeros(n + 1, dtype=np.bool_)
        is_reached[csgraph.breadth_first_order(ways, n, return_predecessors=False)] = True
        return is_reached[:-1]


@dataclass(frozen=True)
class FlowSimplex:
    """Pivot to an optimal flow, or to a cut that proves that there is none."""

    about: ClassVar[MethodInfo] = NetworkSimplex.about
    is_atomic: ClassVar[bool] = True
    patience: ClassVar[int] = 1_000_000_000

    def init(
        self, target: FlowNetwork, rng: Generator, potentials: Any = None
    ) -> tuple[FlowState, Work]:
        """Start from a tree of the cheapest arcs."""
        size = target.supply.size + 1
        state = FlowState(
            links=np.zeros(6 * size, dtype=np.uint32),
            is_up=np.zeros(size, dtype=np.bool_),
            flow=np.zeros(size),
            node_prices=np.zeros(size),
            at=0,
            big=TUNING.artificial_price,
            is_done=False,
        )
        order = np.argsort(target.costs, kind="stable")
        arcs = target.sources, target.targets, target.costs
        network.crash(*arcs, order, target.supply, state.big, state.tree)
        return state, Work.of(arc_tested=order.size)

    def step(self, target: FlowNetwork, state: FlowState, rng: Generator) -> Work:
        """Pivot; at an optimal basis that lacks mass, prove a cut or raise the price."""
        block = math.ceil(TUNING.block * math.sqrt(target.sources.size))
        block = max(network.MIN_PRICED_ARCS, block)
        done, state.at, priced, walked = network.pivots(
            target.sources,
            target.targets,
            target.costs,
            state.tree,
            state.at,
            TUNING.tolerance,
            TUNING.pivots_per_step,
            block,
            block,
        )
        if done < TUNING.pivots_per_step:
            n = target.problem.edges.n_nodes
            state.is_done = state.missing <= MAX_MISSING_MASS
            if not state.is_done:
                check_cut(target.problem, state.reached(target)[:n])
                state.is_done = state.big > TUNING.max_artificial_price * n
            if not state.is_done:
                network.shortage(state.tree, (TUNING.price_growth - 1) * state.big)
                state.big *= TUNING.price_growth
        return Work.of(arc_tested=priced, vector=walked)

    def signal(self, target: FlowNetwork, state: FlowState) -> Signal:
        """Request a certificate at the end."""
        return Signal(is_finished=state.is_done, wants_certificate=state.is_done)

    def candidates(self, target: FlowNetwork, state: FlowState) -> list[tuple[Flow, Vector]]:
        """Return the flow of the basis, within capacities, and its potentials."""
        edges, full = target.problem.edges, target.full
        values = state.flows(target.sources.size)[: edges.costs.size]
        values[full] = np.minimum(values[full], edges.capacities[full])
        return [(Flow(values, state.missing), *self.potentials(target, state))]

    def potentials(self, target: FlowNetwork, state: FlowState) -> tuple[Vector]:
        """Return the potentials of the basis, free of the pivots' round-off."""
        tree = (*state.tree[:-1], state.node_prices.copy())
        network.refresh(target.costs, tree)
        potentials = -tree[-1][: target.problem.edges.n_nodes]
        return (potentials - np.median(potentials),)
