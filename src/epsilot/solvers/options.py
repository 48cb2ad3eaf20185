"""Check the types and values of a method's options."""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Self, get_args, get_origin, get_type_hints

from ..arguments import MAX_COUNT, check_choice, is_integer, is_real, plain
from ..errors import InvalidProblem
from ..problems.problem import Problem
from ..wording import shown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_NAMES: dict[object, str] = {
    int: "an integer of 64 bits",
    float: "a finite number",
    bool: "True or False",
    str: "a string",
    type(None): "None",
}


def converted(method: str, cls: type, options: dict[str, object]) -> dict[str, object]:
    """Return options as plain Python values; reject values of a wrong type."""
    hints = _hints(cls) if options else {}
    return {name: _convert(method, name, value, hints[name]) for name, value in options.items()}


@cache
def _hints(cls: type) -> dict[str, object]:
    return get_type_hints(cls)


def _convert(method: str, name: str, value: object, hint: object) -> object:
    kinds = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    value = plain(value)
    for kind in kinds:
        try:
            return _as(value, kind)
        except TypeError:
            continue
    allowed = " or ".join(_described(kind) for kind in kinds)
    if int in kinds and isinstance(value, float) and value.is_integer():
        allowed += f" (write {int(value)})"
    raise InvalidProblem(f"{method}: {name} is {shown(value)}; it must be {allowed}.")


def _as(value: object, kind: object) -> object:
    """Return a value as this type, or raise TypeError."""
    if get_origin(kind) is tuple:
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise TypeError
        return tuple(_as(plain(x), get_args(kind)[0]) for x in value)
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and is_integer(value) and abs(int(value)) <= MAX_COUNT:
        return int(value)
    if kind is float and is_real(value) and math.isfinite(value):
        return float(value)
    if (kind is str and isinstance(value, str)) or (kind is type(None) and value is None):
        return value
    if isinstance(kind, type) and kind not in _NAMES and isinstance(value, kind):
        return value
    raise TypeError


def _described(kind: object) -> str:
    if get_origin(kind) is tuple:
        return f"a sequence, each {_described(get_args(kind)[0])}"
    return _NAMES.get(kind) or f"a {getattr(kind, '__name__', kind)}"


def check_choices(solver: DataclassInstance, **choices: tuple[str, ...]) -> None:
    """Reject options that are not among their choices; None is allowed where it is the default."""
    defaults = {field.name: field.default for field in dataclasses.fields(solver)}
    for name, known in choices.items():
        value = getattr(solver, name)
        if not (value is None and defaults[name] is None):
            check_choice(name, value, known)


@dataclass(frozen=True, kw_only=True)
class HasConstants:
    """The option ``constants`` of methods with practical and with published constants."""

    constants: str | None = None

    known_constants: ClassVar[tuple[str, ...]] = ("practical", "published")

    def __post_init__(self) -> None:
        check_choices(self, constants=self.known_constants)

    def resolved(self, stop: str, problem: Problem) -> Self:
        """Take the published constants in paper mode, the practical ones otherwise."""
        default = "published" if stop == "paper" else "practical"
        return dataclasses.replace(self, constants=self.constants or default)
