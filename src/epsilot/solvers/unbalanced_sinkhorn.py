"""Unbalanced Sinkhorn (Chizat et al. 2018), translation invariant, and its proximal iteration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from .._types import Potentials, Vector
from ..arguments import check_positive
from ..problems.kullback_leibler import log_charge, penalised_softmin
from ..problems.plan import Core, Gibbs
from ..problems.problem import Penalised
from ..problems.work import Work
from .base import Pace, Signal, UnpublishedSolver
from .method_info import MethodInfo
from .proximal import independent, is_sharpest, next_eta, proximal_eta


@dataclass
class State:
    """X = exp(U ⊕ V - κ C), and the potentials of the last sweep."""

    U: Vector
    V: Vector
    sharpness: float  # κ
    f: Vector
    g: Vector
    change: float  # of f in the last sweep, as a share of η
    eta: float  # of the entropy, or of the proximal term of the next sweep


@dataclass(frozen=True, kw_only=True)
class UnbalancedSinkhorn(UnpublishedSolver):
    r"""Alternate exact maximisation of the dual over f and g, each jointly with a constant.

    With an entropy that is the whole method. Without one, each sweep is made for the objective
    plus :math:`η KL(X | X_k)`, where X_k is the plan so far: plans stay of the form
    exp(U ⊕ V - κ C), κ grows by 1/η a sweep, and no regularisation is left in the limit.

    Parameters
    ----------
    step_share : float, optional
        η of the proximal term as a share of the largest cost; 0.02 where missing a marginal
        costs at most half of the largest cost, else 0.05.
    """

    step_share: float | None = None

    about: ClassVar[MethodInfo] = MethodInfo(
        family="Sinkhorn",
        paper="Chizat, Peyré, Schmitzer, Vialard 2018; Séjourné, Vialard, Peyré 2022",
        year=2018,
        note="linear for fixed η and λ",
        takes_penalties=True,
    )
    pace: ClassVar[Pace] = Pace()

    def __post_init__(self) -> None:
        if self.step_share is not None:
            check_positive("step_share", self.step_share)

    def init(
        self, problem: Penalised, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[State, Work]:
        """Start from the independent plan, or with an entropy from potentials alone."""
        n, m = problem.shape
        f, g = (np.zeros(n), np.zeros(m)) if potentials is None else map(np.copy, potentials)
        if problem.eta:
            eta = problem.eta
            state = State(np.full(n, -1.0), np.zeros(m), 1 / eta, f, g, math.inf, eta)
        else:
            eta = proximal_eta(problem, self.step_share)
            state = State(*independent(problem), 0.0, f, g, math.inf, eta)
        return state, Work.of(vector=n + m)

    def step(self, problem: Penalised, state: State, rng: Generator) -> Work:
        """Make one sweep: rows, then columns."""
        geometry, eta = problem.geometry, state.eta
        sharpness = state.sharpness if problem.eta else state.sharpness + 1 / eta
        fine, before = 1 / sharpness, state.f
        lse = geometry.rough.lse_rows(fine * (state.V + state.g / eta), fine) + state.U
        f = penalised_softmin(problem.log_p, lse, eta, problem.price_a)
        f, g = _shifted(problem, f, state.g, eta)
        lse = geometry.rough.lse_cols(fine * (state.U + f / eta), fine) + state.V
        g = penalised_softmin(problem.log_q, lse, eta, problem.price_b)
        g, f = _shifted(problem.transposed, g, f, eta)
        state.f, state.g = f, g
        used = problem.p > 0
        state.change = float(np.abs(f[used] - before[used]).max()) / eta
        if not problem.eta:
            state.U, state.V = state.U + f / eta, state.V + g / eta
            state.sharpness = sharpness
            state.eta = next_eta(eta, sharpness, state.change)
        n, m = problem.shape
        return Work.of(lse=2 * geometry.pass_entries, vector=20 * (n + m))

    def signal(self, problem: Penalised, state: State) -> Signal:
        """Return whether nothing changes any more, or no exponent may grow."""
        is_finished = state.change == 0 or (
            not problem.eta and is_sharpest(problem, state.sharpness)
        )
        violation = math.nan if math.isnan(state.change) else math.inf
        return Signal(violation, is_finished, is_finished)

    def candidates(self, problem: Penalised, state: State) -> list[tuple[Core, Vector]]:
        """Return the plan of the state, and the row potential."""
        if problem.eta:
            return [(Gibbs(problem.geometry, state.f - problem.eta, state.g, problem.eta), state.f)]
        fine = 1 / state.sharpness if state.sharpness else state.eta
        return [(Gibbs(problem.geometry, fine * state.U, fine * state.V, fine), state.f)]

    def potentials(self, problem: Penalised, state: State) -> Potentials:
        """Return the potentials."""
        return state.f, state.g


def _shifted(problem: Penalised, f: Vector, g: Vector, eta: float) -> Potentials:
    """Return the best f and constant, jointly, given the best f and g without a constant."""
    a, b = problem.price_a, problem.price_b
    charges = log_charge(problem.p, f, a) - log_charge(problem.q, g, b)
    t = charges / (1 / b + 1 / (eta + a))
    share = 1.0 if a == math.inf else a / (eta + a)
    return f + share * t, g - t
