"""Sinkhorn's algorithm (Cuturi 2013; Dvurechensky et al. 2018), overrelaxed where it may be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.random import Generator

from .._types import Potentials
from ..errors import InvalidProblem
from ..problems.problem import Entropic, Problem
from ..problems.work import Work
from .base import DualPlan, EntropicSolver, Pace
from .cost_models import Offer, cost_model
from .kernel_domain import KernelState
from .log_domain import LogState
from .method_info import MethodInfo, Order
from .options import check_choices
from .overrelaxation import FIRST

#: exp(-C/η) is stored as it is while max C/η stays below this: scalings need headroom too.
KERNEL_RANGE = 300.0
#: Largest kernel that is stored without being asked for, in bytes.
KERNEL_BYTES = 2 << 30

#: Predicted time beside that of a simplex on a cost that is not stored, and bytes per row and
#: column.
SIMPLEX_RATIO, NODE_BYTES = 50, 200

State = LogState | KernelState


@dataclass(frozen=True, kw_only=True)
class Sinkhorn(EntropicSolver[State], DualPlan):
    """Alternate exact minimisation of the dual over τ and λ.

    In the log domain a step is one half-step: a block update, then one pass over C whose sums
    are both the stopping test and what the next half-step starts from. With a stored kernel a
    step is a whole sweep that reads the kernel once.

    Parameters
    ----------
    domain : {"auto", "log", "kernel", "absorption"}
        Log-sum-exp over the cost (any geometry, any η); or products with exp(-C/η) stored, which
        needs max C/η < 300; or with the kernel of absorbed potentials, which are absorbed anew
        whenever the scalings grow large. "auto" stores a kernel on dense costs, and with
        ``stop="paper"`` is "log".
    relaxation : float, optional
        Exponent ω in [1, 2) of each update; 1 is Sinkhorn's own. Updates that would not lower
        the dual enough fall back to 1. By default adapted to the observed rate, and 1 with
        ``stop="paper"``.
    """

    domain: str = "auto"
    relaxation: float | None = None

    about: ClassVar[MethodInfo] = MethodInfo(
        family="Sinkhorn",
        paper="Cuturi 2013; Dvurechensky, Gasnikov, Kroshnin 2018",
        year=2013,
        orders=(Order(2, eps=2, log=1),),
        is_in_table1=True,
    )
    pace: ClassVar[Pace] = Pace(start=0.05, factor=4.0, share=1.0)

    def __post_init__(self) -> None:
        check_choices(self, domain=("auto", "log", "kernel", "absorption"))
        if self.relaxation is not None and not 1 <= self.relaxation < 2:
            raise InvalidProblem(
                f"relaxation is {self.relaxation}; it must be at least 1 and below 2 "
                "(1 is plain Sinkhorn, None adapts it)."
            )

    @classmethod
    def offer(cls, problem: Problem) -> Offer | None:
        """Offer to solve any problem, which "auto" accepts where no exact method makes an offer."""
        n, m = problem.shape
        if problem.geometry.is_separable:
            seconds = 0.0
            reason = "a grid's Gibbs kernel is applied axis by axis, without an n x n array"
        else:
            seconds = SIMPLEX_RATIO * cost_model("restricted_simplex").seconds(n, m, is_lazy=True)
            reason = "too large for a simplex, or far away; float32 sweeps need O(n + m) memory"
        return Offer(reason, seconds, NODE_BYTES * (n + m))

    def resolved(self, stop: str, problem: Problem) -> Self:
        """Run the printed method with ``stop="paper"``, unless told otherwise."""
        geometry = problem.geometry
        if self.domain in ("kernel", "absorption") and not geometry.is_dense:
            raise InvalidProblem(
                f"domain={self.domain!r} stores an n x m kernel, for which "
                f"{geometry.noun} is not meant (use domain='log')."
            )
        if stop != "paper":
            return self
        return replace(
            self,
            domain="log" if self.domain == "auto" else self.domain,
            relaxation=1.0 if self.relaxation is None else self.relaxation,
        )

    def init(
        self, problem: Entropic, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[State, Work]:
        """Start from zero potentials, or from the given ones."""
        n, m = problem.shape
        row, lam = (np.zeros(n), np.zeros(m)) if potentials is None else potentials
        omega = FIRST if self.relaxation is None else self.relaxation
        geometry = problem.geometry
        is_stored = geometry.is_dense and geometry.nbytes <= KERNEL_BYTES
        if self.domain == "log" or (self.domain == "auto" and not is_stored):
            return LogState.of(problem, row, lam, omega)
        span = geometry.bounds[1] / problem.eta
        if self.domain == "kernel" and span >= KERNEL_RANGE:
            raise InvalidProblem(
                f"domain='kernel' with max C/η = {span:.0f}; it must be below {KERNEL_RANGE:.0f} "
                "(use domain='absorption', or 'auto')."
            )
        is_plain = self.domain != "absorption" and span < KERNEL_RANGE
        return KernelState.of(problem, row, lam, omega, is_plain)

    def step(self, problem: Entropic, state: State, rng: Generator) -> Work:
        """Update one block and measure the other, or update both with a stored kernel."""
        work = state.advance(problem)
        if self.relaxation is None:
            state.adapt()
        return work
