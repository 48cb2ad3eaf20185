"""Saving a run and continuing it to the same trace, bit for bit.

A checkpoint holds the solver's state field by field, the generator, the counters, the history and
the best plan and potentials so far. It knows the problem and the goal it belongs to, every field
is checked before use, and the bracket is proved again from the saved plan and potentials.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import CertificateError, InvalidProblem
from ..files.saved import Arrays, Saved
from ..solvers.base import AnySolver
from ..transport.objective import Objective
from ..transport.problem import Target
from ..transport.record import Record
from ..transport.work import TABLE, Work
from .driver import Driver, Run
from .storage import load, pack_plan, save, unpack_plan

_FORMAT = "epsilot-checkpoint-2"
_REMEDY = "write one with the argument checkpoint"

#: What reading a header that is not as it was written may raise.
_WRONG = (AttributeError, KeyError, TypeError, ValueError, OverflowError)

#: Counters of a run: what each may be.
_WHOLE = ("n_iter", "evaluated_at", "next_evaluation")
_REAL = ("seconds", "upper", "lower", "marginal_error")


@dataclass(frozen=True)
class Checkpoint:
    """What identifies a run: it may only be resumed by the same method on the same problem."""

    objective: Objective
    wish: dict[str, Any]  # eps, rtol, reg, tol and stop, as they were asked for
    method: str
    solver: AnySolver
    seed: int

    def _identity(self) -> dict[str, Any]:
        return {
            "problem": self.objective.problem.digest(),
            "goal": ", ".join(f"{k}={v}" for k, v in self.wish.items() if v is not None),
            "method": self.method,
            "options": repr(self.solver),
            "seed": self.seed,
        }

    def writer(self, path: str | os.PathLike[str]) -> Callable[[Driver, Target, Any], None]:
        """Return a function that saves a driver's run to ``path``."""
        identity = self._identity()

        def write(driver: Driver, target: Target, state: Any) -> None:
            run = driver.run
            header = {
                **identity, "level": target.level, "units": run.work.units,
                "certificate": run.work.certificate, "history": run.history,
                "last_progress": run.last_progress, "rng": driver.rng.bit_generator.state,
                **{name: getattr(run, name) for name in (*_WHOLE, *_REAL)},
            }  # fmt: skip
            arrays = {f"state.{name}": value for name, value in _fields(state).items()}
            if run.plan is not None and run.potentials is not None:
                arrays |= pack_plan(run.plan)
                arrays["best.f"], arrays["best.g"] = run.potentials
            save(path, _FORMAT, header, arrays)

        return write

    def restore(self, path: str | os.PathLike[str], driver: Driver) -> tuple[Target, Any]:
        """Load a run into ``driver`` and return its target and state."""
        name = os.fspath(path)
        header, arrays = load(path, _FORMAT, _REMEDY)
        for key, value in self._identity().items():
            if header.get(key) != value:
                raise InvalidProblem(
                    f"{name} was saved with {key} {header.get(key)!r} and this call has {value!r}; "
                    "resume with the same problem, accuracy, method, options and seed."
                )
        try:
            _read_counters(header, driver.run)
            self._read_best(arrays, driver.run)
            level = float(header["level"])
            if not 0 < level < math.inf:
                raise ValueError("level")
            target = driver.schedule.at(level)
            state, _ = driver.solver.init(target, np.random.default_rng(0))
            _read_state(state, arrays, target.shape)
            driver.rng.bit_generator.state = header["rng"]
        except InvalidProblem as error:
            raise InvalidProblem(f"{name} cannot be resumed: {error}") from None
        except (CertificateError, *_WRONG) as error:
            raise InvalidProblem(
                f"{name} cannot be resumed: what it holds of the run is wrong or missing "
                f"({type(error).__name__}: {error}); {_REMEDY}."
            ) from None
        return target, state

    def _read_best(self, arrays: Arrays, run: Run) -> None:
        """Set the best plan and potentials, and prove their bracket again."""
        if "best.f" not in arrays:
            run.upper, run.lower = math.inf, -math.inf
            return
        n, m = self.objective.problem.shape
        run.plan = unpack_plan(arrays, self.objective.problem)
        best = Saved(arrays).under("best")
        run.potentials = best.vector("f", (n,)), best.vector("g", (m,))
        run.upper, run.lower, _ = self.objective.prove(run.plan, run.potentials)


def _read_counters(header: dict[str, Any], run: Run) -> None:
    """Set the counters of a run; none may be negative, NaN or of another kind."""
    for name in _WHOLE:
        setattr(run, name, _whole(header[name], least=-1 if name == "evaluated_at" else 0))
    for name in _REAL:
        setattr(run, name, float(header[name]))
    if not (run.seconds >= 0 and run.marginal_error >= 0):
        raise ValueError("negative counters")
    units = {name: _whole(count) for name, count in header["units"].items()}
    if not units.keys() <= TABLE.keys():
        raise ValueError("unknown units of work")
    run.work = Work(units, _whole(header["certificate"]))
    run.history = [Record(*map(_number, record)) for record in header["history"]]
    measure, operations, epoch = header["last_progress"]
    run.last_progress = _number(measure), _whole(operations), _whole(epoch)


def _read_state(state: Any, arrays: Arrays, shape: tuple[int, int]) -> None:
    """Set the fields of a fresh state, of the same types and shapes.

    Lists that are empty at first may have grown, but together; a state whose shapes change
    otherwise says itself what ``fits``.
    """
    fits, grown = getattr(state, "fits", None), set()
    for name, value in _fields(state).items():
        key, fresh = f"state.{name}", np.asarray(value)
        wanted = fresh.shape
        if key in arrays and fresh.ndim == 1 == arrays[key].ndim:
            if fresh.size == 0:
                grown.add(arrays[key].size)
            if fresh.size == 0 or fits is not None:
                wanted = arrays[key].shape
        saved = Saved(arrays).array(key, wanted, fresh.dtype)
        setattr(state, name, saved if isinstance(value, np.ndarray) else type(value)(saved.item()))
    if len(grown) > 1 or not (fits is None or fits(*shape)):
        raise ValueError("arrays of the state do not fit together")


def _whole(value: Any, least: int = 0) -> int:
    if not (isinstance(value, int) and value >= least):
        raise ValueError(f"{value!r} is no count")
    return value


def _number(value: Any) -> Any:
    if not isinstance(value, (int, float)) or math.isnan(value):
        raise ValueError(f"{value!r} is no number")
    return value


def _fields(state: Any) -> dict[str, Any]:
    return {f.name: getattr(state, f.name) for f in dataclasses.fields(state)}
