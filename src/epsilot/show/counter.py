"""A live line that counts problems."""

from __future__ import annotations

import math
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from .progress import REFRESH_SECONDS
from .text import clock

if TYPE_CHECKING:
    from rich.live import Live


class Counter:
    """Draw how many of some problems are solved on the terminal, and remove the line at the end.

    It writes to standard error, at most ten times a second, and nothing at all when standard error
    is not a terminal.

    Parameters
    ----------
    size
        How many problems there are, or None if that is not known.
    start
        How many are solved already.
    force
        Draw even when standard error is not a terminal.

    Examples
    --------
    >>> with Counter(100) as counter:
    ...     counter.show(10)
    """

    def __init__(self, size: int | None, start: int = 0, *, force: bool = False) -> None:
        self.size, self.start = size, start
        self._force = force
        self._live: Live | None = None
        self._began = time.monotonic()
        self._last_drawn = -math.inf

    def __enter__(self) -> Self:
        if self._force or sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True, force_terminal=self._force or None)
            self._live = Live(console=console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def show(self, n_done: int) -> None:
        """Show a count, unless something was shown less than a tenth of a second ago."""
        now = time.monotonic()
        if self._live is not None and now - self._last_drawn >= REFRESH_SECONDS:
            from rich.text import Text

            self._last_drawn = now
            line = Text(self.line(n_done, now - self._began), no_wrap=True, overflow="ellipsis")
            self._live.update(line, refresh=True)

    def line(self, n_done: int, seconds: float) -> str:
        """Return the text of a count after some time.

        Examples
        --------
        >>> Counter(1000).line(250, 5.0)
        '250 of 1,000 problems  5.0 s  50 a second  about 15.0 s left'
        """
        speed = (n_done - self.start) / seconds if seconds > 0 else 0.0
        parts = [
            f"{n_done:,} problems" if self.size is None else f"{n_done:,} of {self.size:,} problems"
        ]
        parts += [clock(seconds), f"{speed:,.0f} a second"]
        if self.size is not None and speed > 0:
            parts.append(f"about {clock((self.size - n_done) / speed)} left")
        return "  ".join(parts)
