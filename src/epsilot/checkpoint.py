"""Saving a run and continuing it to the same trace, bit for bit.

A checkpoint is an ``.npz`` of plain arrays and one JSON header: the solver's state field by
field, the generator, the counters, the history and the best bracket so far.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .driver import Driver
from .errors import InvalidProblem
from .files import write_atomically
from .plan import Arcs, Explicit, Gibbs, Plan
from .problem import Problem, Target
from .result import Record, read_npz
from .solvers.base import Solver
from .work import Work

_FORMAT = "epsilot-checkpoint-1"


@dataclass(frozen=True)
class Checkpoint:
    """What identifies a run: it may only be resumed by the same method on the same problem."""

    problem: Problem
    method: str
    solver: Solver
    seed: int

    def _identity(self) -> dict[str, Any]:
        return {
            "problem_hash": self.problem.digest(), "method": self.method,
            "solver": repr(self.solver), "seed": self.seed,
        }  # fmt: skip

    def writer(self, path: str | os.PathLike[str]) -> Callable[[Driver, Target, Any], None]:
        """Return a function that saves a driver's run to ``path``."""
        identity = self._identity()

        def save(driver: Driver, target: Target, state: Any) -> None:
            run = driver.run
            header = {
                "format": _FORMAT, **identity, "level": target.level, "n_iter": run.n_iter,
                "units": run.work.units, "certificate": run.work.certificate,
                "seconds": run.seconds, "upper": run.upper, "lower": run.lower,
                "marginal_error": run.marginal_error, "history": run.history,
                "last_progress": run.last_progress, "evaluated_at": run.evaluated_at,
                "next_evaluation": run.next_evaluation,
                "rng": driver.rng.bit_generator.state,
            }  # fmt: skip
            arrays: dict[str, Any] = {"header": np.array(json.dumps(header, default=_plain))}
            for name, value in _fields(state).items():
                arrays[f"state.{name}"] = np.asarray(value)
            if run.plan is not None and run.potentials is not None:
                arrays |= _pack_plan(run.plan)
                arrays["best.f"], arrays["best.g"] = run.potentials
            write_atomically(path, lambda file: np.savez(file, **arrays))

        return save

    def restore(self, path: str | os.PathLike[str], driver: Driver) -> tuple[Target, Any]:
        """Load a run into ``driver`` and return its target and state."""
        header, arrays = read_npz(path, _FORMAT, "write one with checkpoint=...")
        for key, value in self._identity().items():
            if header[key] != value:
                raise InvalidProblem(
                    f"{os.fspath(path)} was saved with {key} {header[key]!r} and this call has "
                    f"{value!r}; resume with the same problem, method, options and seed."
                )
        run = driver.run
        run.work = Work(header["units"], header["certificate"])
        run.history = [Record(*record) for record in header["history"]]
        run.last_progress = tuple(header["last_progress"])
        for name in (
            "n_iter", "seconds", "upper", "lower", "marginal_error", "evaluated_at",
            "next_evaluation",
        ):  # fmt: skip
            setattr(run, name, header[name])
        if "best.f" in arrays:
            run.plan = _unpack_plan(arrays, self.problem)
            run.potentials = arrays["best.f"], arrays["best.g"]
        target = driver.schedule.at(header["level"])
        state, _ = driver.solver.init(target, np.random.default_rng(0))
        for name, value in _fields(state).items():
            setattr(state, name, _unpack(arrays[f"state.{name}"], value))
        driver.rng.bit_generator.state = header["rng"]
        return target, state


def _fields(state: Any) -> dict[str, Any]:
    return {f.name: getattr(state, f.name) for f in dataclasses.fields(state)}


def _unpack(saved: Any, like: Any) -> Any:
    """Return a saved field with the type that a fresh state has."""
    return saved if isinstance(like, np.ndarray) else type(like)(saved.item())


def _pack_plan(plan: Plan) -> dict[str, Any]:
    arrays = {f"best.{name}": getattr(plan, name) for name in ("s", "t", "e", "d")}
    core = plan.core
    if isinstance(core, Gibbs):
        arrays |= {"best.core_f": core.f, "best.core_g": core.g, "best.eta": np.asarray(core.eta)}
    elif isinstance(core, Arcs):
        arrays |= {"best.i": core.i, "best.j": core.j, "best.flow": core.flow}
    else:
        arrays["best.X"] = core.X  # type: ignore[attr-defined]
    return {name.replace("best.", "plan."): value for name, value in arrays.items()}


def _unpack_plan(arrays: dict[str, Any], problem: Problem) -> Plan:
    core: Any
    if "plan.X" in arrays:
        core = Explicit(arrays["plan.X"])
    elif "plan.flow" in arrays:
        core = Arcs(problem.shape, arrays["plan.i"], arrays["plan.j"], arrays["plan.flow"])
    else:
        f, g = arrays["plan.core_f"], arrays["plan.core_g"]
        core = Gibbs(problem.geometry, f, g, float(arrays["plan.eta"]))
    return Plan(core, *(arrays[f"plan.{name}"] for name in ("s", "t", "e", "d")))


def _plain(value: Any) -> Any:
    """Turn NumPy scalars and arrays of a generator's state into JSON."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
