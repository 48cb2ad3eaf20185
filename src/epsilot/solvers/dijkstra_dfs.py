"""Dijkstra's search and DFS on integer costs (Lahn, Mulchandani, Raghvendra 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from .._types import Index, Integers, Potentials, Vector
from ..geometry.sweeps import row_blocks
from ..kernels import dijkstra as kernels
from ..problems.plan import Arcs, Core
from ..problems.problem import Additive, Problem
from ..problems.work import Work
from .base import DirectSolver, Pace, SolverState
from .method_info import A_PRIORI, MethodInfo, Order
from .options import HasConstants, check_choices

#: Integer costs below this can be added a few times in int32.
MAX_INT32_COST = 1 << 27
#: Masses times this are still exact to a fraction of a unit in float64.
MAX_THETA = float(1 << 50)


@dataclass(slots=True, kw_only=True)
class DijkstraState(SolverState):
    """Integer costs, duals, masses still to be routed, and the flow as lists of entries."""

    c: Integers  # integer costs, in units of ``unit``
    y: Integers  # row duals
    v: Integers  # column duals
    supply: Index  # free mass of the rows, in units of 1 / theta
    demand: Index  # free mass of the columns
    loose: Index  # flow a full column may give back at no cost (push-relabel)
    head: Index  # first entry of each column; last, of the unused entries
    follow: Index  # next entry of the same list
    source: Index  # row of an entry
    sink: Index  # column of an entry
    amount: Index  # flow of an entry
    unit: float  # cost unit u
    theta: float  # mass units in a mass of 1
    allowed: float  # free supply that may stay unrouted
    n_phases: int = 0
    is_done: bool

    @property
    def network(self) -> tuple[Integers, ...]:
        """Costs, duals, masses and flow as kernels take them."""
        flow = self.head, self.follow, self.source, self.sink, self.amount
        return self.c, self.y, self.v, self.supply, self.demand, *flow


@dataclass(frozen=True, kw_only=True)
class DijkstraDFS(HasConstants, DirectSolver[DijkstraState]):
    r"""Route integer supplies along paths of zero slack, phase by phase.

    Costs are floored to multiples of u = (1 - s) ε / 2, supplies floored and demands ceiled to
    multiples of 1/θ. The duals y, v of the routed flow F satisfy :math:`y_i + v_j \le c_{ij} + 1`
    everywhere and :math:`\ge c_{ij}` where F > 0, so the plan is within ε of the optimum once all
    supply is routed. A step is one phase; with push-relabel, phases worth one pass over c.

    Parameters
    ----------
    variant : {"search", "push_relabel"}
        Dijkstra's search and DFS (2019), or the push-relabel method of Lahn, Raghvendra and
        Zhang (2022).
    constants : {"practical", "published"}, optional
        "practical" spends s = 0.1 of ε on rounding masses; "published" s = 1/2 and the θ of the
        papers. By default practical, and published with ``stop="paper"``.

    References
    ----------
    Lahn, Mulchandani, Raghvendra (2019), A graph theoretic additive approximation of optimal
    transport. Lahn, Raghvendra, Zhang (2022), A push-relabel based additive approximation for
    optimal transport.
    """

    variant: str = "search"

    about: ClassVar[MethodInfo] = MethodInfo(
        family="combinatorial",
        paper="Lahn, Mulchandani, Raghvendra 2019",
        year=2019,
        orders=(Order(2, eps=1), Order(1, eps=2)),
        is_in_table1=True,
        solves_entropic=False,
        rule=A_PRIORI,
        needs_rows=True,
    )
    # A certificate costs several phases, and the a-priori rule ends the run.
    pace: ClassVar[Pace] = Pace(start=0.25, factor=4.0, evaluate_after=1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choices(self, variant=("search", "push_relabel"))

    def memory(self, problem: Problem) -> int:
        """Return the bytes of the costs in integers."""
        return problem.geometry.nbytes // 2

    def _units(self, problem: Additive) -> tuple[float, float, float]:
        """Return the cost unit u, θ, and the supply that may stay free."""
        n, m = problem.shape
        epsilon = problem.epsilon
        ratio = (problem.geometry.bounds[1] or epsilon) / epsilon
        size = max(n, m)
        if self.variant == "push_relabel":
            if self.constants == "published":
                return epsilon / 3, 6 * size * ratio, float(size)
            return 0.3 * epsilon, 10 * (n + m) * ratio, 3.0 * (n + m)
        if self.constants == "published":
            return epsilon / 4, 8 * size * ratio, 0.0
        return 0.45 * epsilon, 10 * (n + m) * ratio, 0.0

    def init(
        self, problem: Additive, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[DijkstraState, Work]:
        """Floor the costs and start from zero duals, or from the given potentials rounded."""
        n, m = problem.shape
        unit, theta, allowed = self._units(problem)
        if potentials is not None:
            theta *= 2  # unmet demand with v < 0 can cost as much as rounding the masses does
        theta = min(theta, MAX_THETA)
        c = integer_costs(problem, unit)
        supply = np.floor(theta * problem.p).astype(np.int64)
        demand = np.ceil(theta * problem.q).astype(np.int64)
        demand[np.argmax(demand)] += max(0, int(supply.sum() - demand.sum()))
        y, v = np.zeros(n, c.dtype), np.zeros(m, c.dtype)
        if potentials is not None:
            g = potentials[1]
            drop = np.minimum((g.max() - g) / unit, float(c.max()))
            v[:] = -np.ceil(drop)
            kernels.best_response(c, v, y)
        elif self.variant == "push_relabel":
            y += 1
        size = 4 * (n + m)
        head = np.full(m + 1, -1, np.int64)
        head[m] = 0
        source, sink, amount = np.zeros((3, size), np.int64)
        state = DijkstraState(
            c=c,
            y=y,
            v=v,
            supply=supply,
            demand=demand,
            loose=np.zeros(m, np.int64),
            head=head,
            follow=_chain(0, size),
            source=source,
            sink=sink,
            amount=amount,
            unit=unit,
            theta=theta,
            allowed=allowed,
            is_done=bool(supply.sum() <= allowed),
        )
        return state, Work.of(scale=n * m, vector=2 * (n + m))

    def step(self, problem: Additive, state: DijkstraState, rng: Generator) -> Work:
        """Run one phase, or several short ones of push-relabel."""
        counts = np.zeros(3, np.int64)
        if not state.is_done:
            phase = _push_phases if self.variant == "push_relabel" else _search_phase
            state.n_phases += phase(state, counts)
            state.is_done = bool(state.supply.sum() <= state.allowed)
        relaxed, scanned, tested = (int(x) for x in counts)
        return Work.of(arc_relaxed=relaxed, arc_tested=tested, vector=scanned)

    def candidates(self, problem: Additive, state: DijkstraState) -> list[tuple[Core, Vector]]:
        """Return the flow as a sparse plan, and the row duals."""
        used = state.amount > 0
        i, j = state.source[used].astype(np.int64), state.sink[used].astype(np.int64)
        core = Arcs(problem.shape, i, j, state.amount[used] / state.theta)
        return [(core, self.potentials(problem, state)[0])]

    def potentials(self, problem: Additive, state: DijkstraState) -> Potentials:
        """Return the duals in cost units."""
        y, v = state.y.astype(np.float64), state.v.astype(np.float64)
        return state.unit * y, state.unit * v


def _search_phase(state: DijkstraState, counts: Index) -> int:
    s = state
    row_at, col_at = np.empty(s.y.size, np.int64), np.empty(s.v.size, np.int64)
    kernels.start_phase(
        s.c, s.y, s.v, s.supply, s.demand, s.head, s.follow, s.source, s.amount, row_at, col_at,
        counts,
    )  # fmt: skip
    row = 0
    while row < s.y.size:
        row = kernels.route(*s.network, row_at, col_at, row, counts)
        if row < s.y.size:
            _enlarge(s)
    return 1


def _push_phases(state: DijkstraState, counts: Index) -> int:
    s = state
    n_phases = kernels.push_phases(*s.network, s.loose, s.allowed, s.c.size, counts)
    if n_phases < 0:
        _enlarge(s)
        n_phases = -n_phases - 1
    return int(n_phases)


def integer_costs(problem: Additive, unit: float) -> Integers:
    """Return ⌊C / u⌋ in the smallest safe integer type, block by block of rows."""
    n, m = problem.shape
    largest = problem.geometry.bounds[1] / unit
    c = np.empty((n, m), np.int32 if largest < MAX_INT32_COST else np.int64)
    for rows in row_blocks(n, m):
        # Costs that are multiples of u in exact arithmetic must not be rounded down.
        c[rows] = np.floor(problem.geometry.block(rows.start, rows.stop) / unit + 1e-9)
    return c


def _chain(start: int, stop: int) -> Index:
    """Return the links of a list of unused entries."""
    follow = np.arange(start + 1, stop + 1, dtype=np.int64)
    follow[-1] = -1
    return follow


def _enlarge(state: DijkstraState) -> None:
    """Double the capacity for entries of flow."""
    size = state.amount.size
    links = _chain(size, 2 * size)
    links[-1] = state.head[-1]
    state.head[-1] = size
    state.follow = np.concatenate([state.follow, links])
    for name in ("source", "sink", "amount"):
        setattr(state, name, np.concatenate([getattr(state, name), np.zeros(size, np.int64)]))
