"""A line on the terminal that is drawn again and again, and removed at the end."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

REFRESH_SECONDS = 0.1


class LiveLine:
    """Write to standard error, at most ten times a second, and only if that is a terminal.

    With ``force``, draw even when it is not.
    """

    def __init__(self, *, force: bool = False) -> None:
        self._force = force
        self._live: Live | None = None
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

    def draw(self, line: Callable[[float], Text]) -> None:
        """Draw the line of this moment, unless one was drawn a moment ago."""
        now = time.monotonic()
        if self._live is not None and now - self._last_drawn >= REFRESH_SECONDS:
            self._last_drawn = now
            self._live.update(line(now), refresh=True)
