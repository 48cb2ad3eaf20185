"""Stages of a barycentre's run, and the solvers that take them.

Coarse grids come first, then a descent of η, then certified stages near the goal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.random import Generator

from .._types import Matrix, Vector
from ..engine.goal import Goal
from ..engine.run_state import RunState
from ..problems.objective import Evaluation
from ..problems.work import Work
from ..solvers.method_info import MethodInfo
from .family import CoarseFamily, Family, FamilyCore, FamilyPlan, coarser


@dataclass(frozen=True)
class ContinuationTuning:
    """Numbers that decide how η falls, and when a certificate is due."""

    first_eta: float = 0.05  # share of the largest cost
    last_eta: float = 1e-10  # share of the largest cost
    fast_factor: float = 0.25  # of η, far from the goal
    slow_factor: float = 0.5  # of η, near the goal
    near_gaps: float = 4.0  # η is near the goal below this multiple of the gap to reach
    crude_rtol: float = 0.01  # relative gap that ends the descent if the goal is smaller
    rounding_share: float = 0.25  # of the gap (about η), that rounding may cost when η falls
    cost_of_error: float = 0.125  # of a unit of marginal error, as a share of the largest cost
    patience: int = 20  # steps without a certificate
    patience_share: float = 0.25  # of all steps of the stage, if that is more
    max_descent_steps: int = 200  # at one η, without a certificate
    error_margin: float = 1.5  # at a fixed η: gap expected per unit of marginal error, times this


TUNING = ContinuationTuning()


class Stage(IntEnum):
    """Kind of a stage; the value is written to checkpoints."""

    DESCENT = 0  # η falls without certificates
    FALL = 1  # η falls after certificates
    FIXED = 2  # η is part of the problem
    PROGRAMS = 3  # linear programs, without η


class FamilySignal(NamedTuple):
    """State of a solver: marginal error, column potentials, and whether it wants a certificate."""

    columns: Matrix
    violation: float = np.inf  # Σ w_k ‖X_kᵀ 1 - b‖₁ of plans with the right rows
    is_finished: bool = False
    wants_certificate: bool = False

    @property
    def has_overflowed(self) -> bool:
        """Whether the violation was measured and is not a number."""
        return bool(np.isnan(self.violation))


@dataclass(frozen=True, eq=False)
class FamilyTarget:
    """One family at one η, in a stage of the run."""

    family: Family
    eta: float
    stage: Stage
    depth: int = 0  # number of times the grid was halved
    began: int = 0  # n_iter at which the stage began; in a descent, the η
    coarse: CoarseFamily | None = None  # the next coarser family, which potentials come from

    @property
    def level(self) -> tuple[int, int, int, float]:
        """Numbers from which a resumed run finds the target."""
        return self.depth, int(self.stage), self.began, self.eta

    def columns(self, potentials: tuple[np.ndarray, ...] | None) -> Matrix:
        """Return column potentials to start from, prolonged if they are of the coarser family."""
        k, m = self.family.shape
        if potentials is None:
            return np.zeros((k, m))
        G = potentials[0].reshape(k, -1)
        if G.shape[1] == m:
            return G
        assert self.coarse is not None
        return self.coarse.prolonged(G)


@dataclass(frozen=True)
class FamilySchedule:
    """Choose the stage, the family and the η of every step, and when certificates are due."""

    family: Family
    goal: Goal
    descent_goal: Goal  # of the stages without certificates
    last: Stage = Stage.FALL  # stage that follows the descent
    starts_coarse: bool = True
    tolerance: None = field(default=None, init=False)
    evaluate_after: None = field(default=None, init=False)

    @cached_property
    def levels(self) -> list[tuple[Family, CoarseFamily | None]]:
        """Families from the finest to the coarsest, each with the next coarser one."""
        found, family = [], self.family
        is_fixed = family.eta is not None
        while True:
            coarse = coarser(family) if self.starts_coarse and not is_fixed else None
            found.append((family, coarse))
            if coarse is None:
                return found
            family = coarse.family

    def first(self) -> FamilyTarget:
        """Return the problem's own η, or a large η on the coarsest family."""
        if self.family.eta is not None:
            return self._target(Stage.FIXED, self.family.eta)
        depth = len(self.levels) - 1
        eta = TUNING.first_eta * self.levels[depth][0].cost_max
        return self._target(Stage.DESCENT, eta, depth)

    def at(self, level: Any) -> FamilyTarget:
        """Return the target of a checkpoint."""
        depth, stage, began, eta = level
        if not (isinstance(depth, int) and isinstance(began, int) and depth < len(self.levels)):
            raise ValueError("level")
        return self._target(Stage(stage), float(eta), depth, began)

    def _target(self, stage: Stage, eta: float, depth: int = 0, began: int = 0) -> FamilyTarget:
        family, coarse = self.levels[depth]
        return FamilyTarget(family, eta, stage, depth, began, coarse)

    def is_due(self, target: FamilyTarget, signal: FamilySignal, run: RunState) -> bool:
        """Tell whether the marginal error promises the gap, or none was certified for long."""
        if target.stage in (Stage.DESCENT, Stage.PROGRAMS):
            return False
        n, last = run.n_iter - target.began, max(run.evaluated_at - target.began, 0)
        if n >= last + max(TUNING.patience, TUNING.patience_share * n):
            return True
        if target.stage is Stage.FIXED:
            return run.measured.get("rate", 0.0) * signal.violation <= self.goal.allowed(0.0)
        return self._is_settled(target, signal, run)

    def _is_settled(self, target: FamilyTarget, signal: FamilySignal, run: RunState) -> bool:
        """Tell whether rounding is expected to cost a small share of η."""
        rate = run.measured.get("rate", TUNING.cost_of_error * self.family.cost_max)
        return rate * signal.violation <= TUNING.rounding_share * target.eta

    def certified(
        self,
        target: FamilyTarget,
        signal: FamilySignal,
        found: Evaluation[FamilyPlan, Any],
        run: RunState,
    ) -> None:
        """Measure the cost of a unit of marginal error, and decide whether η may fall."""
        gap, error = found.upper - found.lower, found.marginal_error
        if target.stage is Stage.FIXED and error > 0:
            run.measured["rate"] = TUNING.error_margin * gap / error
        if target.stage is not Stage.FALL:
            return
        was_settled, added = self._is_settled(target, signal, run), found.plan.rounding_cost
        falls = added <= TUNING.rounding_share * gap and target.eta > self._last_eta
        rate = run.measured.get("rate", TUNING.cost_of_error * self.family.cost_max)
        if error > 0:
            rate = added / error
        if was_settled and not falls:
            rate *= 2  # the error was larger than expected
        run.measured = {"rate": rate, "falls": float(falls)}

    def after(
        self, target: FamilyTarget, signal: FamilySignal, run: RunState
    ) -> FamilyTarget | None:
        """Return the next target: a smaller η, a finer family or the next stage."""
        if target.stage is Stage.DESCENT:
            return self._descended(target, signal, run)
        is_new = run.evaluated_at == run.n_iter
        if target.stage is Stage.FALL and is_new and run.measured.get("falls"):
            return replace(target, eta=target.eta * TUNING.slow_factor)
        return None

    def _descended(
        self, target: FamilyTarget, signal: FamilySignal, run: RunState
    ) -> FamilyTarget | None:
        """Lower η until it is near the goal; then go on to the finer family or the next stage."""
        family, eta, unit = target.family, target.eta, target.family.cost_max
        share = TUNING.rounding_share
        if not TUNING.cost_of_error * unit * signal.violation <= share * eta:
            is_over = run.n_iter - target.began >= TUNING.max_descent_steps
            return self._beyond(target, run) if is_over else None
        _, lower = family.dual(signal.columns.ravel())
        crude = TUNING.crude_rtol * abs(lower + self.family.shift)
        near = TUNING.near_gaps * max(self.descent_goal.allowed(lower), crude)
        if eta <= max(near, TUNING.last_eta * unit):
            return self._beyond(target, run)
        is_far = eta > TUNING.near_gaps * near
        factor = TUNING.fast_factor if is_far else TUNING.slow_factor
        return replace(target, eta=eta * factor, began=run.n_iter)

    def _beyond(self, target: FamilyTarget, run: RunState) -> FamilyTarget:
        """Return the target after the descent on a family, at the same η."""
        if target.depth > 0:
            return self._target(Stage.DESCENT, target.eta, target.depth - 1, run.n_iter)
        eta = 0.0 if self.last is Stage.PROGRAMS else target.eta
        return self._target(self.last, eta, 0, run.n_iter)

    def is_last(self, target: FamilyTarget) -> bool:
        """Tell whether a solver that has finished this target has finished the run."""
        if target.stage is Stage.FALL:
            return target.eta <= self._last_eta
        return target.stage is Stage.PROGRAMS

    @property
    def _last_eta(self) -> float:
        return TUNING.last_eta * self.family.cost_max


class FamilyState(Protocol):
    """State of an iteration: its column potentials, and how far its plans are from a common b."""

    columns: Matrix  # (k, m)
    violation: float


class FamilySolver(ABC):
    """A solver of barycentres with its options, as the driver runs it.

    A step computes first and changes the state last, so that an abandoned step leaves the state
    whole.
    """

    about: ClassVar[MethodInfo]
    patience: ClassVar[int] = 100_000
    is_atomic: ClassVar[bool] = True

    def check(self, family: Family) -> None:
        """Refuse a family that the solver cannot work on."""
        return

    def remembered_bytes(self, family: Family) -> int:
        """Return the bytes of the steps that the solver remembers."""
        return 0

    def schedule(self, family: Family, goal: Goal) -> FamilySchedule:
        """Return the stages of a run: from coarse grids and large η to the goal."""
        return FamilySchedule(family, goal, goal)

    @abstractmethod
    def init(
        self, target: FamilyTarget, rng: Generator, potentials: tuple[Vector, ...] | None = None
    ) -> tuple[Any, Work]:
        """Return the first state, from column potentials as one vector if they are given."""

    @abstractmethod
    def step(self, target: FamilyTarget, state: Any, rng: Generator) -> Work:
        """Advance the state in place by one step."""

    def signal(self, target: FamilyTarget, state: Any) -> FamilySignal:
        """Return the marginal error and the column potentials."""
        is_finished = target.family.cost_max * state.violation <= TUNING.rounding_share * target.eta
        return FamilySignal(state.columns, float(state.violation), is_finished)

    def candidates(self, target: FamilyTarget, state: Any) -> list[tuple[FamilyCore, Vector]]:
        """Return the Gibbs plans of the column potentials; none of a coarser family."""
        if target.depth > 0:
            return []
        G: Matrix = state.columns
        return [(target.family.gibbs_core(G, target.eta), G.ravel())]

    def potentials(self, target: FamilyTarget, state: FamilyState) -> tuple[Vector]:
        """Return the column potentials as one vector."""
        return (state.columns.ravel(),)
