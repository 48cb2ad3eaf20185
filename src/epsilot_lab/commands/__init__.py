"""The laboratory's commands; ``epsilot`` finds them by name when this package is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer


@contextmanager
def resumable(name: str, folder: Path) -> Iterator[None]:
    """List the files that long work wrote; after Ctrl-C, say that the same command continues."""
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
