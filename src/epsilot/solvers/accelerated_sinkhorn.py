"""Accelerated Sinkhorn (Lin, Ho, Jordan 2022, Algorithms 6 and 7)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from numpy.random import Generator

from .._types import Potentials, Vector
from ..errors import InvalidProblem
from ..kernels.vectors import exp
from ..problems.problem import Entropic
from ..problems.work import Work
from .base import EntropicSolver, Pace, SolverState, l1
from .entropic_dual import (
    JointPlan,
    block,
    joined,
    log_block_sums,
    log_sums,
    lse_value,
    masses,
    rescaled,
)
from .method_info import MethodInfo, Order
from .options import check_choices


@dataclass(slots=True, kw_only=True)
class AcceleratedSinkhornState(SolverState):
    """Points of the estimate sequence; each holds τ, then λ, in cost units."""

    nonnegative: ClassVar[tuple[str, ...]] = ("theta",)

    z: Vector  # the output of the last step
    main: Vector  # ž: z after an exact block update
    momentum: Vector  # z̃
    phi: float  # dual value at ž, in cost units
    theta: float = 1.0
    n_steps: int = 0
    violation: float = math.inf  # l1 marginal violation of z


@dataclass(frozen=True, kw_only=True)
class AcceleratedSinkhorn(
    JointPlan[AcceleratedSinkhornState], EntropicSolver[AcceleratedSinkhornState]
):
    r"""Accelerate the lse-dual by Nesterov's estimate sequence, with two block updates per step.

    .. math:: φ(u, v) = \log\|X(u, v)\|_1 - <u, p> - <v, q>

    A step takes a gradient step from a mixture of the main point and the momentum, updates one
    block exactly, keeps the result only if φ falls, and updates the other block.

    Parameters
    ----------
    variant : {"corrected", "printed"}
        Which block the last update of a step takes: the violated one, or the same again, as
        printed, which does nothing whenever the accelerated point was kept.
    momentum_step : float
        σ of the gradient step, in units of u = τ / η: 1/2 as published. About n / 4 was the
        best on images (a heuristic: any σ > 0 terminates, but only 1/2 has the rate).
    """

    variant: str = "corrected"
    momentum_step: float = 0.5

    about: ClassVar[MethodInfo] = MethodInfo(
        family="Sinkhorn",
        paper="Lin, Ho, Jordan 2022",
        year=2022,
        orders=(Order(7 / 3, eps=4 / 3, log=2 / 3),),
        is_in_table1=True,
        departure="step 6 updates the other block, as corrected (variant='printed' does not)",
    )
    pace: ClassVar[Pace] = Pace(start=0.05, factor=4.0, share=1.0)

    def __post_init__(self) -> None:
        check_choices(self, variant=("corrected", "printed"))
        if not 0 < self.momentum_step < math.inf:
            raise InvalidProblem(
                f"momentum_step is {self.momentum_step}; it must be positive (0.5 is published)."
            )

    def init(
        self, problem: Entropic, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[AcceleratedSinkhornState, Work]:
        """Start all points from zero potentials, or from the given ones."""
        entries = problem.geometry.pass_entries
        z = joined(problem, potentials)
        _, log_mass = log_sums(problem, z)
        phi = lse_value(problem, z, log_mass)
        state = AcceleratedSinkhornState(z=z, main=z.copy(), momentum=z.copy(), phi=phi)
        return state, Work.of(scale=entries, lse=entries)

    def step(self, problem: Entropic, state: AcceleratedSinkhornState, rng: Generator) -> Work:
        """Take one iteration: gradient, exact update, monotone choice, exact update."""
        eta, theta, weights = problem.eta, state.theta, masses(problem)
        entries = problem.geometry.pass_entries
        work = Work.of(both_marginals=entries, lse=2 * entries, vector=20 * sum(problem.shape))
        # steps 1 and 2
        middle = (1 - theta) * state.main + theta * state.momentum
        sums, log_mass = log_sums(problem, middle)
        move = eta * self.momentum_step * (exp(sums - log_mass) - weights)
        state.momentum = state.momentum - move / theta
        # step 3
        is_row = state.n_steps % 2 == 0
        candidate = self._updated(problem, middle - move, is_row)
        # step 4
        is_violated_row = not is_row
        is_updated = True  # block b of z was updated in this step
        if lse_value(problem, candidate) < state.phi:
            state.z = candidate
        elif state.n_steps == 0:  # the first main point need not have an exact block
            state.z = self._updated(problem, state.main, is_row)
            work += Work.of(lse=entries)
        else:
            state.z = state.main
            is_updated = False
            is_violated_row = is_row == (self.variant == "printed")
        # step 5
        violated = block(problem, is_violated_row)
        sums = log_block_sums(problem, state.z, is_violated_row)
        state.violation = l1(exp(sums) - weights[violated])
        # step 6, printed as another update of block b
        is_open = self.variant == "corrected" or not is_updated
        state.main = rescaled(problem, state.z, violated, sums) if is_open else state.z.copy()
        state.phi = lse_value(problem, state.main)
        # step 7
        state.theta = theta * (math.sqrt(theta * theta + 4) - theta) / 2
        state.n_steps += 1
        return work

    def _updated(self, problem: Entropic, z: Vector, is_row: bool) -> Vector:
        """Return z with one block minimised exactly."""
        return rescaled(problem, z, block(problem, is_row), log_block_sums(problem, z, is_row))
