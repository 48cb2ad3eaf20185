"""The clock of a call: when its loop ends, and when a running pass is abandoned.

A limit holds to within ``max(1 s, 10 %)``, the proof included. The loop ends before the limit, by
the expected time of a last certificate (``reserve``). A step that still runs then has a grace
period, after which it is abandoned (:mod:`epsilot.deadline`). After an interruption the same
happens, with the proof within one second.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from enum import Enum, auto

from .. import deadline
from ..arithmetic import keeping_subnormals
from ..kernels.compile_watch import compile_seconds, solver_clock
from ..problems.work import Status
from .interrupts import graceful_interrupts
from .tuning import TUNING


class Phase(Enum):
    """Phase of a call, which decides when its work is abandoned."""

    STEPS = auto()
    LAST_CERTIFICATE = auto()
    RETURN = auto()


class Clock:
    """The limit in seconds and the interruptions of one call; compiling takes no time."""

    __slots__ = (
        "_interrupted_at",
        "compiled_before",
        "ends",
        "is_interrupted",
        "phase",
        "reserve",
        "stride",
        "tolerance",
    )

    def __init__(
        self, max_seconds: float | None = None, is_interrupted: Callable[[], bool] = bool
    ) -> None:
        limit = math.inf if max_seconds is None else float(max_seconds)
        self.compiled_before = compile_seconds()
        self.ends = solver_clock() + limit
        self.tolerance = max(1.0, 0.1 * limit)  # seconds by which the limit may be exceeded
        self.reserve = 0.0  # seconds kept for a last certificate
        self.stride = 0.0  # seconds of another step, if it would eat into a long reserve
        self.is_interrupted = is_interrupted
        self.phase = Phase.STEPS
        self._interrupted_at = math.inf

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit in seconds."""
        return self.ends < math.inf

    def keep(self, reserve: float, stride: float) -> None:
        """Keep seconds for a last certificate, given the seconds of a step."""
        self.reserve, self.stride = reserve, stride if reserve > TUNING.grace_seconds else 0.0

    def pause(self, seconds: float) -> None:
        """Extend the limit by seconds of a warm-up."""
        self.ends += seconds

    def compile_seconds(self) -> float:
        """Return the seconds of compilation since the call began."""
        return compile_seconds() - self.compiled_before

    def _since_interruption(self) -> float:
        """Return the seconds since an interruption was first seen, or -inf."""
        if self.is_interrupted() and self._interrupted_at == math.inf:
            self._interrupted_at = time.perf_counter()
        return time.perf_counter() - self._interrupted_at

    def seconds_left(self) -> float:
        """Return the seconds before the limit."""
        return self.ends - solver_clock()

    def seconds_for_proof(self) -> float:
        """Return the seconds after which a last certificate is abandoned."""
        left = self.seconds_left() + TUNING.overrun_share * self.tolerance
        return min(left, TUNING.last_proof_seconds - self._since_interruption())

    def ending(self) -> Status | None:
        """Return the status if the loop must end now."""
        if self.is_interrupted():
            return Status.INTERRUPTED
        if self.ends == math.inf:
            return None
        is_up = self.seconds_left() <= self.reserve + self.stride
        return Status.MAX_SECONDS if is_up else None

    def is_late(self) -> bool:
        """Tell whether a running step must be abandoned."""
        if self._since_interruption() > TUNING.grace_seconds:
            return True
        return self.seconds_left() < self.reserve - TUNING.grace_seconds

    def is_over(self) -> bool:
        """Tell whether a running last certificate must be abandoned."""
        return self.seconds_for_proof() < 0

    def has_passed(self) -> bool:
        """Tell whether running work must be abandoned; returning an answer never is."""
        if self.phase is Phase.STEPS:
            return self.is_late()
        return self.phase is Phase.LAST_CERTIFICATE and self.is_over()


class _Started:
    """The context of a call; a class, since a generator takes twice as long."""

    __slots__ = ("_arithmetic", "_deadline", "_interrupts", "_max_seconds")

    def __init__(self, max_seconds: float | None) -> None:
        self._max_seconds, self._interrupts = max_seconds, graceful_interrupts()
        self._arithmetic = keeping_subnormals()

    def __enter__(self) -> Clock:
        self._arithmetic.__enter__()
        clock = Clock(self._max_seconds, self._interrupts.__enter__())
        self._deadline = deadline.until(clock.has_passed)
        self._deadline.__enter__()
        return clock

    def __exit__(self, *error: object) -> None:
        self._arithmetic.__exit__()
        self._deadline.__exit__(*error)
        self._interrupts.__exit__(*error)


def started(max_seconds: float | None) -> _Started:
    """Start the clock of a call; inside the block, signals and long passes look at it."""
    return _Started(max_seconds)
