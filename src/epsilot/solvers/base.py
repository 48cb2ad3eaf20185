"""The one protocol every method follows, and what most of them share."""

from __future__ import annotations

import math
from dataclasses import Field, dataclass
from typing import (
    Any,
    ClassVar,
    Generic,
    NamedTuple,
    NoReturn,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
)

import numpy as np
from numpy.random import Generator

from .._types import Potentials, Vector
from ..kernels.vectors import log
from ..problems.plan import Core, Gibbs
from ..problems.problem import Additive, Entropic, Problem, Target, smooth
from ..problems.work import Work
from .cost_models import Offer
from .method_info import MethodInfo


@dataclass(frozen=True)
class Pace:
    """How a method likes its continuation in η, or a direct one in ε (see ``schedules``)."""

    start: float = 0.1  # first η as a share of ‖C‖∞, or first ε as a share of a crude bracket
    factor: float = 2.0  # by which η or ε falls
    share: float = 2.0  # of η, that violation times ‖C‖∞ may reach before η falls
    warm_up: int = 2  # steps that reach every kernel of the method; 0 if it has none
    #: Share of all operations between two certificates; None: only when the method wants one.
    evaluate_after: float | None = 0.1


class Signal(NamedTuple):
    """What a state says to the run: how far its marginals are off, and what should happen now."""

    violation: float = math.inf  # l1 marginal violation as last measured; infinite if never
    is_finished: bool = False  # the method has done all it can for this target
    wants_certificate: bool = False  # this is a moment to evaluate

    @property
    def has_overflowed(self) -> bool:
        """Whether the violation was measured and is no number."""
        return math.isnan(self.violation)


T = TypeVar("T", bound=Target)
S = TypeVar("S")


class Published(NamedTuple, Generic[T]):
    """What a method's paper prescribes for ε: the target, and the tolerance of its rule."""

    target: T
    tolerance: float


class Solver(Protocol[T, S]):
    """An algorithm: frozen options, with the iterate kept in a separate state of type S.

    It works on targets of type T, entropic ones or those with an ε. ``init`` and ``step`` return
    the work they did; a step is an epoch, about as much work as one pass over the cost. No solver
    times, prints, certifies or stops itself: its ``signal`` says where it is.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    about: ClassVar[MethodInfo]
    pace: ClassVar[Pace]
    #: Epochs after which a run ends if the user sets no limit.
    patience: ClassVar[int]
    #: Whether it runs through coarse versions of the problem by itself.
    starts_itself: ClassVar[bool]

    @classmethod
    def offer(cls, problem: Problem) -> Offer | None:
        """Return the predicted cost and the reason where "auto" may choose the method, else None.

        "auto" asks only methods that the registry lists for it.
        """

    def resolved(self, stop: str, problem: Problem) -> Solver[T, S]:
        """Return the solver with options left open (None) filled in for a stop mode."""

    def memory(self, problem: Problem) -> int:
        """Return the bytes that a run needs beyond the cost and O(n + m)."""

    def init(
        self, target: T, rng: Generator, potentials: Potentials | None = None, /
    ) -> tuple[S, Work]:
        """Return the first state, warm-started from potentials in cost units if given."""

    def step(self, target: T, state: S, rng: Generator, /) -> Work:
        """Advance the state in place by one epoch."""

    def signal(self, target: T, state: S, /) -> Signal:
        """Return what the state says to the run."""

    def candidates(self, target: T, state: S, /) -> list[tuple[Core, Vector]]:
        """Return (plan, row potential) pairs worth certifying, the guaranteed one first.

        The first is what the published rule is about and what a published procedure returns,
        rounded. Plans need not be rounded; later steps must not change what is returned.
        """

    def potentials(self, target: T, state: S, /) -> Potentials:
        """Return the current potentials in cost units, for warm starts."""

    def published(self, problem: Problem, epsilon: float) -> Published[T]:
        """Return what the method's paper prescribes for ε."""

    def meets_published_rule(self, target: T, state: S, tolerance: float, /) -> bool:
        """Tell whether the method's paper would stop here."""


#: A solver of whatever kind a name stands for.
AnySolver: TypeAlias = Solver[Any, Any]


class _Defaults:
    about: ClassVar[MethodInfo]
    pace: ClassVar[Pace] = Pace()
    patience: ClassVar[int] = 1_000_000
    starts_itself: ClassVar[bool] = False

    @classmethod
    def offer(cls, problem: Problem) -> Offer | None:
        """Make no offer: "auto" does not choose the method."""
        return None

    def resolved(self, stop: str, problem: Problem) -> Self:
        """Return the solver itself: it leaves no option open."""
        return self

    def memory(self, problem: Problem) -> int:
        """Return the bytes of averaged plans: what is averaged, and its share in the sum.

        Methods that read the whole cost hold one more array of its size.
        """
        if getattr(self, "average", None) is True:
            return 2 * problem.geometry.nbytes
        return problem.geometry.nbytes if self.about.needs_dense else 0


class UnpublishedSolver(_Defaults):
    """Defaults of methods for problems that no published procedure is for."""

    def published(self, problem: Problem, epsilon: float) -> NoReturn:
        """Return nothing: objectives that such a method serves say so before."""
        raise NotImplementedError

    def meets_published_rule(self, target: object, state: object, tolerance: float) -> bool:
        """Tell that no published rule ends the run."""
        return False


class Measured(Protocol):
    """A state that knows its marginal violation."""

    violation: float  # l1, as last measured


M = TypeVar("M", bound=Measured)


class EntropicSolver(_Defaults, Generic[M]):
    """Defaults of methods for the entropic problem, whose states measure their violation."""

    def published(self, problem: Problem, epsilon: float) -> Published[Entropic]:
        """Return η, smoothed marginals and tolerance of the paper's Appendix C."""
        return published_parameters(problem, epsilon)

    def signal(self, problem: Entropic, state: M) -> Signal:
        """Return the violation measured by the last step; one that vanishes can be certified."""
        violation = float(state.violation)
        return Signal(violation, False, violation == 0)

    def meets_published_rule(self, problem: Entropic, state: M, tolerance: float) -> bool:
        """Stop when the violation is within the tolerance."""
        return bool(state.violation <= tolerance)


class Finite(Protocol):
    """A state of a method that comes to an end."""

    @property
    def is_done(self) -> bool:
        """Whether it has come to its end."""


F = TypeVar("F", bound=Finite)


class DirectSolver(_Defaults, Generic[F]):
    """Defaults of methods for the unregularised problem, which come to an end by themselves."""

    pace: ClassVar[Pace] = Pace(start=0.0, factor=4.0)

    def published(self, problem: Problem, epsilon: float) -> Published[Additive]:
        """Return the problem itself with ε."""
        return Published(Additive(problem.geometry, epsilon, problem.p, problem.q), 0.0)

    def signal(self, problem: Additive, state: F) -> Signal:
        """Return whether the method has finished, which is when certifying makes sense."""
        return Signal(is_finished=state.is_done, wants_certificate=state.is_done)

    def meets_published_rule(self, problem: Additive, state: F, tolerance: float) -> bool:
        """Stop when the method says that it has finished."""
        return state.is_done


class Potential(Protocol):
    """A state that is its two potentials."""

    row: Vector
    lam: Vector


class DualPlan:
    """Plan and potentials of a state that holds ``row`` and ``lam``."""

    def candidates(self, problem: Entropic, state: Potential) -> list[tuple[Core, Vector]]:
        """Return the Gibbs plan of the current potentials, and the row potential."""
        row, lam = state.row.copy(), state.lam.copy()
        return [(Gibbs(problem.geometry, row, lam, problem.eta), row)]

    def potentials(self, problem: Entropic, state: Potential) -> Potentials:
        """Return the current potentials in cost units."""
        return state.row, state.lam


def published_parameters(problem: Problem, epsilon: float) -> Published[Entropic]:
    """Return η = ε/(2 log nm), p', q' smoothed with ε' = ε/(8 ‖C‖∞), and tolerance ε'/2.

    For n = m these are the constants of Altschuler et al. 2017, Dvurechensky et al. 2018 and
    the paper's Appendix C: η = ε/(4 log n).
    """
    n, m = problem.shape
    eta = epsilon / (2 * log(max(n * m, 2)))
    slack = epsilon / (8 * problem.cost_max) if problem.cost_max > 0 else 1.0
    p, q = smooth(problem.p, slack / 8), smooth(problem.q, slack / 8)
    return Published(Entropic(problem.geometry, eta, p, q), slack / 2)


def l1(x: Vector) -> float:
    """Return the sum of absolute values."""
    return float(np.abs(x).sum())


def centred(f: Vector, g: Vector) -> Potentials:
    """Shift potentials to (f - t, g + t), with the t for which their sup norm is least."""
    t = (max(f.max(), -g.min()) - max(g.max(), -f.min())) / 2
    return f - t, g + t
