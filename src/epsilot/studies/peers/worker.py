"""A process for each solver: warm, measured from inside, and killed when its time is up."""

from __future__ import annotations

import ctypes
import multiprocessing
import time
import warnings
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from ..lab.runner import start_worker
from ..lab.tasks import Line
from .adapters import Adapter, Answer, Setting
from .entrants import Choice, Entrant

#: Fast solves are repeated so long, and so often at most; their median counts.
SHORT_SECONDS = 0.25
SHORT_RUNS = 5
#: For loading, compiling and auditing, none of which is timed.
PATIENCE = 900.0
WARM_UP_SIZE = 64


@dataclass(frozen=True)
class Job:
    """A solve: the folder with the problem, and the setting; the reference leaves its duals."""

    folder: Path
    choice: Choice
    is_reference: bool = False


class Worker:
    """The parent's end: start it, hand it jobs, and replace it after a timeout."""

    def __init__(self, entrant: Entrant) -> None:
        self.entrant = entrant
        self._process: Any = None
        self._pipe: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = self._pipe = None

    def run(self, job: Job, limit: float) -> Line:
        """Return what was measured, or how it failed; never raises for a peer's fault."""
        pipe = self._started()
        try:
            pipe.send(job)
            for stage_limit in (PATIENCE, limit, PATIENCE):
                if not pipe.poll(stage_limit):
                    self.kill()
                    return {"status": "timeout", "seconds": limit}
                message = pipe.recv()
                if isinstance(message, dict):
                    return message
        except (EOFError, OSError):
            self.kill()
        return {"status": "error", "message": "the process died (out of memory?)"}

    def _started(self) -> Connection:
        if self._pipe is None:
            context = _context()
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(
                target=_serve, args=(theirs, self.entrant.adapter), daemon=True
            )
            self._process.start()
            theirs.close()
        return self._pipe


def _context() -> Any:
    """Return how processes start: forked from one that has imported what all need, if possible."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["epsilot.studies.peers.preload"])
    return context


# -- the other process -----------------------------------------------------------------------


def _serve(pipe: Connection, adapter: str) -> None:
    """Warm up, then answer jobs: a word when the clock starts, another when it stops, a line."""
    start_worker()
    import_module("epsilot.studies.peers.preload")
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
    prepared = prepare(M, a, b, job.choice.setting(value, float(M.mean())))
    baseline = resident(reset_peak=True)
    pipe.send("begin")
    seconds, out = _timed(prepared.solve)
    pipe.send("end")
    peak = resident()
    runs = [seconds]
    while sum(runs) < SHORT_SECONDS and len(runs) < SHORT_RUNS:
        runs.append(_timed(prepared.solve)[0])
    answer = prepared.answer(out)
    line = audit(M, a, b, answer, potentials)
    if job.is_reference and answer.potentials is not None:
        f, g = answer.potentials
        np.savez(job.folder / "reference.npz", value=line["value"], f=f, g=g)
    known = baseline is not None and peak is not None
    return {
        "status": "done",
        "seconds": float(np.median(runs)),
        "peak_mib": round((peak - baseline) / 1024, 1) if known else None,  # type: ignore[operator]
        **line,
    }


def _reference(job: Job) -> tuple[float, Any]:
    """Return the optimal cost and potentials that prove it, once they are known."""
    if job.is_reference:
        return 1.0, None
    with np.load(job.folder / "reference.npz") as arrays:
        return float(arrays["value"]), (arrays["f"], arrays["g"])


def _timed(call: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    out = call()
    return time.perf_counter() - began, out


def audit(M: Any, a: Any, b: Any, answer: Answer, potentials: Any) -> Line:
    """Return what ``certify`` proves of an answer, with the reference's duals if it has none.

    Entries below zero are cut off and the plan is rounded: an infeasible plan is judged by the
    nearest feasible one, and its marginal error is reported.
    """
    from ... import certify

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


def resident(reset_peak: bool = False) -> int | None:
    """Return the most memory used since the last reset, in KiB, where Linux tells.

    Freed memory is given back first, so that a solve cannot hide in what an earlier one left.
    """
    try:
        if reset_peak:
            ctypes.CDLL(None).malloc_trim(0)
            Path("/proc/self/clear_refs").write_text("5")
        status = Path("/proc/self/status").read_text()
    except (OSError, AttributeError):
        return None
    return next(int(row.split()[1]) for row in status.splitlines() if row.startswith("VmHWM"))
