"""A live line that shows how far the certified gap is from its target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .live import LiveLine
from .text import clock, scientific

if TYPE_CHECKING:
    from rich.text import Text

    from ..problems.record import Record


class Progress(LiveLine):
    """Draw one line of a run's state on the terminal, and remove it at the end.

    An observer of the driver: call it with each record. It writes to standard error, at most ten
    times a second, and nothing at all when standard error is not a terminal.

    Parameters
    ----------
    method
        Name shown at the start of the line.
    eps, rtol
        The target, absolute or relative to the lower bound; both None when there is none.
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
        """Show a record, unless something was shown less than a tenth of a second ago."""
        self._record = record
        self.beat(record.n_iter, record.seconds)

    def beat(self, n_iter: int, seconds: float) -> None:
        """Show that a run goes on, with the bounds it has, if any."""
        self.draw(lambda _: self._line(n_iter, seconds))

    def _line(self, n_iter: int, seconds: float) -> Text:
        """Return the styled text of an epoch."""
        from rich.text import Text

        if self._record is None:
            text = f"{self.method}  {clock(seconds)}  no bounds yet  epoch {n_iter:,}"
            return Text(text, no_wrap=True, overflow="ellipsis")
        record = self._record._replace(n_iter=n_iter, seconds=seconds)
        target = self.eps
        if self.rtol is not None:
            target = self.rtol * abs(record.lower)
        reached = target is not None and record.gap <= target
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(self.method, style="bold")
        line.append(f"  {clock(record.seconds)}  ")
        line.append(f"gap {record.gap:.3g}", style="green" if reached else "yellow")
        if target is not None:
            line.append(f" → {target:.3g}")
        line.append(f"  [{record.lower:.4g}, {record.upper:.4g}]")
        line.append(
            f"  epoch {record.n_iter:,}  η {record.reg:.2g}  {scientific(record.operations)} ops",
            style="dim",
        )
        return line
