"""Adaptive primal-dual accelerated gradient and mirror descent on the log-sum-exp dual.

APDAGD is by Dvurechensky et al. 2018, APDAMD by Lin, Ho, Jordan 2019.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.random import Generator

from .._types import Matrix, Potentials, Vector
from ..kernels.vectors import dot, entropy, log
from ..problems.duals import lse_oracle
from ..problems.plan import Core, Explicit, Gibbs, Plan
from ..problems.problem import Entropic, Problem
from ..problems.rounding import round_onto
from ..problems.work import Work
from .base import EntropicSolver, Pace, Published, SolverState, l1
from .entropic_dual import is_near_optimal, keeps_average, mix
from .method_info import PRIMAL_DUAL, MethodInfo, Order
from .options import check_choices


@dataclass(slots=True, kw_only=True)
class APDAGDState(SolverState):
    """Dual iterates (τ, λ) in one vector each, and the average of the plans met."""

    nonnegative: ClassVar[tuple[str, ...]] = ("beta", "smooth")

    zeta: Vector  # ζ, the dual-averaging point
    e: Vector  # the point the objective decreases along
    start: Vector  # first point of both
    X: Matrix  # averaged plan; empty if it is not kept
    smooth: float  # M, the estimate of the smoothness
    value: float = math.inf  # φ(e)
    violation: float = math.inf  # l1 marginal violation of the plan of e
    mean_violation: float = math.inf  # l1 marginal violation of the averaged plan
    beta: float = 0.0  # β, the sum of the averaging weights
    n_steps: int = 0  # steps taken
    next_check: int = 1  # step at which the rule "duality" is tested next
    is_done: bool = False  # whether that rule has fired


@dataclass(frozen=True, kw_only=True)
class APDAGD(EntropicSolver[APDAGDState]):
    r"""Minimise the log-sum-exp dual by an accelerated gradient method with line search.

    .. math:: φ(τ, λ) = η \log\sum_{ij} e^{(τ_i+λ_j-C_{ij})/η} - <τ, p> - <λ, q>

    A step is one iteration: trials of two oracles each until

    .. math:: φ(e') ≤ φ(w) + <∇φ(w), e'-w> + \tfrac M2 \|e'-w\|_2^2,

    then the plan of w joins the average.

    Parameters
    ----------
    average : bool, optional
        Keep the averaged plan, an (n, m) array. By default with ``stop="paper"`` and on dense
        costs.
    rule : {"duality", "violation"}, optional
        What ends a run with ``stop="paper"``: the method's own rule, which is Dvurechensky et
        al.'s (η = ε/(3 log n), <C, round(X) - X> ≤ ε/6 and f(X) + φ ≤ ε/6), or Appendix C of
        Luo, Xie, Huo (η = ε/(4 log n), smoothed marginals, violation of the average at most ε'/2
        and f(X) + φ ≤ ε/4).

    References
    ----------
    Dvurechensky, Gasnikov, Kroshnin 2018, *Computational Optimal Transport: Complexity by
    Accelerated Gradient Descent Is Better Than by Sinkhorn's Algorithm*, Algorithms 3 and 4.
    """

    average: bool | None = None
    rule: str | None = None

    about: ClassVar[MethodInfo] = MethodInfo(
        family="accelerated",
        paper="Dvurechensky, Gasnikov, Kroshnin 2018",
        year=2018,
        orders=(Order(2.5, eps=1, log=0.5),),
        is_in_table1=True,
        rule=PRIMAL_DUAL,
        departure="its rule is tested at steps that grow by a tenth",
    )
    # Restarts lose acceleration, so there are few of them, from an η that is already small.
    pace: ClassVar[Pace] = Pace(start=0.025, factor=4.0, share=2.0)
    #: First and largest M, in units of 1/η.
    smoothness: ClassVar[tuple[float, float]] = (1.0, 2.0)
    #: The rule of the method's own paper.
    own_rule: ClassVar[str] = "duality"

    def __post_init__(self) -> None:
        check_choices(self, rule=("violation", "duality"))

    @property
    def is_averaging(self) -> bool:
        """Whether the average of the plans is kept."""
        return bool(self.average)

    @staticmethod
    def squared_norm(d: Vector) -> float:
        """Return the squared norm of a step that the line search compares with."""
        return dot(d, d)

    def resolved(self, stop: str, problem: Problem) -> Self:
        """Decide whether to keep the average, and which rule to test."""
        rule = (self.rule or self.own_rule) if stop == "paper" else "violation"
        average = rule == "duality" or keeps_average(self.average, stop, problem)
        return replace(self, average=average, rule=rule)

    def published(self, problem: Problem, epsilon: float) -> Published[Entropic]:
        """Return the target and the tolerance of the chosen rule."""
        if self.rule != "duality":
            return super().published(problem, epsilon)
        n, m = problem.shape
        eta = 2 * epsilon / (3 * log(max(n * m, 2)))
        return Published(Entropic(problem.geometry, eta, problem.p, problem.q), epsilon / 6)

    def init(
        self, problem: Entropic, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[APDAGDState, Work]:
        """Start from zero potentials, or from the given ones."""
        n, m = problem.shape
        e = np.zeros(n + m) if potentials is None else np.concatenate(potentials)
        X, smooth = np.zeros((n, m) if self.average else (0, 0)), self.smoothness[0] / problem.eta
        return APDAGDState(zeta=e.copy(), e=e.copy(), start=e, X=X, smooth=smooth), Work()

    def step(self, problem: Entropic, state: APDAGDState, rng: Generator) -> Work:
        """Search for a step length, take the step and average."""
        n, m = problem.shape
        entries = problem.geometry.pass_entries
        zeta, e, beta = state.zeta, state.e, state.beta
        largest = self.smoothness[1] / problem.eta
        unit = problem.geometry.bounds[1]
        # The smoothness estimate never falls below this share of the largest one.
        smooth = max(state.smooth / 2, 2.0**-40 * largest)
        n_trials = 1
        while True:
            a = (1 + math.sqrt(1 + 4 * smooth * beta)) / (2 * smooth)
            t = a / (beta + a)
            w = t * zeta + (1 - t) * e
            value, g = _oracle(problem, w)
            new_zeta = zeta - a * g
            new_e = t * new_zeta + (1 - t) * e
            d = new_e - w
            new_value, new_g = _oracle(problem, new_e)
            bound = value + dot(g, d) + smooth / 2 * self.squared_norm(d)
            if new_value <= bound + 1e-15 * max(unit, abs(value)) or smooth >= largest:
                break
            smooth *= 2
            n_trials += 1
        state.zeta, state.e, state.value = new_zeta, new_e, new_value
        state.smooth, state.beta = smooth, beta + a
        state.violation = l1(new_g)
        # A X̂ - b is the weighted mean of the gradients, and ζ their sum.
        state.mean_violation = l1(new_zeta - state.start) / state.beta
        work = Work.of(
            both_marginals=n_trials * entries,
            softmax=n_trials * entries,
            vector=n_trials * (2 * entries + 20 * (n + m)),
        )
        if self.average:
            # η log Z = φ(w) + <w, b> makes the plan of w sum to 1.
            shift = value + dot(w[:n], problem.p) + dot(w[n:], problem.q)
            mix(problem.geometry, state.X, w[:n] - shift, w[n:], problem.eta, t)
            work += Work.of(vector=3 * entries)
        state.n_steps += 1
        if self.rule == "duality" and state.n_steps >= state.next_check:
            state.next_check = max(state.n_steps + 1, int(1.1 * state.n_steps))
            state.is_done = _has_small_gap(problem, state)
            work += Work.of(rounding=entries, inner=2 * entries, vector=3 * entries)
        return work

    def meets_published_rule(self, problem: Entropic, state: APDAGDState, tolerance: float) -> bool:
        """Apply the chosen rule."""
        if self.rule == "duality":
            return state.is_done
        if not self.average:
            return state.violation <= tolerance
        is_feasible = state.mean_violation <= tolerance
        return is_feasible and is_near_optimal(problem, state.X, state.value)

    def candidates(self, problem: Entropic, state: APDAGDState) -> list[tuple[Core, Vector]]:
        """Return the averaged plan if it is kept, and the plan of e."""
        n = problem.shape[0]
        row, lam = state.e[:n], state.e[n:]
        shift = 0.0
        if state.n_steps:
            shift = state.value + dot(row, problem.p) + dot(lam, problem.q)
        found: list[tuple[Core, Vector]] = []
        if self.average:
            found.append((Explicit(state.X.copy()), row))
        return [*found, (Gibbs(problem.geometry, row - shift, lam, problem.eta), row)]

    def potentials(self, problem: Entropic, state: APDAGDState) -> Potentials:
        """Return the potentials of e."""
        n = problem.shape[0]
        return state.e[:n], state.e[n:]


def _has_small_gap(problem: Entropic, state: APDAGDState) -> bool:
    """Tell whether <C, round(X) - X> and f(X) + φ(e) are both at most ε/6 = η log(nm)/4."""
    n, m = problem.shape
    tolerance = problem.eta * log(max(n * m, 2)) / 4
    core = Explicit(state.X)
    cost = Plan(core).cost(problem.geometry)
    rounded = round_onto(core, problem.p, problem.q, problem.geometry).cost
    primal = cost - problem.eta * entropy(state.X)
    return rounded - cost <= tolerance and primal + state.value <= tolerance


def _oracle(problem: Entropic, w: Vector) -> tuple[float, Vector]:
    """Return φ and its gradient at w = (τ, λ)."""
    n = problem.shape[0]
    value, by_row, by_col = lse_oracle(problem, w[:n], w[n:])
    return value, np.concatenate([by_row, by_col])


@dataclass(frozen=True, kw_only=True)
class APDAMD(APDAGD):
    r"""Run APDAGD with the l∞ norm in its line search.

    .. math:: φ(e') ≤ φ(w) + <∇φ(w), e'-w> + \tfrac M2 \|e'-w\|_∞^2

    With the usual mirror map, ‖z-z'‖²/(2n) with δ = n, the published recursion is APDAGD's with a
    renamed to n a. Only the norm differs. Its test is stricter, so APDAMD takes shorter steps.

    Parameters
    ----------
    average, rule
        As in :class:`APDAGD`; its own rule is that of Appendix C.

    References
    ----------
    Lin, Ho, Jordan 2019, *On Efficient Optimal Transport: An Analysis of Greedy and Accelerated
    Mirror Descent Algorithms*, Algorithm 4.
    """

    about: ClassVar[MethodInfo] = MethodInfo(
        family="accelerated",
        paper="Lin, Ho, Jordan 2019",
        year=2019,
        orders=(Order(2.5, eps=1, log=0.5),),
        is_in_table1=True,
    )
    smoothness: ClassVar[tuple[float, float]] = (2.0, 4.0)
    own_rule: ClassVar[str] = "violation"

    @staticmethod
    def squared_norm(d: Vector) -> float:
        """Return the squared l∞ norm."""
        largest = float(np.abs(d).max())
        return largest * largest
