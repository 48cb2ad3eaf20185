"""Search on boxes: halve the box of cross moments whose bound is least, in any dimension.

On the box with centre m and half-widths w, -8|Z|² >= -16 <m, Z> + 8(|m|² - |w|²), so the objective
is at least K + 8(|m|² - |w|²) - V(m) there.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from .. import memory
from .._types import Index, Vector
from ..problems.work import Work
from .cover import Boxes
from .oracle import Answer
from .search import NEW_BEST, SAME_VALUE, GromovTarget, Search, SearchState
from .tuning import TUNING

#: States of a box.
OPEN, CLOSED, HALVED = 0, 1, 2


@dataclass
class BoxState(SearchState):
    """All boxes in the order of their making; children follow their parents."""

    n_boxes: int
    lows: Vector  # (capacity, D), flat
    highs: Vector
    values: Vector  # bounds of V at the centres
    bounds: Vector  # of the objective without K
    sources: Index  # the box whose value gives the bound
    states: Index  # OPEN, CLOSED or HALVED
    prices: Vector  # (slots, m), flat: potentials of open boxes and of those that bound leaves
    price_slots: Index  # of every box, -1 for none

    def __post_init__(self) -> None:
        """Begin without a queue; it is no field, since the boxes determine it."""
        self.queue: list[tuple[float, int]] | None = None
        self.n_kept = 0  # rows of potentials written; one is never written again
        self.n_live = 0  # rows that are still needed
        self.users: list[int] = []  # leaves that the value of each box bounds
        self.closed = math.inf  # the least bound of boxes that are put aside

    def fits(self, target: GromovTarget) -> bool:
        """Tell whether arrays from a file belong together, and prove their values again."""
        D, m, k = target.problem.dimension, target.problem.q.size, self.n_boxes
        capacity = self.values.size
        arrays = (self.bounds, self.sources, self.states, self.price_slots)
        sizes = all(x.size == capacity for x in arrays) and 0 <= k <= capacity
        if not (sizes and self.lows.size == self.highs.size == capacity * D):
            return False
        if self.prices.size % m or not self.plan_fits(target.problem):
            return False
        n_slots = self.prices.size // m
        is_inside = (self.sources[:k] >= 0).all() and (self.sources[:k] < max(k, 1)).all()
        slots = self.price_slots[:k]
        if not (is_inside and (slots >= -1).all() and (slots < max(n_slots, 1)).all()):
            return False
        is_needed = self.states[:k] == OPEN
        if not (slots[is_needed] >= 0).all():
            return False
        middles = ((self.lows + self.highs) / 2).reshape(capacity, D)
        prices = self.prices.reshape(-1, m)
        for b in np.flatnonzero(slots >= 0):
            c, v = middles[b], float(self.values[b])
            proved = target.oracle.bound(c, prices[slots[b]])
            if not proved <= v + SAME_VALUE * (1 + abs(v)):
                return False
        return True

    def make_queue(self) -> list[tuple[float, int]]:
        """Return the open boxes by their bounds, and count potentials and their users."""
        k = self.n_boxes
        is_open = self.states[:k] == OPEN
        queue = [(float(self.bounds[b]), int(b)) for b in np.flatnonzero(is_open)]
        heapq.heapify(queue)
        closed = self.bounds[:k][self.states[:k] == CLOSED]
        self.closed = float(closed.min()) if closed.size else math.inf
        self.n_kept = int(self.price_slots[:k].max(initial=-1)) + 1
        self.n_live = int((self.price_slots[:k] >= 0).sum())
        leaves = self.states[:k] != HALVED
        self.users = np.bincount(self.sources[:k][leaves], minlength=k).tolist()
        return queue

    def release(self, b: int) -> None:
        """Free the potentials of a box that bounds no leaf and will not be halved."""
        if self.price_slots[b] >= 0 and self.users[b] == 0 and self.states[b] != OPEN:
            self.price_slots[b] = -1
            self.n_live -= 1


@dataclass(frozen=True)
class Bisection(Search):
    """Halve the longest side of the boxes of least bound."""

    def init(
        self, target: GromovTarget, rng: Generator, potentials: Any = None
    ) -> tuple[BoxState, Work]:
        """Return a state without boxes."""
        none, nothing = np.zeros(0), np.zeros(0, dtype=np.int64)
        state = BoxState(
            **self.first_plan(target, rng),
            n_boxes=0, lows=none, highs=none, values=none, bounds=none, sources=nothing,
            states=nothing, prices=none, price_slots=nothing,
        )  # fmt: skip
        return state, Work()

    def prepare(self, target: GromovTarget, state: BoxState) -> bool:
        """Bound the box of all cross moments, or queue the boxes of a resumed run."""
        if state.queue is not None:
            return False
        is_new = state.n_boxes == 0
        if is_new:
            low, high = target.problem.box()
            answer = target.oracle.answer((low + high) / 2)
            self._reserve(state, 1, low.size, target.problem.q.size)
            state.note(answer)
            self._append(state, low, high, answer, None)
        state.queue = state.make_queue()
        if target.problem.dimension == 0:
            state.n_started = len(state.starts)
        return is_new

    def lower(self, state: BoxState) -> float:
        """Return the least bound of all leaves."""
        if state.queue is None:
            return -math.inf
        return min(state.queue[0][0] if state.queue else math.inf, state.closed)

    def refine(self, target: GromovTarget, state: BoxState) -> None:
        """Halve the boxes of least bound, and solve at the centres of their halves."""
        assert state.queue is not None
        problem, oracle = target.problem, target.oracle
        D, m = problem.dimension, problem.q.size
        chosen = [b for _, b in heapq.nsmallest(TUNING.boxes_per_step, state.queue)]
        if not chosen or D == 0:
            state.is_stuck = True
            return
        lows = np.repeat(state.lows.reshape(-1, D)[chosen], 2, axis=0)
        highs = np.repeat(state.highs.reshape(-1, D)[chosen], 2, axis=0)
        sides = (highs - lows)[::2].argmax(axis=1)
        for k, side in enumerate(sides):
            middle = (lows[2 * k, side] + highs[2 * k, side]) / 2
            highs[2 * k, side] = lows[2 * k + 1, side] = middle
        prices = np.zeros((len(lows), m))
        if oracle.is_matching:
            held = state.prices.reshape(-1, m)[state.price_slots[chosen]]
            prices = np.repeat(held, 2, axis=0)
        answers = oracle.answers((lows + highs) / 2, prices, self.loose_gap(target, state))
        self._reserve(state, len(answers), D, m)
        # Everything is known and has a place: from here on the state changes.
        before = state.best
        low = max(problem.constant + self.lower(state), problem.floor)
        tolerance = TUNING.closed_share * target.goal.allowed(low)
        for _ in chosen:
            heapq.heappop(state.queue)
        for k, b in enumerate(chosen):
            state.states[b] = HALVED
            state.users[state.sources[b]] -= 1
            for half in (2 * k, 2 * k + 1):
                state.note(answers[half])
                self._append(state, lows[half], highs[half], answers[half], b)
            state.release(b)
            state.release(int(state.sources[b]))
        can_keep = 8 * m * state.n_live <= TUNING.max_kept_bytes
        for b in range(state.n_boxes - len(answers), state.n_boxes):
            if state.bounds[b] >= state.best - tolerance:
                state.states[b] = CLOSED
                state.closed = min(state.closed, float(state.bounds[b]))
                if not can_keep:
                    state.users[b] = 0
                state.release(b)
            else:
                heapq.heappush(state.queue, (float(state.bounds[b]), b))
        if not state.queue:
            state.is_stuck = True
        if state.best < before - NEW_BEST * problem.scale:
            self.descend(target, state, state.moment, None)

    def insert_found(
        self, target: GromovTarget, state: BoxState, c: Vector, answer: Answer
    ) -> None:
        """Ignore values between the centres of boxes."""

    def _append(
        self,
        state: BoxState,
        low: Vector,
        high: Vector,
        answer: Answer,
        parent: int | None,
    ) -> None:
        """Append a box with its bound, which is at least that of the box it comes from.

        Its potentials prove its value, and the problems of its halves start from them.
        """
        k, D, m = state.n_boxes, low.size, answer.prices.size
        middle, width = (low + high) / 2, (high - low) / 2
        bound = 8 * float((middle**2 - width**2).sum()) - answer.value
        source = k
        if parent is not None and state.bounds[parent] > bound:
            bound, source = float(state.bounds[parent]), int(state.sources[parent])
        state.lows[k * D : (k + 1) * D], state.highs[k * D : (k + 1) * D] = low, high
        state.values[k], state.bounds[k], state.sources[k] = answer.value, bound, source
        state.states[k], state.price_slots[k] = OPEN, state.n_kept
        state.prices[state.n_kept * m : (state.n_kept + 1) * m] = answer.prices
        state.n_boxes, state.n_kept, state.n_live = k + 1, state.n_kept + 1, state.n_live + 1
        state.users.append(0)
        state.users[source] += 1

    @staticmethod
    def _reserve(state: BoxState, count: int, D: int, m: int) -> None:
        """Make room for boxes and their potentials, or raise and change nothing.

        Rows of potentials that are needed no longer are dropped when the array is full, in a new
        array: covers refer to the old one.
        """
        k = state.n_boxes
        if k + count > state.values.size:
            capacity = max(TUNING.first_boxes, 2 * state.values.size, k + count)
            memory.ask(
                8 * capacity * (2 * D + 5), f"a table of {capacity:,} boxes", "use a larger rtol"
            )
            for name in ("lows", "highs", "values", "bounds", "sources", "states", "price_slots"):
                held = getattr(state, name)
                wider = np.zeros(capacity * (D if name in ("lows", "highs") else 1), held.dtype)
                wider[: held.size] = held
                setattr(state, name, wider)
        if (state.n_kept + count) * m > state.prices.size:
            n_rows = state.n_live + max(2 * TUNING.boxes_per_step, count, state.n_live)
            memory.ask(
                8 * n_rows * m, f"a table of potentials of {n_rows:,} boxes", "use a larger rtol"
            )
            live = np.flatnonzero(state.price_slots[:k] >= 0)
            grown = np.zeros((n_rows, m))
            grown[: live.size] = state.prices.reshape(-1, m)[state.price_slots[live]]
            state.price_slots[live] = np.arange(live.size)
            state.prices, state.n_kept = grown.ravel(), live.size

    def cover(self, target: GromovTarget, state: BoxState) -> Boxes:
        """Return a copy of the boxes."""
        k, D = state.n_boxes, target.problem.dimension
        leaves = np.flatnonzero(state.states[:k] != HALVED)
        lows, highs = (x[: k * D].reshape(k, D).copy() for x in (state.lows, state.highs))
        rows, slots = state.prices.reshape(-1, target.problem.q.size), state.price_slots[:k]
        values, sources = state.values[:k].copy(), state.sources[leaves]
        return Boxes(lows, highs, values, leaves, sources, rows, slots.copy())
