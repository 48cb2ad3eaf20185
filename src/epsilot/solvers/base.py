"""The protocol of solvers, and defaults for the families of solvers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import Field, dataclass, field
from functools import partial
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
from ..problems.plan import Arcs, Core, Gibbs
from ..problems.problem import Additive, Entropic, Problem, Target, smooth
from ..problems.work import Work
from .cost_models import Offer
from .method_info import MethodInfo


@dataclass(frozen=True)
class Pace:
    """Parameters of the continuation in η, or in ε for direct methods (see ``schedules``)."""

    start: float = 0.1  # first η as a share of ‖C‖∞, or first ε as a share of a crude gap
    factor: float = 2.0  # by which η or ε falls per stage
    share: float = 2.0  # η falls once violation times ‖C‖∞ is at most this share of η
    warm_up: int = 2  # steps that compile every kernel of the method; 0 if it has none
    #: Share of all operations between two certificates; None: only at the method's request.
    evaluate_after: float | None = 0.1


class Signal(NamedTuple):
    """A solver's report to the run loop after a step."""

    violation: float = math.inf  # l1 marginal violation as last measured; infinite if never
    is_finished: bool = False  # more steps would not improve this target
    wants_certificate: bool = False  # the method requests a certificate now

    @property
    def has_overflowed(self) -> bool:
        """Whether the measured violation is NaN."""
        return math.isnan(self.violation)


class SolverState:
    """Base of the states of solvers, which are dataclasses of arrays and numbers."""

    __slots__ = ()
    #: Numbers of which the solver takes roots.
    nonnegative: ClassVar[tuple[str, ...]] = ()

    def row_potential(self) -> Vector | None:
        """Return a row potential that is usable even in the middle of a step, if there is one."""
        return None


def no_entries(dtype: type[np.generic] = np.float64) -> Any:
    """Return the field of a state that is an empty array at first."""
    return field(default_factory=partial(np.zeros, 0, dtype))


class ResizableState(SolverState, ABC):
    """Base of states whose arrays change their sizes during a run."""

    __slots__ = ()

    @abstractmethod
    def fits(self, target: Any, /) -> bool:
        """Tell whether arrays from a file have consistent sizes and indices for the target."""


class RowState(SolverState):
    """Base of states that always hold a row potential."""

    __slots__ = ()
    row: Vector

    def row_potential(self) -> Vector:
        """Return the row potential."""
        return self.row


class ProvedVertex(NamedTuple):
    """An optimal plan and potentials, with the bounds that compiled code has proved of them."""

    plan: Arcs
    potentials: Potentials
    upper: float
    lower: float
    marginal_error: float  # l1 distance of the plan from its marginals, before it was settled
    work: Work


T = TypeVar("T", bound=Target)
S = TypeVar("S", bound=SolverState)


class Published(NamedTuple, Generic[T]):
    """The procedure of a method's paper for ε: target, and tolerance of its stopping rule."""

    target: T
    tolerance: float


class Solver(Protocol[T, S]):
    """An algorithm: frozen options, with the iterate kept in a separate state of type S.

    Targets of type T are entropic problems, or problems with an ε. ``init`` and ``step`` return
    the work they did. A step is an epoch: about the work of one pass over the cost. No solver
    times, prints, certifies or stops itself; it reports to the run loop by ``signal``.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    about: ClassVar[MethodInfo]
    pace: ClassVar[Pace]
    #: Maximum number of epochs if the user sets no limit.
    patience: ClassVar[int]
    #: Whether the method solves coarse versions of the problem first, by itself.
    starts_itself: ClassVar[bool]
    #: Whether a step that is abandoned leaves the state as it was.
    is_atomic: ClassVar[bool]

    @classmethod
    def offer(cls, problem: Problem) -> Offer | None:
        """Return the predicted cost and the reason where "auto" may choose the method, else None.

        "auto" asks only methods that the registry lists for it.
        """

    def resolved(self, stop: str, problem: Problem) -> Solver[T, S]:
        """Return the solver with unset options (None) filled in for a stop mode."""

    @property
    def named(self) -> AnySolver:
        """The solver whose name and options a result shows."""

    def memory(self, problem: Problem) -> int:
        """Return the bytes that a run needs beyond the cost and O(n + m)."""

    def proved(self, problem: Problem, /) -> ProvedVertex | None:
        """Solve a balanced problem and prove the answer in one call, with the bits of a run.

        None: the run takes its steps.
        """

    def init(
        self, target: T, rng: Generator, potentials: Potentials | None = None, /
    ) -> tuple[S, Work]:
        """Return the first state, warm-started from potentials in cost units if given."""

    def step(self, target: T, state: S, rng: Generator, /) -> Work:
        """Advance the state in place by one epoch."""

    def signal(self, target: T, state: S, /) -> Signal:
        """Return the violation, and whether to stop or to certify."""

    def candidates(self, target: T, state: S, /) -> list[tuple[Core, Vector]]:
        """Return (plan, row potential) pairs worth certifying, the guaranteed one first.

        The published rule is about the first pair, and a published procedure returns its rounded
        plan. Plans need not be rounded; later steps must not change what is returned.
        """

    def potentials(self, target: T, state: S, /) -> Potentials:
        """Return the current potentials in cost units, for warm starts."""

    def published(self, problem: Problem, epsilon: float) -> Published[T]:
        """Return the target and tolerance that the method's paper prescribes for ε."""

    def meets_published_rule(self, target: T, state: S, tolerance: float, /) -> bool:
        """Tell whether the method's paper would stop here."""


#: A solver of any kind.
AnySolver: TypeAlias = Solver[Any, Any]


class _Defaults:
    about: ClassVar[MethodInfo]
    pace: ClassVar[Pace] = Pace()
    patience: ClassVar[int] = 1_000_000
    starts_itself: ClassVar[bool] = False
    is_atomic: ClassVar[bool] = False

    @classmethod
    def offer(cls, problem: Problem) -> Offer | None:
        """Make no offer: "auto" does not choose the method."""
        return None

    def resolved(self, stop: str, problem: Problem) -> Self:
        """Return the solver itself: it has no unset options."""
        return self

    def proved(self, problem: Problem) -> ProvedVertex | None:
        """Return None: the run takes its steps."""
        return None

    @property
    def named(self) -> AnySolver:
        """The solver itself: it replaces no other one."""
        return self  # type: ignore[return-value]

    @property
    def is_averaging(self) -> bool:
        """False: the method keeps no average of its plans."""
        return False

    def memory(self, problem: Problem) -> int:
        """Return the bytes of an averaged plan and of the plan that joins it.

        Methods that read the whole cost hold one more array of its size.
        """
        if self.is_averaging:
            return 2 * problem.geometry.nbytes
        return problem.geometry.nbytes if self.about.needs_dense else 0


class UnpublishedSolver(_Defaults):
    """Defaults of methods for problems without a published procedure."""

    def published(self, problem: Problem, epsilon: float) -> NoReturn:
        """Raise an error: objectives of such methods reject ``stop="paper"`` earlier."""
        raise NotImplementedError

    def meets_published_rule(self, target: object, state: object, tolerance: float) -> bool:
        """Return False: no published rule exists."""
        return False


class Measured(Protocol):
    """A state with its marginal violation."""

    violation: float  # l1, as last measured


M = TypeVar("M", bound=Measured)


class EntropicSolver(_Defaults, Generic[M]):
    """Defaults of methods for the entropic problem, whose states measure their violation."""

    def published(self, problem: Problem, epsilon: float) -> Published[Entropic]:
        """Return η, smoothed marginals and tolerance of the paper's Appendix C."""
        return published_parameters(problem, epsilon)

    def signal(self, problem: Entropic, state: M) -> Signal:
        """Return the last violation; request a certificate when it is zero."""
        violation = float(state.violation)
        return Signal(violation, False, violation == 0)

    def meets_published_rule(self, problem: Entropic, state: M, tolerance: float) -> bool:
        """Stop when the violation is within the tolerance."""
        return bool(state.violation <= tolerance)


class Finite(Protocol):
    """A state of a method that terminates by itself."""

    @property
    def is_done(self) -> bool:
        """Whether the method has terminated."""


F = TypeVar("F", bound=Finite)


class DirectSolver(_Defaults, Generic[F]):
    """Defaults of methods for the unregularised problem, which terminate by themselves."""

    pace: ClassVar[Pace] = Pace(start=0.0, factor=4.0)

    def published(self, problem: Problem, epsilon: float) -> Published[Additive]:
        """Return the problem itself with ε."""
        return Published(Additive(problem.geometry, epsilon, problem.p, problem.q), 0.0)

    def signal(self, problem: Additive, state: F) -> Signal:
        """Request a certificate when the method has terminated."""
        return Signal(is_finished=state.is_done, wants_certificate=state.is_done)

    def meets_published_rule(self, problem: Additive, state: F, tolerance: float) -> bool:
        """Stop when the method has terminated."""
        return state.is_done


class Potential(Protocol):
    """A state with a row and a column potential."""

    row: Vector
    lam: Vector


class DualPlan:
    """Plan and potentials of a state with ``row`` and ``lam``."""

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


def with_least_sup_norm(f: Vector, g: Vector) -> Potentials:
    """Shift potentials to (f - t, g + t) with the t that minimises their sup norm."""
    t = (max(f.max(), -g.min()) - max(g.max(), -f.min())) / 2
    return f - t, g + t
