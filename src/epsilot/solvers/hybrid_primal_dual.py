"""Hybrid primal-dual: a Bregman primal-dual method (Chambolle, Contreras 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from .._types import Matrix, Potentials, Vector
from ..kernels.vectors import dot, log
from ..problems.plan import Core, Explicit, Gibbs
from ..problems.problem import Additive, Entropic, Problem, Target
from ..problems.work import Work
from .base import DirectSolver, EntropicSolver, Pace, SolverState, l1
from .entropic_dual import is_near_optimal_at, keeps_average, mix, moments
from .method_info import A_PRIORI, MethodInfo, Order
from .options import check_choices


@dataclass(slots=True, kw_only=True)
class HybridState(SolverState):
    """The primal iterate as its logarithm, -inv C + f⊕g, and the dual iterate w = (u, v)."""

    nonnegative: ClassVar[tuple[str, ...]] = ("sigma", "step", "th")

    inv: float  # a, the inverse temperature of X
    fg: Vector  # f, g
    log_mass: float  # logarithm of the normaliser of exp(-a C + f⊕g)
    AX: Vector  # row sums of X, then its column sums
    w: Vector  # dual iterate
    w_old: Vector  # previous dual iterate
    start: Vector  # first w
    sigma: float  # σ, primal step
    step: float  # dual step
    X: Matrix  # plan averaged with weights ``step``; empty if it is not kept
    mean: Vector  # extrapolated duals with the same weights
    th: float = 1.0  # extrapolation
    weight: float = 0.0  # T, the sum of the weights
    violation: float = math.inf  # l1 marginal violation of X
    mean_violation: float = math.inf  # l1 marginal violation of the averaged plan
    n_steps: int = 0  # steps taken
    is_done: bool = False  # whether the a-priori number of steps is reached


@dataclass(frozen=True, kw_only=True)
class HybridPrimalDual(EntropicSolver[HybridState]):
    r"""Alternate entropic steps on the plan and gradient steps on the potentials.

    .. math:: \min_X \max_{u,v} <C - u⊕v, X> + <p,u> + <q,v> + η \sum X \log X

    over plans of mass 1. The plan is kept through its logarithm -a C + f⊕g + const, so only its
    average takes an array. A step is one iteration.

    Parameters
    ----------
    form : {"line_search", "accelerated", "plain"}
        Steps found by a line search on

        .. math:: \tfrac{s^2}{2}\,\|A(X-X^-)\|_2^2 ≤ KL(X|X^-)\, s/σ,

        the default; steps from the norm bound ‖A‖² = 2, growing as η allows; or constant steps
        on the unregularised problem (η = 0), whose number is known beforehand:
        ⌈‖C‖ √((n+m) log(nm)) / ε⌉.
    average : bool, optional
        Keep the averaged plan, an (n, m) array. By default with ``stop="paper"`` and on dense
        costs.

    References
    ----------
    Chambolle, Contreras 2022, *Accelerated Bregman Primal-Dual Methods Applied to Optimal
    Transport and Wasserstein Barycenter Problems*. Line search after Malitsky, Pock 2018, *A
    First-Order Primal-Dual Algorithm with Linesearch*.
    """

    form: str = "line_search"
    average: bool | None = None

    about: ClassVar[MethodInfo] = MethodInfo(
        family="accelerated",
        paper="Chambolle, Contreras 2022",
        year=2022,
        orders=(Order(2.5, eps=1, log=0.5),),
        is_in_table1=True,
        departure="steps by a line search (form='accelerated' has none); the proof is ours",
    )
    pace: ClassVar[Pace] = Pace(start=0.025, share=1.0)

    def __post_init__(self) -> None:
        check_choices(self, form=("line_search", "accelerated", "plain"))

    @property
    def is_averaging(self) -> bool:
        """Whether the average of the plans is kept."""
        return bool(self.average)

    def resolved(self, stop: str, problem: Problem) -> HybridPrimalDual:
        """Decide whether to keep the average; the plain form is a direct method."""
        average = keeps_average(self.average, stop, problem)
        if self.form == "plain":
            return _Plain(form="plain", average=average)
        return replace(self, average=average)

    def init(
        self, problem: Target, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[HybridState, Work]:
        """Start from the uniform plan and zero potentials, or from given potentials."""
        n, m = problem.shape
        size = n + m
        log_size = log(max(n * m, 2))
        radius = (problem.geometry.bounds[1] or problem.eta or 1.0) / 2 * math.sqrt(size)
        sigma = math.sqrt(log_size) / radius
        if potentials is None or problem.eta == 0:
            w = np.zeros(size)
            inv, fg, log_mass = 0.0, np.zeros(size), log(n * m)
            AX, work = np.repeat([1 / n, 1 / m], [n, m]), Work()
        else:
            w = np.concatenate(potentials)
            inv, fg = 1 / problem.eta, w / problem.eta
            AX, _, log_mass = moments(problem.geometry, *potentials, problem.eta, False)
            work = Work.of(both_marginals=problem.geometry.pass_entries)
        step = 1 / (2 * sigma)
        b = np.concatenate([problem.p, problem.q])
        X = np.zeros((n, m) if self.average else (0, 0))
        state = HybridState(
            inv=inv,
            fg=fg,
            log_mass=log_mass,
            AX=AX,
            w=w,
            w_old=w - step * (b - AX),
            start=w.copy(),
            sigma=sigma,
            step=step,
            X=X,
            mean=w.copy(),
        )
        return state, work

    def step(self, problem: Target, state: HybridState, rng: Generator) -> Work:
        """Take one primal and one dual step and average."""
        n, m = problem.shape
        entries = problem.geometry.pass_entries
        eta = problem.eta
        is_searching = self.form == "line_search"
        if is_searching:
            ratio = state.sigma / state.step / (1 + eta * state.sigma)
            step = state.step * math.sqrt((1 + eta * state.sigma) * (1 + state.th))
        else:
            growth = math.sqrt(1 + eta * state.sigma) if state.n_steps else 1.0
            ratio = state.sigma / state.step / (growth * growth)
            step = state.step * growth
        trial, n_trials = _try(problem, state, step, ratio * step, is_searching), 1
        while is_searching and _is_too_long(state, trial):
            step = max(0.7 * step, math.sqrt(1 / (2 * ratio)))
            trial = _try(problem, state, step, ratio * step, is_searching)
            n_trials += 1
        inv, fg, log_mass = trial.inv, trial.fg, trial.log_mass
        state.inv, state.fg, state.log_mass, state.AX = inv, fg, log_mass, trial.AX
        state.sigma, state.step, state.th = trial.sigma, step, trial.th
        state.w_old = state.w
        residual = np.concatenate([problem.p, problem.q]) - trial.AX
        state.w = state.w + step * residual
        state.violation = l1(residual)
        state.weight += step
        share = step / state.weight
        state.mean = (1 - share) * state.mean + share * trial.w_bar
        # A X̂ - b is the weighted mean of the dual steps, and w their sum.
        state.mean_violation = l1(state.w - state.start) / state.weight
        state.n_steps += 1
        work = Work.of(
            both_marginals=n_trials * entries,
            vector=n_trials * ((5 if is_searching else 2) * entries + 10 * (n + m)),
        )
        if self.average:
            mix(problem.geometry, state.X, (fg[:n] - log_mass) / inv, fg[n:] / inv, 1 / inv, share)
            work += Work.of(vector=2 * entries)
        return work

    def meets_published_rule(self, problem: Entropic, state: HybridState, tolerance: float) -> bool:
        """Apply Appendix C to the average: violation <= ε'/2 and f(X) + φ <= ε/4."""
        if not self.average:
            return state.violation <= tolerance
        return state.mean_violation <= tolerance and is_near_optimal_at(
            problem, state.X, state.mean
        )

    def candidates(self, problem: Target, state: HybridState) -> list[tuple[Core, Vector]]:
        """Return the averaged plan and potentials, and the current ones."""
        n = problem.shape[0]
        row, lam = self.potentials(problem, state)
        found: list[tuple[Core, Vector]] = []
        if self.average:
            found.append((Explicit(state.X.copy()), state.mean[:n].copy()))
        if state.inv > 0:
            shifted = row - state.log_mass / state.inv
            found.append((Gibbs(problem.geometry, shifted, lam, 1 / state.inv), row))
        return found

    def potentials(self, problem: Target, state: HybridState) -> Potentials:
        """Return the potentials of the current plan."""
        n = problem.shape[0]
        fg = state.fg / state.inv if state.inv > 0 else state.w
        return fg[:n], fg[n:]


def plain_iterations(epsilon: float, cost_max: float, n: int, m: int) -> int:
    """Return ⌈‖C‖∞ √((n + m) log nm) / ε⌉, after which the plain form is proved to be within ε.

    Its steps are 1/(2σ) and σ, so the gap after K of them is at most (log(nm)/σ + R² σ) / K with
    R² = ‖C‖∞² (n + m) / 4, the largest ‖w‖² that rounding asks for; and σ = √log(nm) / R.
    """
    return math.ceil(cost_max * math.sqrt((n + m) * log(max(n * m, 2))) / epsilon)


class PrimalStep(NamedTuple):
    """A trial primal step: the extrapolated dual, and the resulting plan."""

    step: float
    sigma: float
    th: float
    w_bar: Vector
    inv: float
    fg: Vector
    AX: Vector
    cost: float  # <C, X>, where the line search needs it
    log_mass: float


def _try(
    problem: Target, state: HybridState, step: float, sigma: float, is_priced: bool
) -> PrimalStep:
    """Take a primal step with dual step s and primal step σ."""
    n, eta = problem.shape[0], problem.eta
    th = step / state.step
    w_bar = state.w + th * (state.w - state.w_old)
    inv = (state.inv + sigma) / (1 + eta * sigma)
    fg = (state.fg + sigma * w_bar) / (1 + eta * sigma)
    is_cooling = abs(inv - state.inv) > 1e-14 * inv  # a = 1/η is a fixed point
    AX, cost, log_mass = moments(
        problem.geometry, fg[:n] / inv, fg[n:] / inv, 1 / inv, is_priced and is_cooling
    )
    return PrimalStep(
        step=step,
        sigma=sigma,
        th=th,
        w_bar=w_bar,
        inv=inv,
        fg=fg,
        AX=AX,
        cost=cost,
        log_mass=log_mass,
    )


def _is_too_long(state: HybridState, trial: PrimalStep) -> bool:
    """Tell whether s² ‖A (X - X⁻)‖² / 2 exceeds KL(X | X⁻) s/σ, which the proof forbids."""
    # Pinsker: the norm bound 2 σ s <= 1 is always enough; KL itself cancels.
    if 2 * trial.step * trial.sigma <= 1 + 1e-9:
        return False
    change = trial.AX - state.AX
    colder, heavier = trial.inv - state.inv, trial.log_mass - state.log_mass
    kl = dot(trial.AX, trial.fg - state.fg) - colder * trial.cost - heavier
    return trial.step * trial.sigma * dot(change, change) > 2 * kl  # False where it overflowed


@dataclass(frozen=True, kw_only=True)
class _Plain(DirectSolver[HybridState], HybridPrimalDual):  # type: ignore[misc]
    """The form without regularisation, as a direct method."""

    about: ClassVar[MethodInfo] = replace(
        HybridPrimalDual.about, solves_entropic=False, rule=A_PRIORI
    )

    def step(self, problem: Additive, state: HybridState, rng: Generator) -> Work:  # type: ignore[override]
        """Take one step; the method ends after the a-priori number of steps."""
        work = HybridPrimalDual.step(self, problem, state, rng)
        n, m = problem.shape
        bound = plain_iterations(problem.epsilon, problem.geometry.bounds[1], n, m)
        state.is_done = state.n_steps >= bound
        return work
