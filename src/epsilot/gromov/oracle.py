"""Solve the transport problems whose values bound Gromov-Wasserstein, fast and with proofs.

Equal masses are matched by shortest augmenting paths from the prices of an earlier problem; the
cost matrix is never stored. Other small problems go through the compiled simplex of batches, and
large ones through the run of ``solve``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import deadline, memory, parallel
from .._types import Index, Matrix, Vector
from ..deadline import OutOfTime
from ..engine.execute import execute
from ..engine.request import Request
from ..engine.result import Status
from ..kernels import moment_transport as kernels
from ..problems.plan import Arcs
from ..problems.problem import make_problem
from .problem import ROUND_OFF, GromovProblem

#: Points up to which an assignment starts without prices, and the ratio of coarser problems.
COARSEST, COARSER = 64, 4
#: Gap of a transport problem that is solved by a run, as a share of the costs.
TRANSPORT_GAP = 1e-12


class Answer(NamedTuple):
    """What one transport problem tells: a bound of V, and a plan with its objective."""

    value: float  # V is at most this
    moment: Vector  # Z of the plan
    objective: float  # of the plan, without K
    plan: tuple[Index, Index, Vector]  # rows, columns and flow of arcs
    prices: Vector  # potentials of the columns, which prove the value


class TransportOracle:
    """Transport problems of one pair of clouds."""

    def __init__(self, problem: GromovProblem) -> None:
        self.problem = problem
        self.clouds = (problem.X, problem.x2, problem.W, problem.M)
        n, m = problem.p.size, problem.q.size
        if not (problem.is_matching or problem.is_tree):
            what = f"the transport problems of {n:,} x {m:,} points with unequal masses"
            memory.ask(24 * n * m, what, "use fewer points, or equal numbers with equal masses")

    @property
    def entries(self) -> int:
        """Entries of one cost matrix, by which work is counted."""
        return self.problem.p.size * self.problem.q.size

    def answer(self, c: Vector, prices: Vector | None = None) -> Answer:
        """Solve one problem, from prices of the columns if there are any."""
        deadline.check()
        if not (self.problem.is_matching or self.problem.is_tree):
            return self._run(c)
        if prices is None:
            prices = self.cold_prices(c) if self.problem.is_matching else self._no_prices()
        return self.answers(c[None], prices[None])[0]

    def answers(self, centres: Matrix, prices: Matrix) -> list[Answer]:
        """Solve several problems in threads, each from its own prices; the bits are its own."""
        deadline.check()
        problem, count = self.problem, len(centres)
        if not (problem.is_matching or problem.is_tree):
            return [self._run(c) for c in centres]
        p, q = problem.p, problem.q
        Z, numbers = np.zeros((count, problem.dimension)), np.empty((count, 3))
        held = np.array(prices, dtype=np.float64)
        args: tuple[Any, ...]
        work = 64 * count * self.entries
        if problem.is_matching:
            columns = np.empty((count, p.size), np.int64)
            args = (*self.clouds, p, q, centres, held, Z, columns, numbers)
            parallel.share(kernels.match_all, count, work, *args)
            rows = np.arange(p.size)
            plans = [(rows, j, p) for j in columns]
        else:
            nodes = p.size + q.size
            arcs, flow = np.empty((count, 2, nodes), np.int64), np.empty((count, nodes))
            n_arcs = np.zeros(count, np.int64)
            args = (*self.clouds, p, q, centres, held, Z, arcs, flow, n_arcs, numbers)
            parallel.share(kernels.flow_on_trees, count, work, *args)
            plans = [
                (a[0, :k], a[1, :k], f[:k]) for a, f, k in zip(arcs, flow, n_arcs, strict=True)
            ]
        found = []
        for k in range(count):
            if plans[k][0].size == 0:  # float64 has too few digits for the pivots
                found.append(self._run(centres[k]))
                continue
            lower, size, linear = numbers[k].tolist()
            found.append(self._made(lower, size, linear, Z[k], plans[k], held[k]))
        return found

    def bound(self, c: Vector, prices: Vector) -> float:
        """Return the bound of V that prices of the columns prove."""
        p, q = self.problem.p, self.problem.q
        lower, size = kernels.bound_of_prices(*self.clouds, p, q, c, prices)
        return self._value(lower, size)

    def cold_prices(self, c: Vector) -> Vector:
        """Return prices of the columns from assignments of every fourth, sixteenth, ... point."""
        problem = self.problem
        n, sizes = problem.p.size, []
        size = n
        while size > COARSEST:
            size = -(-size // COARSER)
            sizes.append(size)
        prices = self._no_prices()
        for size in reversed(sizes):
            kept = np.arange(size) * n // size
            width = -(-size // 8) * 8
            W = np.zeros((problem.W.shape[0], width))
            W[:, :size] = problem.W[:, kept]
            M = np.zeros((0, 0))
            if problem.M.size:
                M = np.zeros((size, width))
                M[:, :size] = problem.M[np.ix_(kept, kept)]
            masses, start = np.full(size, 1.0 / size), prices[kept]
            Z, columns = np.empty(problem.dimension), np.empty(size, np.int64)
            clouds = np.ascontiguousarray(problem.X[kept]), problem.x2[kept], W, M
            kernels.match(*clouds, masses, masses, c, start, Z, columns)
            deadline.check()
            wide = np.empty(problem.W.shape[1])
            kernels.extend(*self.clouds, c, start[columns], kept[columns], kept, wide)
            prices = wide[:n]
        return prices

    def _no_prices(self) -> Vector:
        return np.zeros(self.problem.q.size)

    def _value(self, lower: float, size: float) -> float:
        """Return an upper bound of V from a lower bound of the transport, with its round-off."""
        return -lower + ROUND_OFF * (self.problem.size + size)

    def _made(
        self,
        lower: float,
        size: float,
        linear: float,
        Z: Vector,
        plan: tuple[Index, Index, Vector],
        prices: Vector,
    ) -> Answer:
        square = float((Z * Z).sum())
        return Answer(self._value(lower, size), Z, linear - 8 * square, plan, prices)

    def _run(self, c: Vector) -> Answer:
        """Solve a large problem by the run of ``solve``."""
        problem = self.problem
        p, q = problem.p, problem.q
        n, m = p.size, q.size
        C = np.empty((n, m))
        parallel.share(kernels.fill, n, n * m, *self.clouds, c, C)
        gap = TRANSPORT_GAP * (problem.size + float(np.abs(C).max()))
        request = Request(eps=gap or None, on_limit="ignore")
        result = execute(make_problem(C, p, q, normalize=True), request)
        if result.status in (Status.MAX_SECONDS, Status.INTERRUPTED):
            raise OutOfTime
        arcs: Any = Arcs.of(result.plan_operator.tosparse())
        prices = result.potentials[1]
        Z = np.empty(problem.dimension)
        kernels.moment(problem.X, problem.W, arcs.i, arcs.j, arcs.flow, Z)
        linear = kernels.linear_part(problem.x2, problem.W, problem.M, arcs.i, arcs.j, arcs.flow)
        lower, size = kernels.bound_of_prices(*self.clouds, p, q, c, prices)
        return self._made(lower, size, linear, Z, (arcs.i, arcs.j, arcs.flow), prices)
