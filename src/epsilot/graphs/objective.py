"""Flows on a graph as the objective of a run: bounds, their proof, and cuts without a flow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._types import Vector
from ..errors import CertificateError, Infeasible
from ..kernels import network
from ..kernels.proof import FEASIBLE
from ..kernels.vectors import dot
from ..problems.objective import BUG_NOTE, Evaluation, OneProblem, Proof, WholeSupport
from ..problems.rounding import LEAST_EXCESS
from ..problems.work import Work
from .problem import Edges, FlowProblem

#: Share of the mass that a flow may lack and still count as a flow of all mass.
MAX_MISSING_MASS = 1e-13


class Flow(NamedTuple):
    """The flow of every edge, and the mass that it lacks."""

    values: Vector
    missing: float

    def is_finite(self) -> bool:
        """Tell that no flow has overflowed: pivots move mass only."""
        return True


@dataclass(frozen=True)
class FlowObjective(WholeSupport, OneProblem):
    """<c, x> over the flows x of a problem. Flows that lack mass prove no upper bound: inf."""

    problem: FlowProblem

    shift: ClassVar[float] = 0.0
    slack: ClassVar[float] = 0.0  # both bounds are multiplied by the same number
    scale: ClassVar[float] = 1.0

    @property
    def round_off_size(self) -> float:
        """Size of the numbers that are added up, one for each node."""
        return float(self.problem.edges.n_nodes)

    def evaluate(self, core: Flow, f: Vector) -> Evaluation[Flow, Vector]:
        """Return the bounds of a flow and of any potentials."""
        upper, (potentials, lower) = self.upper(core), self.dual(f)
        self.check(upper, lower)
        return Evaluation(core, upper, potentials, lower, core.missing)

    def upper(self, flow: Flow) -> float:
        """Return the cost of a checked flow, or inf if it lacks mass."""
        if flow.missing > MAX_MISSING_MASS:
            return math.inf
        check_flow(self.problem.edges, self.problem.supply, flow.values)
        return float(dot(self.problem.edges.costs, flow.values))

    def dual(self, f: Vector) -> tuple[Vector, float]:
        """Lower potentials to the costs of edges without a capacity; return them and their bound.

        Any potentials prove a bound. For these, edges without a capacity cost nothing.
        """
        edges, potentials = self.problem.edges, f.copy()
        free = np.flatnonzero(edges.capacities == math.inf)
        arcs = edges.sources[free], edges.targets[free], edges.costs[free]
        network.lower_to_costs(*arcs, potentials, 100)  # sweeps, at most
        return potentials, self.dual_value(potentials)

    def dual_value(self, potentials: Vector) -> float:
        """Return the lower bound that potentials prove."""
        return lower_bound(self.problem.edges, self.problem.supply, potentials)

    def known_potential(self, f: Vector) -> Vector:
        """Return the potentials of an unfinished basis: any prove a bound."""
        return f

    def prove(self, plan: Flow, potentials: Vector) -> Proof:
        """Return the bounds that this very flow and these potentials prove, or raise."""
        upper, lower = self.upper(plan), self.dual_value(potentials)
        self.check(upper, lower)
        return Proof(upper, min(lower, upper), upper)

    def check(self, upper: float, lower: float) -> None:
        """Raise unless the bounds are in order; the upper one is inf before the first flow."""
        super().check(upper if upper < math.inf else max(lower, 0.0), lower)

    def crude_bounds(self) -> tuple[Evaluation[Flow, Vector], Proof]:
        """Return the bounds of no flow: 0 below, since no cost is negative."""
        core, f = self.nothing()
        upper, lower = self.upper(core), self.dual_value(f)
        return Evaluation(core, upper, f, lower, core.missing), Proof(upper, lower, upper)

    def nothing(self) -> tuple[Flow, Vector]:
        """Return the flow that moves nothing, and zero potentials."""
        edges, supply = self.problem.edges, self.problem.supply
        missing = float(np.maximum(supply, 0).sum())
        return Flow(np.zeros(edges.costs.size), missing), np.zeros(edges.n_nodes)

    def certificate_work(self) -> Work:
        """Return the work of one certificate: sweeps forwards and backwards, and the bounds."""
        return Work(certificate=12 * self.problem.edges.costs.size)


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


def check_cut(problem: FlowProblem, is_inside: NDArray[np.bool_]) -> None:
    """Raise Infeasible if nodes have more surplus than the edges that leave them can take."""
    edges, mass = problem.edges, problem.mass
    leaving = is_inside[edges.sources] & ~is_inside[edges.targets]
    room = float(edges.capacities[leaving].sum())
    excess = float(problem.supply[is_inside].sum()) - room
    if excess <= LEAST_EXCESS:
        return
    sources, targets = np.flatnonzero(is_inside), np.unique(edges.targets[leaving])
    raise Infeasible(
        f"no flow exists: {sources.size} of the nodes have {mass * (room + excess):.6g} more mass "
        f"than they need, and the edges that leave them take only {mass * room:.6g} (add edges, or "
        "raise capacities).",
        sources,
        targets,
        mass * excess,
    )
