"""Measure seconds (wall, processor, thread) and peaks of memory."""

from __future__ import annotations

import ctypes
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

# -- seconds -----------------------------------------------------------------------------------

T = TypeVar("T")


class Seconds(NamedTuple):
    """Seconds of a call: wall clock, all threads of the process, calling thread."""

    wall: float
    processor: float
    thread: float


def timed(call: Callable[[], T]) -> tuple[Seconds, T]:
    """Return the seconds of a call and its result."""
    began = _now()
    result = call()
    return Seconds(*(now - then for now, then in zip(_now(), began, strict=True))), result


def _now() -> tuple[float, float, float]:
    return time.perf_counter(), time.process_time(), time.thread_time()


@dataclass
class Runs(Generic[T]):
    """The seconds of repeated calls, and the result of the last one."""

    seconds: list[Seconds] = field(default_factory=list)
    result: T | None = None

    def add(self, call: Callable[[], T], shortest: float = 0.0) -> None:
        """Call once, or repeatedly for some seconds, and keep the mean."""
        n_calls, began = 0, _now()
        while n_calls == 0 or time.perf_counter() - began[0] < shortest:
            self.result = call()
            n_calls += 1
        taken = zip(_now(), began, strict=True)
        self.seconds.append(Seconds(*((now - then) / n_calls for now, then in taken)))

    @property
    def least(self) -> Seconds:
        """The least seconds on each clock, which other processes disturb least."""
        return self._by_clock(min)

    @property
    def median(self) -> Seconds:
        """The median seconds on each clock."""
        return self._by_clock(statistics.median)

    def _by_clock(self, choose: Callable[[Iterable[float]], float]) -> Seconds:
        return Seconds(*(choose(clock) for clock in zip(*self.seconds, strict=True)))


def repeated(call: Callable[[], T], budget: float, least: int = 1, most: int = 25) -> Runs[T]:
    """Return as many calls as fit into a budget of wall seconds, within the given numbers."""
    runs: Runs[T] = Runs()
    spent = 0.0
    while len(runs.seconds) < least or (spent < budget and len(runs.seconds) < most):
        runs.add(call)
        spent += runs.seconds[-1].wall
    return runs


def in_turns(
    calls: Mapping[str, Callable[[], T]], rounds: int, shortest: float = 0.0
) -> dict[str, Runs[T]]:
    """Run all calls once per round, in turns; warm them up beforehand.

    A machine that slows down for a while then slows all calls alike. A turn of less than
    ``shortest`` seconds repeats its call, as a loop would.
    """
    runs: dict[str, Runs[T]] = {name: Runs() for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            runs[name].add(call, shortest)
    return runs


# -- memory ------------------------------------------------------------------------------------


def peak() -> int:
    """Return the most memory this process has held, in bytes."""
    import resource  # not on Windows

    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def forget_peak() -> int | None:
    """Let :func:`recent_peak` begin anew; return the bytes held now, where Linux tells.

    Freed memory is given back first, so that a solve cannot hide in what an earlier one left.
    """
    try:
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError, TypeError):
        return None
    return recent_peak()


def recent_peak() -> int | None:
    """Return the most bytes held since the peak was forgotten, where Linux tells."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    peaks = (int(row.split()[1]) for row in status.splitlines() if row.startswith("VmHWM"))
    return 1024 * next(peaks)
