"""Solve the transport problems whose values bound Gromov-Wasserstein, fast and with proofs.

Equal masses are matched by shortest augmenting paths from the prices of an earlier problem. Other
small problems go through the compiled simplex of batches. Large problems are those of clouds with
one more coordinate and squared distances, and go through the run of ``solve``. No cost matrix is
stored but that of the fused problem.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .. import deadline, memory, parallel
from .._types import Index, Matrix, Vector
from ..deadline import OutOfTime
from ..engine.execute import execute
from ..engine.request import Request
from ..geometry import Geometry, as_geometry
from ..geometry.inputs import cloud_geometry
from ..kernels import moment_transport as kernels
from ..kernels.simd8 import WIDTH
from ..kernels.vectors import dot
from ..problems.plan import Arcs
from ..problems.problem import make_problem
from ..problems.work import Status
from .problem import ROUND_OFF, GromovProblem, centred

#: Points up to which an assignment starts without prices, and the ratio of coarser problems.
COARSEST, COARSER = 64, 4
#: Entries from which an assignment is solved as transport between clouds, unless known prices are
#: near, and those up to which that is tested.
MIN_CLOUD_ENTRIES, MAX_WARM_ENTRIES = 1_500 * 1_500, 10_000 * 10_000
#: Columns that are cheapest for no row, as a share of all: prices are near up to the first, and a
#: start of the transport between clouds up to the second.
NEAR_SHARE, START_SHARE = 0.26, 0.42
#: Least gap of a transport problem that is solved by a run, as a share of the costs.
TRANSPORT_GAP = 1e-12
#: Points of a sample: at least so many, and this share of all; and the least clouds that have one.
LEAST_SAMPLE, SAMPLE_SHARE, MIN_SAMPLED = 100, 0.125, 400
#: Seed of the samples.
SAMPLE_SEED = 0


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
        self.n_entries = 0  # entries of all problems solved so far
        n, m = problem.p.size, problem.q.size
        self.is_matching = problem.is_matching and (
            bool(problem.M.size) or n * m < MIN_CLOUD_ENTRIES
        )
        self.is_compiled = self.is_matching or problem.is_tree
        if not self.is_compiled and problem.M.size:
            what = f"a linear cost M between {n:,} x {m:,} points with unequal masses"
            memory.ask(24 * n * m, what, "use fewer points, or equal numbers with equal masses")

    @cached_property
    def sample(self) -> TransportOracle | None:
        """The problems of some points of large clouds, which cost little; None for small clouds.

        Their cross moments are in the same axes, so that descents on them find good starts.
        """
        problem = self.part
        if problem is None:
            return None
        X, Y = centred(problem.X, problem.p), centred(problem.Y, problem.q)
        return TransportOracle(replace(problem, X=X, Y=Y))

    @cached_property
    def rough(self) -> TransportOracle | None:
        """The problems of the same points, with the costs that they have in all problems."""
        return None if self.part is None else TransportOracle(self.part)

    @cached_property
    def part(self) -> GromovProblem | None:
        """Some points of large clouds, where they are; ``rows`` and ``cols`` are their numbers."""
        problem = self.problem
        n, m = problem.p.size, problem.q.size
        if min(n, m) < MIN_SAMPLED:
            return None
        rng = np.random.default_rng(SAMPLE_SEED)
        rows, cols = (
            np.sort(rng.permutation(size)[: max(LEAST_SAMPLE, int(SAMPLE_SHARE * size))])
            for size in (n, m)
        )
        p, q = problem.p[rows], problem.q[cols]
        M = problem.M
        if M.size:
            width = -(-cols.size // WIDTH) * WIDTH
            M = np.zeros((rows.size, width))
            M[:, : cols.size] = problem.M[np.ix_(rows, cols)]
        X, Y = problem.X[rows], problem.Y[cols]
        p, q = p / p.sum(), q / q.sum()
        return replace(problem, X=X, Y=Y, p=p, q=q, M=M, rows=rows, cols=cols)

    @property
    def all_entries(self) -> int:
        """Entries of all problems solved so far, on the clouds and on their sample."""
        total = self.n_entries
        for name in ("sample", "rough"):
            held: TransportOracle | None = self.__dict__.get(name)
            total += 0 if held is None else held.n_entries
        return total

    @property
    def entries(self) -> int:
        """Entries of one cost matrix, by which work is counted."""
        return self.problem.p.size * self.problem.q.size

    def answer(self, c: Vector, prices: Vector | None = None, gap: float = 0.0) -> Answer:
        """Solve one problem, from prices of the columns if there are any.

        Large problems are solved to the gap only, or as accurately as float64 allows.
        """
        deadline.check()
        if not self.is_compiled:
            share = 1.0 if prices is None else self._unclaimed(c, prices)
            if prices is not None and share <= NEAR_SHARE:
                return self._match(c[None], prices[None])[0]
            return self._run(c, gap, prices if share <= START_SHARE else None)
        if prices is None:
            prices = self.cold_prices(c) if self.is_matching else self._no_prices()
        return self.answers(c[None], prices[None])[0]

    def answers(self, centres: Matrix, prices: Matrix, gap: float = 0.0) -> list[Answer]:
        """Solve several problems in threads, each from its own prices; the bits are its own."""
        deadline.check()
        if self.is_matching:
            return self._match(centres, prices)
        if not self.is_compiled:
            return [self._run(c, gap) for c in centres]
        return self._pivot(centres, prices, gap)

    def _match(self, centres: Matrix, prices: Matrix) -> list[Answer]:
        """Solve assignments by augmenting paths."""
        problem, count = self.problem, len(centres)
        self.n_entries += count * self.entries
        p, q = problem.p, problem.q
        Z, numbers = np.zeros((count, problem.dimension)), np.empty((count, 3))
        held, columns = np.array(prices, dtype=np.float64), np.empty((count, p.size), np.int64)
        work = 64 * count * self.entries
        args = *self.clouds, p, q, centres, held, Z, columns, numbers
        parallel.share(kernels.match_all, count, work, *args)
        rows, found = np.arange(p.size), []
        for k in range(count):
            lower, size, linear = numbers[k].tolist()
            found.append(self._made(lower, size, linear, Z[k], (rows, columns[k], p), held[k]))
        return found

    def _pivot(self, centres: Matrix, prices: Matrix, gap: float) -> list[Answer]:
        """Solve small problems with any masses by the compiled simplex."""
        problem, count = self.problem, len(centres)
        self.n_entries += count * self.entries
        p, q = problem.p, problem.q
        Z, numbers, nodes = (
            np.zeros((count, problem.dimension)),
            np.empty((count, 3)),
            p.size + q.size,
        )
        held = np.array(prices, dtype=np.float64)
        arcs, flow = np.empty((count, 2, nodes), np.int64), np.empty((count, nodes))
        n_arcs, work = np.zeros(count, np.int64), 64 * count * self.entries
        args = *self.clouds, p, q, centres, held, Z, arcs, flow, n_arcs, numbers
        parallel.share(kernels.flow_on_trees, count, work, *args)
        found = []
        for k, size in enumerate(n_arcs):
            if size == 0:  # float64 has too few digits for the pivots
                found.append(self._run(centres[k], gap))
                continue
            plan = arcs[k, 0, :size], arcs[k, 1, :size], flow[k, :size]
            lower, largest, linear = numbers[k].tolist()
            found.append(self._made(lower, largest, linear, Z[k], plan, held[k]))
        return found

    def _unclaimed(self, c: Vector, prices: Vector) -> float:
        """Return the share of columns that prices make cheapest for no row; 1 if unknown."""
        problem = self.problem
        if not problem.is_matching or self.entries > MAX_WARM_ENTRIES:
            return 1.0
        self.n_entries += self.entries
        return float(kernels.unclaimed(*self.clouds, c, prices) / problem.q.size)

    def rough_prices(self, c: Vector) -> Vector:
        """Return prices of all columns from those of some points, which large clouds have."""
        rough = self.rough
        assert rough is not None
        answer = rough.answer(c)
        rows, first = np.unique(answer.plan[0], return_index=True)
        columns = answer.plan[1][first]
        part, wide = rough.problem, np.empty(self.problem.W.shape[1])
        places = part.cols[columns], part.rows[rows]
        kernels.extend(*self.clouds, c, answer.prices[columns], *places, wide)
        prices = wide[: self.problem.q.size]
        return prices - dot(self.problem.q, prices)

    def bound(self, c: Vector, prices: Vector) -> float:
        """Return the bound of V that prices of the columns prove."""
        p, q = self.problem.p, self.problem.q
        self.n_entries += self.entries
        lower, size = kernels.bound_of_prices(*self.clouds, p, q, c, prices)
        return self._value(lower, size)

    def outer_prices(self, first: Vector, c: Vector) -> Vector:
        """Return prices at a matrix with one entry, from those at 0: the rest is in one dimension.

        V is at most its value at 0 and that of the entry alone, which sorting finds.
        """
        problem = self.problem
        dy = problem.Y.shape[1]
        k = int(np.abs(c).argmax())
        x = np.ascontiguousarray(16 * c[k] * problem.X[:, k // dy])
        return first + line_prices(x, problem.Y[:, k % dy], problem.p, problem.q)

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
        return -lower + ROUND_OFF * (self.problem.scale + size)

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

    def _run(self, c: Vector, gap: float, prices: Vector | None = None) -> Answer:
        """Solve a large problem by the run of ``solve``, from prices of the columns if given."""
        problem = self.problem
        p, q = problem.p, problem.q
        geometry, unit, extra = self._geometry(c)
        size = float(np.abs(geometry.bounds).max())
        eps = max(gap / unit, TRANSPORT_GAP * (problem.scale / unit + size))
        start = None
        if prices is not None:
            start = np.zeros(p.size), (prices - extra) / unit
        request = Request(eps=eps or None, on_limit="ignore", potentials_init=start)
        result = execute(make_problem(geometry, p, q, normalize=True), request)
        if result.status in (Status.MAX_SECONDS, Status.INTERRUPTED):
            raise OutOfTime
        self.n_entries += self.entries
        arcs: Any = Arcs.of(result.plan_operator.tosparse())
        prices = unit * result.potentials[1] + extra
        prices -= dot(q, prices)
        Z = np.empty(problem.dimension)
        kernels.moment(problem.X, problem.W, arcs.i, arcs.j, arcs.flow, Z)
        linear = kernels.linear_part(problem.x2, problem.W, problem.M, arcs.i, arcs.j, arcs.flow)
        lower, size = kernels.bound_of_prices(*self.clouds, p, q, c, prices)
        return self._made(lower, size, linear, Z, (arcs.i, arcs.j, arcs.flow), prices)

    def _geometry(self, c: Vector) -> tuple[Geometry, float, Vector]:
        """Return a geometry, and how its column potentials g become prices: unit g + extra.

        Without M, -<u, w> = |u - w|²/2 - |u|²/2 - |w|²/2 is a squared distance but for terms of
        one index. Both clouds are centred, and each axis is scaled to equal extents.
        """
        problem = self.problem
        n, m = problem.p.size, problem.q.size
        if problem.M.size:
            C = np.empty((n, m))
            parallel.share(kernels.fill, n, n * m, *self.clouds, c, C)
            return as_geometry(C), 1.0, np.zeros(m)
        U, W = np.empty((n, problem.W.shape[0])), np.ascontiguousarray(problem.W[:, :m].T)
        kernels.factor(problem.X, problem.x2, c, U)
        extra = np.zeros(m)
        for k, u in enumerate(np.ascontiguousarray(U.T)):
            extra -= dot(problem.p, u) * W[:, k]
        U, W = centred(U, problem.p), centred(W, problem.q)
        extents = [np.abs(Z).max(axis=0) for Z in (U, W)]
        kept = np.flatnonzero((extents[0] > 0) & (extents[1] > 0))
        if not kept.size:  # the cost is a sum of terms of one index
            return cloud_geometry(np.zeros((n, 1)), np.zeros((m, 1)), lazy=True), 0.5, extra
        share = np.sqrt(extents[1][kept] / extents[0][kept])
        U, W = U[:, kept] * share, W[:, kept] / share
        for w in W.T:
            extra -= w * w / 2
        # The largest of all costs would take longer to find than a good part of a run.
        return cloud_geometry(U, W, lazy=True).roughly, 0.5, extra


def line_prices(x: Vector, y: Vector, p: Vector, q: Vector) -> Vector:
    """Return optimal column prices of the cost -x_i y_j: its plan couples both in their order."""
    i, j = np.argsort(x, kind="stable"), np.argsort(y, kind="stable")
    at = np.searchsorted(np.cumsum(p[i]), np.cumsum(q[j])[:-1])
    steps = -x[i][np.minimum(at, p.size - 1)] * np.diff(y[j])
    prices = np.zeros(q.size)
    prices[j[1:]] = np.cumsum(steps)
    return prices - dot(q, prices)
