"""``epsilot bench``: time and memory beside the peers that are installed."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from epsilot.errors import InvalidProblem
from epsilot.wording import shown

from . import resumable

OUT = Path("results/bench")
#: The same of images, whose lines are others.
IMAGES_OUT = Path("results/images")

T = TypeVar("T")


def bench(
    quick: Annotated[
        bool,
        typer.Option("--quick/--full", help="Under five minutes, or up to n = 10,000 (an hour)."),
    ] = True,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write.")] = OUT,
    solvers: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Solvers beside ours and emd2 (default: installed)."),
    ] = None,
    problems: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="images, mnist, points2-squared, points2, points10-squared, points10, random.",
        ),
    ] = None,
    sizes: Annotated[str | None, typer.Option(metavar="N,...", help="Sources and targets.")] = None,
    rtol: Annotated[
        str | None, typer.Option(metavar="R,...", help="Relative accuracies; 1e-6 means exact.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Problems of each kind and size, up to n = 2304.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="S", help="Seconds that a tuned solve may take at most.")
    ] = None,
    images: Annotated[
        bool,
        typer.Option("--images", help="The image benchmark of the field; sizes are sides."),
    ] = False,
    dotmark: Annotated[
        Path | None, typer.Option(metavar="DIR", help="DOTmark's own files, for --images.")
    ] = None,
) -> None:
    """Time solvers to a verified accuracy, and say where we win and where we lose.

    Every answer is audited; solvers of the entropic problem are tuned in hindsight. Each solve is
    written as it ends: run the same command again to continue an interrupted run.
    """
    from rich.console import Console

    from epsilot.display.plotting import new_figure

    from ..peers.run import FULL, QUICK, Wishes, run_bench, selected

    if images or dotmark is not None:
        unused = {"--solvers": solvers, "--problems": problems, "--rtol": rtol, "--seeds": seeds}
        where = IMAGES_OUT if out == OUT else out
        _bench_images(quick, where, _list(sizes, "--sizes", int), dotmark, unused)
        return
    wishes = Wishes(
        _list(solvers, "--solvers", str),
        _list(problems, "--problems", str),
        _list(sizes, "--sizes", int),
        _list(rtol, "--rtol", float),
        seeds,
        time_limit,
    )
    selection = selected(QUICK if quick else FULL, wishes)
    new_figure(1, 1)  # without matplotlib, say so now
    with resumable("bench", out):
        run_bench(out, selection, _command(out), Console(stderr=True))


def _bench_images(
    quick: bool,
    out: Path,
    sides: tuple[int, ...] | None,
    folder: Path | None,
    unused: Mapping[str, object],
) -> None:
    """Time exact transport between images, class by class."""
    from rich.console import Console

    from ..peers.images import FULL, QUICK, run_images

    if given := [name for name, value in unused.items() if value is not None]:
        raise InvalidProblem(
            f"{given[0]} was given with --images; only --quick, --full, --sizes and --out go with "
            "it (leave it out)"
        )
    with resumable("bench", out):
        scale = QUICK if quick else FULL
        run_images(out, scale, sides, folder, _command(out), Console(stderr=True))


def _list(text: str | None, option: str, kind: Callable[[str], T]) -> tuple[T, ...] | None:
    """Return the values between commas, or None without the option."""
    if text is None:
        return None
    parts = [part for piece in text.split(",") if (part := piece.strip())]
    try:
        values = tuple(kind(part) for part in parts)
    except ValueError:
        values = ()
    if not values:
        example = {"--sizes": "256,1024", "--rtol": "0.1,0.01"}.get(option, "a,b")
        raise InvalidProblem(
            f"{option} is {shown(text)}; it must be a list separated by commas (such as {example})"
        )
    return values


def _command(out: Path) -> str:
    """Return the command as it was given, without the folder."""
    given = sys.argv[1:]
    kept = [
        word
        for k, word in enumerate(given)
        if not word.startswith("--out") and (k == 0 or given[k - 1] != "--out")
    ]
    return shlex.join(["epsilot", *kept])
