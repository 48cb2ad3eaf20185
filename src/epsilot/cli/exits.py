"""How commands end: exit codes, and what is said of interrupted work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ..show.drawable import Ended


@contextmanager
def resumable(name: str, folder: Path) -> Iterator[None]:
    """List the files of long work at its end; interrupted, say that it can be continued."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(
            f"epsilot: {name} was interrupted; what is solved is kept in {folder}, and the same "
            "command continues there.",
            err=True,
        )
        raise typer.Exit(1) from None
    for path in sorted(folder.iterdir()):
        typer.echo(str(path))


def finish(results: Iterable[Ended]) -> None:
    """Exit with code 1 unless all results reached their targets."""
    if not all(result.converged for result in results):
        raise typer.Exit(1)
