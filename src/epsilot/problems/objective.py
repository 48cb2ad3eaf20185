"""Objectives, and the proof of their bounds: a feasible plan above, a feasible dual below.

The proof is independent of solvers. The plan is rounded to a feasible one and priced; the
potentials are made feasible; both in float64. Their values bound the optimum from both sides.
Each kind of problem is an *objective* in a file of its own, which computes its bounds and answers
all questions of a run, so that no run depends on the kind.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from .._types import Potentials, Vector
from ..errors import CertificateError
from ..files.arrays import Arrays, SavedArrays
from ..geometry.derived import ConstantCost
from ..kernels import proof
from ..kernels.auction import corner
from ..kernels.proof import ROUND_OFF
from ..kernels.vectors import distance, finite_dot
from .plan import Arcs, Core, Plan
from .problem import Problem, Target
from .rounding import Rounded, round_onto
from .support import Support
from .work import Work, certificate_work

#: Smallest default gap, as a share of the costs: a gap that float64 can certify.
MIN_DEFAULT_GAP = 2 * ROUND_OFF
#: Largest l1 marginal error at which an audited plan of mass 1 counts as feasible.
AUDIT_TOLERANCE = 1e-9

BUG_NOTE = "This is a bug in epsilot; please report it with the problem."


P = TypeVar("P")
D = TypeVar("D")


class Evaluation(NamedTuple, Generic[P, D]):
    """Plan, potentials and bounds of one evaluation, in internal units."""

    plan: P
    upper: float
    potentials: D
    lower: float
    marginal_error: float


class Proof(NamedTuple):
    """Bounds that a plan and potentials prove, in internal units."""

    upper: float
    lower: float
    cost: float  # <C, X>


#: Turns potentials into derivatives in the weights.
Slopes: TypeAlias = Callable[[Potentials], Potentials]


class MethodForm(Protocol):
    """The part of a method's record that an objective reads."""

    @property
    def solves_entropic(self) -> bool:
        """Whether the method solves the entropic problem for its own sake."""

    @property
    def form(self) -> str:
        """The form of the problems that the method solves."""

    @property
    def takes_point_prices(self) -> bool:
        """Whether the method takes one marginal penalty per point."""


class RunObjective(ABC):
    """The part of an objective that a run uses: its bounds, their proof, and its units.

    A plan, its core and potentials are of the objective's own types: those of one transport
    problem (:class:`Objective`), or of all the problems of a barycentre.
    """

    # -- the user's units --------------------------------------------------------------------

    @property
    @abstractmethod
    def mass(self) -> float:
        """Mass of the user's problem."""

    @property
    @abstractmethod
    def unit(self) -> float:
        """The user's cost of an internal cost of 1."""

    @property
    @abstractmethod
    def shift(self) -> float:
        """The user's objective minus the internal one, per unit of mass."""

    @abstractmethod
    def digest(self) -> str:
        """Return a hash of the problem."""

    def to_user(self, value: float) -> float:
        """Return a value of the objective in the user's units."""
        return proof.to_user(value, self.shift, self.mass, self.unit)

    def bounds_to_user(self, upper: float, lower: float) -> tuple[float, float]:
        """Return two bounds in the user's units, with lower <= upper in spite of rounding."""
        value = self.to_user(upper)
        return value, min(self.to_user(lower), value)

    # -- accuracy ----------------------------------------------------------------------------

    @property
    @abstractmethod
    def accuracy(self) -> str:
        """The keyword that sets an absolute gap."""

    @property
    @abstractmethod
    def default_gap(self) -> float | None:
        """The default gap; None means a share of the lower bound."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """Size of the costs before the shift, by which accuracies are measured."""

    @property
    @abstractmethod
    def optimum_scale(self) -> float:
        """Size of an optimum, by which gaps of an optimum near 0 are measured."""

    @property
    @abstractmethod
    def slack(self) -> float:
        """Error that the conversion to the user's units may add to a gap."""

    # -- bounds ------------------------------------------------------------------------------

    #: Whether every certificate is of a problem of its own, so that older bounds do not hold.
    moves: ClassVar[bool] = False

    @property
    @abstractmethod
    def round_off_size(self) -> float:
        """Size of the numbers whose round-off may make two bounds contradict each other."""

    @abstractmethod
    def evaluate(self, core: Any, f: Vector) -> Evaluation[Any, Any]:
        """Return certified bounds on the optimum from any core plan and any potential."""

    def dual(self, f: Vector) -> tuple[Any, float]:
        """Make any potential feasible; return the potentials and the bound they prove.

        Runs need it only if the solver's support has a ``known_potential``.
        """
        raise NotImplementedError

    @abstractmethod
    def dual_value(self, potentials: Any) -> float:
        """Return the lower bound that potentials prove, or raise if they prove none."""

    @abstractmethod
    def prove(self, plan: Any, potentials: Any) -> Proof:
        """Return the bounds that this very plan and these potentials prove, or raise."""

    @abstractmethod
    def crude_bounds(self) -> tuple[Evaluation[Any, Any], Proof]:
        """Return proved bounds without a pass over the costs."""

    def is_tight(self, plan: Any, potentials: Any) -> bool:
        """Tell whether the plan has mass on tight arcs only; True where the kind cannot tell."""
        return True

    def check(self, upper: float, lower: float) -> None:
        """Raise unless two bounds are finite and do not contradict each other."""
        if not proof.are_consistent(upper, lower, self.round_off_size):
            raise CertificateError(
                f"the upper bound {upper!r} contradicts the lower bound {lower!r}. {BUG_NOTE}"
            )

    def certificate_work(self) -> Work:
        """Return the work of one certificate: none if it only reads what the solver has found."""
        return Work()

    def certificate_operations(self) -> float:
        """Return about how many operations a certificate takes. Its work counts every cost."""
        return self.certificate_work().certificate

    # -- files -------------------------------------------------------------------------------

    def answer_arrays(self, plan: Any, potentials: Any) -> Arrays:
        """Return the arrays of a plan and potentials, by the names they have in a file.

        There are none by default: the first certificate after resuming finds both.
        """
        return {}

    def answer_from(self, arrays: Arrays) -> tuple[Any, Any] | None:
        """Return plan and potentials from an untrusted file, or None if it has none."""
        return None


class WholeSupport:
    """The support of a solver that works on the whole problem."""

    def lifted(self, core: Any, f: Vector) -> tuple[Any, Vector]:
        """Return a proposal as it is."""
        return core, f

    def known_potential(self, f: Vector) -> Vector | None:
        """Return nothing: a run without a certificate has the crude bounds only."""
        return None


class InternalProblem(Protocol):
    """A problem in internal units."""

    @property
    def mass(self) -> float:
        """Mass of the user's problem."""

    @property
    def unit(self) -> float:
        """The user's cost of an internal cost of 1."""

    def digest(self) -> str:
        """Return a hash of the problem."""


class OneProblem(RunObjective):
    """The units and the accuracy of an objective of one problem."""

    problem: InternalProblem

    accuracy: ClassVar[str] = "eps"

    @property
    def mass(self) -> float:
        """Mass of the user's problem."""
        return self.problem.mass

    @property
    def unit(self) -> float:
        """The user's cost of an internal cost of 1."""
        return self.problem.unit

    def digest(self) -> str:
        """Return a hash of the problem."""
        return self.problem.digest()

    @property
    def default_gap(self) -> float | None:
        """The default gap; None means a share of the lower bound."""
        return None

    @property
    def optimum_scale(self) -> float:
        """Size of an optimum, by which gaps of an optimum near 0 are measured."""
        return self.scale

    @property
    def slack(self) -> float:
        """Error that the conversion to the user's units may add to a gap."""
        return proof.conversion_slack(self.optimum_scale)


@dataclass(frozen=True)
class Objective(OneProblem):
    """A function to minimise over the plans of a problem, with bounds on its optimum."""

    problem: Problem

    #: Name of the optimum that is bounded.
    quantity: ClassVar[str]
    is_entropic: ClassVar[bool] = False
    #: A method solves problems of one form, which its record names.
    form: ClassVar[str] = "balanced"
    #: The end of the sentence that rejects a method for other problems.
    method_refusal: ClassVar[str] = (
        "solves other problems only (pass unbalanced=λ to the unbalanced methods, or use auto)."
    )
    #: The sentence that rejects stop="paper", if no published procedure exists.
    paper_refusal: ClassVar[str | None] = None

    # -- facts that a run asks for ------------------------------------------------------------

    @property
    def default_method(self) -> tuple[str, str] | None:
        """The method that "auto" takes, and the reason, if the objective determines it."""
        return None

    def is_served_by(self, method: MethodForm) -> bool:
        """Tell whether a method can minimise this objective."""
        return method.form == self.form

    def support(self) -> Support:
        """Return the part of the problem that methods work on."""
        return Support.of(self.problem)

    def fixed_target(self, inner: Problem) -> Target | None:
        """Return the target for the whole run, or None if a schedule chooses targets."""
        return None

    @property
    def scale(self) -> float:
        """Size of the costs before the shift, by which accuracies are measured."""
        return self.problem.scale

    @property
    def slopes(self) -> Slopes | None:
        """Function from the user's potentials to the derivatives in the weights, or None."""
        return None

    def mass_price(self, potentials: Potentials, lower: float) -> float | None:
        """Return the derivative of the optimum in the mass to move, or None if it is not given.

        It is in the user's units, from potentials and their bound in the internal ones.
        """
        return None

    @property
    def feasible_mass(self) -> float:
        """The mass of some feasible plan."""
        return float(self.problem.p.sum())

    def on(self, problem: Problem) -> Self:
        """Return the objective of the same kind on another problem."""
        return replace(self, problem=problem)

    def restricted_to(self, support: Support) -> Self:
        """Return the objective on the part of the problem that methods work on."""
        return self.on(support.problem)

    # -- value and dual ----------------------------------------------------------------------

    @property
    @abstractmethod
    def size(self) -> float:
        """Size of the numbers that are added up, by which round-off is measured."""

    @property
    def round_off_size(self) -> float:
        """Size of the numbers whose round-off may make two bounds contradict each other."""
        return self.size

    @abstractmethod
    def value(self, plan: Plan, cost: float) -> float:
        """Return the objective of a feasible plan whose cost <C, X> is known."""

    @abstractmethod
    def row_potential(self, g: Vector) -> Vector:
        """Return the best row potential for a column potential."""

    @abstractmethod
    def dual(self, f: Vector) -> tuple[Potentials, float]:
        """Make any row potential feasible; return both potentials and the bound they prove."""

    @abstractmethod
    def dual_value(self, potentials: Potentials) -> float:
        """Return the lower bound that potentials prove, or raise if they prove none."""

    @abstractmethod
    def to_user_potentials(self, potentials: Potentials) -> Potentials:
        """Return potentials in the user's units, as feasible as they were."""

    def rounded(self, core: Core) -> Rounded:
        """Round a nonnegative matrix to a feasible plan; return it with cost and marginal error."""
        problem = self.problem
        return round_onto(core, problem.p, problem.q, problem.geometry, problem.mass)

    def infeasibility(self, plan: Plan) -> float:
        """Return the l1 distance of a plan from its marginals."""
        r, c = plan.marginals()
        return distance(r, self.problem.p) + distance(c, self.problem.q)

    # -- bounds ------------------------------------------------------------------------------

    def evaluate(self, core: Core, f: Vector) -> Evaluation[Plan, Potentials]:
        """Return certified bounds on the optimum from any core plan and any row potential."""
        plan, cost, error = self.rounded(core)
        upper = self.value(plan, cost)
        if not upper < math.inf:  # the plan has numbers beyond the range of float64
            plan, upper, _ = crude_plan(self)
        potentials, lower = self.dual(f)
        self.check(upper, lower)
        return Evaluation(plan, upper, potentials, lower, error)

    def crude_bounds(self) -> tuple[Evaluation[Plan, Potentials], Proof]:
        """Return proved bounds without a pass over the costs."""
        plan, upper, cost = crude_plan(self)
        potentials, lower = crude_potentials(self)
        self.check(upper, lower)
        return Evaluation(plan, upper, potentials, lower, 0.0), Proof(upper, lower, cost)

    def certificate_work(self) -> Work:
        """Return the work of one certificate."""
        return certificate_work(self.problem.geometry)

    def certificate_operations(self) -> float:
        """Return about how many operations a certificate takes. Its work counts every cost."""
        return self.certificate_work().certificate * self.problem.geometry.certificate_share

    def prove(self, plan: Plan, potentials: Potentials) -> Proof:
        """Return the bounds that this very plan and these potentials prove, or raise.

        Nothing is rounded or repaired: the plan must be feasible and so must the potentials.
        """
        upper, cost = self.prove_plan(plan)
        lower = self.dual_value(potentials)
        self.check(upper, lower)
        return Proof(upper, lower, cost)

    def prove_plan(self, plan: Plan) -> tuple[float, float]:
        """Return the upper bound that this very plan proves and its cost <C, X>, or raise."""
        error = self.infeasibility(plan)
        if not error <= proof.FEASIBLE:
            raise CertificateError(f"the plan misses its marginals by {error:.3g}. {BUG_NOTE}")
        if not plan.is_nonnegative():
            raise CertificateError(f"the plan has a negative entry. {BUG_NOTE}")
        geometry = self.problem.geometry
        cost = plan.cost(geometry)
        value, own = self.value(plan, cost), geometry.untilted
        return value, cost if own is geometry else plan.cost(own)

    # -- files -------------------------------------------------------------------------------

    def answer_arrays(self, plan: Plan, potentials: Potentials) -> Arrays:
        """Return the arrays of a plan and potentials, by the names they have in a file."""
        packed = {f"plan.{name}": x for name, x in plan.arrays().items()}
        return {**packed, "best.f": potentials[0], "best.g": potentials[1]}

    def answer_from(self, arrays: Arrays) -> tuple[Plan, Potentials] | None:
        """Return plan and potentials from an untrusted file, or None if it has none."""
        saved, (n, m) = SavedArrays(arrays), self.problem.shape
        if "best.f" not in saved:
            return None
        plan = Plan.from_arrays(saved.under("plan"), self.problem.geometry)
        best = saved.under("best")
        return plan, (best.vector("f", (n,)), best.vector("g", (m,)))

    # -- the user's units --------------------------------------------------------------------

    def to_user(self, value: float) -> float:
        """Return a value of the objective in the user's units."""
        problem = self.problem
        return proof.to_user(value, self.shift + problem.constant, problem.mass, problem.unit)

    def own_potentials(self, f: Vector, g: Vector) -> Potentials:
        """Return the objective's own potentials, from those that its user sees."""
        return f, g

    def to_user_cost(self, cost: float) -> float:
        """Return <C, X> in the user's units."""
        problem = self.problem
        return proof.to_user(cost, problem.offset, problem.mass, problem.unit)

    def from_user(self, f: Vector) -> Vector:
        """Return a row potential in internal units."""
        return f / self.problem.unit - self.shift


def linear(problem: Problem, potentials: Potentials) -> float:
    """Return <p, f> + <q, g>."""
    f, g = potentials
    return finite_dot(problem.p, f) + finite_dot(problem.q, g)


class CrudePlan(NamedTuple):
    """A proved upper bound, in internal units."""

    plan: Plan
    upper: float
    cost: float  # <C, X>


def crude_plan(objective: Objective) -> CrudePlan:
    """Return a feasible plan of at most n + m - 1 entries, and the bound it proves."""
    problem, mass = objective.problem, objective.feasible_mass
    p, q = (x * (mass / float(x.sum())) for x in (problem.p, problem.q))
    core = Arcs(problem.shape, *corner(p, q, 0.0)).above(0.0)
    plan = objective.rounded(core).plan
    return CrudePlan(plan, *objective.prove_plan(plan))


def least_costs(objective: Objective) -> Objective:
    """Return the objective with the least cost everywhere; its lower bounds hold for all costs."""
    problem = objective.problem
    least = ConstantCost(problem.shape, problem.geometry.bounds[0])
    return objective.on(replace(problem, geometry=least))


def crude_potentials(objective: Objective) -> tuple[Potentials, float]:
    """Return potentials that are feasible by the least cost alone, and the bound they prove."""
    return least_costs(objective).dual(np.zeros(objective.problem.shape[0]))
