"""Stop long computations at a deadline, which passes check between their slices.

The run supplies a function that tells whether the deadline has passed; this module knows no clock.
A computation that is stopped raises :class:`OutOfTime`, which the run catches.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import TypeAlias

#: Returns whether the deadline has passed.
IsOver: TypeAlias = Callable[[], bool]

_deadline: ContextVar[IsOver | None] = ContextVar("epsilot_deadline", default=None)


class OutOfTime(Exception):
    """A computation was stopped because its deadline has passed."""


def is_set() -> bool:
    """Tell whether there is a deadline."""
    return _deadline.get() is not None


def check() -> None:
    """Raise :class:`OutOfTime` if the deadline has passed; passes call this about every 0.1 s."""
    is_over = _deadline.get()
    if is_over is not None and is_over():
        raise OutOfTime


class _Until:
    """Context manager of `until`; a class, because a generator takes twice as long."""

    __slots__ = ("is_over", "token")

    def __init__(self, is_over: IsOver | None) -> None:
        self.is_over = is_over
        self.token: Token[IsOver | None] | None = None

    def __enter__(self) -> None:
        inner, outer = self.is_over, _deadline.get()
        if inner is None or outer is None:
            self.token = _deadline.set(inner)
        else:
            self.token = _deadline.set(lambda: inner() or outer())

    def __exit__(self, *error: object) -> None:
        assert self.token is not None
        _deadline.reset(self.token)


def until(is_over: IsOver | None) -> _Until:
    """Stop the block when ``is_over()`` is true, or when an outer deadline has passed.

    None lifts all deadlines, for a short computation that must be completed.
    """
    return _Until(is_over)
