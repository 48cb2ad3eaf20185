"""The protocol of solvers of barycentres."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

from numpy.random import Generator

from .._types import Matrix, Vector
from ..engine.goal import Goal
from ..problems.work import Work
from ..solvers.method_info import MethodInfo
from .family import Family, FamilyCore
from .stages import TUNING, FamilySchedule, FamilySignal, FamilyTarget


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
