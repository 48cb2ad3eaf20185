"""Dual extrapolation with an area-convex regulariser (Jambulapati, Sidford, Tian 2019)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.random import Generator

from .._types import Matrix, Potentials, Vector
from ..geometry.sweeps import row_blocks
from ..kernels.vectors import dot, exp, log
from ..problems.plan import Core, Explicit, Gibbs
from ..problems.problem import Additive, Problem
from ..problems.work import Work
from .base import DirectSolver, SolverState, with_least_sup_norm
from .method_info import A_PRIORI, MethodInfo, Order
from .options import HasConstants


class Point(NamedTuple):
    """A minimiser of <s, .> + r: plan, marginals of the plan, y and value."""

    plan: Gibbs
    x: Potentials
    y: Potentials
    value: float
    n_rounds: int


@dataclass(slots=True, kw_only=True)
class DualExtrapolationState(SolverState):
    """The sum s of operators (in five arrays and numbers), z = Prox(s), and the average of w."""

    row_sum: Vector  # sum of μ y_w over rows
    col_sum: Vector
    row_mass: Vector  # sum of μ X_w 1
    col_mass: Vector
    row_z: Vector  # y of z
    col_z: Vector
    row_x: Vector  # marginals of the plan of z
    col_x: Vector
    sigma: float = 0.0  # sum of the steps μ
    value: float  # Ψ(s)
    kappa: float  # inverse step size
    row_w: Vector  # y of the last w, rows
    plan_f: Vector  # potentials of the plan of w
    plan_g: Vector
    plan_eta: float = math.inf
    plan: Matrix  # X_w, or empty
    plan_sum: Matrix  # sum of μ X_w, or empty
    weight_sum: float = 0.0  # sum of μ since the average began
    range: float  # of the regulariser, Θ
    n_steps: int = 0
    n_rounds: int = 0  # alternating minimisations so far
    is_done: bool = False


@dataclass(frozen=True, kw_only=True)
class DualExtrapolation(HasConstants, DirectSolver[DualExtrapolationState]):
    r"""Solve transport as a bilinear game, by two proximal steps per iteration.

    .. math:: \min_{X\in\Delta}\max_{|y|\le1} <C,X> + P[y_r·(X1-p) + y_c·(X^\top1-q)]

    with costs scaled to :math:`\|C\|_\infty = 1`. The proximal steps use
    :math:`r = P(β\sum X\log X + (X1)·y_r^2 + (X^\top1)·y_c^2)` and are themselves solved by
    alternating minimisation, one pass over C each. A step is one iteration.

    Parameters
    ----------
    constants : {"practical", "sharp", "published"}, optional
        "published": P = 2, β = 10, κ = 3. "sharp": P = 1/2, β = 8, κ = √3/2, which are proved
        to suffice. "practical" (default): the sharp ones with steps lengthened as long as the
        inequality that the proof needs holds. Published with ``stop="paper"``.
    average : bool, optional
        Keep the average of the plans, which the guarantee is about, in an (n, m) array. By
        default only on stored costs.

    References
    ----------
    Jambulapati, Sidford, Tian (2019), A direct Õ(1/ε) iteration parallel algorithm for optimal
    transport. Sherman (2017), Area-convexity, ℓ∞ regularization, and undirected multicommodity
    flow.
    """

    average: bool | None = None

    about: ClassVar[MethodInfo] = MethodInfo(
        family="extragradient",
        paper="Jambulapati, Sidford, Tian 2019",
        year=2019,
        orders=(Order(2, eps=1, log=1),),
        is_in_table1=True,
        solves_entropic=False,
        rule=A_PRIORI,
    )
    known_constants: ClassVar[tuple[str, ...]] = ("practical", "sharp", "published")

    @property
    def is_averaging(self) -> bool:
        """Whether the average of the plans is kept."""
        return bool(self.average)

    def resolved(self, stop: str, problem: Problem) -> Self:
        """Choose the constants, and average on stored costs."""
        average = problem.geometry.is_dense if self.average is None else self.average
        return replace(super().resolved(stop, problem), average=average)

    @property
    def numbers(self) -> tuple[float, float, float]:
        """P, β and κ."""
        return (2.0, 10.0, 3.0) if self.constants == "published" else (0.5, 8.0, math.sqrt(0.75))

    def delta(self, problem: Additive) -> float:
        """Return the accuracy of proximal steps, ε / (8 κ) in scaled units."""
        return problem.epsilon / problem.geometry.cost_unit / (8 * self.numbers[2])

    def init(
        self, problem: Additive, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[DualExtrapolationState, Work]:
        """Start at the minimiser of r, or at a point that matches given potentials."""
        n, m = problem.shape
        P, beta, kappa = self.numbers
        size = P * (beta * log(n * m) + 2)
        kept = problem.shape if self.average else (0, 0)
        x, y = (np.full(n, 1 / n), np.full(m, 1 / m)), (np.zeros(n), np.zeros(m))
        state = DualExtrapolationState(
            row_sum=np.zeros(n),
            col_sum=np.zeros(m),
            row_mass=np.zeros(n),
            col_mass=np.zeros(m),
            row_z=y[0],
            col_z=y[1],
            row_x=x[0],
            col_x=x[1],
            row_w=y[0],
            value=-P * beta * log(n * m),
            kappa=kappa,
            range=size,
            plan_f=np.zeros(n),
            plan_g=np.zeros(m),
            plan=np.zeros(kept),
            plan_sum=np.zeros(kept),
        )
        if potentials is None:
            return state, Work.of(vector=4 * (n + m))
        return state, self._resume(problem, state, *with_least_sup_norm(*potentials))

    def _resume(
        self, problem: Additive, state: DualExtrapolationState, f: Vector, g: Vector
    ) -> Work:
        """Move to the point of a run whose average so far had these potentials."""
        scale = self.numbers[0] * problem.geometry.cost_unit
        sigma = state.range * problem.geometry.cost_unit / (4 * problem.epsilon)
        state.sigma = sigma
        state.range += 2 * sigma  # the linear term <s, .> is part of the regulariser now
        state.row_sum, state.col_sum = (-sigma * np.clip(x / scale, -1, 1) for x in (f, g))
        state.row_mass, state.col_mass = sigma * problem.p, sigma * problem.q
        z = self.prox(
            problem,
            sigma,
            (state.row_sum, state.col_sum),
            (state.row_mass, state.col_mass),
            (state.row_z, state.col_z),
        )
        (state.row_z, state.col_z), (state.row_x, state.col_x) = z.y, z.x
        state.value, state.n_rounds = z.value, z.n_rounds
        return _prox_work(problem, z)

    def prox(
        self, problem: Additive, sigma: float, S: Potentials, M: Potentials, y: Potentials
    ) -> Point:
        """Minimise <s, .> + r to δ by alternating minimisation over X and y."""
        P, beta, _ = self.numbers
        delta = self.delta(problem)
        eta = problem.geometry.cost_unit * P * beta / sigma
        h = sigma * problem.p - M[0], sigma * problem.q - M[1]
        n_rounds, gap = 0, math.inf
        while gap > delta and n_rounds < 50:  # a safeguard
            n_rounds += 1
            f, g = (-eta / beta * (s + t * t) for s, t in zip(S, y, strict=True))
            log_r, log_c, log_mass = problem.geometry.log_marginals(f, g, eta)
            x = exp(log_r - log_mass), exp(log_c - log_mass)
            # -h / (2 x) may overflow before it is clipped
            new = tuple(
                np.clip(-a / np.maximum(2 * b, 1e-300), -1, 1) for a, b in zip(h, x, strict=True)
            )
            d = new[0] ** 2 - y[0] ** 2, new[1] ** 2 - y[1] ** 2
            linear = dot(x[0], d[0]) + dot(x[1], d[1])
            gap = P * (linear - float(d[0].min()) - float(d[1].min()))
            y = new[0], new[1]
        value = P * (-beta * log_mass + linear + dot(h[0], y[0]) + dot(h[1], y[1]))
        plan = Gibbs(problem.geometry, f - eta * log_mass, g, eta)
        return Point(plan, x, y, value, n_rounds)

    def step(self, problem: Additive, state: DualExtrapolationState, rng: Generator) -> Work:
        """Extrapolate to w, then move s by the operator at w; retry if the step was too long."""
        P, _, kappa0 = self.numbers
        n, m = problem.shape
        delta = self.delta(problem)
        is_adaptive = self.constants == "practical"
        S, M = (state.row_sum, state.col_sum), (state.row_mass, state.col_mass)
        y_z, x_z = (state.row_z, state.col_z), (state.row_x, state.col_x)
        work = Work()
        while True:
            ahead, mu = 1 / state.kappa, 1 / (2 * state.kappa)
            w = self.prox(
                problem, state.sigma + ahead, _moved(S, ahead, y_z), _moved(M, ahead, x_z), y_z
            )
            price = _price(problem, w.plan, state.plan) / problem.geometry.cost_unit
            progress = price + P * (dot(problem.p, w.y[0]) + dot(problem.q, w.y[1]))
            S_next, M_next = _moved(S, mu, w.y), _moved(M, mu, w.x)
            z = self.prox(problem, state.sigma + mu, S_next, M_next, w.y)
            work += _prox_work(problem, w) + _prox_work(problem, z)
            work += Work.of(gibbs=n * m, inner=n * m, vector=6 * (n + m))
            state.n_rounds += w.n_rounds + z.n_rounds
            is_proved = z.value >= state.value + mu * progress - 2 * delta
            if is_proved or not is_adaptive or state.kappa >= kappa0:
                break
            state.kappa = min(2 * state.kappa, kappa0)
        state.sigma += mu
        (state.row_sum, state.col_sum), (state.row_mass, state.col_mass) = S_next, M_next
        (state.row_z, state.col_z), (state.row_x, state.col_x) = z.y, z.x
        state.value, state.row_w = z.value, w.y[0]
        state.plan_f, state.plan_g, state.plan_eta = w.plan.f, w.plan.g, w.plan.eta
        state.weight_sum += mu
        if self.average:
            _accumulate(state.plan, mu, state.plan_sum)
            work += Work.of(inner=n * m)
        state.n_steps += 1
        if is_adaptive:
            state.kappa /= 1.1
        error = (3 if is_adaptive else 2) * delta * state.n_steps
        state.is_done = bool(
            state.range + error <= problem.epsilon / problem.geometry.cost_unit * state.weight_sum
        )
        return work

    def candidates(
        self, problem: Additive, state: DualExtrapolationState
    ) -> list[tuple[Core, Vector]]:
        """Return the averages of the w's, which carry the guarantee, and the last w."""
        scale = self.numbers[0] * problem.geometry.cost_unit
        if state.n_steps == 0:
            independent = problem.p[:, None] * problem.q
            return [(Explicit(independent), np.zeros(problem.shape[0]))]
        w = Gibbs(problem.geometry, state.plan_f, state.plan_g, state.plan_eta)
        found: list[tuple[Core, Vector]] = []
        if self.average:
            average = state.plan_sum / state.weight_sum
            found.append((Explicit(average), -scale / state.sigma * state.row_sum))
        else:
            found.append((w, -scale / state.sigma * state.row_sum))
        return [*found, (w, -scale * state.row_w)]

    def potentials(self, problem: Additive, state: DualExtrapolationState) -> Potentials:
        """Return the averaged y in cost units."""
        scale = self.numbers[0] * problem.geometry.cost_unit / (state.sigma or 1.0)
        return -scale * state.row_sum, -scale * state.col_sum


def _moved(x: Potentials, step: float, y: Potentials) -> Potentials:
    return x[0] + step * y[0], x[1] + step * y[1]


def _prox_work(problem: Additive, point: Point) -> Work:
    n, m = problem.shape
    return Work.of(
        scale=n * m, both_marginals=point.n_rounds * n * m, vector=24 * point.n_rounds * max(n, m)
    )


def _price(problem: Additive, plan: Gibbs, out: Matrix) -> float:
    """Return <C, X>, and X itself in ``out`` unless that is empty."""
    n, m = problem.shape
    if out.size == 0:
        return float(plan.price(problem.geometry, np.ones(m), np.zeros(m))[1].sum())
    total = 0.0
    for rows in row_blocks(n, m):
        out[rows] = plan.block(rows.start, rows.stop)
        C = problem.geometry.block(rows.start, rows.stop)
        total += dot(C.ravel(), out[rows].ravel())
    return total


def _accumulate(plan: Matrix, weight: float, total: Matrix) -> None:
    """Add weight times the plan without a temporary of its size."""
    for rows in row_blocks(*plan.shape):
        total[rows] += weight * plan[rows]
