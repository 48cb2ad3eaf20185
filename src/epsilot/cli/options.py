"""Options that commands share, and options that follow from the declarations of a request."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer

from ..engine.request import DECLARED, OF_PROBLEM, Request
from ..errors import InvalidProblem
from ..files import TEXT_SUFFIXES
from ..metrics import PIXEL_METRICS, POINT_METRICS, listed
from ..problems import kinds
from ..wording import shown

#: Headings of the help.
PROBLEM, TARGET, METHOD = "Problem", "Target", "Method"

# -- options written out ----------------------------------------------------------------------

Cost = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=PROBLEM,
        help="Cost matrix, n by m: .npy, .npz, .npz:name, .csv or .txt.",
    ),
]
Points = Annotated[
    tuple[str, str] | None,
    typer.Option(
        metavar="X Y", rich_help_panel=PROBLEM, help="Two tables of points, one point per line."
    ),
]
Images = Annotated[
    tuple[str, str] | None,
    typer.Option(
        metavar="A B",
        rich_help_panel=PROBLEM,
        help="Two images. Each is scaled to total mass 1, and distances are in pixels, as in "
        "epsilot.solve_grid.",
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=PROBLEM,
        help=f"Points: {listed(POINT_METRICS)}. Images: {listed(PIXEL_METRICS)}.",
    ),
]
Power = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        rich_help_panel=PROBLEM,
        help="Costs of points are this power of the metric: euclidean and 3 for W_3 (default 1).",
    ),
]
WeightsA = Annotated[
    str | None,
    typer.Option(
        "--a", metavar="FILE", rich_help_panel=PROBLEM, help="Row weights (default: uniform)."
    ),
]
MaxDistance = Annotated[
    float | None,
    typer.Option(
        metavar="R", rich_help_panel=PROBLEM, help="Forbid pairs of points farther apart than R."
    ),
]
Neighbors = Annotated[
    int | None,
    typer.Option(
        metavar="K",
        rich_help_panel=PROBLEM,
        help="Forbid pairs of points where neither is among the K nearest to the other.",
    ),
]
WeightsB = Annotated[
    str | None,
    typer.Option(
        "--b", metavar="FILE", rich_help_panel=PROBLEM, help="Column weights (default: uniform)."
    ),
]
Normalize = Annotated[
    bool,
    typer.Option("--normalize", rich_help_panel=PROBLEM, help="Rescale both weights to total 1."),
]
Seed = Annotated[int, typer.Option(min=0, help=DECLARED["seed"].help)]
Plot = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a picture (.png, .svg, .pdf).")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


@dataclass(frozen=True)
class Source:
    """The files that hold a problem."""

    cost: Cost = None
    points: Points = None
    images: Images = None
    metric: Metric = None
    max_distance: MaxDistance = None
    k_neighbors: Neighbors = None
    power: Power = None
    a: WeightsA = None
    b: WeightsB = None
    normalize: Normalize = False
    files: tuple[str, ...] = ()  # those without an option


# -- options that follow from declarations --------------------------------------------------------


class OptionStyle(NamedTuple):
    """How the command line shows a keyword."""

    panel: str | None = None
    metavar: str | None = None
    flag: str | None = None  # the name of the option, if not that of the keyword
    type: type | GenericAlias | None = None  # the type to parse, if not that of the keyword


#: Keywords without a row are shown by their name and type, below no heading.
STYLES = {
    "eps": OptionStyle(TARGET),
    "rtol": OptionStyle(TARGET),
    "reg": OptionStyle(TARGET),
    "tol": OptionStyle(TARGET),
    "method": OptionStyle(METHOD),
    "stop": OptionStyle(METHOD),
    "options": OptionStyle(METHOD, metavar="KEY=VALUE", flag="option", type=list[str]),
    "max_iter": OptionStyle(metavar="N"),
    "max_seconds": OptionStyle(metavar="S"),
    "n_threads": OptionStyle(metavar="N", flag="threads"),
    "checkpoint": OptionStyle(metavar="FILE", type=Path),
    "resume": OptionStyle(metavar="FILE", type=Path),
    "unbalanced": OptionStyle(PROBLEM, metavar="λ|FILE[,λ|FILE]", type=str),
}

#: Keywords of every run that are options; ``kind`` stands for those of the kinds of problem.
RUN_OPTIONS = (*(name for name, word in DECLARED.items() if word.help is not None), "kind")
TARGETS = tuple(name for name in RUN_OPTIONS if name in STYLES and STYLES[name].panel == TARGET)
LIMITS = ("max_iter", "max_seconds")

Command = Callable[..., None]
#: A value of ``--option``.
Value = bool | int | float | str | None


class Group(NamedTuple):
    """A parameter of a command that is made from several options."""

    make: Callable[[dict[str, Any]], Request | Source]
    options: dict[str, inspect.Parameter]  # by keyword


def request_options(
    *names: str, panel: str | None = None, **defaults: object
) -> Callable[[Command], Command]:
    """Replace a command's ``Request`` and ``Source`` by one option per field.

    Parameters
    ----------
    *names
        The keywords that are options, in the order of the help.
    panel
        A heading for all of them that have one.
    **defaults
        Defaults that differ from those of a request.
    """
    own = {name: _run_option(name, panel, defaults) for name in names if name != "kind"}
    own |= _kind_options() if "kind" in names else {}
    groups = {Request: Group(_request, own), Source: Group(_source, _source_options())}

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


def _run_option(name: str, panel: str | None, defaults: dict[str, object]) -> inspect.Parameter:
    """Return the option of a field of a request."""
    (field,) = (f for f in fields(Request) if f.name == name)
    style = STYLES.get(name, OptionStyle())
    style = style._replace(panel=style.panel and (panel or style.panel))
    default = defaults.get(name, field.default)
    return _option(name, default, field.type, DECLARED[name].help, style)


def _kind_options() -> dict[str, inspect.Parameter]:
    """Return the options of the kinds of problem."""
    style = OptionStyle(PROBLEM)
    return {
        name: _option(name, word.default, word.annotation, word.help, STYLES.get(name, style))
        for name, word in kinds.keywords().items()
    }


def _option(
    name: str, default: object, annotation: object, help: str | None, style: OptionStyle
) -> inspect.Parameter:
    """Return the option of a keyword."""
    option = typer.Option(metavar=style.metavar, rich_help_panel=style.panel, help=help)
    parsed = annotation if style.type is None else style.type | None
    return _parameter(style.flag or name, default, Annotated[parsed, option])


def _source_options() -> dict[str, inspect.Parameter]:
    """Return the options of the source of a problem."""
    hints = get_type_hints(Source, include_extras=True) | {"files": typer.Context}
    return {f.name: _parameter(f.name, f.default, hints[f.name]) for f in fields(Source)}


def _parameter(name: str, default: object, annotation: object) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _request(given: dict[str, Any]) -> Request:
    """Return the request of a command, which shows progress and reports limits itself."""
    for name in ("checkpoint", "resume"):
        if given.get(name) is not None:
            given[name] = os.fspath(given[name])
    if given.get("unbalanced") is not None:
        penalties = tuple(map(_penalty, given["unbalanced"].split(",")))
        if not all(isinstance(x, str) for x in penalties):
            given["unbalanced"] = penalties
    options = parse_options(given.pop("options", None) or ())
    own = {"progress": sys.stderr.isatty(), "on_limit": "ignore"}
    return Request.of(given | options | own)


def _penalty(text: str) -> object:
    """Return the text of a number as it is, and the numbers of a file."""
    if (
        Path(text).suffix.lower() not in (".npy", ".npz", *TEXT_SUFFIXES)
        and ".npz:" not in text.lower()
    ):
        return text
    from .inputs import read_vector

    return read_vector(text)


def _source(given: dict[str, Any]) -> Source:
    return Source(**{**given, "files": tuple(given["files"].args)})


def settings_of(command: Command) -> dict[str, Any]:
    """Return typer's settings: commands that read a problem refuse files themselves."""
    return {"allow_extra_args": "files" in inspect.signature(command).parameters}


def parse_options(pairs: Sequence[str]) -> dict[str, Value]:
    """Parse ``key=value`` pairs into options of a method."""
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
    return key in {*OF_PROBLEM, *DECLARED, *kinds.keywords()}


def _parse_value(text: str) -> Value:
    """Parse a boolean, an integer or a float; any other text stays a string."""
    constants = {"true": True, "false": False, "none": None}
    if text.lower() in constants:
        return constants[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
