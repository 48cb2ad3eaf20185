"""Packages that only some parts need."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from ..errors import InvalidProblem


class MissingExtra(InvalidProblem, ImportError):
    """A package is needed that comes with an extra of epsilot."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(
            f"{what} requires {package}, which cannot be imported (run: pip install "
            f"epsilot[{extra}])"
        )


def pillow(module: str) -> ModuleType:
    """Import a module of pillow, or say which extra of epsilot brings it."""
    try:
        return import_module(f"PIL.{module}")
    except ImportError as error:
        raise MissingExtra("a picture in a file", "pillow", "plot") from error
