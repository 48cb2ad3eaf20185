r"""Solve transport along the edges of a graph: a minimum-cost flow, without a cost of all pairs.

.. math:: \min_{0 \le x \le u} \sum_e c_e x_e \quad \text{outflow}(v) - \text{inflow}(v) = a_v - b_v

Its dual is :math:`\max \sum_v (a_v - b_v) π_v - \sum_e u_e \max(0, π_{s(e)} - π_{t(e)} - c_e)` over
one potential per node. Any potentials prove a bound. With costs of at least 0, some optimal flow
has no cycle, so that no edge carries more than the mass S that moves: edges without a capacity have
the capacity S in this bound.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse import csgraph

from .._types import Array, Index, Vector
from ..arguments import check_choice, check_flag, check_positive, numeric, plain
from ..engine.clock import Clock, started
from ..engine.execute import report_limit
from ..engine.result import Status
from ..errors import (
    CertificateError,
    ConvergenceWarning,
    Infeasible,
    InvalidProblem,
    NotConverged,
)
from ..kernels import network
from ..kernels.compile_watch import solver_clock
from ..kernels.proof import FEASIBLE, ROUND_OFF
from ..kernels.vectors import dot
from ..problems.certificate import BUG_NOTE
from ..problems.rounding import LEAST_EXCESS
from ..wording import named, shown


@dataclass(frozen=True, kw_only=True)
class GraphTuning:
    """Tuning parameters of flows on graphs."""

    pivots_per_step: int = 4000  # so that limits are checked in time
    block: float = 4.0  # edges priced together, in units of the root of their number
    tolerance: float = 1e-14  # share of the largest cost below which a reduced cost is negative
    artificial_price: float = 4.0  # first price of artificial arcs, in units of the largest cost
    price_growth: float = 8.0
    max_artificial_price: float = 1e3  # in units of the largest cost times the number of nodes
    sweeps: int = 100  # over all edges, to make potentials feasible to the last bit
    settled_mass: float = 1e-13  # share of the mass that artificial arcs may keep
    mass_tolerance: float = 1e-9  # relative difference of totals that is round-off


TUNING = GraphTuning()


@dataclass(frozen=True)
class GraphResult:
    """A feasible flow on a graph with a certified optimality gap.

    ``value - lower_bound = gap`` is proved for this run. If a limit came before the first feasible
    flow, ``value`` and ``gap`` are inf and ``flows`` lack mass.
    """

    flows: sparse.csr_array  # flow of every edge, in the user's units
    potentials: Vector  # one per node: mass at a node is worth so much
    value: float  # cost of the flows
    lower_bound: float
    gap: float
    target: float  # gap that was asked for
    status: Status
    seconds: float
    n_iter: int  # pivots
    nodes: tuple[Any, ...]  # labels of the nodes, in order
    method: str = "network_simplex"
    choice: None = None  # no other method was considered

    @property
    def converged(self) -> bool:
        """Whether the gap is within the target."""
        return self.status is Status.CERTIFIED

    def edge_flows(self) -> dict[tuple[Any, Any], float]:
        """Return the flow of every edge that carries some, by the labels of its nodes."""
        flows = self.flows.tocoo()
        found = zip(flows.row.tolist(), flows.col.tolist(), flows.data.tolist(), strict=True)
        return {(self.nodes[i], self.nodes[j]): flow for i, j, flow in found}

    def __repr__(self) -> str:
        """Return the shape, the bounds and the end of the run."""
        return (
            f"<epsilot.GraphResult: {len(self.nodes)} nodes, {self.flows.nnz} edges with flow, "
            f"{self.lower_bound:.6g} <= optimum <= {self.value:.6g}, {self.status}>"
        )


class Edges(NamedTuple):
    """The directed edges of a graph."""

    n_nodes: int
    sources: Index
    targets: Index
    costs: Vector
    capacities: Vector  # inf: none


def solve_graph(
    G: Any,
    a: ArrayLike | Mapping[Any, float],
    b: ArrayLike | Mapping[Any, float],
    *,
    weight: str = "weight",
    capacity: Any = None,
    directed: bool | None = None,
    normalize: bool = False,
    rtol: float = 1e-9,
    max_seconds: float | None = None,
    on_limit: str = "warn",
) -> GraphResult:
    """Move masses along the edges of a graph at least cost: a minimum-cost flow.

    Parameters
    ----------
    G : networkx graph, or (n, n) scipy.sparse array
        Edges and their costs per unit of mass, at least 0. Stored entries of an array are edges
        from row to column, explicit zeros included.
    a, b : (n,) array-like, or mapping from nodes to masses
        Masses at the nodes before and after, of equal totals. Nodes of a networkx graph have the
        order of ``list(G)``; nodes that a mapping leaves out have none.
    weight : str
        Edge attribute of networkx with the cost; edges without it cost 1.
    capacity : str, number or (n, n) sparse array, optional
        Largest flow of an edge in one direction: an edge attribute of networkx (edges without it
        have no limit), one number for all edges, or an array with an entry for every edge of G.
    directed : bool, optional
        Whether edges lead in one direction only. By default that of a networkx graph; True for an
        array.
    normalize : bool
        Rescale both masses to total 1.
    rtol : float
        Requested gap, relative to the lower bound. The method is exact; it stops at an optimum.
    max_seconds : float, optional
        Limit of time. Ctrl-C ends a run too.
    on_limit : {"warn", "raise", "ignore"}
        What to do if a limit comes first.

    Returns
    -------
    GraphResult
        With ``flows`` (sparse), ``potentials`` (one per node), ``value``, ``lower_bound``, ``gap``.

    Raises
    ------
    Infeasible
        If the edges cannot carry the mass. ``sources`` are the nodes of a cut, ``targets`` the
        nodes that its full edges lead to, and ``excess`` is the mass that cannot leave the cut.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> from scipy.sparse import csr_array
    >>> G = csr_array(np.array([[0, 1, 5], [0, 0, 1], [0, 0, 0]]))
    >>> epsilot.solve_graph(G, [1, 0, 0], [0, 0, 1]).value
    2.0
    """
    check_flag("directed", directed)
    check_flag("normalize", normalize)
    check_choice("on_limit", on_limit, ("warn", "raise", "ignore"))
    rtol = check_positive("rtol", rtol)
    if max_seconds is not None:
        check_positive("max_seconds", max_seconds)
    with started(max_seconds) as clock:
        edges, nodes = _read_graph(G, weight, capacity, directed)
        supply, mass = _supplies(a, b, nodes, normalize)
        found = _solve(edges, nodes, supply, mass, rtol, clock)
    if found.value == math.inf and on_limit != "ignore":
        message = f"{found.status}. No feasible flow was found yet; the lower bound holds."
        if on_limit == "raise":
            raise NotConverged(message, found)
        warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return found
    report_limit(found, on_limit)
    return found


# -- input -----------------------------------------------------------------------------------------


def _read_graph(
    G: Any, weight: str, capacity: Any, directed: bool | None
) -> tuple[Edges, tuple[Any, ...]]:
    """Return the directed edges of a graph and the labels of its nodes."""
    if hasattr(G, "edges") and hasattr(G, "is_directed"):
        edges, nodes = _of_networkx(G, weight, capacity)
        directed = bool(G.is_directed()) if directed is None else directed
    elif hasattr(G, "tocoo"):
        edges = _of_array(G, capacity)
        nodes = tuple(range(edges.n_nodes))
    else:
        raise InvalidProblem(
            f"G is of type {type(G).__name__}; it must be a networkx graph, or a scipy.sparse "
            "array of edge costs."
        )
    if len(nodes) == 0:
        raise InvalidProblem("G has no nodes; it must have at least one.")
    for x, name, why in (
        (edges.costs, "cost", "costs must be finite and at least 0"),
        (edges.capacities, "capacity", "capacities must be at least 0 (inf: no limit)"),
    ):
        bad = ~(x >= 0) | (np.isinf(x) if name == "cost" else False)
        if bad.any():
            e = int(np.argmax(bad))
            u, v = nodes[edges.sources[e]], nodes[edges.targets[e]]
            raise InvalidProblem(
                f"the edge from {named(str(u))} to {named(str(v))} has the {name} {x[e]:.6g}; "
                f"{why}."
            )
    if directed is False:
        i, j, costs, capacities = edges[1:]
        edges = Edges(
            edges.n_nodes,
            np.concatenate([i, j]),
            np.concatenate([j, i]),
            np.tile(costs, 2),
            np.tile(capacities, 2),
        )
    kept = edges.sources != edges.targets  # no flow of least cost uses a loop
    return Edges(edges.n_nodes, *(x[kept] for x in edges[1:])), nodes


def _of_networkx(G: Any, weight: str, capacity: Any) -> tuple[Edges, tuple[Any, ...]]:
    """Return the edges of a networkx graph, with a cost of 1 where the attribute is missing."""
    nodes = tuple(G)
    place = {node: k for k, node in enumerate(nodes)}
    if capacity is not None and not isinstance(capacity, str | int | float):
        raise InvalidProblem(
            f"capacity is of type {type(capacity).__name__}; for a networkx graph it must be the "
            "name of an edge attribute, or a number."
        )
    listed = list(G.edges(data=True))
    i, j = (np.array([place[edge[k]] for edge in listed], dtype=np.int64) for k in (0, 1))
    costs = numeric([edge[2].get(weight, 1.0) for edge in listed], f"edge attribute {weight!r}")
    if isinstance(capacity, str):
        limits = [edge[2].get(capacity, math.inf) for edge in listed]
        capacities = numeric(limits, f"edge attribute {capacity!r}")
    else:
        capacities = np.full(i.size, math.inf if capacity is None else float(capacity))
    return Edges(len(nodes), i, j, costs, capacities), nodes


def _of_array(G: Any, capacity: Any) -> Edges:
    """Return the stored entries of a square array as edges."""
    coo = G.tocoo()
    if coo.ndim != 2 or coo.shape[0] != coo.shape[1]:
        raise InvalidProblem(
            f"G has shape {coo.shape}; the costs of edges must be a square array, one row and one "
            "column per node."
        )
    i, j = coo.row.astype(np.int64), coo.col.astype(np.int64)
    costs = numeric(coo.data, "G")
    if capacity is None or not hasattr(capacity, "tocsr"):
        limit = math.inf if capacity is None else check_positive("capacity", plain(capacity))
        return Edges(coo.shape[0], i, j, costs, np.full(i.size, limit))
    limits = capacity.tocsr()
    if limits.shape != coo.shape:
        raise InvalidProblem(
            f"capacity has shape {limits.shape} and G {coo.shape}; both must have one row and one "
            "column per node."
        )
    keys, stored = i * coo.shape[0] + j, limits.tocoo()
    known = stored.row.astype(np.int64) * coo.shape[0] + stored.col
    order = np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known[order], keys), max(known.size - 1, 0))
    if keys.size and (known.size == 0 or not (known[order][at] == keys).all()):
        raise InvalidProblem(
            "capacity lacks an entry for some edges of G; store one for every edge (inf: no limit)."
        )
    return Edges(coo.shape[0], i, j, costs, numeric(stored.data, "capacity")[order][at])


def _supplies(a: Any, b: Any, nodes: tuple[Any, ...], normalize: bool) -> tuple[Vector, float]:
    """Return the surplus of each node, of total 0 and positive total 1, and the mass it stands for.

    The largest surplus takes the rounding of the totals.
    """
    p, q = (_masses(x, name, nodes) for x, name in ((a, "a"), (b, "b")))
    totals = float(p.sum()), float(q.sum())
    if min(totals) <= 0:
        raise InvalidProblem(
            f"a sums to {totals[0]:.6g} and b to {totals[1]:.6g}; both must have mass."
        )
    if normalize:
        p, q = p / totals[0], q / totals[1]
    elif abs(totals[0] - totals[1]) > TUNING.mass_tolerance * max(totals):
        raise InvalidProblem(
            f"a sums to {totals[0]:.10g} and b to {totals[1]:.10g}; totals must be equal (pass "
            "normalize=True to rescale both to 1)."
        )
    supply = p - q
    mass = float(np.maximum(supply, 0).sum())
    if mass > 0:
        supply = supply / mass
        supply[np.argmax(np.abs(supply))] -= supply.sum()
    return supply, mass


def _masses(x: Any, name: str, nodes: tuple[Any, ...]) -> Vector:
    """Return checked masses of all nodes."""
    if isinstance(x, Mapping):
        strangers = [node for node in x if node not in set(nodes)]
        if strangers:
            raise InvalidProblem(
                f"{name} holds the node {shown(strangers[0])}, which G does not have."
            )
        masses = numeric([x.get(node, 0.0) for node in nodes], name)
    else:
        masses = numeric(x, name)
    if masses.shape != (len(nodes),):
        raise InvalidProblem(
            f"{name} has shape {masses.shape}; it must hold one mass for each of the {len(nodes)} "
            "nodes of G."
        )
    if not (masses >= 0).all() or not np.isfinite(masses).all():
        k = int(np.argmin((masses >= 0) & np.isfinite(masses)))
        raise InvalidProblem(
            f"{name} has the mass {masses[k]:.6g} at node {named(str(nodes[k]))}; masses must be "
            "finite and at least 0."
        )
    return masses


# -- solution --------------------------------------------------------------------------------------


@dataclass
class Network:
    """A simplex on nodes and uncapacitated arcs.

    An edge that may be full gets a node of its own, which both its ends send to: its source the
    flow, at the edge's cost, and its target the room that is left.
    """

    sources: NDArray[np.uint32]
    targets: NDArray[np.uint32]
    costs: Vector  # in units of the largest
    tree: tuple[Array, ...]
    big: float
    at: int = 0
    n_pivots: int = 0

    def pivot(self) -> bool:
        """Pivot; tell whether the basis is optimal for the price of artificial arcs."""
        block = max(network.MIN_PRICED_ARCS, math.ceil(TUNING.block * math.sqrt(self.sources.size)))
        done, self.at, _, _ = network.pivots(
            self.sources,
            self.targets,
            self.costs,
            self.tree,
            self.at,
            TUNING.tolerance,
            TUNING.pivots_per_step,
            block,
            block,
        )
        self.n_pivots += int(done)
        return bool(done < TUNING.pivots_per_step)

    @property
    def shortage(self) -> float:
        """Mass that artificial arcs bring."""
        return float(network.shortage(self.tree, 0.0))

    def raise_price(self) -> None:
        """Raise the price of artificial arcs."""
        network.shortage(self.tree, (TUNING.price_growth - 1) * self.big)
        self.big *= TUNING.price_growth

    def flows(self) -> Vector:
        """Return the flow of every arc."""
        preds, flow = self.tree[1][:-1], self.tree[7][:-1]
        used = np.flatnonzero(preds != network.ARTIFICIAL)
        out = np.zeros(self.sources.size)
        out[preds[used]] = flow[used]
        return out

    def reached(self) -> NDArray[np.bool_]:
        """Tell which nodes the surplus that goes to the root can reach by other ways.

        No arc leaves these nodes, and no flow enters them.
        """
        n = self.tree[0].size - 1
        preds, is_up, flow = self.tree[1][:-1], self.tree[6][:-1], self.tree[7][:-1]
        least = TUNING.settled_mass / n
        stuck = np.flatnonzero((preds == network.ARTIFICIAL) & is_up & (flow > least))
        back = self.flows() > least
        i = np.concatenate([self.sources, self.targets[back], np.full(stuck.size, n)])
        j = np.concatenate([self.targets, self.sources[back], stuck])
        ways = sparse.csr_array((np.ones(i.size), (i, j)), shape=(n + 1, n + 1))
        is_reached = np.zeros(n + 1, dtype=np.bool_)
        is_reached[csgraph.breadth_first_order(ways, n, return_predecessors=False)] = True
        return is_reached[:-1]


def _network(edges: Edges, supply: Vector, unit: float) -> tuple[Network, Index]:
    """Return the simplex of a problem, and the edges that may be full."""
    full = np.flatnonzero(edges.capacities < math.inf)
    n, k = edges.n_nodes, full.size
    nodes = np.arange(n, n + k)
    targets = edges.targets.copy()
    targets[full] = nodes
    rooms = edges.capacities[full]
    supply = np.concatenate([supply, -rooms])
    np.add.at(supply, edges.targets[full], rooms)
    sources = np.concatenate([edges.sources, edges.targets[full]]).astype(np.uint32)
    ends = np.concatenate([targets, nodes]).astype(np.uint32)
    costs = np.concatenate([edges.costs / unit, np.zeros(k)])
    size = n + k + 1
    links = np.zeros((6, size), dtype=np.uint32)
    tree = (*links, np.zeros(size, dtype=np.bool_), np.zeros(size), np.zeros(size))
    order = np.argsort(costs, kind="stable")
    big = TUNING.artificial_price
    network.crash(sources, ends, costs, order, supply, big, tree)
    return Network(sources, ends, costs, tree, big), full


def _solve(
    edges: Edges,
    nodes: tuple[Any, ...],
    supply: Vector,
    mass: float,
    rtol: float,
    clock: Clock,
) -> GraphResult:
    """Pivot to an optimum, a cut or a limit, and prove what was found."""
    unit = math.ldexp(1.0, math.frexp(float(edges.costs.max(initial=0.0)) or 1.0)[1])
    if mass > 0:
        edges = edges._replace(capacities=edges.capacities / mass)
    began = solver_clock()
    simplex, full = _network(edges, supply, unit)
    status = None
    while status is None:
        if simplex.pivot():
            if simplex.shortage <= TUNING.settled_mass:
                break
            _check_cut(edges, supply, mass, simplex.reached()[: edges.n_nodes])
            if simplex.big > TUNING.max_artificial_price * edges.n_nodes:
                break
            simplex.raise_price()
        status = clock.ending()
    flow = _flow(simplex, edges, full)
    potentials = _potentials(simplex, edges, unit)
    lower = mass * lower_bound(edges, supply, potentials)
    value = mass * dot(edges.costs, flow)
    if simplex.shortage > TUNING.settled_mass:
        value = math.inf
    else:
        check_flow(edges, supply, flow)
    size = unit * mass
    if lower > value + ROUND_OFF * size * edges.n_nodes:
        raise CertificateError(f"the bound {lower!r} exceeds the cost {value!r}. {BUG_NOTE}")
    lower = min(lower, value)
    target = rtol * max(abs(lower), ROUND_OFF / rtol * size)
    if value - lower <= target:
        status = Status.CERTIFIED
    used = np.flatnonzero(flow > 0)
    shape = edges.n_nodes, edges.n_nodes
    entries = mass * flow[used], (edges.sources[used], edges.targets[used])
    return GraphResult(
        flows=sparse.csr_array(entries, shape=shape),
        potentials=potentials,
        value=value,
        lower_bound=lower,
        gap=value - lower,
        target=target,
        status=status or Status.FINISHED,
        seconds=solver_clock() - began,
        n_iter=simplex.n_pivots,
        nodes=nodes,
    )


def _potentials(simplex: Network, edges: Edges, unit: float) -> Vector:
    """Return the potentials of the basis, lowered to the costs of edges without a capacity."""
    network.refresh(simplex.costs, simplex.tree)
    potentials = -unit * simplex.tree[8][: edges.n_nodes]
    potentials -= np.median(potentials)
    free = np.flatnonzero(edges.capacities == math.inf)
    arcs = edges.sources[free], edges.targets[free], edges.costs[free]
    network.lower_to_costs(*arcs, potentials, TUNING.sweeps)
    return potentials


def _flow(simplex: Network, edges: Edges, full: Index) -> Vector:
    """Return the flow of every edge, within its capacity."""
    flow = simplex.flows()[: edges.costs.size]
    flow[full] = np.minimum(flow[full], edges.capacities[full])
    return flow


def surplus(edges: Edges, flow: Vector) -> Vector:
    """Return outflow minus inflow of every node."""
    out = np.bincount(edges.sources, flow, edges.n_nodes)
    into = np.bincount(edges.targets, flow, edges.n_nodes)
    return np.asarray(out - into)


def check_flow(edges: Edges, supply: Vector, flow: Vector) -> None:
    """Raise unless a flow of mass 1 is nonnegative, within capacities and conserves mass."""
    error = float(np.abs(surplus(edges, flow) - supply).sum())
    if not error <= FEASIBLE:
        raise CertificateError(f"the flow misses the masses of nodes by {error:.3g}. {BUG_NOTE}")
    if not (flow >= 0).all() or not (flow <= edges.capacities).all():
        raise CertificateError(f"a flow is negative or above its capacity. {BUG_NOTE}")


def lower_bound(edges: Edges, supply: Vector, potentials: Vector) -> float:
    """Return the bound that any potentials prove for mass 1, less its rounding."""
    x, y = potentials[edges.sources], potentials[edges.targets]
    gains = x - y
    part = gains - x
    error = (x - (gains - part)) - (y + part)  # gains + error is exact
    over = (gains - edges.costs) + error
    is_over = over > 0
    rounding = 4 * float(np.finfo(float).eps)
    paid = dot(np.minimum(edges.capacities[is_over], 1.0), over[is_over]) * (1 + rounding)
    worth = dot(supply, potentials) - rounding * dot(np.abs(supply), np.abs(potentials))
    return float(worth) - float(paid)


def _check_cut(edges: Edges, supply: Vector, mass: float, is_inside: NDArray[np.bool_]) -> None:
    """Raise Infeasible if nodes have more surplus than the edges that leave them can take."""
    leaving = is_inside[edges.sources] & ~is_inside[edges.targets]
    room = float(edges.capacities[leaving].sum())
    excess = float(supply[is_inside].sum()) - room
    if excess > LEAST_EXCESS:
        _raise_infeasible(mass, is_inside, np.unique(edges.targets[leaving]), room, excess)


def _raise_infeasible(
    mass: float, is_inside: NDArray[np.bool_], targets: Index, room: float, excess: float
) -> NoReturn:
    sources = np.flatnonzero(is_inside)
    raise Infeasible(
        f"no flow exists: {sources.size} of the nodes have {mass * (room + excess):.6g} more mass "
        f"than they need, and the edges that leave them take only {mass * room:.6g} (add edges, or "
        "raise capacities).",
        sources,
        targets,
        mass * excess,
    )
