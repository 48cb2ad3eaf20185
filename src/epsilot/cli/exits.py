"""Exit codes of commands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ..display.report import Finished


def finish(results: Iterable[Finished]) -> None:
    """Exit with code 1 unless all results reached their targets."""
    if not all(result.converged for result in results):
        raise typer.Exit(1)
