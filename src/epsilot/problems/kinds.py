"""List the kinds of problem and their keywords: a new kind is one file here and one row of KINDS.

A kind turns the user's cost and weights into a ``Problem``, and chooses its objective. This module
imports no numerical code, so that the command line reads the keywords quickly.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..errors import InvalidProblem

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..geometry import Geometry
    from .objective import Objective
    from .problem import Problem


class UserProblem(NamedTuple):
    """Cost and weights as the user gave them."""

    M: ArrayLike | Geometry
    a: ArrayLike | None = None
    b: ArrayLike | None = None
    normalize: bool = False
    can_shift: bool = True  # whether costs may be shifted to begin at 0

    @property
    def options(self) -> dict[str, bool]:
        """The fields after cost and weights, by name."""
        return {"normalize": self.normalize, "can_shift": self.can_shift}


class Kind(Protocol):
    """A kind of problem, with the values of its keywords."""

    def problem(self, given: UserProblem) -> Problem:
        """Validate a user's cost and weights, or raise ``InvalidProblem`` with one sentence."""

    def objective(self, problem: Problem, reg: float | None) -> Objective:
        """Return the objective to minimise, with an entropy if ``reg`` is given."""

    @property
    def keywords(self) -> dict[str, object]:
        """The keywords that select this kind, with their values."""


class KindKeyword(NamedTuple):
    """A keyword of a kind; any value but the default selects the kind."""

    help: str  # a sentence for the command line
    annotation: object = float | None
    default: object = None
    aliases: tuple[str, ...] = ()  # names in other libraries


class KindEntry(NamedTuple):
    """A row of the table: ``module:constructor`` in this package, and the keywords it takes.

    The constructor gets a value for each of them, and rejects values without a meaning.
    """

    constructor: str
    keywords: Mapping[str, KindKeyword]


#: The kind that no keyword selects.
BALANCED = KindEntry("balanced:Balanced", {})

#: Every other kind.
KINDS: tuple[KindEntry, ...] = (
    KindEntry(
        "partial:Partial",
        {"mass": KindKeyword("Mass to move, at most the smaller of the two totals.")},
    ),
    KindEntry(
        "unbalanced:kind_of",
        {
            "unbalanced": KindKeyword(
                "Marginal penalty λ, or λ_a,λ_b (inf: exact marginal); a file holds one per point.",
                float | tuple[Any, Any] | None,
                aliases=("reg_m", "tau_a", "tau_b"),
            ),
            "unbalanced_type": KindKeyword(
                "Divergence of the marginal penalty: kl or tv.", str, default="kl"
            ),
        },
    ),
)


#: The keyword that changes the regularisation of any kind: it selects a kind around another.
REGULARISATION = KindEntry(
    "relative:with_reg_type",
    {
        "reg_type": KindKeyword(
            "Regularisation for reg: entropy, or kl (the divergence of the plan from a bᵀ).",
            str,
            default="entropy",
        )
    },
)


@cache
def balanced() -> Kind:
    """Return the kind that no keyword selects."""
    return _made(BALANCED, {})


def keywords() -> dict[str, KindKeyword]:
    """Return the keywords of all kinds."""
    entries = *KINDS, REGULARISATION
    return {name: keyword for entry in entries for name, keyword in entry.keywords.items()}


def kind_from_keywords(given: Mapping[str, object]) -> tuple[Kind, dict[str, object]]:
    """Return the kind that keywords select, and the keywords that belong to no kind."""
    if not given:
        return balanced(), {}
    known = keywords()
    others = {name: value for name, value in given.items() if name not in known}
    values = {name: given.get(name, keyword.default) for name, keyword in known.items()}
    selecting = [name for name, value in values.items() if value is not known[name].default]
    entries = [entry for entry in KINDS if entry.keywords.keys() & set(selecting)]
    if len(entries) > 1:
        selecting = [name for name in selecting if name not in REGULARISATION.keywords]
        raise InvalidProblem(
            f"{' and '.join(selecting)} were given; a problem is of one kind only (leave one out)."
        )
    kind = balanced()
    for entry in entries:
        kind = _made(entry, values)
    if any(name in selecting for name in REGULARISATION.keywords):
        kind = _made(REGULARISATION, values, kind)
    return kind, others


def _made(entry: KindEntry, values: Mapping[str, object], *inner: Kind) -> Kind:
    """Call the constructor of a kind with its keywords, and with the kind it is around."""
    module, _, name = entry.constructor.partition(":")
    make: Callable[..., Kind] = getattr(import_module(f".{module}", __package__), name)
    return make(*inner, **{name: values[name] for name in entry.keywords})


def with_keywords(signature: inspect.Signature) -> inspect.Signature:
    """Return a signature with the keywords of all kinds of problem before its ``**options``."""
    *parameters, options = signature.parameters.values()
    of_kinds = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=word.default, annotation=word.annotation
        )
        for name, word in keywords().items()
    ]
    return signature.replace(parameters=[*parameters, *of_kinds, options])
