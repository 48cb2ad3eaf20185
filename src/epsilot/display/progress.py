"""Live lines on the terminal: the gap of one run, or the number of problems solved."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

from .text import clock, scientific

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

    from ..problems.work import Record

#: Least time between two drawings, in seconds.
REFRESH_SECONDS = 0.1
#: Characters of a bar.
BAR_CHARACTERS = 20


class LiveLine:
    """Redraw one line on standard error, and remove it at the end.

    Nothing is drawn unless standard error is a terminal, and at most ten times per second. With
    ``force``, the line is drawn even when standard error is not a terminal.
    """

    def __init__(self, *, force: bool = False) -> None:
        self._force = force
        self._live: Live | None = None
        self._last_drawn = -math.inf
        self._watch = ExitStack()

    def __enter__(self) -> Self:
        if self._force or sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            from ..kernels.compile_watch import shown_by

            console = Console(stderr=True, force_terminal=self._force or None)
            self._live = Live(console=console, auto_refresh=False, transient=True)
            self._live.start()
            self._watch.enter_context(shown_by(self.show_compiling))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._watch.close()
            self._live.stop()
            self._live = None

    def show_compiling(self, seconds: float) -> None:
        """Show that kernels have been compiling for some seconds."""
        from rich.text import Text

        self.draw(lambda _: Text(f"compiling kernels for this machine, once  {clock(seconds)}"))

    def draw(self, line: Callable[[float], Text]) -> None:
        """Draw ``line(now)``, unless a line was drawn less than ``REFRESH_SECONDS`` ago."""
        now = time.monotonic()
        if self._live is not None and now - self._last_drawn >= REFRESH_SECONDS:
            self._last_drawn = now
            self._live.update(line(now), refresh=True)


class Progress(LiveLine):
    """Show the bounds of a run: an observer that the driver calls with each record.

    Parameters
    ----------
    method
        Name shown at the start of the line.
    eps, rtol
        Tolerance on the gap, absolute or relative to the lower bound; both None when there is none.
    force
        Draw even when standard error is not a terminal.

    Examples
    --------
    >>> with Progress("sinkhorn", eps=0.01, rtol=None) as progress:
    ...     pass
    """

    def __init__(
        self, method: str, eps: float | None, rtol: float | None, *, force: bool = False
    ) -> None:
        super().__init__(force=force)
        self.method = method
        self.eps = eps
        self.rtol = rtol
        self._record: Record | None = None

    def __call__(self, record: Record) -> None:
        """Show a record."""
        self._record = record
        self.beat(record.n_iter, record.seconds)

    def beat(self, n_iter: int, seconds: float) -> None:
        """Show the current epoch with the last known bounds, if any."""
        self.draw(lambda _: self._line(n_iter, seconds))

    def _line(self, n_iter: int, seconds: float) -> Text:
        """Return the styled text of an epoch."""
        from rich.text import Text

        line = Text(no_wrap=True, overflow="ellipsis")
        record = self._record
        if record is None:
            line.append(f"{self.method}  {clock(seconds)}  no bounds yet  epoch {n_iter:,}")
            return line
        target = self.eps if self.rtol is None else self.rtol * abs(record.lower)
        reached = target is not None and record.gap <= target
        line.append(self.method, style="bold")
        line.append(f"  {clock(seconds)}  ")
        line.append(f"gap {record.gap:.3g}", style="green" if reached else "yellow")
        if target is not None:
            line.append(f" (target {target:.3g})")
        line.append(f"  [{record.lower:.4g}, {record.upper:.4g}]")
        line.append(
            f"  epoch {n_iter:,}  η {record.reg:.2g}  {scientific(record.operations)} ops",
            style="dim",
        )
        return line


class Counter(LiveLine):
    """Show how many problems are solved.

    Parameters
    ----------
    size
        Number of problems, or None if unknown.
    start
        Number of problems that were solved before.
    force
        Draw even when standard error is not a terminal.

    Examples
    --------
    >>> with Counter(100) as counter:
    ...     counter.show(10)
    """

    def __init__(self, size: int | None, start: int = 0, *, force: bool = False) -> None:
        super().__init__(force=force)
        self.size, self.start = size, start
        self._began = time.monotonic()

    def show(self, n_done: int) -> None:
        """Show a count."""
        self.draw(lambda now: self._text(self.line(n_done, now - self._began)))

    def _text(self, line: str) -> Text:
        from rich.text import Text

        return Text(line, no_wrap=True, overflow="ellipsis")

    def line(self, n_done: int, seconds: float) -> str:
        """Return the text of a count after some seconds.

        Examples
        --------
        >>> Counter(1000).line(250, 5.0)
        '250 of 1,000 problems  5.0 s  50 per second  about 15.0 s left'
        """
        speed = (n_done - self.start) / seconds if seconds > 0 else 0.0
        parts = [
            f"{n_done:,} problems" if self.size is None else f"{n_done:,} of {self.size:,} problems"
        ]
        parts += [clock(seconds), f"{speed:,.0f} per second"]
        if self.size is not None and speed > 0:
            parts.append(f"about {clock((self.size - n_done) / speed)} left")
        return "  ".join(parts)


class WarmupBar(LiveLine):
    """Show a progress bar over names of functions and methods whose kernels compile.

    Examples
    --------
    >>> with WarmupBar(("solve", "sinkhorn")) as bar:
    ...     bar.show("solve")
    """

    def __init__(self, names: Sequence[str], *, force: bool = False) -> None:
        super().__init__(force=force)
        self.names = tuple(names)
        self._name = ""
        self._began = time.monotonic()

    def show(self, name: str) -> None:
        """Show the name whose kernels compile now."""
        self._name = name
        self.show_compiling(0.0)

    def show_compiling(self, seconds: float) -> None:
        """Redraw the bar with the seconds since the first name."""
        self.draw(lambda now: self._text(now - self._began))

    def _text(self, seconds: float) -> Text:
        from rich.text import Text

        return Text(self.line(self._name, seconds), no_wrap=True, overflow="ellipsis")

    def line(self, name: str, seconds: float) -> str:
        """Return the bar for a name after some seconds.

        Examples
        --------
        >>> WarmupBar(("solve", "sinkhorn")).line("sinkhorn", 5.0)
        '██████████░░░░░░░░░░  1 of 2  5.0 s  compiling sinkhorn'
        """
        n, n_done = len(self.names), self.names.index(name)
        n_full = BAR_CHARACTERS * n_done // n
        bar = "█" * n_full + "░" * (BAR_CHARACTERS - n_full)
        return f"{bar}  {n_done} of {n}  {clock(seconds)}  compiling {name}"
