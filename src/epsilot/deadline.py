"""Abandon work that may not go on: passes ask between their slices whether the time is up.

A run says when its time is up; nothing here knows of clocks or signals. Work that is abandoned
raises :class:`OutOfTime`, which never leaves the library: the run that set the deadline catches it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import TypeAlias

#: Tells whether work under way must be abandoned.
IsOver: TypeAlias = Callable[[], bool]

_deadline: ContextVar[IsOver | None] = ContextVar("epsilot_deadline", default=None)


class OutOfTime(Exception):
    """Work was abandoned because its deadline has passed."""


def is_set() -> bool:
    """Tell whether work has a deadline."""
    return _deadline.get() is not None


def check() -> None:
    """Raise :class:`OutOfTime` if the deadline has passed; passes call this about every 0.1 s."""
    is_over = _deadline.get()
    if is_over is not None and is_over():
        raise OutOfTime


class _Until:
    """The context of work that has a deadline; a class, since a generator takes twice as long."""

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
    """Abandon the work inside the block when ``is_over()``, or when an outer deadline passes.

    None lifts all deadlines: the work inside the block is short, and must be completed.
    """
    return _Until(is_over)
