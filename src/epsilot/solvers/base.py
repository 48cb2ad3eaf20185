"""The one protocol every method follows, and what most of them share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.random import Generator

from .._types import Potentials, Vector
from ..kernels.vectors import log
from ..transport.plan import Core, Gibbs
from ..transport.problem import Additive, Entropic, Problem, smooth
from ..transport.work import Work
from .about import About


@dataclass(frozen=True)
class Pace:
    """How a method likes its continuation in η, or a direct one in ε (see ``schedules``)."""

    start: float = 0.1  # first η as a share of ‖C‖∞, or first ε as a share of a crude bracket
    factor: float = 2.0  # by which η or ε falls
    share: float = 2.0  # of η, that violation times ‖C‖∞ may reach before η falls
    warm_up: int = 2  # steps that reach every kernel of the method
    evaluate_after: float = 0.1  # share of all operations between two certificates


class Solver(Protocol):
    """An algorithm: frozen options, with the iterate kept in a separate ``State``.

    ``init`` and ``step`` return the work they did; a step is an epoch, about as much work as
    one pass over the cost. No solver times, prints, certifies or stops itself.
    """

    about: ClassVar[About]
    pace: ClassVar[Pace]
    #: Epochs after which a run ends if the user sets no limit.
    patience: ClassVar[int]

    def resolved(self, stop: str, problem: Problem) -> Solver:
        """Return the solver with options left open (None) filled in for a stop mode."""

    def memory(self, problem: Problem) -> int:
        """Return the bytes that a run needs beyond the cost and O(n + m)."""

    def published(self, problem: Problem, epsilon: float) -> tuple[Any, float]:
        """Return the target and the tolerance that the method's paper prescribes for ε."""

    def init(
        self, problem: Any, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[Any, Work]:
        """Return the first state, warm-started from potentials in cost units if given."""

    def step(self, problem: Any, state: Any, rng: Generator) -> Work:
        """Advance the state in place by one epoch."""

    def candidates(self, problem: Any, state: Any) -> list[tuple[Core, Vector]]:
        """Return (plan, row potential) pairs worth certifying, the guaranteed one first.

        Plans need not be rounded; later steps must not change what is returned.
        """

    def potentials(self, problem: Any, state: Any) -> Potentials:
        """Return the current potentials in cost units, for warm starts."""

    def violation(self, problem: Any, state: Any) -> float:
        """Return the l1 marginal violation against the target's marginals."""

    def is_published_stop(self, problem: Any, state: Any, tolerance: float) -> bool:
        """Tell whether the method's paper would stop here."""


class _Defaults:
    about: ClassVar[About]
    pace: ClassVar[Pace] = Pace()
    patience: ClassVar[int] = 1_000_000

    def resolved(self, stop: str, problem: Problem) -> Any:
        """Return the solver itself: it leaves no option open."""
        return self

    def memory(self, problem: Problem) -> int:
        """Return the bytes of averaged plans: what is averaged, and its share in the sum.

        Methods that read the whole cost hold one more array of its size.
        """
        if getattr(self, "average", None) is True:
            return 2 * problem.geometry.nbytes
        return problem.geometry.nbytes if self.about.needs_dense else 0


class EntropicSolver(_Defaults):
    """Defaults of methods for the entropic problem; their states hold ``violation``."""

    def published(self, problem: Problem, epsilon: float) -> tuple[Entropic, float]:
        """Return η, smoothed marginals and tolerance of the paper's Appendix C."""
        return published_parameters(problem, epsilon)

    def violation(self, problem: Entropic, state: Any) -> float:
        """Return the l1 marginal violation measured by the last step."""
        return float(state.violation)

    def is_published_stop(self, problem: Entropic, state: Any, tolerance: float) -> bool:
        """Stop when the violation is within the tolerance."""
        return self.violation(problem, state) <= tolerance


class DirectSolver(_Defaults):
    """Defaults of methods for the unregularised problem; their states hold ``is_done``."""

    pace: ClassVar[Pace] = Pace(start=0.0, factor=4.0)

    def published(self, problem: Problem, epsilon: float) -> tuple[Additive, float]:
        """Return the problem itself with ε."""
        return Additive(problem.geometry, epsilon, problem.p, problem.q), 0.0

    def violation(self, problem: Additive, state: Any) -> float:
        """Return 0 when the method has finished, else infinity: only that steers a schedule."""
        return 0.0 if state.is_done else math.inf

    def is_published_stop(self, problem: Additive, state: Any, tolerance: float) -> bool:
        """Stop when the method says that it has finished."""
        return bool(state.is_done)


class DualPlan:
    """Plan and potentials of a state that holds ``row`` and ``lam``."""

    def candidates(self, problem: Entropic, state: Any) -> list[tuple[Core, Vector]]:
        """Return the Gibbs plan of the current potentials, and the row potential."""
        row, lam = state.row.copy(), state.lam.copy()
        return [(Gibbs(problem.geometry, row, lam, problem.eta), row)]

    def potentials(self, problem: Entropic, state: Any) -> Potentials:
        """Return the current potentials in cost units."""
        return state.row, state.lam


def published_parameters(problem: Problem, epsilon: float) -> tuple[Entropic, float]:
    """Return η = ε/(2 log nm), p', q' smoothed with ε' = ε/(8 ‖C‖∞), and tolerance ε'/2.

    For n = m these are the constants of Altschuler et al. 2017, Dvurechensky et al. 2018 and
    the paper's Appendix C: η = ε/(4 log n).
    """
    n, m = problem.shape
    eta = epsilon / (2 * log(max(n * m, 2)))
    slack = epsilon / (8 * problem.cost_max) if problem.cost_max > 0 else 1.0
    p, q = smooth(problem.p, slack / 8), smooth(problem.q, slack / 8)
    return Entropic(problem.geometry, eta, p, q), slack / 2


def l1(x: Any) -> float:
    """Return the sum of absolute values."""
    return float(np.abs(x).sum())


def centred(f: Vector, g: Vector) -> Potentials:
    """Shift potentials to (f - t, g + t), with the t for which their sup norm is least."""
    t = (max(f.max(), -g.min()) - max(g.max(), -f.min())) / 2
    return f - t, g + t
