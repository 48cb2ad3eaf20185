"""Commands whose options are the fields of what they take: a request, the source of a problem."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer

from ..engine import kinds
from ..engine.kinds import CliHelp
from ..engine.request import SAID, TARGET, Request
from ..errors import InvalidProblem
from ..wording import shown
from .options import Source

#: The fields of a request that are options, and those among them that say what to reach.
ASKED = tuple(name for name, said in SAID.items() if said.is_option)
TARGETS = tuple(name for name in ASKED if SAID[name].panel == TARGET)
LIMITS = ("max_iter", "max_seconds")

Command = Callable[..., None]
#: What an option of a method can be on the command line.
Value = bool | int | float | str | None


class Group(NamedTuple):
    """What a parameter of a command is made of: an option for each field."""

    make: Callable[[dict[str, Any]], Request | Source]
    options: dict[str, inspect.Parameter]  # by the name of the field


def asking(
    *names: str, panel: str | None = None, **defaults: object
) -> Callable[[Command], Command]:
    """Let a command be given its ``Request`` and its ``Source`` as options, field by field.

    Parameters
    ----------
    *names
        The fields of the request that are options, in the order of the help.
    panel
        A heading for all of them that have one.
    **defaults
        Defaults that are not those of a request.
    """
    asked = {name: _asked(name, panel, defaults) for name in names if name != "kind"}
    asked |= _of_kinds() if "kind" in names else {}
    groups = {Request: Group(_request, asked), Source: Group(_source, _of_source())}

    def decorate(command: Command) -> Command:
        hints = get_type_hints(command, include_extras=True)
        found = {name: groups[kind] for name, kind in hints.items() if kind in groups}
        options: list[inspect.Parameter] = []
        for name, parameter in inspect.signature(command).parameters.items():
            if name in found:
                options += found[name].options.values()
            else:
                kind = inspect.Parameter.KEYWORD_ONLY
                options.append(parameter.replace(annotation=hints[name], kind=kind))

        @functools.wraps(command)
        def run(**given: object) -> None:
            made = {
                name: group.make({key: given.pop(p.name) for key, p in group.options.items()})
                for name, group in found.items()
            }
            command(**made, **given)

        run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in options}
        return run

    return decorate


def _asked(name: str, panel: str | None, defaults: dict[str, object]) -> inspect.Parameter:
    """Return the option of a field of a request."""
    said = SAID[name]
    (field,) = (f for f in fields(Request) if f.name == name)
    default = defaults.get(name, field.default)
    return _option(name, default, _read_as(said, field.type), said, panel)


def _of_kinds() -> dict[str, inspect.Parameter]:
    """Return the options of the kinds of problem."""
    words = kinds.keywords().items()
    return {
        name: _option(name, word.default, _read_as(word.said, word.annotation), word.said)
        for name, word in words
    }


def _read_as(said: CliHelp, annotation: object) -> object:
    """Return what the command line reads: the type of a keyword, or what is said of it."""
    return annotation if said.kind is None else said.kind | None


def _option(
    name: str, default: object, kind: object, said: CliHelp, panel: str | None = None
) -> inspect.Parameter:
    option = typer.Option(
        metavar=said.metavar,
        min=said.least,
        rich_help_panel=said.panel and (panel or said.panel),
        help=said.help,
    )
    return _keyword(said.flag or name, default, Annotated[kind, option])


def _of_source() -> dict[str, inspect.Parameter]:
    """Return the options of the source of a problem."""
    hints = get_type_hints(Source, include_extras=True)
    return {f.name: _keyword(f.name, f.default, hints[f.name]) for f in fields(Source)}


def _keyword(name: str, default: object, annotation: object) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _request(given: dict[str, Any]) -> Request:
    """Return the request of a command, which shows where it is and reports limits itself."""
    for name in ("checkpoint", "resume"):
        if given.get(name) is not None:
            given[name] = os.fspath(given[name])
    options = parse_options(given.pop("options", None) or ())
    own = {"progress": sys.stderr.isatty(), "on_limit": "ignore"}
    return Request.of(given | options | own)


def _source(given: dict[str, Any]) -> Source:
    return Source(**given)


def parse_options(pairs: Sequence[str]) -> dict[str, Value]:
    """Turn ``key=value`` pairs into options of a method."""
    found: dict[str, Value] = {}
    for pair in pairs:
        key, mark, text = pair.partition("=")
        key = key.strip().replace("-", "_")
        if not mark or not key.isidentifier():
            raise InvalidProblem(
                f"--option {shown(pair)} is not of the form key=value; write for example "
                "--option batch_size=4"
            )
        if _is_reserved(key) or key in found:
            why = "given twice" if key in found else f"no option of a method (use --{key})"
            raise InvalidProblem(
                f"--option {shown(key)} is {why}; each method option is given once"
            )
        found[key] = _parse_value(text.strip())
    return found


def _is_reserved(key: str) -> bool:
    """Tell whether a name is an argument of ``solve``."""
    import epsilot

    return key in inspect.signature(epsilot.solve).parameters


def _parse_value(text: str) -> Value:
    """Read a value as a boolean, an integer, a float, or else a string."""
    constants = {"true": True, "false": False, "none": None}
    if text.lower() in constants:
        return constants[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
