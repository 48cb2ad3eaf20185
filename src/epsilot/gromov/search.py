"""What both searches share: local descents, the best plan, and the protocol of the driver."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.random import Generator

from .._types import Index, Matrix, Vector
from ..errors import TooLarge
from ..problems.plan import Arcs
from ..problems.work import Work
from ..solvers.base import ResizableState, Signal
from .cover import Cover
from .objective import Bracket, GromovGoal, GromovObjective, is_reached
from .oracle import Answer, TransportOracle
from .problem import GromovProblem
from .tuning import TUNING

#: Most steps of a descent, and the least fall of the objective, as a share of K, that continues it.
MAX_DESCENT, LEAST_FALL = 50, 1e-10
#: Fall of the best objective, as a share of K, after which a descent starts from the new plan.
NEW_BEST = 1e-9
#: Entries of costs that one step of the driver works through, at least one problem.
ENTRIES_PER_STEP = 1 << 18
#: Relative difference of two values of one matrix that is round-off.
SAME_VALUE = 1e-12
#: Share of the allowed gap to which large transport problems are solved.
LOOSE_SHARE = 0.05
#: Most axes that starts reflect: each doubles their number.
MAX_REFLECTED = 4


class GromovTarget(NamedTuple):
    """The one target of a run."""

    objective: GromovObjective
    goal: GromovGoal
    eta: float = 0.0
    level: float = 1.0

    @property
    def problem(self) -> GromovProblem:
        """The clouds."""
        return self.objective.problem

    @property
    def oracle(self) -> TransportOracle:
        """The transport problems."""
        return self.objective.oracle


@dataclass
class SearchState(ResizableState):
    """The best plan, and the starts of descents that are left."""

    n_ot: int  # transport problems solved
    starts: Vector  # matrices, one after the other; ends of descents on a sample replace them
    n_started: int
    sampled: Vector  # objectives at the ends of descents on a sample
    best: float  # objective of the best plan, without K
    i: Index
    j: Index
    flow: Vector
    moment: Vector  # Z of the best plan
    is_stuck: bool  # nothing can be refined: round-off is all that is left, or memory is full

    def __deepcopy__(self, memo: Any) -> Self:
        """Copy the fields only."""
        held = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        copies: dict[str, Any] = {name: copy(x) for name, x in held.items()}
        return type(self)(**copies)

    def note(self, answer: Answer) -> None:
        """Count an answer, and keep its plan if it is the best."""
        self.n_ot += 1
        if answer.objective < self.best:
            self.best, self.moment = answer.objective, answer.moment.copy()
            i, j, flow = answer.plan
            self.i, self.j, self.flow = i.copy(), j.copy(), flow.copy()

    def has_plan(self) -> bool:
        """Tell whether a transport problem was solved."""
        return math.isfinite(self.best)

    def plan_fits(self, problem: GromovProblem) -> bool:
        """Tell whether a plan from a file has arcs of the problem."""
        n, m = problem.p.size, problem.q.size
        if not self.i.size == self.j.size == self.flow.size:
            return False
        if self.moment.size != problem.dimension or self.starts.size % max(1, problem.dimension):
            return False
        if not (np.isfinite(self.starts).all() and np.isfinite(self.moment).all()):
            return False
        is_inside = self.i.size == 0 or (
            self.i.min() >= 0 and self.i.max() < n and self.j.min() >= 0 and self.j.max() < m
        )
        is_counted = self.n_ot >= 0 and self.n_started >= self.sampled.size
        return bool(is_inside and is_counted)


@dataclass(frozen=True)
class Search(ABC):
    """A search for the least 8|A|² - V(A), as the driver runs it.

    A step changes the state only between oracle calls, so that an abandoned one leaves it whole.
    """

    rtol: float
    atol: float
    n_starts: int
    max_ot: int  # 0: no limit
    is_atomic: ClassVar[bool] = True
    patience: ClassVar[int] = 1_000_000_000

    @abstractmethod
    def init(
        self, target: GromovTarget, rng: Generator, potentials: Any = None
    ) -> tuple[Any, Work]:
        """Return the first state, with the starts of all descents."""

    def step(self, target: GromovTarget, state: Any, rng: Generator) -> Work:
        """Descend from one start, or refine the cover by a few oracle calls."""
        before, entries = state.n_ot, target.oracle.all_entries
        try:
            if not self.prepare(target, state) and not self._start(target, state):
                self.refine(target, state)
        except TooLarge:
            if not self.is_ready(state):
                raise
            state.is_stuck = True  # the bounds hold
        n_ot, entries = state.n_ot - before, target.oracle.all_entries - entries
        return Work.of(transport=n_ot, pivot=entries)

    def _start(self, target: GromovTarget, state: Any) -> bool:
        """Descend from one start, if any is left; return whether one was.

        Large clouds start from the best end of all descents on a sample of their points.
        """
        sample, D = target.oracle.sample, target.problem.dimension
        k, n_starts = state.n_started, state.starts.size // max(D, 1)
        if k < n_starts and sample is not None:
            c = state.starts[k * D : (k + 1) * D]
            c, answer = self._descend(target, state, c, None, sample)
            state.starts[k * D : (k + 1) * D] = answer.moment
            state.sampled = np.append(state.sampled, answer.objective)
        elif k < n_starts or (k == n_starts and state.sampled.size):
            chosen = k if k < n_starts else int(state.sampled.argmin())
            c = state.starts[chosen * D : (chosen + 1) * D]
            c, answer = self.descend(target, state, c, None)
            self.insert_found(target, state, c, answer)
        else:
            return False
        state.n_started += 1
        return True

    @abstractmethod
    def prepare(self, target: GromovTarget, state: Any) -> bool:
        """Make the first cover, or the one of a resumed run; return True if that was a step."""

    @abstractmethod
    def refine(self, target: GromovTarget, state: Any) -> None:
        """Refine the cover where its bound is least."""

    @abstractmethod
    def insert_found(self, target: GromovTarget, state: Any, c: Vector, answer: Answer) -> None:
        """Use the value at the end of a descent."""

    @abstractmethod
    def lower(self, state: Any) -> float:
        """Return the least bound of the cover, without K."""

    @abstractmethod
    def cover(self, target: GromovTarget, state: Any) -> Cover:
        """Return a copy of the cover."""

    def is_ready(self, state: Any) -> bool:
        """Tell whether there is a plan and a cover."""
        return bool(state.has_plan() and self.lower(state) > -math.inf)

    def is_over(self, target: GromovTarget, state: Any) -> bool:
        """Tell whether the goal or the limit of oracle calls is reached, or nothing is left."""
        if state.is_stuck or (self.max_ot and state.n_ot >= self.max_ot):
            return True
        K, floor = target.problem.constant, target.problem.floor
        return is_reached(target.goal, K + state.best, max(K + self.lower(state), floor))

    def signal(self, target: GromovTarget, state: Any) -> Signal:
        """Report the end of the search."""
        is_over = self.is_over(target, state)
        return Signal(is_finished=is_over, wants_certificate=is_over and state.has_plan())

    def candidates(self, target: GromovTarget, state: Any) -> list[tuple[Bracket, Vector]]:
        """Return the best plan and the cover."""
        if not self.is_ready(state):
            return []
        shape = target.problem.p.size, target.problem.q.size
        plan = Arcs(shape, state.i, state.j, state.flow).above(0.0)
        lower = target.problem.constant + self.lower(state)
        return [(Bracket(plan, lower, self.cover(target, state)), state.moment)]

    def potentials(self, target: GromovTarget, state: Any) -> tuple[Vector]:
        """Return the cross moment of the best plan."""
        return (state.moment,)

    # -- plans -------------------------------------------------------------------------------

    def descend(
        self, target: GromovTarget, state: SearchState, c: Vector, prices: Vector | None
    ) -> tuple[Vector, Answer]:
        """Take full Frank-Wolfe steps while the objective falls; return the last c, and its answer.

        The objective is concave, so that full steps never raise it.
        """
        return self._descend(target, state, c, prices, target.oracle)

    def _descend(
        self,
        target: GromovTarget,
        state: SearchState,
        c: Vector,
        prices: Vector | None,
        oracle: TransportOracle,
    ) -> tuple[Vector, Answer]:
        """Descend on the clouds, or on a sample of them, of which no plan is kept."""
        K, before, is_whole = target.problem.scale, math.inf, oracle is target.oracle
        for k in range(MAX_DESCENT):
            answer = oracle.answer(c, prices, self.loose_gap(target, state))
            if is_whole:
                state.note(answer)
            else:
                state.n_ot += 1
            if answer.objective > before - LEAST_FALL * K or k == MAX_DESCENT - 1:
                break
            if self.max_ot and state.n_ot >= self.max_ot:
                break
            before, c, prices = answer.objective, answer.moment, answer.prices
        return c, answer

    def known_bound(
        self, target: GromovTarget, state: SearchState, c: Vector, prices: Vector
    ) -> tuple[float, Vector] | None:
        """Return a bound of V and its potentials if they are good enough without a problem solved.

        Any potentials prove a bound in one pass over the costs: those of other matrices, or of some
        points. Far from the optimum the bound of the objective is then well above the best one.
        """
        low, oracle = self.lower(state), target.oracle
        share = TUNING.closing_share if oracle.part is None else TUNING.large_closing_share
        enough, square = low + share * (state.best - low), 8 * float((c * c).sum())
        value = oracle.bound(c, prices)
        if square - value >= enough:
            return value, prices
        if oracle.part is None:
            return None
        prices = oracle.rough_prices(c)
        state.n_ot += 1
        value = oracle.bound(c, prices)
        return (value, prices) if square - value >= enough else None

    def loose_gap(self, target: GromovTarget, state: SearchState) -> float:
        """Return the gap to which large transport problems are solved."""
        problem, best, sample = target.problem, state.best, target.oracle.sample
        if not state.has_plan():
            if not state.sampled.size or sample is None:
                return 0.0
            problem, best = sample.problem, float(state.sampled.min())
        value = max(problem.constant + best, problem.floor)
        return LOOSE_SHARE * target.goal.allowed(value)

    def first_plan(self, target: GromovTarget, rng: Generator) -> dict[str, Any]:
        """Return the fields of a state without a plan."""
        none = np.zeros(0, dtype=np.int64)
        return {
            "n_ot": 0,
            "starts": _starts(target.problem, self.n_starts, rng).ravel(),
            "n_started": 0,
            "sampled": np.zeros(0),
            "best": math.inf,
            "i": none,
            "j": none,
            "flow": np.zeros(0),
            "moment": np.zeros(target.problem.dimension),
            "is_stuck": False,
        }


def _starts(problem: GromovProblem, n_random: int, rng: Generator) -> Matrix:
    """Return matrices that map principal axes to principal axes with all signs, and random ones."""
    sx, sy = problem.deviations
    k = min(sx.size, sy.size)
    found = []
    for signs in range(1 << min(k, MAX_REFLECTED)):
        A = np.zeros((sx.size, sy.size))
        for d in range(k):
            A[d, d] = sx[d] * sy[d] * (1.0 if signs >> d & 1 else -1.0)
        found.append(A.ravel())
    low, high = problem.box()
    found += [low + (high - low) * rng.random(low.size) for _ in range(n_random)]
    return np.array(found[: len(found) if problem.dimension else 1])
