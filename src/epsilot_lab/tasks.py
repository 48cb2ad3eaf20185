"""A solve of a study before it is made: what it is, how long it may take, how it becomes a line."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from .store import Line


class Interrupted(KeyboardInterrupt):
    """The user ended a run; what it had reached is not a measurement."""


class Expected(Protocol):
    """What is known of a solve before it is made."""

    @property
    def identity(self) -> Line:
        """What distinguishes it from all others, as the first fields of its line."""

    @property
    def seconds(self) -> float:
        """Expected time."""

    @property
    def label(self) -> str:
        """What is being solved, in a few words."""


class Task(Expected, Protocol):
    """A solve that can be made in any process."""

    @property
    def is_timed(self) -> bool:
        """Tell whether its running time counts: it then runs alone on the machine."""

    @property
    def variant(self) -> Hashable:
        """What decides which kernels are compiled."""

    def warm_up(self) -> None:
        """Solve something tiny of the same variant."""

    def line(self) -> Line:
        """Solve and return the line."""
