"""``epsilot warmup``: compile kernels ahead of use."""

from __future__ import annotations

from typing import Annotated

import typer

from ..display.text import clock
from . import options as opt


def warmup(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAMES]...",
            help="Functions of epsilot (solve, solve_sample, ...) and methods; default: all.",
        ),
    ] = None,
    json: opt.Json = False,
) -> None:
    """Compile kernels ahead of use, for images of machines and for clusters.

    Later processes on machines with the same processor load the kernels from disk.
    """
    from ..api.warmup import warmup as warm_up
    from ..display import report

    seconds = warm_up(*names or (), progress=True)
    if json:
        report.print_json({"compile_seconds": seconds})
    else:
        total = sum(seconds.values())
        typer.echo(f"Compiled the kernels of {len(seconds)} names in {clock(total)}.")
