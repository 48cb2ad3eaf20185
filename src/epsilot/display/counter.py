"""A live line that counts problems."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .live import LiveLine
from .text import clock

if TYPE_CHECKING:
    from rich.text import Text


class Counter(LiveLine):
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
        super().__init__(force=force)
        self.size, self.start = size, start
        self._began = time.monotonic()

    def show(self, n_done: int) -> None:
        """Show a count, unless something was shown less than a tenth of a second ago."""
        self.draw(lambda now: self._text(self.line(n_done, now - self._began)))

    def _text(self, line: str) -> Text:
        from rich.text import Text

        return Text(line, no_wrap=True, overflow="ellipsis")

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
