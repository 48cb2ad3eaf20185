"""Search on a triangulation: solve where the bound of a simplex is least, and insert that matrix.

V is convex, hence below its interpolation on every simplex of matrices at which it is known. The
regular triangulation of all known values is the tightest one. Its simplices are the vertices of
the cutting planes of Ryner, Kronqvist and Karlsson (2023).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from .. import memory
from .._types import Index, Matrix, Vector
from ..errors import InvalidProblem
from ..kernels import triangulation as kernels
from ..problems.work import Work
from .cover import Simplices
from .objective import cross_polytope
from .oracle import Answer, line_prices
from .search import ENTRIES_PER_STEP, NEW_BEST, SAME_VALUE, GromovTarget, Search, SearchState
from .tuning import TUNING

#: Highest dimension of the triangulation: 2^D simplices to begin with, thousands per point beyond.
MAX_DIMENSION = 6
#: Slots of the first triangulation, and of points.
FIRST_SLOTS, FIRST_POINTS = 1 << 12, 1 << 8


@dataclass
class TriangulationState(SearchState):
    """Points in the order of their insertion: they determine the triangulation."""

    n_points: int
    points: Vector  # (capacity, D), flat, as the other arrays
    values: Vector
    prices: Vector  # potentials of the columns for every point
    slots: Index  # the simplex into which each point was inserted, -1 for the first ones

    def __post_init__(self) -> None:
        """Begin without a triangulation; it is no field, since the points determine it."""
        self.mesh: Mesh | None = None

    def fits(self, target: GromovTarget) -> bool:
        """Tell whether arrays from a file belong together, and prove their values again."""
        problem, oracle = target.problem, target.oracle
        D, m, k = problem.dimension, problem.q.size, self.values.size
        sizes = self.points.size == k * D and self.prices.size == k * m and self.slots.size == k
        if not (sizes and 0 <= self.n_points <= k and self.plan_fits(problem)):
            return False
        points, prices = self.points.reshape(k, D), self.prices.reshape(k, m)
        for c, v, g in zip(points[: self.n_points], self.values, prices, strict=False):
            if not (np.isfinite(c).all() and oracle.bound(c, g) <= v + SAME_VALUE * (1 + abs(v))):
                return False
        return True


class Mesh:
    """The arrays of a triangulation, which grow."""

    def __init__(self, D: int, radius: float) -> None:
        self.D, self.radius = D, radius
        first, corners = cross_polytope(D, radius)
        slots = max(FIRST_SLOTS, 4 * len(corners))
        self.points = np.zeros((max(FIRST_POINTS, 2 * len(first)), D))
        self.values = np.zeros(len(self.points))
        self.first = first
        self.corners = np.zeros((slots, D + 1), dtype=np.int64)
        self.neighbours = np.full((slots, D + 1), -1, dtype=np.int64)
        self.bounds = np.full(slots, kernels.EMPTY)
        self.places = np.zeros((slots, D))
        self.is_used = np.zeros(slots, dtype=np.bool_)
        self.free = np.zeros(slots, dtype=np.int64)
        self.marks = np.zeros(slots, dtype=np.int64)
        self.cavity = np.zeros(slots, dtype=np.int64)
        self.table = np.zeros((2 * slots, 2), dtype=np.int64)
        self.counts = np.zeros(3, dtype=np.int64)
        self.counts[0] = len(corners)
        self.corners[: len(corners)], self.is_used[: len(corners)] = corners, True
        # The neighbour of an orthant behind the face without corner 1 + d has the other sign of d.
        for d in range(D):
            self.neighbours[: len(corners), 1 + d] = np.arange(len(corners)) ^ (1 << d)

    def start(self, values: Vector) -> None:
        """Set the values of the first points, and bound the first simplices."""
        self.points[: len(self.first)], self.values[: len(self.first)] = self.first, values
        for t in range(int(self.counts[0])):
            self.bounds[t] = kernels.bound(
                self.points, self.values, self.corners[t], self.places[t]
            )

    def grow(self) -> None:
        """Double the slots."""
        slots = len(self.corners)
        size = 2 * slots * (3 * (self.D + 1) + self.D + 8) * 8
        memory.ask(size, f"a triangulation of {2 * slots:,} simplices", "use method='boxes'")
        self.corners = np.concatenate([self.corners, np.zeros_like(self.corners)])
        self.neighbours = np.concatenate([self.neighbours, np.full_like(self.neighbours, -1)])
        self.bounds = np.concatenate([self.bounds, np.full_like(self.bounds, kernels.EMPTY)])
        for name in ("places", "is_used", "free", "marks", "cavity"):
            x = getattr(self, name)
            setattr(self, name, np.concatenate([x, np.zeros_like(x)]))
        self.table = np.zeros((4 * slots, 2), dtype=np.int64)

    def insert(self, k: int, c: Vector, value: float, slot: int) -> bool:
        """Insert point k into a simplex; return False if it does not fit there."""
        if k >= len(self.points):
            self.points = np.concatenate([self.points, np.zeros_like(self.points)])
            self.values = np.concatenate([self.values, np.zeros_like(self.values)])
        self.points[k], self.values[k] = c, value
        while True:
            made = kernels.insert(
                (
                    self.points, self.values, self.corners, self.neighbours, self.bounds,
                    self.places, self.is_used, self.free,
                ),
                k, slot, self.counts, self.marks, self.cavity, self.table,
            )  # fmt: skip
            if made != kernels.FULL:
                return bool(made > 0)
            self.grow()

    def worst(self) -> int:
        """Return the simplex of least bound."""
        return int(kernels.worst(self.bounds, int(self.counts[0])))

    def locate(self, c: Vector) -> int:
        """Return the simplex that holds a matrix."""
        args = self.points, self.corners, self.is_used, int(self.counts[0])
        return int(kernels.locate(*args, c))


@dataclass(frozen=True)
class Triangulation(Search):
    """Refine the regular triangulation of all matrices at which V is known."""

    def init(
        self, target: GromovTarget, rng: Generator, potentials: Any = None
    ) -> tuple[TriangulationState, Work]:
        """Return a state without points."""
        none = np.zeros(0)
        state = TriangulationState(
            **self.first_plan(target, rng),
            n_points=0, points=none, values=none, prices=none, slots=np.zeros(0, np.int64),
        )  # fmt: skip
        return state, Work()

    def prepare(self, target: GromovTarget, state: TriangulationState) -> bool:
        """Solve at the corners of the cross-polytope, or insert the points of a resumed run."""
        problem = target.problem
        D = problem.dimension
        if state.mesh is not None:
            return False
        mesh = Mesh(D, problem.radius)
        n_first = len(mesh.first)
        is_new = state.n_points == 0
        if is_new:
            self._first_values(target, state, mesh.first)
        mesh.start(state.values[:n_first])
        points = state.points.reshape(-1, D) if D else np.zeros((state.values.size, 0))
        for k in range(n_first, state.n_points):
            slot = int(state.slots[k])
            is_slot = 0 <= slot < int(mesh.counts[0]) and mesh.is_used[slot]
            if not (is_slot and mesh.insert(k, points[k], float(state.values[k]), slot)):
                raise InvalidProblem(
                    "the saved points make no triangulation; start the run again without resume."
                )
        state.mesh = mesh
        if D == 0 or problem.radius == 0:
            state.n_started = len(state.starts)
        return is_new

    def _first_values(self, target: GromovTarget, state: TriangulationState, first: Matrix) -> None:
        """Append the corners of the cross-polytope; sorting bounds V there but for M."""
        oracle, problem = target.oracle, target.problem
        if problem.M.size or problem.radius == 0:
            answer = oracle.answer(first[0])
            state.note(answer)
            middle = answer.prices
        else:
            middle = line_prices(4 * problem.x2, problem.y2, problem.p, problem.q)
        for c in first:
            prices = oracle.outer_prices(middle, c) if c.any() else middle
            _append(state, c, oracle.bound(c, prices), prices, -1)

    def lower(self, state: TriangulationState) -> float:
        """Return the least bound of all simplices."""
        mesh = state.mesh
        return -math.inf if mesh is None else float(mesh.bounds[mesh.worst()])

    def refine(self, target: GromovTarget, state: TriangulationState) -> None:
        """Solve at the places of least bound, and insert these matrices."""
        entries = 0
        while entries == 0 or entries < ENTRIES_PER_STEP:
            self._refine_once(target, state)
            entries += target.oracle.entries
            if self.is_over(target, state):
                return

    def _refine_once(self, target: GromovTarget, state: TriangulationState) -> None:
        mesh, D = state.mesh, target.problem.dimension
        assert mesh is not None
        if D == 0:
            state.is_stuck = True
            return
        slot = mesh.worst()
        simplex, place = mesh.corners[slot].copy(), mesh.places[slot].copy()
        corners = mesh.points[simplex]
        sx, sy = (float(s[0]) for s in target.problem.deviations)
        least = ((corners - place) ** 2).sum(axis=1).min()
        if least <= TUNING.stuck * TUNING.same_point * (sx * sy) ** 2:
            state.is_stuck = True
            return
        lam = np.empty(D + 1)
        kernels.weights_in(mesh.points, simplex, place, lam)
        m = target.problem.q.size
        known = state.prices.reshape(-1, m)
        before = state.best
        middle = corners.sum(axis=0) / (D + 1)
        for attempt in range(TUNING.attempts):
            share = attempt / TUNING.attempts
            c = (1 - share) * place + share * middle
            weights = np.clip((1 - share) * lam + share / (D + 1), 0.0, None)
            prices = np.zeros(m)
            for k, weight in zip(simplex, weights / weights.sum(), strict=True):
                prices += weight * known[k]
            found = self.known_bound(target, state, c, prices)
            if found is None:
                answer = target.oracle.answer(c, prices, self.loose_gap(target, state))
                state.note(answer)
                found = answer.value, answer.prices
            value, prices = found
            if self._insert(state, c, value, prices, slot):
                break
        else:
            state.is_stuck = True
        if state.best < before - NEW_BEST * target.problem.scale:
            c, answer = self.descend(target, state, state.moment, prices)
            self.insert_found(target, state, c, answer)

    def insert_found(
        self, target: GromovTarget, state: TriangulationState, c: Vector, answer: Answer
    ) -> None:
        """Insert a matrix where it is, unless it is there."""
        mesh = state.mesh
        assert mesh is not None
        sx, sy = (float(s[0]) for s in target.problem.deviations)
        apart = ((mesh.points[: state.n_points] - c) ** 2).sum(axis=1).min()
        if apart > TUNING.same_point * (sx * sy) ** 2:
            self._insert(state, c, answer.value, answer.prices, mesh.locate(c))

    @staticmethod
    def _insert(
        state: TriangulationState, c: Vector, value: float, prices: Vector, slot: int
    ) -> bool:
        assert state.mesh is not None
        _reserve(state, c.size, prices.size)
        if not state.mesh.insert(state.n_points, c, value, slot):
            return False
        _append(state, c, value, prices, slot)
        return True

    def cover(self, target: GromovTarget, state: TriangulationState) -> Simplices:
        """Return a copy of the simplices and their points."""
        mesh, k = state.mesh, state.n_points
        assert mesh is not None
        used = np.flatnonzero(mesh.is_used[: int(mesh.counts[0])])
        prices: Matrix = state.prices.reshape(-1, target.problem.q.size)[:k].copy()
        return Simplices(
            mesh.points[:k].copy(), mesh.values[:k].copy(), prices,
            mesh.corners[used], mesh.places[used], mesh.radius,
        )  # fmt: skip


def _reserve(state: TriangulationState, D: int, m: int) -> None:
    """Make room for one more point, or raise and change nothing; arrays double when full."""
    k = state.n_points
    if k < state.values.size:
        return
    capacity = max(FIRST_POINTS, 2 * k)
    memory.ask(
        8 * capacity * (m + D),
        f"a table of potentials of {capacity:,} problems",
        "use a larger rtol",
    )
    for name, width in (("points", D), ("values", 1), ("prices", m)):
        wider = np.zeros(capacity * width)
        wider[: k * width] = getattr(state, name)[: k * width]
        setattr(state, name, wider)
    state.slots = np.concatenate([state.slots, np.zeros(capacity - k, np.int64)])


def _append(state: TriangulationState, c: Vector, value: float, prices: Vector, slot: int) -> None:
    """Append a point."""
    k, D, m = state.n_points, c.size, prices.size
    _reserve(state, D, m)
    state.points[k * D : (k + 1) * D] = c
    state.values[k], state.slots[k] = value, slot
    state.prices[k * m : (k + 1) * m] = prices
    state.n_points = k + 1
