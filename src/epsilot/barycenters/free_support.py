"""Barycentres with free points: each step solves for plans to the points, then moves the points."""

from __future__ import annotations

import enum
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.random import Generator

from .. import deadline, parallel
from .._types import Matrix, Potentials, Vector
from ..deadline import OutOfTime
from ..display.text import outward
from ..engine.clock import Clock, started
from ..engine.execute import drive, execute
from ..engine.goal import Goal
from ..engine.request import Request
from ..engine.result import Result
from ..engine.run_plan import RunPlan
from ..engine.schedules import ConstantSchedule
from ..engine.starts import COLD
from ..geometry.inputs import cloud_geometry
from ..problems.objective import Evaluation, Proof, RunObjective, WholeSupport
from ..problems.plan import Plan
from ..problems.problem import make_problem
from ..problems.work import Status, Work
from ..solvers.base import AnySolver, Signal, SolverState

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

#: No gap ends the run, unless the value is 0: it ends when the points no longer move.
NO_GOAL = Goal(eps=-math.inf, floor=-1.0)


class Ending(enum.Enum):
    """How a run ended; the value is the sentence to show."""

    SETTLED = "the points no longer move: a local optimum, which another start may better"
    MAX_ITER = "stopped by max_iter while the points still moved; raise it"
    MAX_SECONDS = "stopped by max_seconds while the points still moved; raise it"
    INTERRUPTED = "interrupted while the points still moved"
    CALLBACK = "stopped by the callback while the points still moved"

    def __str__(self) -> str:
        return self.value


ENDINGS = {
    Status.FINISHED: Ending.SETTLED,
    Status.CERTIFIED: Ending.SETTLED,
    Status.MAX_SECONDS: Ending.MAX_SECONDS,
    Status.INTERRUPTED: Ending.INTERRUPTED,
    Status.CALLBACK: Ending.CALLBACK,
}


@dataclass(frozen=True, kw_only=True)
class SampleBarycenterResult:
    r"""Points with masses b, and certified plans to them from every cloud.

    ``value`` and ``lower_bound`` bound the cost Σ w_k OT(a_k, b) of *these* points. Other points
    may be better: these are a local optimum.

    Attributes
    ----------
    points : (m, d) array
        The points.
    barycenter : (m,) array
        Their masses b.
    plans : tuple of Plan
        A plan from each cloud to the points.
    potentials : tuple of (f_k, g_k)
        Dual potentials of each plan.
    value, lower_bound : float
        Bounds of the cost Σ w_k OT(a_k, b) of these points.
    values : (k,) array
        The cost of each plan.
    weights : (k,) array
        w, of total 1.
    converged : bool
        Whether the points no longer move.
    status : enum
        How the run ended; ``str(status)`` is a sentence.
    n_iter : int
        Moves of the points.
    history : list of float
        The value before every move, and the last one.
    seconds : float
        Time to solve.
    """

    points: Matrix
    barycenter: Vector  # b, the masses of the points
    plans: tuple[Plan, ...] = field(repr=False)
    potentials: tuple[Potentials, ...] = field(repr=False)
    value: float
    lower_bound: float
    values: Vector
    weights: Vector
    converged: bool
    status: Ending
    n_iter: int
    history: list[float] = field(repr=False)  # the value before every move, and the last
    seconds: float

    @property
    def gap(self) -> float:
        """Certified accuracy of the cost of these points."""
        return self.value - self.lower_bound

    def _repr_html_(self) -> str:
        """Return the value, its bounds and the points for a notebook."""
        from ..display.notebook import card, points_picture

        lower, upper = outward(self.lower_bound, self.value)
        return card(
            f"Barycentre of {len(self.plans)} clouds: {len(self.points)} points",
            f"{self.value:.7g}",
            [
                f"proved: {lower} ≤ cost of these points ≤ {upper}",
                f"{self.status}; {self.seconds:.3g} s",
            ],
            badge="at rest" if self.converged else "not at rest",
            is_good=self.converged,
            picture=points_picture(self.points, self.barycenter),
        )

    def plot(self, ax: Axes | None = None) -> Figure | SubFigure:
        """Draw the points by their first two coordinates; returns the figure."""
        from ..display.plan_plots import plot_points

        title = f"Barycentre of {len(self.plans)} clouds: cost {self.value:.6g}"
        return plot_points(self.points, self.barycenter, title, ax)


class PlacedPlans(NamedTuple):
    """Points, and the certified results of transport to them from every cloud."""

    points: Matrix
    results: tuple[Result, ...]

    def is_finite(self) -> bool:
        """Tell that results are finite: each was proved."""
        return True


@dataclass(frozen=True, kw_only=True)
class FreeSupport(WholeSupport, RunObjective):
    """Σ w_k OT(a_k, b; |z_ki - y_j|²) of points y that move; bounds are those of given points.

    Every plan and all potentials are proved by the run that finds them.
    """

    clouds: tuple[Matrix, ...]
    masses: tuple[Vector, ...]  # a_k, of total 1
    weights: Vector  # w, of total 1
    b: Vector
    init: Matrix  # the first points
    request: Request  # of every solve
    clock: Clock

    accuracy: ClassVar[str] = "eps"
    default_gap: ClassVar[None] = None
    mass: ClassVar[float] = 1.0
    unit: ClassVar[float] = 1.0
    shift: ClassVar[float] = 0.0
    scale: ClassVar[float] = 1.0
    optimum_scale: ClassVar[float] = 1.0
    slack: ClassVar[float] = 0.0
    round_off_size: ClassVar[float] = 0.0
    moves: ClassVar[bool] = True

    def digest(self) -> str:
        """Return a hash of clouds, masses, weights and first points."""
        h = hashlib.sha256(self.weights.tobytes() + self.b.tobytes() + self.init.tobytes())
        for x in (*self.clouds, *self.masses):
            h.update(f"{x.shape}".encode() + x.tobytes())
        return h.hexdigest()[:16]

    def solved(self, Y: Matrix) -> PlacedPlans:
        """Solve for the plans to points, within the time that is left."""
        found = []
        with deadline.until(None):  # each solve has its own clock, and ends with an answer
            for X, a in zip(self.clouds, self.masses, strict=True):
                left = max(0.0, self.clock.seconds_left())
                request = replace(self.request, max_seconds=None if math.isinf(left) else left)
                found.append(execute(make_problem(cloud_geometry(X, Y), a, self.b), request))
        return PlacedPlans(Y, tuple(found))

    def moved(self, placed: PlacedPlans) -> Matrix:
        """Return Σ w_k X_kᵀ Z_k / b, the mean of the mass that every point receives."""
        total = np.zeros(placed.points.shape)
        pairs = zip(self.weights.tolist(), placed.results, self.clouds, strict=True)
        for w, result, Z in pairs:
            for axis in range(Z.shape[1]):
                total[:, axis] += w * result.plan_operator.cols(np.ascontiguousarray(Z[:, axis]))
        return total / self.b[:, None]

    def mean(self, values: Sequence[float]) -> float:
        """Return Σ w_k v_k."""
        return float(sum(w * v for w, v in zip(self.weights.tolist(), values, strict=True)))

    def evaluate(self, core: PlacedPlans, f: Vector) -> Evaluation[PlacedPlans, PlacedPlans]:
        """Return the mean of the proved bounds."""
        upper, lower, _ = self.prove(core, core)
        return Evaluation(core, upper, core, lower, 0.0)

    def prove(self, plan: PlacedPlans, potentials: PlacedPlans) -> Proof:
        """Return the mean of the bounds that each solve proved from its own plan and potentials."""
        upper = self.mean([result.value for result in plan.results])
        lower = self.mean([result.lower_bound for result in plan.results])
        self.check(upper, lower)
        return Proof(upper, lower, upper)

    def crude_bounds(self) -> tuple[Evaluation[PlacedPlans, PlacedPlans], Proof]:
        """Return the bounds of the first points, in no time if none is left."""
        placed = self.solved(self.init)
        found = self.evaluate(placed, placed.points.ravel())
        return found, Proof(found.upper, found.lower, found.upper)

    def dual_value(self, potentials: PlacedPlans) -> float:
        """Return the lower bound of the points that potentials belong to."""
        return self.mean([result.lower_bound for result in potentials.results])

    def nothing(self) -> tuple[PlacedPlans, Vector]:
        """Return the plans to the first points."""
        return self.solved(self.init), self.init.ravel()


@dataclass
class FreeSupportState(SolverState):
    """Points that are solved for, the next ones, and the value of every round."""

    points: Matrix
    next_points: Matrix
    values: Vector

    def __post_init__(self) -> None:
        """Begin without plans; they are no field, since a checkpoint does not save them."""
        self.placed: PlacedPlans | None = None


class FreeTarget(NamedTuple):
    """The one target of a run, with the objective that moves its points."""

    objective: FreeSupport
    eta: float = 0.0
    level: float = 1.0


@dataclass(frozen=True)
class Alternation:
    """Solve for the plans to the points, move every point to the mean of its mass, and again.

    For squared distances the mean is the best place, so that the value falls with every round but
    for the solves' own gaps (Cuturi, Doucet 2014, Algorithm 2, with masses that stay).
    """

    decrease: float  # the points have settled when a round lowers the value by at most this share
    method: str
    is_atomic: ClassVar[bool] = True
    patience: ClassVar[int] = 1_000_000

    def init(
        self, target: FreeTarget, rng: Generator, potentials: Any = None
    ) -> tuple[FreeSupportState, Work]:
        """Return the first points, without plans."""
        Y = target.objective.init
        return FreeSupportState(Y.copy(), Y.copy(), np.zeros(0)), Work()

    def step(self, target: FreeTarget, state: FreeSupportState, rng: Generator) -> Work:
        """Move the points and solve; a round that a limit made worse is abandoned."""
        objective, work = target.objective, Work()
        placed = objective.solved(state.next_points)
        value = objective.mean([result.value for result in placed.results])
        limits = (Status.MAX_SECONDS, Status.INTERRUPTED)
        is_cut = any(result.status in limits for result in placed.results)
        if is_cut and state.values.size and value > state.values[-1]:
            raise OutOfTime
        state.points, state.placed = placed.points, placed
        state.next_points = objective.moved(placed)
        state.values = np.append(state.values, value)
        for result in placed.results:
            work.record(result.work)
        return work

    def signal(self, target: FreeTarget, state: FreeSupportState) -> Signal:
        """Return whether the points have settled; every round is certified."""
        v, is_settled = state.values, False
        if v.size > 1:
            is_settled = bool(v[-2] - v[-1] <= self.decrease * abs(v[-2]))
        return Signal(is_finished=is_settled, wants_certificate=v.size > 0)

    def candidates(
        self, target: FreeTarget, state: FreeSupportState
    ) -> list[tuple[PlacedPlans, Vector]]:
        """Return the plans to the points, solved for again after a run was resumed."""
        if state.placed is None:
            state.placed = target.objective.solved(state.points)
        return [(state.placed, state.points.ravel())]

    def potentials(self, target: FreeTarget, state: FreeSupportState) -> tuple[Vector]:
        """Return the points, which must stay finite."""
        return (state.points.ravel(),)


class Clouds(NamedTuple):
    """Points with masses of one total, and weights of total 1."""

    points: tuple[Matrix, ...]
    masses: tuple[Vector, ...]
    weights: Vector


def find_points(
    clouds: Clouds, Y: Matrix, b: Vector, *, request: Request, decrease: float
) -> SampleBarycenterResult:
    """Move points from their start until they settle or a limit ends the run."""
    solves = replace(request, callback=None, checkpoint=None, resume=None, max_iter=None)
    with parallel.limit(request.n_threads), started(request.max_seconds) as clock:
        objective = FreeSupport(
            clouds=clouds.points,
            masses=clouds.masses,
            weights=clouds.weights,
            b=b,
            init=Y,
            request=solves,
            clock=clock,
        )
        run_plan = RunPlan(
            method=request.method,
            choice=None,
            solver=cast("AnySolver", Alternation(decrease, request.method)),
            support=objective,
            start=COLD,
            schedule=ConstantSchedule(cast("Any", FreeTarget(objective)), evaluate_after=None),
        )
        run = drive(objective, NO_GOAL, request, run_plan, clock)
    placed: PlacedPlans = run.plan
    ending = ENDINGS.get(run.status, Ending.MAX_ITER)
    values = [result.value for result in placed.results]
    return SampleBarycenterResult(
        points=placed.points,
        barycenter=b,
        plans=tuple(result.plan_operator for result in placed.results),
        potentials=tuple(result.potentials for result in placed.results),
        value=objective.mean(values),
        lower_bound=objective.dual_value(placed),
        values=np.array(values),
        weights=clouds.weights,
        converged=ending is Ending.SETTLED and all(x.converged for x in placed.results),
        status=ending,
        n_iter=max(0, run.n_iter - 1),
        history=list({record.n_iter: record.upper for record in run.history}.values()),
        seconds=run.seconds,
    )
