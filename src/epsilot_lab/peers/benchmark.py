"""Run the benchmark: one process per solver, each answer audited."""

from __future__ import annotations

import multiprocessing
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from epsilot._types import Matrix, Potentials, Vector
from epsilot.display.text import clock
from epsilot.errors import InvalidProblem

from ..instances import FAMILIES
from ..measuring import forget_peak, recent_peak, repeated, timed
from ..runner import Way, run_tasks
from ..store import Line, Store
from ..worker import Died, Late, Worker, follow_parent
from .selection import KEY, PeerTask, Selection, entropic_aims, is_worth_trying
from .solvers import (
    OURS,
    REFERENCE,
    SOLVERS,
    Adapter,
    BenchmarkSolver,
    PeerAnswer,
    PeerSetting,
    RelativeSetting,
)
from .summary import write_environment, write_summary

if TYPE_CHECKING:
    from rich.console import Console


# -- one process for each solver ---------------------------------------------------------------

#: Fast solves are repeated so long, and so often at most; their median counts.
SHORT_SECONDS = 0.25
SHORT_RUNS = 5
#: For loading, compiling and auditing, none of which is timed.
MAX_UNTIMED_SECONDS = 900.0
WARM_UP_SIZE = 64
PRELOAD = "epsilot_lab.peers.preload"


@dataclass(frozen=True)
class Job:
    """A solve: the folder with the instance, and the setting; the reference leaves its duals."""

    folder: Path
    setting: RelativeSetting
    is_reference: bool = False


class SolverProcess(Worker[Line | str]):
    """The process of a solver, forked from one that has imported what all need, if possible."""

    def __init__(self, solver: BenchmarkSolver) -> None:
        can_fork = "forkserver" in multiprocessing.get_all_start_methods()
        super().__init__(
            _serve,
            solver.adapter,
            start="forkserver" if can_fork else "spawn",
            preload=[PRELOAD] if can_fork else [],
        )

    def run(self, job: Job, limit: float) -> Line:
        """Return what was measured, or how it failed; never raises for a peer's fault."""
        self.send(job)
        try:
            for stage_limit in (MAX_UNTIMED_SECONDS, limit, MAX_UNTIMED_SECONDS):
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
        prepare(M, weights, weights, PeerSetting(0.01, 0.1, 0.1)).solve()
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
    runs = [seconds, *more.seconds]
    answer = prepared.answer(out)
    line = audit(M, a, b, answer, potentials)
    if job.is_reference and answer.potentials is not None:
        f, g = answer.potentials
        np.savez(job.folder / "reference.npz", value=line["value"], f=f, g=g)
    return {
        "status": "done",
        "seconds": float(np.median([run.wall for run in runs])),
        "processor": float(np.median([run.processor for run in runs])),
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


def audit(
    M: Matrix, a: Vector, b: Vector, answer: PeerAnswer, potentials: Potentials | None
) -> Line:
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


# -- the run -----------------------------------------------------------------------------------

REFERENCE_LIMIT = 900.0


def run_selection(selection: Selection, store: Store, console: Console) -> list[Line]:
    """Solve what the store lacks, append each line as it is measured, and return all lines."""
    tasks = selection.tasks()
    return run_tasks(
        tasks, store, console, _one_by_one(selection, _SolvedLines(store.lines(tasks)))
    )


def _one_by_one(selection: Selection, earlier: _SolvedLines) -> Way[PeerTask]:
    """Return the way that gives each solver a process, and the machine to one at a time."""

    def solved(missing: Sequence[PeerTask]) -> Generator[tuple[PeerTask, Line | None]]:
        with ExitStack() as stack:
            processes = {
                name: stack.enter_context(SolverProcess(SOLVERS[name]))
                for name in selection.solvers
            }
            for _, group in groupby(missing, key=lambda task: task.instance):
                with _instance_folder(processes[REFERENCE]) as instance:
                    for task in group:
                        line = None
                        if is_worth_trying(task, earlier.of(task), selection.rtols):
                            line = _line(task, instance, processes[task.solver], earlier, selection)
                        yield task, line
                        if line is not None:
                            earlier.add(line)

    return solved


class _SolvedLines:
    """The lines by family and solver: what rules and limits are read off."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines: dict[tuple[str, str], list[Line]] = defaultdict(list)
        for line in lines:
            self.add(line)

    def add(self, line: Line) -> None:
        self._lines[line["family"], line["solver"]].append(line)

    def of(self, task: PeerTask, solver: str | None = None) -> list[Line]:
        """Return the lines of a solver on the family of a task."""
        return self._lines[task.family, solver or task.solver]

    def on_instance(self, task: PeerTask, solver: str) -> list[Line]:
        """Return the first solves of a solver on the instance of a task, as far as they ended."""
        _, size, seed = task.instance
        return [
            line
            for line in self.of(task, solver)
            if (line["size"], line["seed"], line["repeat"]) == (size, seed, 0)
            and line["status"] == "done"
        ]


class _InstanceFolder:
    """An instance in a folder for the processes to read, written when first needed."""

    def __init__(self, folder: Path, reference: SolverProcess) -> None:
        self.folder = folder
        self._reference = reference

    def prepare(self, task: PeerTask) -> None:
        """Write the instance, and the optimal potentials unless the task is to find them."""
        if not (self.folder / "M.npy").exists():
            instance = FAMILIES[task.family].build(task.size, task.seed)
            for name, array in zip("Mab", instance, strict=True):
                np.save(self.folder / f"{name}.npy", array)
        if task.is_reference or self._is_solved:
            return
        self._reference.run(Job(self.folder, RelativeSetting(), is_reference=True), REFERENCE_LIMIT)
        if not self._is_solved:
            raise InvalidProblem(
                f"ot.emd2 did not solve {task.family} of size {task.size} within "
                f"{REFERENCE_LIMIT:.0f} s; a smaller size is required (leave it out of --sizes)"
            )

    @property
    def _is_solved(self) -> bool:
        return (self.folder / "reference.npz").exists()


@contextmanager
def _instance_folder(reference: SolverProcess) -> Iterator[_InstanceFolder]:
    with tempfile.TemporaryDirectory(prefix="epsilot-bench-") as folder:
        yield _InstanceFolder(Path(folder), reference)


def _line(
    task: PeerTask,
    instance: _InstanceFolder,
    process: SolverProcess,
    earlier: _SolvedLines,
    selection: Selection,
) -> Line:
    """Return the line of a task: identity, what was measured, and how far from the optimum."""
    instance.prepare(task)
    limit = _limit(task, earlier, selection)
    measured = process.run(Job(instance.folder, task.setting, task.is_reference), limit)
    line = {
        **task.identity,
        "n": FAMILIES[task.family].n_points(task.size),
        "limit": round(limit, 3),
        **measured,
    }
    if line["status"] == "done":
        known = earlier.on_instance(task, REFERENCE)
        exact = known[0]["value"] if known else line["value"]
        line["error"] = relative(line["value"] - exact, exact)
        line["gap"] = relative(line["value"] - line["lower"], exact)
    return line


def relative(difference: float, exact: float) -> float:
    """Return a difference relative to the optimal cost."""
    return float(difference / max(abs(exact), np.finfo(float).tiny))


def _limit(task: PeerTask, earlier: _SolvedLines, selection: Selection) -> float:
    """Return the seconds a task may take."""
    if not task.is_entropic:
        return REFERENCE_LIMIT
    aims = entropic_aims(selection.rtols)
    ours = [line["seconds"] for line in earlier.on_instance(task, OURS) if line["rtol"] in aims]
    return selection.limit(max(ours, default=selection.time_limit))


def run_bench(out: Path, selection: Selection, command: str, console: Console) -> None:
    """Solve what is missing in a folder, then draw and summarise everything."""
    out.mkdir(parents=True, exist_ok=True)
    store = Store(out / "solves.jsonl", KEY)
    missing = [task for task in selection.tasks() if task not in store]
    if missing:
        absent = [e.label for e in SOLVERS.values() if not e.is_installed]
        expected = clock(sum(task.seconds for task in missing))
        console.print(
            f"At most {len(missing)} solves, about {expected}"
            + (f"; not installed: {', '.join(absent)}." if absent else "."),
            highlight=False,
        )
        write_environment(out)
    lines = run_selection(selection, store, console)
    write_summary(out, lines, selection, command)
