"""Sinkhorn with clipped potentials, for partial and TV-unbalanced problems with an entropy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from .._types import Potentials, Vector
from ..problems.clipped import Clipped
from ..problems.plan import Core, Gibbs
from ..problems.work import Work
from .base import Pace, Signal, UnpublishedSolver
from .method_info import MethodInfo


@dataclass(slots=True, kw_only=True)
class State:
    """Potentials within their bounds."""

    f: Vector
    g: Vector
    level: float = 0.0  # µ, the price of mass that is fixed
    change: float = math.inf  # of f, g and µ in the last sweep, as a share of η


@dataclass(frozen=True, kw_only=True)
class ClippedSinkhorn(UnpublishedSolver):
    """Maximise the dual over rows and columns in turn; each maximum is Sinkhorn's, clipped.

    In total variation a potential stays between plus and minus the price of a miss, and the best
    constant moves between rows and columns. Where the mass
    is fixed, potentials are at most 0, and µ, the price of mass, is maximised over jointly with
    either block.
    """

    about: ClassVar[MethodInfo] = MethodInfo(
        family="Sinkhorn",
        paper="Benamou, Carlier, Cuturi, Nenna, Peyré 2015; Chizat, Peyré, Schmitzer, Vialard 2018",
        year=2015,
        note="no rate is proved",
        takes_bounds=True,
    )
    pace: ClassVar[Pace] = Pace()

    def init(
        self, problem: Clipped, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[State, Work]:
        """Start from zero potentials, or from the given ones."""
        n, m = problem.shape
        f, g = (np.zeros(n), np.zeros(m)) if potentials is None else map(np.copy, potentials)
        return State(f=f, g=g - max(float(g.max()), 0.0)), Work.of(vector=n + m)

    def step(self, problem: Clipped, state: State, rng: Generator) -> Work:
        """Make one sweep: rows, then columns."""
        geometry, eta = problem.geometry, problem.eta
        before = state.f, state.g
        state.f, _ = problem.best_rows(geometry.lse_rows(state.g, eta) - 1)
        g, level = problem.best_cols(geometry.lse_cols(state.f, eta) - 1)
        state.f, state.g = problem.translated(state.f, g)
        moved = max(
            float(np.abs(x[used] - old[used]).max(initial=0.0))
            for x, old, used in zip(
                (state.f, state.g), before, (problem.p > 0, problem.q > 0), strict=True
            )
        )
        state.change = max(moved, abs(level - state.level)) / eta
        state.level = level
        n, m = problem.shape
        return Work.of(lse=2 * geometry.pass_entries, vector=20 * (n + m))

    def signal(self, problem: Clipped, state: State) -> Signal:
        """Return whether nothing changes any more."""
        is_finished = state.change == 0
        violation = math.nan if math.isnan(state.change) else math.inf
        return Signal(violation, is_finished, is_finished)

    def candidates(self, problem: Clipped, state: State) -> list[tuple[Core, Vector]]:
        """Return the plan of the potentials, and the row potential."""
        row = state.f + (state.level - problem.eta)
        return [(Gibbs(problem.geometry, row, state.g, problem.eta), state.f)]

    def potentials(self, problem: Clipped, state: State) -> Potentials:
        """Return the potentials."""
        return state.f, state.g
