"""Define the command line application: its commands, error messages and exit codes."""

from __future__ import annotations

import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import FrameType
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup

from ..errors import ClusterError, InvalidProblem, MissingExtra, UnknownMethod, UnsavedWarning
from ..version import __version__
from ..wording import named
from . import barycenter, batch, certify, compare, demo, gromov, solve, transfer, warmup
from .options import settings_of

LAB = "epsilot_lab"
#: Commands of the lab package: functions of ``epsilot_lab.commands``.
LAB_COMMANDS = ("reproduce", "bench")
#: Base class of usage errors, in typer or in click.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
#: Characters of a usage error that are printed at most.
MAX_USAGE_CHARACTERS = 200


class Commands(TyperGroup):
    """List the commands of the library, then those of the lab package if it is installed."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command, and shorten long usage errors."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            message = _plain_usage(getattr(error, "message", ""))
            is_long = len(message) > MAX_USAGE_CHARACTERS
            vars(error)["message"] = f"{message[:MAX_USAGE_CHARACTERS]}..." if is_long else message
            raise

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return [*super().list_commands(ctx), *(LAB_COMMANDS if find_spec(LAB) else ())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or None; import a command of the lab package on first use."""
        if cmd_name not in LAB_COMMANDS or not find_spec(LAB):
            return super().get_command(ctx, cmd_name)
        function = getattr(import_module(f"{LAB}.commands"), cmd_name)
        alone = typer.Typer(add_completion=False)
        alone.command()(function)
        return typer.main.get_command(alone)


def _plain_usage(message: str) -> str:
    """Return a usage error; say what to do where a command takes no arguments."""
    extra = re.fullmatch(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", message, re.DOTALL)
    if extra is None:
        return message
    return f"{extra[1]} was given without an option; this command takes only options (see --help)."


app = typer.Typer(
    name="epsilot",
    cls=Commands,
    help="Compute optimal transport plans with a proven bound on their error.\n\n"
    "Exit codes: 0 certified, 1 stopped before the target, 2 invalid input or usage.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(is_wanted: bool) -> None:
    """Print the version and exit if --version was given."""
    if is_wanted:
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
    compare.methods,
    compare.compare,
    batch.batch,
    batch.pairwise,
    transfer.transfer,
    barycenter.barycenter,
    gromov.gromov,
    warmup.warmup,
):
    app.command(context_settings=settings_of(command))(command)


def main() -> None:
    """Run a command; print invalid input as one sentence and exit with code 2."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        with _terminable(), _plain_warnings():
            app()
    except (InvalidProblem, UnknownMethod, MissingExtra) as error:
        _refuse(str(error))
    except ClusterError as error:
        _refuse(str(error), 1)
    except MemoryError as error:
        _refuse(
            f"{str(error).rstrip('.') or 'out of memory'}; the problem must fit in memory (reduce "
            "its size)"
        )
    except OSError as error:
        where = "" if error.filename is None else f"{named(error.filename)}: "
        _refuse(f"{where}{error.strerror or error}; check the file and its directory")


@contextmanager
def _terminable() -> Iterator[None]:
    """Make SIGTERM end a command like Ctrl-C."""

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


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print the warning that a file could not be written as one sentence, without source code."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, UnsavedWarning):
            typer.echo(f"epsilot: {message}", err=True)
        else:
            before(message, category, filename, lineno, file, line)

    before = warnings.showwarning
    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


def _refuse(sentence: str, code: int = 2) -> None:
    """Print a sentence on standard error and exit."""
    sentence = " ".join(sentence.split()).replace("normalize=True", "--normalize")
    typer.echo(f"epsilot: {sentence.removesuffix('.')}.", err=True)
    raise SystemExit(code)
