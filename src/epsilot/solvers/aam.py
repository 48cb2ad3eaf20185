"""Accelerated alternating minimisation (Guminov, Dvurechensky, Tupitsa, Gasnikov 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.random import Generator

from .. import parallel
from .._types import Matrix, Potentials, Vector
from ..errors import InvalidProblem
from ..geometry.sweeps import ByRow
from ..kernels import dense as kernels
from ..kernels.vectors import dot, entropy, exp, expm1, log
from ..problems.plan import Core, Explicit, Gibbs
from ..problems.problem import Entropic, Problem
from ..problems.rounding import round_onto
from ..problems.work import Work
from .base import EntropicSolver, Pace, Published, SolverState, l1, published_parameters
from .entropic_dual import (
    block,
    is_near_optimal,
    joined,
    log_masses,
    log_sums,
    lse_value,
    masses,
    rescaled,
)
from .method_info import PRIMAL_DUAL, MethodInfo, Order
from .options import check_choices

MAX_TRIALS = 40


@dataclass(slots=True, kw_only=True)
class AAMState(SolverState):
    """Points of the method; each holds τ, then λ, in cost units."""

    nonnegative: ClassVar[tuple[str, ...]] = ("weight_sum", "smoothness")

    z: Vector  # y, shifted so that its plan has mass 1
    x: Vector  # main point
    w: Vector  # momentum
    betas: Vector  # β of the last two iterations, the older first
    start: Vector  # first point
    average: Matrix  # x̂, weighted average of the plans of y; empty if not kept
    phi: float = math.inf  # dual value at x, in units of η
    weight_sum: float = 0.0  # A = sum of the weights a
    smoothness: float = 1.0  # L of the backtracking
    n_steps: int = 0
    violation: float = math.inf  # l1 marginal violation of the plan of z
    mean_violation: float = math.inf  # l1 marginal violation of x̂
    rise: float = math.inf  # <C, round(x̂) - x̂> at the last test
    duality: float = math.inf  # f(x̂) + η φ(x) at the last test


class Oracle(NamedTuple):
    """The dual value and gradient at a point, with the data to minimise one block exactly."""

    z: Vector
    log_sums: Vector
    log_mass: float
    phi: float
    gradient: Vector
    norm: float  # squared l2 norm of the gradient
    W: Matrix | None  # row-wise scaled entries of the plan, if kept
    top: Vector | None  # scales of those rows


@dataclass(frozen=True, kw_only=True)
class AAM(EntropicSolver[AAMState]):
    r"""Accelerate alternating minimisation of the lse-dual by a momentum point.

    .. math:: φ(u, v) = \log\|X(u, v)\|_1 - <u, p> - <v, q>

    From y between the main point x and the momentum w, the block with the larger gradient is
    minimised exactly, at no cost beyond the gradient of y, and the momentum moves along the
    gradient. The proof, and the line search here, require only :math:`φ(y) \le φ(x)` (S1) and
    :math:`<∇φ(y), w - y> \ge 0` (S2).

    Parameters
    ----------
    variant : {"primal_dual", "dual"}, optional
        Average the plans of all y, with the published stop on the primal-dual gap; or use the
        plan of the last y. Averages need a stored n x m plan. By default primal-dual with
        ``stop="paper"`` and dual with ``stop="certificate"``.
    search : {"backtracking", "line_search"}
        How y is found: from a guess of the smoothness constant, or by a line search.
    test_every : int, optional
        Iterations between tests of the published primal-dual stop; 0 for never. By default 10
        with ``stop="paper"``, else 0.
    rule : {"duality", "violation"}, optional
        What ends a run with ``stop="paper"``: the method's own primal-dual stop (the average
        needed for it is kept by the variant "primal_dual"), or Appendix C of Luo, Xie, Huo, which
        is all there is for the variant "dual".
    """

    variant: str | None = None
    search: str = "backtracking"
    test_every: int | None = None
    rule: str | None = None

    about: ClassVar[MethodInfo] = MethodInfo(
        family="accelerated",
        paper="Guminov, Dvurechensky, Tupitsa, Gasnikov 2021",
        year=2021,
        orders=(Order(2.5, eps=1, log=0.5),),
        is_in_table1=True,
        rule=PRIMAL_DUAL,
        departure="the primal-dual stop is tested at every tenth iteration",
    )
    pace: ClassVar[Pace] = Pace(start=0.05, factor=4.0, share=1.0)

    def __post_init__(self) -> None:
        check_choices(
            self,
            variant=("primal_dual", "dual"),
            search=("backtracking", "line_search"),
            rule=("duality", "violation"),
        )
        if self.test_every is not None and not self.test_every >= 0:
            raise InvalidProblem(f"test_every is {self.test_every}; it must be zero or more.")

    @property
    def is_averaging(self) -> bool:
        """Whether the plans are averaged."""
        return self.variant == "primal_dual"

    def resolved(self, stop: str, problem: Problem) -> Self:
        """Choose the published primal-dual method, or the dual one that stores no plan."""
        is_paper = stop == "paper"
        can_average = problem.geometry.is_dense
        if self.variant == "primal_dual" and not can_average:
            raise InvalidProblem(
                f"variant='primal_dual' stores an n x m plan, for which "
                f"{problem.geometry.noun} is not meant (use variant='dual')."
            )
        variant = self.variant or ("primal_dual" if is_paper and can_average else "dual")
        own_rule = "duality" if is_paper and variant == "primal_dual" else "violation"
        rule = self.rule or own_rule
        if rule == "duality" and variant == "dual":
            raise InvalidProblem(
                "rule='duality' is about the average, which variant='dual' does not keep (use "
                "variant='primal_dual' with stop='paper', or rule='violation')."
            )
        test_every = (10 if is_paper else 0) if self.test_every is None else self.test_every
        return replace(self, variant=variant, test_every=test_every, rule=rule)

    def published(self, problem: Problem, epsilon: float) -> Published[Entropic]:
        """Return η = 2ε/(3 log nm) and ε/6 for the primal-dual stop, else Appendix C's.

        Marginals are smoothed only if a mass is zero, then with 0.98 ε: smoothing shifts the
        optimum by at most ε/64.
        """
        if self.rule != "duality":
            return published_parameters(problem, epsilon)
        n, m = problem.shape
        p, q = problem.p, problem.q
        if min(p.min(), q.min()) == 0:
            target, _ = published_parameters(problem, epsilon)
            p, q, epsilon = target.p, target.q, 0.98 * epsilon
        eta = 2 * epsilon / (3 * log(max(n * m, 2)))
        return Published(Entropic(problem.geometry, eta, p, q), epsilon / 6)

    def memory(self, problem: Problem) -> int:
        """Return the bytes of the averaged plan, the last one and the cost."""
        return 3 * problem.geometry.nbytes if self.is_averaging else 0

    def init(
        self, problem: Entropic, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[AAMState, Work]:
        """Start all points from zero potentials, or from the given ones."""
        n, m = problem.shape
        z = joined(problem, potentials)
        average = np.zeros((n, m) if self.is_averaging else (0, 0))
        state = AAMState(
            z=z,
            x=z.copy(),
            w=z.copy(),
            betas=np.full(2, np.nan),
            start=z.copy(),
            average=average,
        )
        return state, Work.of(scale=problem.geometry.pass_entries)

    def step(self, problem: Entropic, state: AAMState, rng: Generator) -> Work:
        """Take one iteration."""
        n, m = problem.shape
        find = self._backtrack if self.search == "backtracking" else self._line_search
        oracle, x, a, n_oracles = find(problem, state)
        work = Work.of(both_marginals=n_oracles * problem.geometry.pass_entries)
        state.z = oracle.z.copy()
        state.z[:n] -= problem.eta * oracle.log_mass
        state.violation = l1(oracle.gradient)
        share = a / (state.weight_sum + a) if a > 0 else 1.0
        if self.is_averaging:
            assert oracle.W is not None
            assert oracle.top is not None
            factor = share * exp((oracle.z[:n] + oracle.top) / problem.eta - oracle.log_mass)
            parallel.share(kernels.blend, n, n * m, state.average, 1 - share, factor, oracle.W)
            work += Work.of(vector=3 * n * m)
        state.x, state.phi = x, lse_value(problem, x) / problem.eta
        if a > 0:
            state.w = state.w - problem.eta * a * oracle.gradient
            state.weight_sum += a
        # A x̂ - b is the weighted mean of the gradients, and w their sum.
        moved = l1(state.start - state.w) / problem.eta
        state.mean_violation = moved / state.weight_sum if a > 0 else state.violation
        state.n_steps += 1
        if self.rule == "duality" and self.test_every and state.n_steps % self.test_every == 1:
            self._test(problem, state)
            work += Work.of(rounding=n * m, inner=n * m, vector=6 * n * m)
        return work

    # -- the two ways to find y --------------------------------------------------------------

    def _backtrack(self, problem: Entropic, state: AAMState) -> tuple[Oracle, Vector, float, int]:
        """Return y, the next x, the weight a and the number of oracles used (Algorithm 4)."""
        smoothness = state.smoothness / 2
        for trial in range(1, MAX_TRIALS + 1):
            # a is the larger root of L' a² = A + a
            a = (0.5 + math.sqrt(0.25 + smoothness * state.weight_sum)) / smoothness
            kappa = 1 / (a * smoothness)
            oracle = self._oracle(problem, state.x + kappa * (state.w - state.x))
            x, decrease = minimized(problem, oracle)
            if is_solved(oracle, decrease):
                return oracle, x, 0.0, trial
            if decrease >= oracle.norm / (2 * smoothness):
                break
            smoothness *= 2
        state.smoothness = smoothness
        return oracle, x, a, trial

    def _line_search(self, problem: Entropic, state: AAMState) -> tuple[Oracle, Vector, float, int]:
        """Return y, the next x, the weight a and the number of oracles used (Algorithm 1)."""
        beta, oracle, n_oracles = self._search(problem, state)
        state.betas = np.array([state.betas[1], beta])
        x, decrease = minimized(problem, oracle)
        if is_solved(oracle, decrease):
            return oracle, x, 0.0, n_oracles
        root = math.sqrt(decrease * decrease + 2 * oracle.norm * decrease * state.weight_sum)
        return oracle, x, (decrease + root) / oracle.norm, n_oracles

    def _search(self, problem: Entropic, state: AAMState) -> tuple[float, Oracle, int]:
        """Return β with S1 and S2, found by bracketing the zero of the slope along w - x."""
        if state.n_steps == 0:
            return 0.0, self._oracle(problem, state.x), 1
        direction = state.w - state.x
        earlier = state.betas[0]
        beta = 2 / (state.n_steps + 2) if math.isnan(earlier) else min(max(earlier, 1e-3), 1.0)
        low: tuple[float, float] | None = None
        high: tuple[float, float] | None = None
        allowed = state.phi + 1e-15 * max(1.0, abs(state.phi))
        for trial in range(1, MAX_TRIALS + 1):
            oracle = self._oracle(problem, state.x + beta * direction)
            slope = dot(oracle.gradient, direction)
            if slope >= 0 and (beta == 0 or oracle.phi <= allowed):
                return beta, oracle, trial
            if slope < 0 and beta == 1:
                return beta, oracle, trial
            if slope < 0:
                low = beta, slope
            else:
                high = beta, slope
            if low is None:
                beta = 0.0
            elif high is None:
                beta = 1.0
            else:
                where = low[1] / (low[1] - high[1])
                beta = low[0] + (high[0] - low[0]) * min(max(where, 0.1), 0.9)
        return 0.0, self._oracle(problem, state.x), MAX_TRIALS + 1

    def _oracle(self, problem: Entropic, z: Vector) -> Oracle:
        """Evaluate φ and its gradient, and keep the entries of the plan if they are averaged."""
        W = top = None
        if self.is_averaging:
            sums, log_mass, W, top = weighed(problem, z)
        else:
            sums, log_mass = log_sums(problem, z)
        gradient = exp(sums - log_mass) - masses(problem)
        return Oracle(
            z=z,
            log_sums=sums,
            log_mass=log_mass,
            phi=lse_value(problem, z, log_mass) / problem.eta,
            gradient=gradient,
            norm=dot(gradient, gradient),
            W=W,
            top=top,
        )

    # -- the published stop, plans and potentials ----------------------------------------------

    def _test(self, problem: Entropic, state: AAMState) -> None:
        """Measure the cost that rounding adds to the average, and the primal-dual gap."""
        core = Explicit(state.average)
        ones = np.ones(problem.shape[1])
        cost = float(core.price(problem.geometry, ones, 0 * ones)[1].sum())
        state.rise = round_onto(core, problem.p, problem.q, problem.geometry).cost - cost
        state.duality = cost - problem.eta * (entropy(state.average) - state.phi)

    def meets_published_rule(self, problem: Entropic, state: AAMState, tolerance: float) -> bool:
        """Stop when rounding and duality gap of the average are within ε/6, or by Appendix C."""
        if self.rule == "duality":
            return max(state.rise, state.duality) <= tolerance
        if not self.is_averaging:
            return state.violation <= tolerance
        is_feasible = state.mean_violation <= tolerance
        return is_feasible and is_near_optimal(problem, state.average, problem.eta * state.phi)

    def candidates(self, problem: Entropic, state: AAMState) -> list[tuple[Core, Vector]]:
        """Return the average if it is kept, and the plan of y."""
        n = problem.shape[0]
        row, lam = state.z[:n].copy(), state.z[n:].copy()
        dual: tuple[Core, Vector] = Gibbs(problem.geometry, row, lam, problem.eta), row
        if not self.is_averaging or state.n_steps == 0:
            return [dual]
        return [(Explicit(state.average.copy()), state.x[:n].copy()), dual]

    def potentials(self, problem: Entropic, state: AAMState) -> Potentials:
        """Return the main point in cost units."""
        n = problem.shape[0]
        return state.x[:n], state.x[n:]


def minimized(problem: Entropic, oracle: Oracle) -> tuple[Vector, float]:
    """Return the point with its more violated block minimised, and the decrease of φ."""
    rows, cols = block(problem, True), block(problem, False)
    g = oracle.gradient
    own = rows if dot(g[rows], g[rows]) >= dot(g[cols], g[cols]) else cols
    x = rescaled(problem, oracle.z, own, oracle.log_sums[own])
    # The decrease is KL(p, r) = sum p (d + exp(-d) - 1), d = log(p / r), which neither cancels nor
    # overflows where r underflows.
    log_r, p = oracle.log_sums[own] - oracle.log_mass, masses(problem)[own]
    d = log_masses(problem)[own] - log_r
    return x, float(np.where(p > 0, p * (expm1(-d) + d), exp(log_r)).sum())


def is_solved(oracle: Oracle, decrease: float) -> bool:
    """Tell whether the dual is solved to machine precision.

    By Pinsker's inequality the decrease is at least a quarter of the squared gradient norm. A
    smaller one is round-off, as is a squared norm below 1e-28.
    """
    return not (oracle.norm > 1e-28 and decrease >= oracle.norm / 8)


def weighed(problem: Entropic, z: Vector) -> tuple[Vector, float, Matrix, Vector]:
    """Return log_sums, log_mass, and the plan as W_ij = X_ij exp(-(τ_i + top_i) / η)."""
    (n, m), eta = problem.shape, problem.eta
    row, lam = z[:n], z[n:]
    W, top, lse = np.empty((n, m)), np.empty(n), np.empty(n)
    problem.geometry.sweep(kernels.weigh_rows, lam, 1 / eta, ByRow(W), ByRow(top), ByRow(lse))
    log_r = row / eta + lse
    highest = log_r.max()
    log_mass = float(highest + log(exp(log_r - highest).sum()))
    c = np.empty(m)
    parallel.share(kernels.rmatvec, m, n * m, W, exp((row + top) / eta - log_mass), c)
    if c.min() > 1e-250:
        log_c = log(c) + log_mass
    else:  # a column far below the largest entry: take its own maximum
        log_c = lam / eta + problem.geometry.lse_cols(row, eta)
    return np.concatenate([log_r, log_c]), log_mass, W, top
