"""``epsilot reproduce``: the paper's experiments, resumable."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from epsilot.errors import InvalidProblem
from epsilot.wording import shown

from ..paper import EXPERIMENTS
from . import resumable

if TYPE_CHECKING:
    from ..report import Page

OUT = Path("results")

#: Takes a folder, whether to be quick, seeds, jobs, a console, and the choices that it has.
Experiment = Callable[..., "Page"]


def reproduce(
    name: Annotated[str, typer.Argument(help=f"{', '.join(EXPERIMENTS)} or all.")],
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="Minutes, or all that the paper did (an hour).")
    ] = True,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where to write; each experiment has a folder.")
    ] = OUT,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="SET,...",
            help="fig1, table1: synthetic, mnist, or a file of digits (IDX or .npz).",
        ),
    ] = None,
    panel: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="fig1: letters a to h; table1: n or eps."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Repetitions, each with its own marginals.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes (default: one a core).")
    ] = None,
) -> None:
    """Run an experiment of the paper, draw it, and say which claims hold.

    Each solve is written as it ends: run the same command again to continue an interrupted run.
    """
    from rich.console import Console

    names = list(EXPERIMENTS) if name == "all" else [name]
    if unknown := set(names) - set(EXPERIMENTS):
        raise InvalidProblem(
            f"experiment {shown(unknown.pop())} is unknown; it must be one of "
            f"{', '.join([*EXPERIMENTS, 'all'])} (see epsilot reproduce --help)"
        )
    console = Console(stderr=True)
    pages: dict[str, Page] = {}
    for each in names:
        run = _function(each)
        choices = _choices(each, run, {"data": data, "panel": panel})
        folder = out / each
        folder.mkdir(parents=True, exist_ok=True)
        with resumable(each, folder):
            pages[each] = run(folder, quick, seeds, jobs or os.cpu_count() or 1, console, **choices)
    if name == "all":
        from ..report import publish_all

        publish_all(out, "The paper, reproduced", pages)


def _function(name: str) -> Experiment:
    """Return the function that runs an experiment."""
    module, _, function = EXPERIMENTS[name].partition(":")
    found: Experiment = getattr(import_module(f"epsilot_lab.paper.{module}"), function)
    return found


def _choices(
    name: str, run: Experiment, given: dict[str, str | None]
) -> dict[str, tuple[str, ...]]:
    """Return the choices that were made, or say that the experiment has none to make."""
    known = inspect.signature(run).parameters
    chosen = {}
    for option, text in given.items():
        if text is None:
            continue
        if option not in known:
            raise InvalidProblem(
                f"--{option} {text} was given, but {name} has no choice of {option} (leave it out)"
            )
        chosen[option] = tuple(part for piece in text.split(",") if (part := piece.strip()))
        if not chosen[option]:
            raise InvalidProblem(
                f"--{option} is {shown(text)}; it must name one thing at least (see epsilot "
                "reproduce --help)"
            )
    return chosen
