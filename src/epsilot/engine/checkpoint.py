"""Save a run, and resume it to the same trace, bit for bit.

A checkpoint holds the solver's state field by field, the random generator, the counters, the
history, and the best plan and potentials. It identifies its problem and goal. Every field is
checked when it is read, and the bounds are proved again from the saved plan and potentials.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import CertificateError, InvalidProblem
from ..files import StrPath
from ..files.arrays import Arrays, SavedArrays
from ..problems.objective import RunObjective
from ..problems.problem import Target
from ..solvers.base import ResizableState, SolverState
from ..wording import first_line, named, shown
from .goal import Goal
from .observers import Observer
from .request import Request
from .run_plan import RunPlan
from .run_state import AnyMoment, Moment, RunState
from .storage import load, save, save_or_warn

_FORMAT = "epsilot-checkpoint-2"
_REMEDY = "write one with the argument checkpoint"

#: Exceptions that a malformed header may raise.
_WRONG = (AttributeError, KeyError, TypeError, ValueError, OverflowError)


def identify(
    request: Request, objective: RunObjective, goal: Goal, run_plan: RunPlan
) -> dict[str, str]:
    """Return the problem, goal and method that a resumed run must share."""
    keywords = request.identity() | {"rtol": goal.rtol}
    given = (f"{name}={value}" for name, value in keywords.items() if value is not None)
    return {
        "problem": objective.digest(),
        "goal": ", ".join(given),
        "method": run_plan.method,
        "options": repr(run_plan.solver),
    }


@dataclass(frozen=True)
class Checkpoint(Observer):
    """Write a run to a file at every state from which it can be resumed."""

    path: StrPath
    identity: dict[str, str]
    objective: RunObjective

    def reached(self, moment: AnyMoment) -> None:
        """Save the state, the generator, the counters and the best answer."""
        run, target, state, rng = moment
        header = {
            **self.identity,
            "level": target.level,
            "rng": rng.bit_generator.state,
            **run.header(),
        }
        states = {f"state.{name}": value for name, value in _fields(state).items()}
        arrays = states | run.arrays(self.objective)
        save_or_warn(self.path, lambda path: save(path, _FORMAT, header, arrays))


def restore(
    path: StrPath, identity: dict[str, str], objective: RunObjective, run_plan: RunPlan
) -> AnyMoment:
    """Return the saved state of a run, or reject the file of another run."""
    name = named(path)
    header, arrays = load(path, _FORMAT, _REMEDY)
    for key, value in identity.items():
        if header.get(key) != value:
            raise InvalidProblem(
                f"{name} was saved with {key} {shown(header.get(key))} and this call has "
                f"{shown(value)}; resume with the same problem, accuracy, method, options and seed."
            )
    try:
        run, rng = RunState.restored(header, arrays, objective), np.random.default_rng(0)
        target = run_plan.schedule.at(_level(header["level"]))
        state, _ = run_plan.solver.init(target, rng)
        _read_state(state, arrays, target)
        rng.bit_generator.state = header["rng"]
    except InvalidProblem as error:
        raise InvalidProblem(f"{name} cannot be resumed: {error}") from None
    except (CertificateError, *_WRONG) as error:
        raise InvalidProblem(
            f"{name} cannot be resumed: its fields are wrong or missing "
            f"({first_line(error)}); {_REMEDY}."
        ) from None
    return Moment(run, target, state, rng)


def _level(saved: object) -> Any:
    """Return the saved level of a target: a positive number, or a list of numbers >= 0."""
    numbers = saved if isinstance(saved, list) else [saved or None]
    if not all(isinstance(x, (int, float)) and 0 <= x < math.inf for x in numbers):
        raise ValueError("level")
    return saved


def _read_state(state: SolverState, arrays: Arrays, target: Target) -> None:
    """Set the fields of a fresh state, of the same types and shapes.

    Lists that are empty at first may have grown, all by the same number. A resizable state checks
    its shapes itself.
    """
    is_resizable, grown = isinstance(state, ResizableState), set()
    for name, value in _fields(state).items():
        key, fresh = f"state.{name}", np.asarray(value)
        wanted = fresh.shape
        if key in arrays and fresh.ndim == 1 == arrays[key].ndim:
            if fresh.size == 0:
                grown.add(arrays[key].size)
            if fresh.size == 0 or is_resizable:
                wanted = arrays[key].shape
        saved = SavedArrays(arrays).array(key, wanted, fresh.dtype)
        setattr(state, name, saved if isinstance(value, np.ndarray) else type(value)(saved.item()))
    if not (state.fits(target) if isinstance(state, ResizableState) else len(grown) <= 1):
        raise ValueError("arrays of the state do not fit together")
    if not all(getattr(state, name) >= 0 for name in state.nonnegative):
        raise ValueError("a number of the state is negative")


def _fields(state: Any) -> dict[str, Any]:
    return {f.name: getattr(state, f.name) for f in dataclasses.fields(state)}
