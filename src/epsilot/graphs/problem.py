"""Minimum-cost flow problems: the edges of a graph and the surplus of its nodes, checked."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._types import Index, Vector
from ..arguments import check_positive, numeric, plain
from ..errors import InvalidProblem
from ..problems.problem import check_size
from ..wording import named, shown


class Edges(NamedTuple):
    """The directed edges of a graph."""

    n_nodes: int
    sources: Index
    targets: Index
    costs: Vector
    capacities: Vector  # inf: none


@dataclass(frozen=True)
class FlowProblem:
    """A flow of mass 1 through edges, with costs divided by a power of two."""

    edges: Edges
    supply: Vector  # surplus of each node, of positive total 1
    nodes: tuple[Any, ...]  # labels
    mass: float
    unit: float  # the user's cost of an internal cost of 1, a power of two

    def digest(self) -> str:
        """Return a hash of edges and masses."""
        h = hashlib.sha256(np.array([self.mass, self.unit]).tobytes() + self.supply.tobytes())
        for x in self.edges[1:]:
            h.update(x.tobytes())
        return h.hexdigest()[:16]


def make_flow_problem(
    G: Any, a: Any, b: Any, weight: str, capacity: Any, directed: bool | None, normalize: bool
) -> FlowProblem:
    """Validate a graph and masses, and convert them to internal units."""
    edges, nodes = _read_graph(G, weight, capacity, directed)
    supply, mass = _supplies(a, b, nodes, normalize)
    size = float(edges.costs.max(initial=0.0))
    if mass > 0:
        check_size(size, mass, "the moved mass is")
    unit = math.ldexp(1.0, math.frexp(size or 1.0)[1])
    edges = edges._replace(costs=edges.costs / unit, capacities=_capacities(edges, mass))
    return FlowProblem(edges, supply, nodes, mass, unit)


def _capacities(edges: Edges, mass: float) -> Vector:
    """Return capacities for a mass of 1. Costs are at least 0, so some optimal flow has no cycle.

    Pivots on far larger capacities would leave their round-off in the flow.
    """
    limits = edges.capacities
    with np.errstate(over="ignore"):
        scaled = limits / mass if mass > 0 else limits
    # No edge of an optimal flow carries more than twice the mass.
    return np.where(np.isinf(limits), math.inf, np.minimum(scaled, 2.0))


# -- edges -----------------------------------------------------------------------------------------


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


# -- masses ----------------------------------------------------------------------------------------


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
    elif abs(totals[0] - totals[1]) > 1e-9 * max(totals):  # more than round-off
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
