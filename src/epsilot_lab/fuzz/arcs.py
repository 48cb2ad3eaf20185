"""Check costs on some pairs only: forbidden and sparse costs, near points, and flows on graphs.

A problem without a plan is refused with a cut, which is checked like an answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import networkx
import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

import epsilot

from .kinds import (
    ORDINARY,
    SAFETY_SECONDS,
    at_scale,
    at_total,
    draw_accuracy,
    draw_masses,
    draw_prices,
    is_near,
    judged,
)
from .problems import COSTS, METRICS, Array, CallRecord, CaseOutcome, Rng, ask, number, pick
from .proofs import ROUND_OFF, TINY, FuzzKind, largest_cost

#: Relative size of an excess of mass that a cut may claim beyond what its numbers say.
CUT_ROOM = 1e-12
#: Methods that serve costs on arcs.
EXACT = ("auto", "network_simplex")


class ArcCost(NamedTuple):
    """A cost as it is given to the library, and the matrix it means; inf forbids a pair."""

    given: Any
    matrix: Array
    words: str


def arcs(rng: Rng) -> CaseOutcome:
    """Draw a problem on some pairs, solve it, and check its answer or its cut."""
    return (near if rng.random() < 0.25 else forbidden)(rng)


def forbidden(rng: Rng) -> CaseOutcome:
    """Draw costs of which some are forbidden, in one of the forms that say so."""
    n, m = (int(k) for k in rng.integers(1, int(rng.choice([4, 9, 25])), 2))
    cost = draw_cost(rng, n, m)
    a, b, words = draw_arc_weights(rng, cost.matrix)
    kind = draw_kind(rng, cost.matrix, a, b)
    accuracy = draw_accuracy(rng, kind, finite(cost.matrix), a, b)
    method = draw_method(rng, kind) if np.isinf(cost.matrix).any() else "auto"
    limits: dict[str, Any] = {"max_seconds": SAFETY_SECONDS, "on_limit": "ignore"}
    if kind.reg is not None:
        limits["max_iter"] = int(10 ** rng.uniform(0, 3))
    keywords = {**kind.keywords, **accuracy, "method": method}
    label = f"{n} x {m} {cost.words}, {words}; {keywords} {limits}"
    outcome = CaseOutcome(f"{kind.label} on arcs", method, label=label)
    answer = ask(epsilot.solve, cost.given, a, b, **keywords, **limits)
    return judged_on_arcs(outcome, answer, kind, cost.matrix, a, b, accuracy, limits)


def near(rng: Rng) -> CaseOutcome:
    """Draw points of which only near pairs are allowed."""
    n, m = (int(k) for k in rng.integers(1, int(rng.choice([4, 12, 40])), 2))
    d = int(rng.integers(1, 4))
    metric = pick(rng, {"sqeuclidean": 3, "euclidean": 3, "cityblock": 2, "chebyshev": 1})
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    scale = 1.0 if rng.random() < 0.6 else float(10 ** rng.uniform(-60, 60))
    distances = cdist(X, Y, "euclidean" if metric == "sqeuclidean" else metric)
    C = cdist(X, Y, metric)
    if rng.random() < 0.5:
        # Halfway between two distances, where rounding decides nothing.
        sizes = np.unique(distances)
        k = int(rng.integers(sizes.size))
        radius = sizes[k] if k + 1 == sizes.size else sizes[k : k + 2].mean()
        radius *= 1.0 if k + 1 < sizes.size else 1.5
        chosen: dict[str, Any] = {"max_distance": scale * float(radius)}
        is_allowed = distances <= radius
    else:
        k = int(rng.integers(1, max(n, m) + 1))
        chosen = {"k_neighbors": k}
        ranks = [np.argsort(np.argsort(C, axis=axis), axis=axis) for axis in (0, 1)]
        is_allowed = (ranks[0] < k) | (ranks[1] < k)
    C = np.where(
        is_allowed,
        METRICS[metric](scale * X, scale * Y) if metric in METRICS else scale * C,
        np.inf,
    )
    a, b, words = draw_arc_weights(rng, C)
    accuracy = {} if rng.random() < 0.5 else {"rtol": float(10 ** rng.uniform(-9, 0))}
    limits = {"max_seconds": SAFETY_SECONDS, "on_limit": "ignore"}
    label = f"{metric} {n} x {m} in {d}-d times {scale:.0e}, {words}; {chosen} {accuracy}"
    outcome = CaseOutcome("near pairs", label=label)
    answer = ask(
        epsilot.solve_sample, scale * X, scale * Y, a, b, metric=metric, **chosen, **accuracy,
        **limits,
    )  # fmt: skip
    # The library's costs may differ from ours in the last place.
    C = C + np.asarray(4e-15 * np.max(C, where=np.isfinite(C), initial=0.0))
    return judged_on_arcs(outcome, answer, FuzzKind(), C, a, b, accuracy, limits)


def judged_on_arcs(
    outcome: CaseOutcome,
    answer: CallRecord,
    kind: FuzzKind,
    C: Array,
    a: Array,
    b: Array,
    accuracy: dict[str, float],
    limits: dict[str, Any],
) -> CaseOutcome:
    """Add the defects of an answer, or of the cut of a refusal."""
    if isinstance(answer.error, epsilot.Infeasible):
        outcome.ending = "infeasible"
        outcome.blame(*answer.defects)
        return outcome.blame(*cut_defects(answer.error, kind, C, a, b))
    may_refuse = not np.isfinite(C).any() or kind.name == "kl"
    may_refuse |= kind.reg is not None and kind.name != "balanced"
    may_refuse |= kind.name == "tv" and len(kind.finite_prices) < sum(
        np.size(price) for price in kind.prices
    )
    judged(outcome, answer, kind, C, a, b, accuracy, limits, may_refuse)
    if answer.error is None and (answer.value.plan[~np.isfinite(C)] != 0).any():
        outcome.blame("the plan is positive on a forbidden pair")
    return outcome


def cut_defects(
    error: epsilot.Infeasible, kind: FuzzKind, C: Array, a: Array, b: Array
) -> Iterator[str]:
    """Yield what a cut does not prove: mass of its sources must have nowhere to go."""
    a, b = np.longdouble(a), np.longdouble(b)
    inside, reached = np.zeros(a.size, bool), np.zeros(b.size, bool)
    inside[np.asarray(error.sources, dtype=int)] = True
    reached[np.asarray(error.targets, dtype=int)] = True
    if np.isfinite(C[inside][:, ~reached]).any():
        yield "a cut leaves out a target that its sources reach"
    if kind.name == "partial":
        excess = np.longdouble(kind.mass) - a[~inside].sum() - b[reached].sum()
    elif kind.name == "balanced" or not kind.finite_prices:  # nothing may stay
        excess = a[inside].sum() - (b * (a.sum() / b.sum()))[reached].sum()
    else:
        yield f"a problem of kind {kind.name} has a plan, whatever is forbidden"
        return
    room = CUT_ROOM * (a.sum() + b.sum()) + TINY
    if not (excess > -room and abs(excess - np.longdouble(error.excess)) <= room + 1e-9 * excess):
        yield f"a cut claims the excess {error.excess!r}; it is {excess!s}"


# -- draws -----------------------------------------------------------------------------------------


def finite(C: Array) -> Array:
    """Return costs with forbidden pairs at no cost."""
    return np.asarray(np.where(np.isfinite(C), C, 0.0))


def draw_cost(rng: Rng, n: int, m: int) -> ArcCost:
    """Draw a cost with forbidden pairs, as an array with inf or masks, or as a sparse array."""
    family = str(rng.choice(list(COSTS)))
    C = COSTS[family](rng, n, m)
    sign = pick(rng, {"": 5, "negative": 0.5, "both signs": 1})
    C = -C if sign == "negative" else C - np.median(C) if sign else C
    C, scale = at_scale(rng, C)
    share = float(rng.choice([0.05, 0.3, 0.6, 0.9]))
    is_allowed = rng.random((n, m)) >= share
    if rng.random() < 0.7:  # each row and column has an arc
        is_allowed[np.arange(max(n, m)) % n, np.arange(max(n, m)) % m] = True
    matrix = np.where(is_allowed, C, np.inf)
    form = pick(rng, {"inf": 3, "masked": 1, "coo": 2, "csr": 2, "Sparse": 2})
    i, j = np.nonzero(is_allowed)
    order = rng.permutation(i.size)
    i, j = i[order], j[order]
    given: Any = {
        "inf": lambda: matrix.copy(),
        "masked": lambda: np.ma.masked_array(C, mask=~is_allowed),
        "coo": lambda: sparse.coo_array((C[i, j], (i, j)), shape=(n, m)),
        "csr": lambda: sparse.csr_matrix((C[i, j], (i, j)), shape=(n, m)),
        "Sparse": lambda: epsilot.Sparse(i, j, C[i, j], (n, m)),
    }[form]()
    words = f"{family} {sign} costs of {scale:.0e}, {i.size} allowed, {form}"
    return ArcCost(given, matrix, " ".join(words.split()))


def draw_arc_weights(rng: Rng, C: Array) -> tuple[Array, Array, str]:
    """Draw weights: those of a flow on the arcs, or any of equal totals."""
    n, m = C.shape
    is_allowed = np.isfinite(C)
    if is_allowed.any() and rng.random() < 0.6:
        flow = np.where(is_allowed, 10 ** rng.uniform(-rng.choice([1, 9]), 0, (n, m)), 0.0)
        flow *= rng.random((n, m)) < rng.choice([0.3, 1.0])
        flow = flow if flow.any() else 1.0 * is_allowed
        flow, scale = at_scale(rng, flow / flow.sum())
        return flow.sum(axis=1), at_total(flow.sum(axis=0), flow.sum(axis=1)), f"flow {scale:.0e}"
    a, scale = at_scale(rng, draw_masses(rng, n))
    return a, at_total(draw_masses(rng, m), a), f"masses {scale:.0e}"


def draw_kind(rng: Rng, C: Array, a: Array, b: Array) -> FuzzKind:
    """Draw a kind that serves costs on arcs; now and then one that is refused."""
    unit = float(largest_cost(C)) or 1.0
    name = pick(rng, {"balanced": 5, "partial": 2, "tv": 3, "kl": 0.1})
    reg = number(rng, unit) if rng.random() < 0.15 else None
    if name == "balanced":
        return FuzzKind(reg=reg)
    if name == "partial":
        most = min(float(a.sum()), float(b.sum()))
        return FuzzKind("partial", mass=max(most * float(rng.uniform(0, 1)), 5e-324), reg=reg)
    if rng.random() < 0.4:
        return FuzzKind(name, *(draw_prices(rng, unit, k) for k in C.shape), reg=reg)
    return FuzzKind(name, *(number(rng, unit) for _ in range(2)), reg=reg)


def draw_method(rng: Rng, kind: FuzzKind) -> str:
    """Draw a method that serves arcs."""
    if kind.reg is not None:
        return str(rng.choice(["auto", "sinkhorn"]))
    return str(rng.choice(EXACT))


# -- graphs ----------------------------------------------------------------------------------------


class Graph(NamedTuple):
    """A graph as it is given, and its directed edges."""

    given: Any
    keywords: dict[str, Any]
    sources: Array
    targets: Array
    costs: Array
    capacities: Array
    words: str


def graphs(rng: Rng) -> CaseOutcome:
    """Draw a graph with masses at its nodes; check the flow, or the cut that forbids one."""
    n = int(rng.integers(1, int(rng.choice([4, 10, 30]))))
    graph = draw_graph(rng, n)
    a, scale = at_scale(rng, draw_masses(rng, n))
    b = a.copy() if rng.random() < 0.03 else at_total(draw_masses(rng, n), a)
    accuracy = {} if rng.random() < 0.6 else {"rtol": float(10 ** rng.uniform(-10, 0))}
    label = f"{graph.words}, masses {scale:.0e}; {graph.keywords} {accuracy}"
    outcome = CaseOutcome(type(graph.given).__name__, "network_simplex", label=label)
    limits = {"max_seconds": SAFETY_SECONDS, "on_limit": "ignore"}
    answer = ask(epsilot.solve_graph, graph.given, a, b, **graph.keywords, **accuracy, **limits)
    a, b = np.longdouble(a), np.longdouble(b)
    surplus = a - b * (a.sum() / b.sum())
    sizes = [a.sum(), *([graph.costs.max()] if graph.costs.any() else [])]
    is_infeasible = isinstance(answer.error, epsilot.Infeasible)
    is_due = not is_infeasible and all(is_near(x, ORDINARY) for x in sizes)
    result = outcome.settled(answer, is_due)
    if is_infeasible:
        outcome.ending = "infeasible"
        outcome.blame(*graph_cut_defects(answer.error, graph, surplus, a.sum()))
    elif result is not None:
        outcome.blame(*flow_defects(result, graph, surplus, a.sum()))
    return outcome


def flow_defects(result: Any, graph: Graph, surplus: Array, mass: np.longdouble) -> Iterator[str]:
    """Yield what is wrong with a flow, or with its bounds."""
    i, j = graph.sources, graph.targets
    flows = np.longdouble(result.flows.toarray())
    if not (np.isfinite(flows).all() and (flows >= 0).all()):
        yield "a flow is negative or not finite"
        return
    is_edge = np.zeros(flows.shape, bool)
    is_edge[i, j] = True
    if flows[~is_edge].any():
        yield "a flow where there is no edge"
    f = flows[i, j]
    room = ROUND_OFF * mass + TINY
    missed = np.abs(flows.sum(axis=1) - flows.sum(axis=0) - surplus).sum()
    value, lower = np.longdouble(result.value), np.longdouble(result.lower_bound)
    if result.status.name != "MAX_SECONDS":
        if not missed <= room:
            yield f"the flow misses masses by {float(missed / mass):.1e} of all"
        if not (f <= graph.capacities * (1 + 1e-12) + room).all():
            yield "a flow is above its capacity"
        unit = (graph.costs * f).sum() + mass * graph.costs.max(initial=0.0)
        if not abs((graph.costs * f).sum() - value) <= ROUND_OFF * unit + TINY:
            yield f"value {result.value!r} is not that of the flow, {(graph.costs * f).sum()!s}"
        if result.converged and not result.gap <= result.target * (1 + 1e-9) + ROUND_OFF * unit:
            yield f"converged with gap {result.gap!r} above {result.target!r}"
        if not result.converged and is_near(mass, ORDINARY):
            yield f"ended as {result.status.name} without a limit, gap {result.gap!r}"
    pi = np.longdouble(result.potentials)
    moved = np.maximum(surplus, 0).sum()
    over = np.maximum(pi[i] - pi[j] - graph.costs, 0)
    terms = surplus * pi
    bound = terms.sum() - (np.minimum(graph.capacities, moved) * over).sum()
    size = np.abs(terms).sum() + mass * graph.costs.max(initial=0.0) * result.flows.shape[0]
    if not lower <= bound + ROUND_OFF * size + TINY:
        yield f"lower bound {lower!s} is above what the potentials prove, {bound!s}"
    if not value >= lower - ROUND_OFF * size - TINY:
        yield f"lower bound {lower!s} above the value {value!s}"


def graph_cut_defects(
    error: epsilot.Infeasible, graph: Graph, surplus: Array, mass: np.longdouble
) -> Iterator[str]:
    """Yield what the cut of a graph does not prove."""
    inside = np.zeros(surplus.size, bool)
    inside[np.asarray(error.sources, dtype=int)] = True
    leaving = inside[graph.sources] & ~inside[graph.targets]
    excess = surplus[inside].sum() - np.longdouble(graph.capacities)[leaving].sum()
    room = CUT_ROOM * mass + TINY
    if not (excess > -room and abs(excess - np.longdouble(error.excess)) <= room + 1e-9 * excess):
        yield f"a cut claims the excess {error.excess!r}; it is {excess!s}"
    if sorted(set(graph.targets[leaving])) != sorted(np.asarray(error.targets).tolist()):
        yield "a cut names other targets than those that its edges lead to"


def draw_graph(rng: Rng, n: int) -> Graph:
    """Draw a graph of n nodes: a sparse array, or one of networkx, with or without capacities."""
    is_edge = rng.random((n, n)) < rng.choice([0.1, 0.3, 0.8])
    if rng.random() < 0.7:  # a ring reaches every node
        is_edge[np.arange(n), (np.arange(n) + 1) % n] = True
    form = pick(rng, {"csr": 3, "coo": 1, "DiGraph": 3, "Graph": 2})
    is_undirected = form == "Graph" or (form in ("csr", "coo") and rng.random() < 0.2)
    if is_undirected:
        is_edge = np.triu(is_edge | is_edge.T)
    i, j = np.nonzero(is_edge)
    how = pick(rng, {"random": 4, "whole": 2, "zeros": 1})
    costs = {
        "random": lambda: rng.random(i.size),
        "whole": lambda: rng.integers(0, 4, i.size).astype(float),
        "zeros": lambda: np.zeros(i.size),
    }[how]()
    costs, scale = at_scale(rng, costs) if costs.size else (costs, 1.0)
    limit = pick(rng, {"none": 4, "one": 1, "each": 3})
    capacities = np.full(i.size, np.inf)
    keywords: dict[str, Any] = {}
    if limit == "one":
        keywords["capacity"] = number(rng)
        capacities[:] = keywords["capacity"]
    elif limit == "each":
        capacities = np.where(rng.random(i.size) < 0.5, np.inf, number(rng) * rng.random(i.size))
        capacities = np.maximum(capacities, 5e-324)
    given: Any
    if form in ("csr", "coo"):
        make = sparse.csr_array if form == "csr" else sparse.coo_array
        given = make((costs, (i, j)), shape=(n, n))
        if limit == "each":
            keywords["capacity"] = sparse.csr_array((capacities, (i, j)), shape=(n, n))
        if is_undirected:
            keywords["directed"] = False
    else:
        given = networkx.DiGraph() if form == "DiGraph" else networkx.Graph()
        given.add_nodes_from(range(n))
        for u, v, cost, capacity in zip(i.tolist(), j.tolist(), costs, capacities, strict=True):
            given.add_edge(u, v, weight=float(cost), room=float(capacity))
        if limit == "each":
            keywords["capacity"] = "room"
    if is_undirected:
        i, j = np.append(i, j), np.append(j, i)
        costs, capacities = np.tile(costs, 2), np.tile(capacities, 2)
    words = f"{n} nodes, {i.size} edges, {how} costs of {scale:.0e}, capacities {limit}"
    return Graph(given, keywords, i, j, costs, capacities, words)
