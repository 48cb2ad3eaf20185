"""The application: its commands, and what becomes of errors."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ..errors import ClusterError, InvalidProblem, UnknownMethod
from ..version import __version__
from ..wording import named
from . import barycenter, batch, certify, compare, demo, methods, solve, transfer

LAB = "epsilot_lab"
#: Commands of the laboratory; each is a function of its module ``commands``.
LAB_COMMANDS = ("reproduce", "bench")


#: What usage errors are: typer has its own class, or that of click.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
#: Characters of a usage error that are printed.
LONGEST_USAGE = 200


class Commands(TyperGroup):
    """List the library's commands, then those of the laboratory if it is installed."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; a usage error does not repeat more than the beginning of an argument."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            message = getattr(error, "message", "")
            if len(message) > LONGEST_USAGE:
                vars(error)["message"] = f"{message[:LONGEST_USAGE]}..."
            raise

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return [*super().list_commands(ctx), *(LAB_COMMANDS if find_spec(LAB) else ())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or None; a command of the laboratory is imported here."""
        if cmd_name not in LAB_COMMANDS or not find_spec(LAB):
            return super().get_command(ctx, cmd_name)
        function = getattr(import_module(f"{LAB}.commands"), cmd_name)
        alone = typer.Typer(add_completion=False)
        alone.command()(function)
        return typer.main.get_command(alone)


app = typer.Typer(
    name="epsilot",
    cls=Commands,
    help="Discrete optimal transport to the accuracy you ask for, with a proof.\n\n"
    "Exit codes: 0 certified, 1 stopped before the target, 2 bad input or usage.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    """Print the version and exit, when asked to."""
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


for command in (
    demo.demo,
    solve.solve,
    certify.certify,
    methods.methods,
    compare.compare,
    batch.batch,
    batch.pairwise,
    transfer.transfer,
    barycenter.barycenter,
):
    app.command()(command)


def main() -> None:
    """Run a command; bad input becomes one sentence and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        with _terminable():
            app()
    except (InvalidProblem, UnknownMethod) as error:
        _refuse(str(error))
    except ClusterError as error:
        _refuse(str(error), 1)
    except MemoryError as error:
        _refuse(
            f"{str(error).rstrip('.') or 'memory is exhausted'}; a problem that fits in memory is "
            "required (reduce its size)"
        )
    except OSError as error:
        where = "" if error.filename is None else f"{named(error.filename)}: "
        _refuse(f"{where}{error.strerror or error}; check the file and its directory")


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _refuse(sentence: str, code: int = 2) -> None:
    """Print a sentence on standard error and exit, with code 2 where the input is to blame."""
    typer.echo(f"epsilot: {' '.join(sentence.split()).removesuffix('.')}.", err=True)
    raise SystemExit(code)
