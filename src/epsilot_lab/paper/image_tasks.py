"""Define solves between two images, and the quantities read from their lines."""

from __future__ import annotations

import gzip
import hashlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from epsilot import solve
from epsilot._types import Json
from epsilot.display.text import is_counted
from epsilot.engine.result import Result
from epsilot.errors import InvalidProblem
from epsilot.problems.work import Record, Status
from epsilot.solvers.method_info import growth
from epsilot.version import __version__

from ..environment import machine, versions
from ..instances import AUTHORS, digits, images
from ..store import Line, refuse_interrupted

# -- tasks -------------------------------------------------------------------------------------

#: A run that has used this many times the operations expected of it is given up, unless it is
#: so short that they were a guess.
PATIENCE = 8.0
ALWAYS_ALLOWED = 1e9

#: The plan whose value and gap a line holds. Older lines lack the field: they hold those of the
#: best plan of the run, not of the plan that met the paper's stop.
RETURNED = "the returned plan"
#: The fields that identify a line.
KEY = ("data", "side", "seed", "method", "stop", "eps", "given", "is_timed", "version")


@dataclass(frozen=True)
class ImageTask:
    """A method on a pair of images, to an accuracy, under a stop.

    ``data`` is "synthetic", "mnist" or the path of a file of digits; ``options`` are those of
    the method; a timed task runs alone on the machine. ``cost`` is the number of operations
    it is expected to take, which orders the work and bounds it, and ``speed`` the expected
    operations per second.
    """

    data: str
    side: int
    seed: int
    method: str
    stop: str
    eps: float
    options: tuple[tuple[str, Any], ...] = ()
    is_timed: bool = False
    cost: float = field(default=math.inf, compare=False)
    speed: float = field(default=1e9, compare=False)

    @property
    def identity(self) -> Line:
        """The fields that distinguish its line from all others."""
        return {
            "data": source_name(self.data),
            "side": self.side,
            "seed": self.seed,
            "method": self.method,
            "stop": self.stop,
            "eps": self.eps,
            "given": dict(self.options),
            "is_timed": self.is_timed,
            "version": __version__,
        }

    @property
    def seconds(self) -> float:
        """Expected time."""
        return 0.01 + self.cost / self.speed

    @property
    def label(self) -> str:
        """A few words for the progress line."""
        return f"{self.method}, n = {self.side**2}, {self.data}"

    @property
    def variant(self) -> tuple[object, ...]:
        """The choices that decide which kernels are compiled."""
        return self.method, self.stop, self.options

    def warm_up(self) -> None:
        """Compile the method on nine pixels."""
        solve(
            *images(3, 0),
            eps=0.5,
            method=self.method,
            stop=self.stop,
            max_iter=2,
            on_limit="ignore",
            **dict(self.options),
        )

    def line(self) -> Line:
        """Solve and return the line: identity, what was reached, what it took, and with what."""
        _compile(ImageTask("synthetic", 3, 0, self.method, self.stop, 0.5, self.options))
        limit = max(PATIENCE * self.cost, ALWAYS_ALLOWED)

        def is_hopeless(record: Record) -> bool:
            return record.operations > limit

        problem = images(self.side, self.seed, self.data)
        began = time.process_time()
        with refuse_interrupted():
            result = solve(
                *problem,
                eps=self.eps,
                method=self.method,
                stop=self.stop,
                seed=self.seed,
                callback=is_hopeless,
                on_limit="ignore",
                **dict(self.options),
            )
        return line_of(self, result, time.process_time() - began)


@cache
def _compile(task: ImageTask) -> None:
    """Compile the kernels of a task, once per process, so that its time is of the solve."""
    task.warm_up()


def line_of(task: ImageTask, result: Result, processor: float) -> Line:
    """Return the line of a result; seconds that are judged are those of the processor."""
    counted = is_counted(result.work)
    has_ended = result.status in (Status.CERTIFIED, Status.PUBLISHED_STOP)
    return {
        **task.identity,
        "n": task.side**2,
        "B": result.options.get("batch_size", 1),
        "operations": result.work.operations if counted else None,
        "certificate_operations": result.work.certificate,
        "exponentials": result.work.exponentials if counted else None,
        "n_iter": result.n_iter,
        "gap": result.gap,
        "value": result.value,
        "lower_bound": result.lower_bound,
        "value_of": RETURNED,
        "marginal_error": result.marginal_error,
        "reg": result.reg,
        "status": result.status.name.lower(),
        "is_certified": result.gap <= task.eps,
        "has_ended": has_ended,
        "options": {name: _plain(value) for name, value in result.options.items()},
        "problem_hash": result.problem_hash,
        "versions": versions(),
        "machine": machine(),
        "seconds": processor if task.is_timed or not counted else result.seconds,
    }


def _plain(value: object) -> Json:
    """Return an option as JSON knows it."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


@cache
def source_name(data: str) -> str:
    """Return the name under which a data set enters the lines: no path, but its contents."""
    if data.startswith(AUTHORS):
        return AUTHORS + source_name(data.removeprefix(AUTHORS))
    if data in ("synthetic", "mnist"):
        return data
    if not Path(data).is_file():
        raise InvalidProblem(
            f"data is {data!r}; it must be synthetic, mnist or an existing file of digits "
            "(IDX or .npz)."
        )
    digits(data)
    content = Path(data).read_bytes()
    if is_mnist_train(content):
        return MNIST_TRAIN
    return f"{Path(data).name} ({hashlib.sha256(content).hexdigest()[:12]})"


#: Name of MNIST's 60,000 training digits in the lines, whatever their file is called.
MNIST_TRAIN = "mnist-train"
_MNIST_TRAIN_DIGEST = "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"


def is_mnist_train(content: bytes) -> bool:
    """Tell whether a file is the one of MNIST's training digits, compressed or not."""
    plain = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    return hashlib.sha256(plain).hexdigest() == _MNIST_TRAIN_DIGEST


# -- expected operations -----------------------------------------------------------------------

#: (method, option, value) -> operations beside those of the method's own choice.
FACTORS: dict[tuple[str, str, Any], float] = {
    ("aam", "rule", "violation"): 4.0,
    ("apdagd", "rule", "duality"): 0.3,
    ("pdasmd", "smoothness", "sharp"): 0.45,
}


def priced(task: ImageTask) -> ImageTask:
    """Return the task with the operations expected of it."""
    cost = growth(task.method, task.stop)
    options: dict[str, Any] = dict(task.options)
    factor = options.pop("batch_size", 1) ** 0.45
    options.pop("inner_loops", None)
    for choice in options.items():
        factor *= FACTORS.get((task.method, *choice), 1.0)
    operations = factor * cost.at(task.side**2, task.eps)
    return replace(task, cost=operations, speed=cost.speed)


# -- quantities read from the lines ------------------------------------------------------------

STOPS = {"paper": "the paper's stop", "certificate": "our certificate"}


def operations(line: Line) -> float | None:
    """Return the operations up to the stop, the test included if it is the certificate."""
    if line["operations"] is None:
        return None
    extra = line["certificate_operations"] if line["stop"] == "certificate" else 0
    return float(line["operations"] + extra)


def soundness(lines: Sequence[Line]) -> str:
    """Return how the solves ended, in one paragraph."""
    if not lines:
        return "No solve has been made."
    ended = [line for line in lines if line["has_ended"]]
    texts = [f"{len(ended)} of {len(lines)} solves ended by their stop rule."]
    groups = {
        "Under the certificate the certified gap": [
            line for line in ended if line["stop"] == "certificate"
        ],
        "Under the paper's stop the certified gap of the returned plan": [
            line for line in ended if line["stop"] == "paper" and "value_of" in line
        ],
        "Where the gap of the best plan of the run was stored instead, it": [
            line for line in ended if line["stop"] == "paper" and "value_of" not in line
        ],
    }
    for what, own in groups.items():
        if own:
            shares = [line["gap"] / line["eps"] for line in own]
            texts.append(
                f"{what} was {np.median(shares):.2g} ε in the median and at most "
                f"{max(shares):.2g} ε ({len(own)} solves)."
            )
    return " ".join(texts)
