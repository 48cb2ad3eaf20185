"""Solves between two images: what each is, and the line of numbers it becomes."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from epsilot import solve
from epsilot._types import Json
from epsilot.display.text import is_counted
from epsilot.engine.result import Result, Status
from epsilot.errors import InvalidProblem
from epsilot.problems.record import Record
from epsilot.version import __version__

from ..environment import machine, versions
from ..instances import digits, images
from ..store import Line
from ..tasks import Interrupted

#: A run that has used this many times the operations expected of it is given up, unless it is
#: so short that they were a guess.
PATIENCE = 8.0
ALWAYS_ALLOWED = 1e9

#: Whose value and gap a line holds. Lines without the field are older: theirs are of the best
#: plan seen on the way, where the paper's stop returns the one that met its rule.
RETURNED = "the returned plan"
#: The fields that identify a line.
KEY = ("data", "side", "seed", "method", "stop", "eps", "given", "is_timed", "version")


@dataclass(frozen=True)
class ImageTask:
    """A method on a pair of images, to an accuracy, under a stop.

    ``data`` is "synthetic", "mnist" or the path of a file of digits; ``options`` are those of
    the method; a timed task runs alone on the machine. ``cost`` is the number of operations
    it is expected to take, which orders the work and bounds it, and ``speed`` the expected
    operations a second.
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
        """What distinguishes a solve from all others, as the first fields of its line."""
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
        """What is solved, in a few words."""
        return f"{self.method}, n = {self.side**2}, {self.data}"

    @property
    def variant(self) -> tuple[object, ...]:
        """What decides which kernels are compiled."""
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
        limit = max(PATIENCE * self.cost, ALWAYS_ALLOWED)

        def is_hopeless(record: Record) -> bool:
            return record.operations > limit

        result = solve(
            *images(self.side, self.seed, self.data),
            eps=self.eps,
            method=self.method,
            stop=self.stop,
            seed=self.seed,
            callback=is_hopeless,
            on_limit="ignore",
            **dict(self.options),
        )
        if result.status is Status.INTERRUPTED:
            raise Interrupted
        return line_of(self, result)


def line_of(task: ImageTask, result: Result) -> Line:
    """Return the line of a result."""
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
        "seconds": result.seconds,
    }


def _plain(value: object) -> Json:
    """Return an option as JSON knows it."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


@cache
def source_name(data: str) -> str:
    """Return the name under which a data set enters the lines: no path, but its contents."""
    if data in ("synthetic", "mnist"):
        return data
    if not Path(data).is_file():
        raise InvalidProblem(
            f"data is {data!r}; it must be synthetic, mnist or an existing file of digits "
            "(IDX or .npz)."
        )
    digits(data)
    digest = hashlib.sha256(Path(data).read_bytes()).hexdigest()[:12]
    return f"{Path(data).name} ({digest})"
