"""Observers of a run, by one protocol: history, progress line, callback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..problems.work import Record
from .run_state import AnyMoment, RunState

if TYPE_CHECKING:
    from ..display.progress import Progress


class Observer:
    """Observer of a run; subclasses override the events they need."""

    def starting(self, record: Record) -> bool:
        """Observe a start in progress, before anything is certified; True asks to stop."""
        return False

    def stepped(self, n_iter: int, seconds: float) -> None:
        """Observe that a step was taken."""

    def evaluated(self, record: Record) -> bool:
        """Observe a certificate; True asks to stop."""
        return False

    def reached(self, moment: AnyMoment) -> None:
        """Observe a state from which the run can be resumed."""


@dataclass(frozen=True)
class History(Observer):
    """Append every record to the history."""

    run: RunState

    def evaluated(self, record: Record) -> bool:
        """Append the record."""
        self.run.history.append(record)
        return False


@dataclass(frozen=True)
class Callback(Observer):
    """Call the user's function; returning True asks to stop."""

    function: Callable[[Record], object]

    def starting(self, record: Record) -> bool:
        """Call the function."""
        return bool(self.function(record))

    def evaluated(self, record: Record) -> bool:
        """Call the function."""
        return bool(self.function(record))


@dataclass(frozen=True)
class LineObserver(Observer):
    """Update a progress line."""

    line: Progress

    def starting(self, record: Record) -> bool:
        """Show that the start is in progress."""
        self.line.beat(record.n_iter, record.seconds)
        return False

    def stepped(self, n_iter: int, seconds: float) -> None:
        """Show the number of steps."""
        self.line.beat(n_iter, seconds)

    def evaluated(self, record: Record) -> bool:
        """Show the bounds."""
        self.line(record)
        return False


@contextmanager
def live_line(method: str, eps: float | None, rtol: float | None) -> Iterator[Observer]:
    """Show a progress line inside the block; the target is a gap, absolute or relative."""
    from ..display.progress import Progress

    with Progress(method, eps, rtol) as line:
        yield LineObserver(line)
