"""What looks at a run while it goes on, by one protocol: history, live line, callback."""

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
    """What is told of a run; it overrides what it wants to know."""

    def starting(self, record: Record) -> bool:
        """Look at a start that goes on, before anything is certified; True asks to stop."""
        return False

    def stepped(self, n_iter: int, seconds: float) -> None:
        """See that a step was taken."""

    def evaluated(self, record: Record) -> bool:
        """Look at a certificate; True asks to stop."""
        return False

    def reached(self, moment: AnyMoment) -> None:
        """See a point from which the run can be continued."""


@dataclass(frozen=True)
class History(Observer):
    """Keep every record."""

    run: RunState

    def evaluated(self, record: Record) -> bool:
        """Append the record."""
        self.run.history.append(record)
        return False


@dataclass(frozen=True)
class Callback(Observer):
    """Call the user's function, which may ask to stop."""

    function: Callable[[Record], object]

    def starting(self, record: Record) -> bool:
        """Call the function."""
        return bool(self.function(record))

    def evaluated(self, record: Record) -> bool:
        """Call the function."""
        return bool(self.function(record))


@dataclass(frozen=True)
class Shown(Observer):
    """Keep a live line up to date."""

    line: Progress

    def starting(self, record: Record) -> bool:
        """Show that the start goes on."""
        self.line.beat(record.n_iter, record.seconds)
        return False

    def stepped(self, n_iter: int, seconds: float) -> None:
        """Show that the run goes on."""
        self.line.beat(n_iter, seconds)

    def evaluated(self, record: Record) -> bool:
        """Show the bounds."""
        self.line(record)
        return False


@contextmanager
def live_line(method: str, eps: float | None, rtol: float | None) -> Iterator[Observer]:
    """Show a live line inside the block; the target is a gap, or relative to the lower bound."""
    from ..display.progress import Progress

    with Progress(method, eps, rtol) as line:
        yield Shown(line)
