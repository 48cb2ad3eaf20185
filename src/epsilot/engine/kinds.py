"""Kinds of problem, and the keywords that ask for them: a new kind is one line of ``KINDS``.

A kind says what a problem is made of and what is minimised over its plans; it lives in
``transport``, beside its objective. Keywords are stated here so that the command line, which reads
them, need not load it.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import GenericAlias
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..errors import InvalidProblem

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..geometry import Geometry
    from ..problems.objective import Objective
    from ..problems.problem import Problem

#: Heading of the command line's help.
PROBLEM = "Problem"


class Kind(Protocol):
    """What a problem is made of, and what is minimised over its plans."""

    def problem(
        self,
        M: "ArrayLike | Geometry",
        a: "ArrayLike | None",
        b: "ArrayLike | None",
        *,
        normalize: bool,
    ) -> "Problem":
        """Validate a user's cost and weights, or say in one sentence what is wrong with them."""

    def objective(self, problem: "Problem", reg: float | None) -> "Objective":
        """Return what is minimised, with a regularisation or without."""

    @property
    def keywords(self) -> dict[str, object]:
        """The keywords that ask for it."""


@dataclass(frozen=True)
class Balanced:
    """Plans with the marginals a and b: the kind that no keyword asks for."""

    def problem(
        self,
        M: "ArrayLike | Geometry",
        a: "ArrayLike | None",
        b: "ArrayLike | None",
        *,
        normalize: bool,
    ) -> "Problem":
        """Return a problem whose weights have equal totals."""
        return _transport().make_problem(M, a, b, normalize=normalize)

    def objective(self, problem: "Problem", reg: float | None) -> "Objective":
        """Return the cost, or the entropic objective."""
        return _transport().objective_of(problem, reg=reg)

    @property
    def keywords(self) -> dict[str, object]:
        """None."""
        return {}


class _Balance(NamedTuple):
    """What a balanced problem is made by."""

    make_problem: "Callable[..., Problem]"
    objective_of: "Callable[..., Objective]"


@cache
def _transport() -> _Balance:
    """Load what the command line does not need; an import in place would look it up each time."""
    from ..problems.balanced import objective_of
    from ..problems.problem import make_problem

    return _Balance(make_problem, objective_of)


class CliHelp(NamedTuple):
    """What is said of a keyword; without ``is_option``, the command line does not have it."""

    help: str
    panel: str | None = None
    metavar: str | None = None
    least: int | None = None
    flag: str | None = None  # its name on the command line, if that is another
    kind: type | GenericAlias | None = None  # what the command line reads, if not its type
    is_option: bool = True


class Keyword(NamedTuple):
    """A keyword of a kind, which is asked for by giving another value than the default."""

    said: CliHelp
    annotation: object = float | None
    default: object = None


class Entry(NamedTuple):
    """A kind beside the balanced one: ``module:class`` below ``transport``, and its keywords.

    The class is constructed with all of them, and refuses values that make no sense.
    """

    home: str
    keywords: Mapping[str, Keyword]


KINDS: tuple[Entry, ...] = (
    Entry(
        "mass:Partial",
        {"mass": Keyword(CliHelp("Move this much mass, no more than either side has.", PROBLEM))},
    ),
    Entry(
        "unbalanced:kind_of",
        {
            "unbalanced": Keyword(
                CliHelp(
                    "Price of a mass that is missed, or two of them (inf keeps a side).",
                    PROBLEM,
                    metavar="λ[,λ]",
                    kind=str,
                ),
                float | tuple[float, float] | None,
            ),
            "unbalanced_type": Keyword(
                CliHelp("How it is charged: kl or tv.", PROBLEM), str, default="kl"
            ),
        },
    ),
)


_BALANCED = Balanced()


def keywords() -> dict[str, Keyword]:
    """Return the keywords of all kinds."""
    return {name: keyword for entry in KINDS for name, keyword in entry.keywords.items()}


def kind_from_keywords(given: Mapping[str, object]) -> tuple[Kind, dict[str, object]]:
    """Return the kind that some keywords ask for, and as options those that belong to none."""
    if not given:
        return _BALANCED, {}
    known = keywords()
    options = {name: value for name, value in given.items() if name not in known}
    values = {name: given.get(name, keyword.default) for name, keyword in known.items()}
    meant = [name for name, value in values.items() if value is not known[name].default]
    entries = [entry for entry in KINDS if entry.keywords.keys() & set(meant)]
    if len(entries) > 1:
        raise InvalidProblem(
            f"{' and '.join(meant)} were given; a problem is of one kind only (leave one out)."
        )
    if not entries:
        return _BALANCED, options
    module, _, name = entries[0].home.partition(":")
    make: Callable[..., Kind] = getattr(import_module(f"epsilot.problems.{module}"), name)
    own = {key: value for key, value in values.items() if key in entries[0].keywords}
    return make(**own), options


def with_keywords(signature: inspect.Signature) -> inspect.Signature:
    """Return a signature with the keywords of all kinds before its ``**options``."""
    *parameters, options = signature.parameters.values()
    own = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=word.default, annotation=word.annotation
        )
        for name, word in keywords().items()
    ]
    return signature.replace(parameters=[*parameters, *own, options])
