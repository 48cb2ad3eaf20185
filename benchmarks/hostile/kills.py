"""Runs that are killed at random moments and resumed: the end is the uninterrupted one, bit by bit.

Most runs are forked from the warm process, so that a kill costs a fraction of a second; some are
real commands. Signals that ask politely must end a run as Ctrl-C does: with an answer.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import epsilot

from .outcome import Outcome, ask
from .problems import Rng, pick
from .solves import bit_defects

SIGNALS = {"SIGKILL": 3.0, "SIGTERM": 1.5, "SIGINT": 1.5}
METHODS = ("sinkhorn", "pdasmd", "apdagd", "accelerated_sinkhorn", "aam", "apdrcd", "box_newton")
EPOCHS = 300
#: Parts of a saved result that hold its clock.
CLOCKS = ("header", "digest")
MOST_KILLS = 4
#: How a forked run ends: a signal found no handler of the library in the middle of a run.
RUDE = 77
COMMAND = (sys.executable, "-c", "from epsilot.cli import main; main()")


def kills(rng: Rng) -> Outcome:
    """Draw a run, kill it a few times, finish it, and compare."""
    n, m = (int(k) for k in rng.integers(60, 160, 2))
    M, a, b = rng.random((n, m)), rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    method = str(rng.choice(METHODS))
    wish = {"reg": 0.005, "tol": 1e-9} if rng.random() < 0.3 else {"eps": 1e-7}
    keywords = {"method": method, "max_iter": EPOCHS, "seed": int(rng.integers(100)), **wish}
    how = pick(rng, {"forked": 9, "command": 1})
    outcome = Outcome(how, method, label=f"{n} x {m} {keywords}")
    with tempfile.TemporaryDirectory() as folder:
        run = RUNS[how](Path(folder), M, a, b, keywords)
        seconds = run.reference()
        for _ in range(int(rng.integers(1, MOST_KILLS + 1))):
            name = pick(rng, SIGNALS)
            outcome.label += f", {name}"
            outcome.events[name] = outcome.events.get(name, 0) + 1
            outcome.blame(*run.killed(getattr(signal, name), rng.uniform(0, seconds)))
        outcome.ending = "resumed" if run.checkpoint.exists() else "started again"
        return outcome.blame(*run.finished())


class Forked:
    """A run in a child of this process."""

    def __init__(self, folder: Path, M: Any, a: Any, b: Any, keywords: dict[str, Any]) -> None:
        self.folder, self.problem, self.keywords = folder, (M, a, b), keywords
        self.checkpoint = folder / "run.npz"
        self.result: Any = None

    def solve(self, **changes: Any) -> epsilot.Result:
        """Solve with one thread, as forked processes must."""
        return epsilot.solve(
            *self.problem, **self.keywords, n_threads=1, on_limit="ignore", **changes
        )

    def again(self) -> epsilot.Result:
        """Start the run, or continue it if it was saved."""
        saved = {"resume": str(self.checkpoint)} if self.checkpoint.exists() else {}
        return self.solve(checkpoint=str(self.checkpoint), **saved)

    def reference(self) -> float:
        """Solve without interruption and return the seconds that takes with a checkpoint."""
        self.result = self.solve()
        began = time.perf_counter()
        self.solve(checkpoint=str(self.folder / "timing.npz"))
        (self.folder / "timing.npz").unlink(missing_ok=True)
        return time.perf_counter() - began

    def killed(self, number: int, after: float) -> list[str]:
        """Run in a child, send a signal, and say what it left behind that it should not have."""
        child = os.fork()
        if child == 0:
            self._child()
        time.sleep(after)
        os.kill(child, number)
        _, status = os.waitpid(child, 0)
        found = file_defects(self.checkpoint)
        if os.waitstatus_to_exitcode(status) == RUDE:
            found.append(f"{signal.Signals(number).name} was not handled in the middle of a run")
        return found

    def _child(self) -> None:
        """Run; a signal that reaches us in the middle of the loop was not handled there."""

        def unhandled(number: int, frame: Any) -> None:
            names = set()
            while frame is not None:
                names.add(frame.f_code.co_name)
                frame = frame.f_back
            os._exit(RUDE if "drive" in names else 0)

        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, unhandled)
            self.again()
        finally:
            os._exit(0)

    def finished(self) -> list[str]:
        """Finish the run here and compare it with the uninterrupted one."""
        answer = ask(self.again)
        found = answer.defects
        if answer.value is None:
            return found or [f"not resumed: {answer.error}"]
        found += bit_defects(answer.value, self.result, "the resumed run")
        return found + draft_defects(self.folder, {"run.npz"})


class Command(Forked):
    """A run of ``epsilot solve``."""

    def _arguments(self, **files: Path) -> list[str]:
        names = {**{k.replace("_", "-"): v for k, v in self.keywords.items()}, **files}
        pairs = [text for name, value in names.items() for text in (f"--{name}", str(value))]
        sources = ["--cost", "problem.npz:M", "--a", "problem.npz:a", "--b", "problem.npz:b"]
        return [*COMMAND, "solve", *sources, "--threads", "1", "--json", *pairs]

    def _run(self, **files: Path) -> None:
        done = subprocess.run(
            self._arguments(**files), cwd=self.folder, capture_output=True, text=True
        )
        if done.returncode not in (0, 1):
            raise RuntimeError(f"exit code {done.returncode}: {done.stderr[-200:]}")

    def _files(self) -> dict[str, Path]:
        saved = {"resume": self.checkpoint} if self.checkpoint.exists() else {}
        return {"checkpoint": self.checkpoint, "out": self.folder / "out.npz", **saved}

    def reference(self) -> float:
        """Solve without interruption and return the seconds that takes."""
        M, a, b = self.problem
        np.savez(self.folder / "problem.npz", M=M, a=a, b=b)
        began = time.perf_counter()
        self._run(out=self.folder / "whole.npz")
        return time.perf_counter() - began

    def killed(self, number: int, after: float) -> list[str]:
        """Run as a process, send a signal, and look at what it left behind."""
        with subprocess.Popen(
            self._arguments(**self._files()),
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as child:
            time.sleep(after)
            child.send_signal(number)
        return file_defects(self.checkpoint) + file_defects(self.folder / "out.npz")

    def finished(self) -> list[str]:
        """Finish the run and compare the saved results, but for their clocks."""
        self._run(**self._files())
        found = draft_defects(self.folder, {"problem.npz", "whole.npz", "run.npz", "out.npz"})
        with np.load(self.folder / "whole.npz") as whole, np.load(self.folder / "out.npz") as out:
            names = sorted(whole.files)
            if names != sorted(out.files) or any(
                whole[name].tobytes() != out[name].tobytes() for name in names if name not in CLOCKS
            ):
                found.append("the resumed run differs in the saved result")
        return found


RUNS = {"forked": Forked, "command": Command}


def file_defects(path: Path) -> list[str]:
    """Say whether a file is half written."""
    if not path.exists():
        return []
    try:
        with np.load(path) as file:
            for name in file.files:
                file[name]
    except Exception as error:
        return [f"a half-written file: {type(error).__name__}"]
    return []


def draft_defects(folder: Path, expected: set[str]) -> list[str]:
    """Name what a finished run has left lying about."""
    left = sorted({path.name for path in folder.iterdir()} - expected)
    return [f"files left behind: {len(left)} drafts"] if left else []
