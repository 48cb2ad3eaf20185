"""What pictures and reports need to know of a result, whoever made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..problems.plan import Plan
    from ..problems.problem import Problem
    from ..problems.record import Record
    from ..problems.work import Work


class Drawable(Protocol):
    """What the pictures show of a result."""

    @property
    def history(self) -> Sequence[Record]: ...  # noqa: D102
    @property
    def work(self) -> Work: ...  # noqa: D102
    @property
    def seconds(self) -> float: ...  # noqa: D102
    @property
    def method(self) -> str: ...  # noqa: D102
    @property
    def gap(self) -> float: ...  # noqa: D102
    @property
    def lower_bound(self) -> float: ...  # noqa: D102
    @property
    def target(self) -> float: ...  # noqa: D102
    @property
    def quantity(self) -> str: ...  # noqa: D102


class Ended(Protocol):
    """What is said first of a result."""

    @property
    def converged(self) -> bool: ...  # noqa: D102


class Reportable(Drawable, Ended, Protocol):
    """What reports say of a result besides."""

    @property
    def plan_operator(self) -> Plan: ...  # noqa: D102
    @property
    def value(self) -> float: ...  # noqa: D102
    @property
    def value_linear(self) -> float: ...  # noqa: D102
    @property
    def marginal_error(self) -> float: ...  # noqa: D102
    @property
    def status(self) -> Enum: ...  # noqa: D102
    @property
    def reg(self) -> float: ...  # noqa: D102
    @property
    def is_entropic(self) -> bool: ...  # noqa: D102
    @property
    def n_iter(self) -> int: ...  # noqa: D102
    @property
    def seed(self) -> int: ...  # noqa: D102
    @property
    def options(self) -> Mapping[str, object]: ...  # noqa: D102
    @property
    def version(self) -> str: ...  # noqa: D102


class Pageable(Reportable, Protocol):
    """What a page says of a result besides."""

    @property
    def problem(self) -> Problem: ...  # noqa: D102
    @property
    def problem_hash(self) -> str: ...  # noqa: D102
    @property
    def choice(self) -> str | None: ...  # noqa: D102
    @property
    def asked(self) -> Mapping[str, str]: ...  # noqa: D102
