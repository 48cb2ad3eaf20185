"""Results of flows on graphs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from scipy import sparse

from .._types import Vector
from ..problems.work import Record, Status, Work


@dataclass(frozen=True)
class GraphResult:
    """A feasible flow on a graph with a certified optimality gap.

    ``value - lower_bound = gap`` is proved for this run. If a limit came before the first feasible
    flow, ``value`` and ``gap`` are inf and ``flows`` lack mass.

    Attributes
    ----------
    flows : (n, n) sparse array
        Flow of every edge, in the user's units.
    potentials : (n,) array
        One number per node: what a unit of mass there is worth.
    value : float
        Cost of the flows.
    lower_bound, gap : float
        No flow costs less than ``lower_bound = value - gap``.
    target : float
        The gap that was asked for.
    status : Status
        How the run ended; ``str(status)`` is a sentence.
    seconds, compile_seconds : float
        Time to solve; time to compile kernels during the call, which is not part of it.
    n_iter : int
        Steps, of up to thousands of pivots each.
    nodes : tuple
        Labels of the nodes, in order.
    method, choice
        "network_simplex", and None: no other method was considered.
    work : Work
        ``work.operations``: arithmetic operations.
    history : list of Record
        The bounds at each evaluation.
    """

    flows: sparse.csr_array  # flow of every edge, in the user's units
    potentials: Vector  # one per node: mass at a node is worth so much
    value: float  # cost of the flows
    lower_bound: float
    gap: float
    target: float  # gap that was asked for
    status: Status
    seconds: float
    n_iter: int  # steps, of up to thousands of pivots each
    nodes: tuple[Any, ...]  # labels of the nodes, in order
    method: str = "network_simplex"
    choice: None = None  # no other method was considered
    work: Work = field(default_factory=Work, repr=False)
    history: list[Record] = field(default_factory=list, repr=False)
    compile_seconds: float = 0.0  # of kernels, during the call; not part of ``seconds``

    @property
    def converged(self) -> bool:
        """Whether the gap is within the target."""
        return self.status is Status.CERTIFIED

    def edge_flows(self) -> dict[tuple[Any, Any], float]:
        """Return the flow of every edge that carries some, by the labels of its nodes."""
        flows = self.flows.tocoo()
        found = zip(flows.row.tolist(), flows.col.tolist(), flows.data.tolist(), strict=True)
        return {(self.nodes[i], self.nodes[j]): flow for i, j, flow in found}

    def _repr_html_(self) -> str:
        """Return value, bounds, gap and the largest flows for a notebook."""
        from ..display.notebook import card, gap_bar
        from ..display.text import outward

        lower, upper = outward(self.lower_bound, self.value)
        flows = sorted(self.edge_flows().items(), key=lambda item: -item[1])[:3]
        return card(
            f"Flow on a graph: {len(self.nodes):,} nodes, {self.flows.nnz:,} edges with flow",
            f"{self.value:.7g}",
            [
                f"proved: {lower} ≤ optimum ≤ {upper}",
                f"gap {max(self.gap, 0.0):.3g}, target {self.target:.3g}",
                str(self.status),
                "largest flows: " + ", ".join(f"{i} → {j}: {x:.4g}" for (i, j), x in flows),
            ],
            badge="certified" if self.converged else "not at the target",
            is_good=self.converged,
            bar=gap_bar(self.gap, self.target),
        )

    def __repr__(self) -> str:
        """Return the shape, the bounds and the end of the run."""
        return (
            f"<epsilot.GraphResult: {len(self.nodes)} nodes, {self.flows.nnz} edges with flow, "
            f"{self.lower_bound:.6g} <= optimum <= {self.value:.6g}, {self.status}>"
        )
