"""The state of a run: counters, best plan and potentials; saved to files and read back."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Self, TypeAlias

import numpy as np

from .. import deadline
from .._types import Fields, Vector
from ..files.arrays import Arrays
from ..problems.objective import Proof, RunObjective
from ..problems.work import TABLE, Record, Status, Work
from ..solvers.base import S, T

#: Counters that are written as they are: whole numbers, and others.
_WHOLE = ("n_iter", "evaluated_at", "next_evaluation")
_REAL = ("seconds", "upper", "lower", "marginal_error")


@dataclass
class RunState:
    """Counters, history and best answer of a run; a checkpoint saves them with the state."""

    n_iter: int = 0
    work: Work = field(default_factory=Work)
    seconds: float = 0.0
    plan: Any = None  # the best plan and potentials, of the types of the objective
    potentials: Any = None
    upper: float = math.inf
    lower: float = -math.inf
    marginal_error: float = math.inf
    proof: Proof | None = None  # of the best plan and potentials, if they were proved already
    evaluation_seconds: float = 0.0  # of the last evaluation
    history: list[Record] = field(default_factory=list)
    last_progress: tuple[float, int, int] = (math.inf, 0, 0)  # gap or violation, operations, epoch
    evaluated_at: int = -1  # epoch of the last evaluation
    next_evaluation: int = 0  # operations at which the next one is due
    measured: dict[str, float] = field(default_factory=dict)  # numbers that the schedule remembers
    status: Status = Status.MAX_ITER
    eta: float = 0.0
    is_told_to_stop: bool = False  # by an observer

    @property
    def gap(self) -> float:
        """Best certified gap, in internal units."""
        return self.upper - self.lower

    # -- files -------------------------------------------------------------------------------

    def header(self) -> dict[str, object]:
        """Return the counters and the history."""
        return {
            "units": self.work.units,
            "certificate": self.work.certificate,
            "history": self.history,
            "last_progress": self.last_progress,
            "measured": self.measured,
            **{name: getattr(self, name) for name in (*_WHOLE, *_REAL)},
        }

    def arrays(self, objective: RunObjective) -> Arrays:
        """Return the best plan and potentials, if there are any yet."""
        if self.plan is None or self.potentials is None:
            return {}
        return objective.answer_arrays(self.plan, self.potentials)

    @classmethod
    def restored(cls, header: Fields, arrays: Arrays, objective: RunObjective) -> Self:
        """Return the run of a file; its bounds are proved again from its plan and potentials.

        Negative counters, NaN and values of a wrong type are rejected.
        """
        run = cls(
            n_iter=_whole(header["n_iter"]),
            work=_work(header),
            seconds=float(header["seconds"]),
            marginal_error=float(header["marginal_error"]),
            history=[_record(*record) for record in header["history"]],
            last_progress=_progress(*header["last_progress"]),
            evaluated_at=_whole(header["evaluated_at"], least=-1),
            next_evaluation=_whole(header["next_evaluation"]),
            measured={name: _number(value) for name, value in header["measured"].items()},
        )
        if not (run.seconds >= 0 and run.marginal_error >= 0):
            raise ValueError("negative counters")
        answer = objective.answer_from(arrays)
        if answer is None:  # the first certificate after resuming finds one
            run.evaluated_at = -1
            return run
        run.plan, run.potentials = answer
        run.proof = objective.prove(run.plan, run.potentials)
        run.upper, run.lower, _ = run.proof
        return run


def certify_crudely(run: RunState, objective: RunObjective) -> None:
    """Give a run without a certificate proved bounds that take no pass over the costs."""
    with deadline.until(None):
        found, run.proof = objective.crude_bounds()
    run.plan, run.upper, run.potentials, run.lower, run.marginal_error = found


def record_of(run: RunState, objective: RunObjective, eta: float) -> Record:
    """Return the counters and bounds of a run, in the user's units."""
    upper, lower = objective.bounds_to_user(run.upper, run.lower)
    return Record(
        n_iter=run.n_iter,
        operations=run.work.operations,
        seconds=run.seconds,
        upper=upper,
        lower=lower,
        gap=upper - lower,
        marginal_error=objective.mass * run.marginal_error,
        reg=objective.unit * eta,
    )


class Moment(NamedTuple, Generic[T, S]):
    """State of a run from which it can be resumed to the same trace."""

    run: RunState
    target: T
    state: S
    rng: np.random.Generator


AnyMoment: TypeAlias = Moment[Any, Any]


@dataclass
class RunPosition:
    """Current target and state of a run, and whether a step was abandoned."""

    target: Any = None
    state: Any = None
    potentials: tuple[Vector, ...] | None = None  # of the start
    is_torn: bool = False  # an abandoned step has changed the state
    is_abandoned: bool = False  # a step was abandoned, which may have drawn numbers
    whole: tuple[Any, Any, Fields, Work] | None = None  # target, state, generator and work before


def _record(n_iter: object, operations: object, *others: object) -> Record:
    return Record(_whole(n_iter), _whole(operations), *map(_number, others))


def _work(header: Fields) -> Work:
    units = {name: _whole(count) for name, count in header["units"].items()}
    if not units.keys() <= TABLE.keys():
        raise ValueError("unknown units of work")
    return Work(units, _whole(header["certificate"]))


def _progress(measure: object, operations: object, epoch: object) -> tuple[float, int, int]:
    return _number(measure), _whole(operations), _whole(epoch)


def _whole(value: object, least: int = 0) -> int:
    if not (isinstance(value, int) and value >= least):
        raise ValueError(f"{value!r} is no count")
    return value


def _number(value: object) -> float:
    if not isinstance(value, (int, float)) or math.isnan(value):
        raise ValueError(f"{value!r} is no number")
    return value
