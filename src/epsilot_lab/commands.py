"""Define the commands ``epsilot bench`` and ``epsilot reproduce``."""

from __future__ import annotations

import inspect
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from epsilot.errors import InvalidProblem
from epsilot.wording import shown

from .paper import ALONE, EXPERIMENTS, NO_CHOICE, WITHOUT_PAIRS

if TYPE_CHECKING:
    from .report import Page


# -- shared ------------------------------------------------------------------------------------


@contextmanager
def resumable(name: str, folder: Path) -> Iterator[None]:
    """List the files that a long run wrote; after Ctrl-C, say how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(
            f"epsilot: {name} was interrupted; finished solves are kept in {folder}, and the same "
            "command continues there.",
            err=True,
        )
        raise typer.Exit(1) from None
    for path in sorted(folder.iterdir()):
        typer.echo(str(path))


# -- epsilot bench -----------------------------------------------------------------------------

BENCH_OUT = Path("results/bench")
#: Default folder of ``--images``, whose lines have other fields.
IMAGES_OUT = Path("results/images")

T = TypeVar("T")


def bench(
    quick: Annotated[
        bool,
        typer.Option("--quick/--full", help="Under five minutes, or up to n = 10,000 (an hour)."),
    ] = True,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write to.")] = BENCH_OUT,
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
        float | None, typer.Option(metavar="S", help="Most seconds of a tuned solve.")
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

    from .peers.benchmark import run_bench
    from .peers.selection import FULL, QUICK, SelectionOverrides, selected

    if images or dotmark is not None:
        unused = {"--solvers": solvers, "--problems": problems, "--rtol": rtol, "--seeds": seeds}
        where = IMAGES_OUT if out == BENCH_OUT else out
        _bench_images(quick, where, _list(sizes, "--sizes", int), dotmark, unused)
        return
    overrides = SelectionOverrides(
        _list(solvers, "--solvers", str),
        _list(problems, "--problems", str),
        _list(sizes, "--sizes", int),
        _list(rtol, "--rtol", float),
        seeds,
        time_limit,
    )
    selection = selected(QUICK if quick else FULL, overrides)
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

    from .peers.images import FULL, QUICK, run_images

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


# -- epsilot reproduce -------------------------------------------------------------------------

RESULTS = Path("results")

#: Takes a setup, and the choices that the experiment has.
Experiment = Callable[..., "Page"]


def reproduce(
    name: Annotated[str, typer.Argument(help=f"{', '.join(EXPERIMENTS)} or all.")],
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="Minutes, or all that the paper did (an hour).")
    ] = True,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Folder to write to; each experiment has its own folder in it."
        ),
    ] = RESULTS,
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
    protocol: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="authors (the settings of the authors' code, the default) or extended (ours).",
        ),
    ] = None,
    eps: Annotated[
        str | None,
        typer.Option(metavar="E", help="Accuracy (color-transfer: η of the authors' script)."),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(metavar="N,...", help="Pixels of images, points of a moon, or colours."),
    ] = None,
    batches: Annotated[
        str | None, typer.Option(metavar="B,...", help="fig1, color-transfer: batch sizes.")
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option("--pairs", "--seeds", min=1, help="Repetitions, each with its own marginals."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes (default: one per core).")
    ] = None,
) -> None:
    """Run an experiment of the paper, draw it, and say which claims hold.

    Each solve is written as it ends: run the same command again to continue an interrupted run.
    """
    from rich.console import Console

    from .runner import ExperimentSetup

    names = [each for each in EXPERIMENTS if each not in ALONE] if name == "all" else [name]
    if unknown := set(names) - set(EXPERIMENTS):
        raise InvalidProblem(
            f"experiment {shown(unknown.pop())} is unknown; it must be one of "
            f"{', '.join([*EXPERIMENTS, 'all'])} (see epsilot reproduce --help)"
        )
    if seeds is not None and name in WITHOUT_PAIRS:
        raise InvalidProblem(
            f"--pairs {seeds} was given, but {name} has no repetitions: {WITHOUT_PAIRS[name]} "
            "(leave it out)"
        )
    console = Console(stderr=True)
    pages: dict[str, Page] = {}
    for each in names:
        run = _function(each)
        choices: dict[str, object] = dict(_choices(each, run, {"data": data, "panel": panel}))
        choices |= _settings(each, run, protocol, eps, sizes, batches, is_one=name != "all")
        folder = out / each
        folder.mkdir(parents=True, exist_ok=True)
        setup = ExperimentSetup(folder, quick, seeds, jobs or os.cpu_count() or 1, console)
        with resumable(each, folder):
            pages[each] = run(setup, **choices)
    if name == "all":
        from .report import publish_all

        publish_all(out, "The paper, reproduced", pages)


def _function(name: str) -> Experiment:
    """Return the function that runs an experiment."""
    module, _, function = EXPERIMENTS[name].partition(":")
    found: Experiment = getattr(import_module(f"epsilot_lab.paper.{module}"), function)
    return found


def _settings(
    name: str,
    run: Experiment,
    protocol: str | None,
    eps: str | None,
    sizes: str | None,
    batches: str | None,
    *,
    is_one: bool,
) -> dict[str, object]:
    """Return the protocol and what overrides it; with ``all``, where an experiment knows them."""
    if protocol not in (None, "authors", "extended"):
        raise InvalidProblem(
            f"--protocol is {shown(protocol)}; it must be authors or extended (see epsilot "
            "reproduce --help)"
        )
    given = {
        "protocol": protocol,
        "eps": _list(eps, "--eps", float),
        "sizes": _list(sizes, "--sizes", int),
        "batches": _list(batches, "--batches", int),
    }
    known = inspect.signature(run).parameters
    chosen = {option: value for option, value in given.items() if value is not None}
    if is_one and (unknown := [option for option in chosen if option not in known]):
        why = NO_CHOICE.get((name, unknown[0]))
        raise InvalidProblem(
            f"--{unknown[0]} was given, but {name} has no choice of {unknown[0]}"
            f"{f': {why}' if why else ''} (leave it out)"
        )
    return {option: value for option, value in chosen.items() if option in known}


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
