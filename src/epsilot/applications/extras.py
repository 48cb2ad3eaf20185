"""Packages that only some parts need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..errors import InvalidProblem


class MissingExtra(InvalidProblem, ImportError):
    """A package is needed that comes with an extra of epsilot."""


def require(module: str, what: str, extra: str) -> Any:
    """Import a module, or say which extra of epsilot brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = {"sklearn": "scikit-learn", "PIL": "pillow"}[module.partition(".")[0]]
        raise MissingExtra(
            f"{what} requires {package}, which cannot be imported (run: pip install "
            f"epsilot[{extra}])"
        ) from error
