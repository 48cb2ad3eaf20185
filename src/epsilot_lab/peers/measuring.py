"""A process for each solver: warmed up, measured from inside, its answers audited."""

from __future__ import annotations

import multiprocessing
import warnings
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from epsilot._types import Matrix, Potentials, Vector

from ..footprint import forget_peak, recent_peak
from ..store import Line
from ..timing import repeated, timed
from ..worker import Died, Late, Worker, follow_parent
from .adapters import Adapter, Answer, Setting
from .entrants import Entrant, RelativeSetting

#: Fast solves are repeated so long, and so often at most; their median counts.
SHORT_SECONDS = 0.25
SHORT_RUNS = 5
#: For loading, compiling and auditing, none of which is timed.
PATIENCE = 900.0
WARM_UP_SIZE = 64
PRELOAD = "epsilot_lab.peers.preload"


@dataclass(frozen=True)
class Job:
    """A solve: the folder with the instance, and the setting; the reference leaves its duals."""

    folder: Path
    setting: RelativeSetting
    is_reference: bool = False


class Bench(Worker[Line | str]):
    """The process of a solver, forked from one that has imported what all need, if possible."""

    def __init__(self, entrant: Entrant) -> None:
        can_fork = "forkserver" in multiprocessing.get_all_start_methods()
        super().__init__(
            _serve,
            entrant.adapter,
            start="forkserver" if can_fork else "spawn",
            preload=[PRELOAD] if can_fork else [],
        )

    def run(self, job: Job, limit: float) -> Line:
        """Return what was measured, or how it failed; never raises for a peer's fault."""
        self.send(job)
        try:
            for stage_limit in (PATIENCE, limit, PATIENCE):
                message = self.receive(stage_limit)
                if isinstance(message, dict):
                    return message
        except Late:
            return {"status": "timeout", "seconds": limit}
        except Died:
            pass
        return {"status": "error", "message": "the process died (out of memory?)"}


# -- the other process -----------------------------------------------------------------------


def _serve(pipe: Connection, adapter: str) -> None:
    """Warm up, then answer jobs: a word when the clock starts, another when it stops, a line."""
    follow_parent()
    import_module(PRELOAD)
    warnings.simplefilter("ignore")
    module, _, function = adapter.partition(":")
    prepare: Adapter = getattr(import_module(module), function)
    _warm_up(prepare)
    while True:
        job = pipe.recv()
        try:
            pipe.send(_measure(pipe, prepare, job))
        except Exception as error:  # whatever a peer raises is its failure, not ours
            text = f"{type(error).__name__}: {error}"
            pipe.send({"status": "error", "message": " ".join(text.split())[:200]})


def _warm_up(prepare: Adapter) -> None:
    """Compile and import what the first solve would otherwise be charged with."""
    rng = np.random.default_rng(0)
    weights = np.full(WARM_UP_SIZE, 1 / WARM_UP_SIZE)
    M = rng.random((WARM_UP_SIZE, WARM_UP_SIZE))
    try:
        prepare(M, weights, weights, Setting(0.01, 0.1, 0.1)).solve()
    except Exception:  # the same failure will be reported with a line
        return


def _measure(pipe: Connection, prepare: Adapter, job: Job) -> Line:
    M, a, b = (np.load(job.folder / f"{name}.npy") for name in "Mab")
    value, potentials = _reference(job)
    prepared = prepare(M, a, b, job.setting.absolute(value, float(M.mean())))
    baseline = forget_peak()
    pipe.send("begin")
    seconds, out = timed(prepared.solve)
    pipe.send("end")
    peak = recent_peak()
    more = repeated(prepared.solve, SHORT_SECONDS - seconds.wall, least=0, most=SHORT_RUNS - 1)
    runs = [seconds.wall, *(again.wall for again in more.seconds)]
    answer = prepared.answer(out)
    line = audit(M, a, b, answer, potentials)
    if job.is_reference and answer.potentials is not None:
        f, g = answer.potentials
        np.savez(job.folder / "reference.npz", value=line["value"], f=f, g=g)
    return {
        "status": "done",
        "seconds": float(np.median(runs)),
        "peak_mib": None if baseline is None or peak is None else _mebibytes(peak - baseline),
        **line,
    }


def _mebibytes(n_bytes: int) -> float:
    return round(n_bytes / 2**20, 1)


def _reference(job: Job) -> tuple[float, Potentials | None]:
    """Return the optimal cost and potentials that prove it, once they are known."""
    if job.is_reference:
        return 1.0, None
    with np.load(job.folder / "reference.npz") as arrays:
        return float(arrays["value"]), (arrays["f"], arrays["g"])


def audit(M: Matrix, a: Vector, b: Vector, answer: Answer, potentials: Potentials | None) -> Line:
    """Return what ``certify`` proves of an answer, with the reference's duals if it has none.

    Entries below zero are cut off and the plan is rounded: an infeasible plan is judged by the
    nearest feasible one, and its marginal error is reported.
    """
    from epsilot import certify

    plan = answer.plan
    if isinstance(plan, np.ndarray):
        plan = np.maximum(plan, 0.0)
    duals = potentials if answer.potentials is None else answer.potentials
    certificate = certify(M, a, b, plan=plan, potentials=duals)
    return {
        "value": certificate.upper,
        "lower": certificate.lower,
        "marginal_error": certificate.marginal_error,
    }
