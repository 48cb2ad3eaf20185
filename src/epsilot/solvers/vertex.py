"""What methods share that find a vertex and its potentials in one step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from .._types import Index, Potentials, Vector
from ..problems.plan import Arcs, Core
from ..problems.problem import Additive
from ..problems.work import Work
from .base import DirectSolver


@dataclass(slots=True)
class State:
    """The basis the simplex ended with."""

    row: Vector  # row potential
    lam: Vector  # column potential
    i: Index  # rows, columns and flow of the arcs in use
    j: Index
    flow: Vector
    is_done: bool


class OneStep(DirectSolver[State]):
    """A simplex whose only step solves."""

    def init(
        self, problem: Additive, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[State, Work]:
        """Start from the independent plan of no entries."""
        n, m = problem.shape
        row, lam = (np.zeros(n), np.zeros(m)) if potentials is None else potentials
        no_arcs = np.zeros(0, dtype=np.int64)
        return State(row, lam, no_arcs, no_arcs, np.zeros(0), False), Work()

    def candidates(self, problem: Additive, state: State) -> list[tuple[Core, Vector]]:
        """Return the optimal plan and the optimal dual."""
        return [(Arcs(problem.shape, state.i, state.j, state.flow), state.row)]

    def potentials(self, problem: Additive, state: State) -> Potentials:
        """Return the optimal dual."""
        return state.row, state.lam
