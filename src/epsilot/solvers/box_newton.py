"""Box-constrained Newton's method (Blanchet et al. 2018, Cohen, Madry, Tsipras, Vladu 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from .._types import Matrix, Potentials, Vector
from ..geometry.sweeps import row_blocks
from ..kernels.vectors import exp, finite_dot
from ..problems.duals import softmin
from ..problems.plan import Core, Explicit, Gibbs
from ..problems.problem import Entropic
from ..problems.work import Work
from .base import DualPlan, EntropicSolver, Pace, l1
from .box_qp import Quadratic, minimise
from .method_info import MethodInfo, Order
from .options import HasConstants

#: Radius for which the second-order bounds are proved, and the largest that is tried.
RADIUS, LARGEST_RADIUS = 0.75, 4.0


@dataclass(slots=True, kw_only=True)
class State:
    """Potentials, the plan they define, and the trust radius."""

    row: Vector  # row potential τ
    lam: Vector  # column potential λ
    X: Matrix  # the plan, on stored costs; else empty
    spare: Matrix  # room for the plan of a trial step
    r: Vector  # X 1
    c: Vector  # Xᵀ 1
    objective: float = math.inf  # sum X - <p, τ/η> - <q, λ/η>
    radius: float = RADIUS  # of the box, in units of η
    violation: float = math.inf  # l1 marginal violation
    n_sweeps: int = 0  # over rows and columns of the box QPs
    n_solves: int = 0  # Cholesky factorisations


@dataclass(frozen=True, kw_only=True)
class BoxNewton(HasConstants, EntropicSolver[State], DualPlan):
    r"""Minimise a quadratic model of the entropic dual over a box, again and again.

    With a = τ/η, b = λ/η the dual is :math:`f = \sum_{ij} e^{a_i+b_j-C_{ij}/η} - p·a - q·b`. In the
    box :math:`\|δ\|_\infty \le ρ` it lies below :math:`f + g·δ + c δ^\top Hδ` with
    :math:`c = (e^{2ρ}-1-2ρ)/(2ρ)^2`, which the step minimises by sweeps over rows and columns
    (H has diagonal blocks), with a Cholesky solve where these do not pass the test of box_qp.
    A step is one Newton step.

    Parameters
    ----------
    constants : {"practical", "published"}, optional
        "published": radius 0.75 and exact solves by Cholesky factors, both ours where the papers
        name no constant and rest on nearly linear solvers. "practical" (default): sweeps first,
        and a radius up to 4 while the decrease that the model promises is seen. Published with
        ``stop="paper"``.

    References
    ----------
    Blanchet, Jambulapati, Kent, Sidford (2018), Towards optimal running times for optimal
    transport. Cohen, Madry, Tsipras, Vladu (2017), Matrix scaling and balancing via box
    constrained Newton's method and interior point methods.
    """

    about: ClassVar[MethodInfo] = MethodInfo(
        family="Newton",
        paper="Blanchet, Jambulapati, Kent, Sidford 2018",
        year=2018,
        orders=(Order(2, eps=1, log=2),),
        is_in_table1=True,
        departure=(
            "ρ = 0.75 and its curvature are derived here; box problems are solved by dense "
            "Cholesky factors, in n³, in place of the papers' nearly linear solvers"
        ),
    )
    pace: ClassVar[Pace] = Pace()

    def init(
        self, problem: Entropic, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[State, Work]:
        """Scale the rows, then the columns, of the plan of the given potentials or of zeros."""
        n, m = problem.shape
        lam = np.zeros(m) if potentials is None else potentials[1]
        rough = problem.geometry.rough
        row = softmin(problem.log_p, rough.lse_rows(lam, problem.eta), problem.eta)
        lam = softmin(problem.log_q, rough.lse_cols(row, problem.eta), problem.eta)
        kept = problem.shape if problem.geometry.is_dense else (0, 0)
        X, spare = np.empty(kept), np.empty(kept)
        state = State(row=row, lam=lam, X=X, spare=spare, r=np.empty(n), c=np.empty(m))
        _accept(problem, state, evaluate(problem, row, lam, state.spare))
        return state, Work.of(scale=n * m, lse=2 * n * m, newton_plan=n * m)

    def step(self, problem: Entropic, state: State, rng: Generator) -> Work:
        """Minimise the model in the box; shrink the box first if it was too large."""
        n, m = problem.shape
        is_exact = self.constants == "published"
        work = Work()
        while True:
            is_proved = state.radius <= RADIUS
            factor = curvature(2 * state.radius) if is_proved else 0.5
            model = Quadratic(
                _plan(problem, state),
                state.r,
                state.c,
                state.r - problem.p,
                state.c - problem.q,
                state.radius,
                factor,
            )
            move = minimise(model, is_exact)
            state.n_sweeps += move.n_sweeps
            state.n_solves += move.n_solves
            row = state.row + problem.eta * move.rows
            lam = state.lam + problem.eta * move.cols
            trial = evaluate(problem, row, lam, state.spare)
            work += move.work + Work.of(newton_plan=n * m)
            decrease = state.objective - trial.objective
            if is_proved or decrease >= 0.1 * abs(move.value):
                break
            state.radius = max(RADIUS, state.radius / 4)
        size = max(np.abs(move.rows).max(), np.abs(move.cols).max())
        if not is_exact and size >= state.radius and decrease >= 0.4 * abs(move.value):
            state.radius = min(2 * state.radius, LARGEST_RADIUS)
        _accept(problem, state, trial)
        return work


def curvature(t: float) -> float:
    """Return (e^t - 1 - t) / t², the factor of the upper model for steps |δ_i + δ_j| <= t."""
    return (exp(t) - 1 - t) / (t * t)


def _plan(problem: Entropic, state: State) -> Core:
    """Return the current plan: the stored one, or its potentials."""
    if state.X.size:
        return Explicit(state.X)
    return Gibbs(problem.geometry, state.row, state.lam, problem.eta)


class Trial(NamedTuple):
    """Potentials, the marginals of their plan, and the dual objective there."""

    row: Vector
    lam: Vector
    r: Vector
    c: Vector
    objective: float


def evaluate(problem: Entropic, row: Vector, lam: Vector, out: Matrix) -> Trial:
    """Return a trial point, with its plan in ``out`` unless that is empty."""
    geometry, eta = problem.geometry, problem.eta
    with np.errstate(over="ignore"):  # a step that is too long overflows, and is refused
        if out.size:
            for rows in row_blocks(*out.shape):
                out[rows] = geometry.gibbs(row, lam, eta, rows.start, rows.stop)
            r, c = out.sum(axis=1), out.sum(axis=0)
        else:
            log_r, log_c, _ = geometry.log_marginals(row, lam, eta)
            r, c = exp(log_r), exp(log_c)
    linear = finite_dot(problem.p, row) + finite_dot(problem.q, lam)
    return Trial(row, lam, r, c, float(r.sum()) - linear / eta)


def _accept(problem: Entropic, state: State, trial: Trial) -> None:
    """Move to a trial point; its plan is in the spare matrix."""
    state.row, state.lam, state.r, state.c, state.objective = trial
    state.X, state.spare = state.spare, state.X
    state.violation = l1(state.r - problem.p) + l1(state.c - problem.q)
