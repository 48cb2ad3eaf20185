"""Sinkhorn for unbalanced and partial problems.

Kullback-Leibler penalties: Chizat et al. 2018, made translation invariant. Without an entropy each
sweep is a proximal step, for the objective plus η KL(X | K), where K is the plan so far. Plans are
exp(U ⊕ V - κ C), and κ grows by 1/η per step, so that no regularisation is left in the limit. The
marginals of such plans may converge slowly where costs have ties. So at the end, an exact transport
between the marginals that the potentials prefer is another candidate.

Partial and TV-unbalanced problems with an entropy: the potentials are clipped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from .. import deadline
from .._types import Potentials, Vector
from ..arguments import check_positive
from ..geometry.tuning import TUNING as GEOMETRY_TUNING
from ..kernels.vectors import exp, log
from ..problems.kullback_leibler import charges, penalised_softmin
from ..problems.plan import Arcs, Core, Gibbs
from ..problems.prices import Price, balancing_constant, kept, least
from ..problems.problem import Additive, Clipped, Penalised
from ..problems.work import Work
from .base import Pace, Signal, SolverState, UnpublishedSolver
from .method_info import MethodInfo
from .network_simplex import NetworkSimplex
from .restricted_simplex import RestrictedSimplex


@dataclass(frozen=True, kw_only=True)
class ProximalTuning:
    """Tuning parameters of the proximal steps of unbalanced methods."""

    low_price_eta: float = 0.02  # first η as a share of the largest cost, for low prices
    high_price_eta: float = 0.05  # and for high prices
    high_price: float = 0.5  # share of the largest cost above which prices are high
    max_exponent: float = 1e10  # κ max C: beyond, it has no digits left
    # A few very large costs would make steps of constant length too short for the others. So η
    # falls after some sweeps, while a sweep changes potentials by less than a share of it.
    first_sweeps: float = 200.0
    small_change: float = 1e-4


TUNING = ProximalTuning()


def proximal_eta(problem: Penalised, share: float | None = None) -> float:
    """Return the first η of the proximal term, by default a share that depends on the prices."""
    size = cost_size(problem)
    if share is None:
        is_high = min(least(problem.price_a), least(problem.price_b)) > TUNING.high_price * size
        share = TUNING.high_price_eta if is_high else TUNING.low_price_eta
    return share * size


def next_eta(eta: float, sharpness: float, change: float) -> float:
    """Return the η of the next sweep, after one that changed potentials by this share of η."""
    return min(eta, TUNING.first_sweeps / sharpness) if change < TUNING.small_change else eta


def is_sharpest(problem: Penalised, sharpness: float) -> bool:
    """Tell whether exponents are at their limit."""
    return sharpness * cost_size(problem) > TUNING.max_exponent


def independent(problem: Penalised) -> tuple[Vector, Vector]:
    """Return (U, V) of the independent plan p qᵀ / √(|p| |q|)."""
    mean = 0.5 * log(float(problem.p.sum() * problem.q.sum()))
    return problem.log_p - 0.5 * mean, problem.log_q - 0.5 * mean


def cost_size(problem: Penalised) -> float:
    """Return the largest absolute cost, or 1 where all costs are zero."""
    return max(abs(x) for x in problem.geometry.bounds) or 1.0


@dataclass
class UnbalancedSinkhornState(SolverState):
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

    With an entropy that is the whole method. Without one, each sweep is a step for the objective
    plus :math:`η KL(X | X_k)`, where X_k is the plan so far. Plans keep the form
    exp(U ⊕ V - κ C), κ grows by 1/η per sweep, and no regularisation is left in the limit.

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
        form=Penalised.form,
        takes_arcs=True,
    )
    pace: ClassVar[Pace] = Pace()

    def __post_init__(self) -> None:
        if self.step_share is not None:
            check_positive("step_share", self.step_share)

    def init(
        self, problem: Penalised, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[UnbalancedSinkhornState, Work]:
        """Start from the independent plan, or from potentials alone with an entropy."""
        n, m = problem.shape
        f, g = (np.zeros(n), np.zeros(m)) if potentials is None else map(np.copy, potentials)
        if problem.eta:
            eta = problem.eta
            U, V, sharpness = np.full(n, -1.0), np.zeros(m), 1 / eta
        else:
            eta = proximal_eta(problem, self.step_share)
            (U, V), sharpness = independent(problem), 0.0
        state = UnbalancedSinkhornState(U, V, sharpness, f, g, math.inf, eta)
        return state, Work.of(vector=n + m)

    def step(self, problem: Penalised, state: UnbalancedSinkhornState, rng: Generator) -> Work:
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

    def signal(self, problem: Penalised, state: UnbalancedSinkhornState) -> Signal:
        """Finish when potentials no longer change, or exponents are at their limit."""
        is_finished = self._is_finished(problem, state)
        violation = math.nan if math.isnan(state.change) else math.inf
        return Signal(violation, is_finished, is_finished)

    def _is_finished(self, problem: Penalised, state: UnbalancedSinkhornState) -> bool:
        return state.change == 0 or (not problem.eta and is_sharpest(problem, state.sharpness))

    def candidates(
        self, problem: Penalised, state: UnbalancedSinkhornState
    ) -> list[tuple[Core, Vector]]:
        """Return the plan of the state, and the row potential; at the end also an exact plan."""
        if problem.eta:
            return [(Gibbs(problem.geometry, state.f - problem.eta, state.g, problem.eta), state.f)]
        fine = 1 / state.sharpness if state.sharpness else state.eta
        found: list[tuple[Core, Vector]] = [
            (Gibbs(problem.geometry, fine * state.U, fine * state.V, fine), state.f)
        ]
        if self._is_finished(problem, state):
            found += preferred_transport(problem, state.f, state.g)
        return found

    def potentials(self, problem: Penalised, state: UnbalancedSinkhornState) -> Potentials:
        """Return the potentials."""
        return state.f, state.g


def preferred_transport(problem: Penalised, f: Vector, g: Vector) -> list[tuple[Core, Vector]]:
    """Return an optimal plan between p exp(-f/λ_a) and q exp(-g/λ_b), with f and its own duals.

    With optimal potentials these are the marginals of every optimal plan.
    """
    geometry, (n, m) = problem.geometry, problem.shape
    if geometry.is_separable and n * m > GEOMETRY_TUNING.max_kept_entries:
        return []
    r = _preferred(problem.p, f, problem.price_a)
    c = _preferred(problem.q, g, problem.price_b)
    mass, of_c = float(r.sum()), float(c.sum())
    if not (0 < mass < math.inf and 0 < of_c < math.inf):
        return []
    low, rng = geometry.bounds[0], np.random.default_rng(0)
    simplex: Any = RestrictedSimplex() if geometry.allowed is None else NetworkSimplex()
    target = Additive(geometry.shifted(-low), 0.0, r / mass, c / of_c)
    state, _ = simplex.init(target, rng, (f - low, g))
    while not state.is_done:
        deadline.check()
        simplex.step(target, state, rng)
    (core, row), *_ = simplex.candidates(target, state)
    assert isinstance(core, Arcs)
    core = replace(core, flow=mass * core.flow)
    return [(core, f), (core, row + low)]


def _preferred(weights: Vector, potential: Vector, price: Price) -> Vector:
    """Return the marginal p exp(-f/λ), 0 where there is no weight."""
    used, marginal = weights > 0, np.zeros_like(weights)
    marginal[used] = weights[used] * exp(-potential[used] / kept(price, used))
    return marginal


def _shifted(problem: Penalised, f: Vector, g: Vector, eta: float) -> Potentials:
    """Return f and g after joint maximisation over f and a constant."""
    of_f, of_g = charges(problem.p, f, problem.price_a), charges(problem.q, g, problem.price_b)
    fall = 1 / (eta + kept(problem.price_a, problem.p > 0))
    t = balancing_constant(of_f[0], fall, *of_g)
    a = problem.price_a
    share = np.where(np.isinf(a), 1.0, np.where(np.isinf(a), 1.0, a) / (eta + a))
    return f + share * t, g - t


@dataclass(slots=True, kw_only=True)
class ClippedSinkhornState(SolverState):
    """Potentials within their bounds."""

    f: Vector
    g: Vector
    level: float = 0.0  # µ, the price of mass that is fixed
    change: float = math.inf  # of f, g and µ in the last sweep, as a share of η


@dataclass(frozen=True, kw_only=True)
class ClippedSinkhorn(UnpublishedSolver):
    """Maximise the dual over rows and columns in turn, by clipped Sinkhorn updates.

    In total variation a potential stays between plus and minus the marginal penalty, and the best
    constant moves between rows and columns. Where the mass is fixed, potentials are at most 0, and
    the dual is maximised over µ, the price of mass, jointly with either block.
    """

    about: ClassVar[MethodInfo] = MethodInfo(
        family="Sinkhorn",
        paper="Benamou, Carlier, Cuturi, Nenna, Peyré 2015; Chizat, Peyré, Schmitzer, Vialard 2018",
        year=2015,
        note="no rate is proved",
        form=Clipped.form,
        takes_arcs=True,
    )
    pace: ClassVar[Pace] = Pace()

    def init(
        self, problem: Clipped, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[ClippedSinkhornState, Work]:
        """Start from zero potentials, or from the given ones."""
        n, m = problem.shape
        f, g = (np.zeros(n), np.zeros(m)) if potentials is None else map(np.copy, potentials)
        return ClippedSinkhornState(f=f, g=g - max(float(g.max()), 0.0)), Work.of(vector=n + m)

    def step(self, problem: Clipped, state: ClippedSinkhornState, rng: Generator) -> Work:
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

    def signal(self, problem: Clipped, state: ClippedSinkhornState) -> Signal:
        """Finish when potentials no longer change."""
        is_finished = state.change == 0
        violation = math.nan if math.isnan(state.change) else math.inf
        return Signal(violation, is_finished, is_finished)

    def candidates(
        self, problem: Clipped, state: ClippedSinkhornState
    ) -> list[tuple[Core, Vector]]:
        """Return the plan of the potentials, and the row potential."""
        row = state.f + (state.level - problem.eta)
        return [(Gibbs(problem.geometry, row, state.g, problem.eta), state.f)]

    def potentials(self, problem: Clipped, state: ClippedSinkhornState) -> Potentials:
        """Return the potentials."""
        return state.f, state.g
