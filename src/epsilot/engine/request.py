# ruff: noqa: RUF009  (keyword() returns a dataclass field)
"""Declare the keywords of a run, each once: type, default, check, and what depends on it.

The signature of ``solve`` (a test compares it), the checks of values, the identity of checkpoints,
the call that reports show, suggestions for unknown keywords and the command line follow from the
fields of :class:`Request`. This module imports no compiled code, so that the command line reads it
quickly.
"""

import dataclasses
import hashlib
import math
import operator
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, TypeVar

from ..arguments import (
    PLAIN,
    check_choice,
    check_count,
    check_flag,
    check_options,
    check_positive,
    is_real,
    plain,
    with_suggestions,
)
from ..errors import InvalidProblem, UnknownMethod
from ..files import check_own
from ..problems import kinds
from ..problems.kinds import Kind, UserProblem
from ..wording import shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..geometry import Geometry
    from ..problems.problem import Problem
    from ..problems.work import Record

F = TypeVar("F", bound=Callable[..., Any])
#: Raises ``InvalidProblem`` if the keyword of this name cannot have this value.
Check: TypeAlias = Callable[[str, Any], object]

#: The smallest relative gap that float64 arithmetic can certify.
SMALLEST_RTOL = 1e-12


class Keyword(NamedTuple):
    """The declaration of a keyword, in addition to the type and the default of its field."""

    check: Check | None  # called for values other than the default
    help: str | None  # a sentence for the command line, which has no option without one
    identifies: bool  # whether a run must be resumed with the same value
    is_written: bool  # whether the call that a report shows has it
    aliases: tuple[str, ...]  # names in other libraries


def keyword(
    default: object,
    check: Check | None,
    help: str | None = None,
    *,
    identifies: bool = False,
    is_written: bool = True,
    aliases: tuple[str, ...] = (),
) -> Any:
    """Return a field of :class:`Request` with its declaration."""
    declared = Keyword(check, help, identifies, is_written, aliases)
    return field(default=default, metadata={"keyword": declared})


# -- checks of single values ------------------------------------------------------------------


def _choice(*allowed: str) -> Check:
    return lambda name, value: check_choice(name, value, allowed)


def _count(least: int) -> Check:
    return lambda name, value: check_count(name, value, least)


def _check_rtol(name: str, value: object) -> None:
    if check_positive(name, value) < SMALLEST_RTOL:
        raise InvalidProblem(
            f"{name} is {value:g}; float64 arithmetic can certify about {SMALLEST_RTOL:g} "
            f"(use {name} >= {SMALLEST_RTOL:g})."
        )


def _check_method(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise UnknownMethod(f"{name} is {shown(value)}; it must be a name from epsilot.methods().")


def _check_epochs(name: str, value: object) -> None:
    if not (is_real(value) and value >= 0 and (math.isinf(value) or value % 1 == 0)):
        raise InvalidProblem(
            f"{name} is {shown(value)}; it must be a whole number >= 0, or None (math.inf: no "
            "limit)."
        )


def _check_seconds(name: str, value: object) -> None:
    if not (is_real(value) and value >= 0):
        raise InvalidProblem(f"{name} is {shown(value)}; it must be a number >= 0, or None.")


def _check_callback(name: str, value: object) -> None:
    if not callable(value):
        raise InvalidProblem(f"{name} is {shown(value)}; it must be a function of a Record.")


def check_path(name: str, value: object) -> None:
    """Reject a value that cannot be the path of a file."""
    if not isinstance(value, (str, os.PathLike)):
        raise InvalidProblem(f"{name} is {shown(value)}; it must be the path of a file.")


def _check_checkpoint(name: str, value: Any) -> None:
    check_path(name, value)
    check_own(value, "epsilot-checkpoint")


# -- the declarations -------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """The keywords of a run, checked: target, method, limits, observers and kind of problem.

    Except for ``options`` and ``kind``, which collect other keywords, each field is a keyword of
    :func:`epsilot.solve`.
    """

    eps: float | None = keyword(
        None, check_positive, "Certified gap, in units of the cost.", identifies=True
    )
    rtol: float | None = keyword(
        None,
        _check_rtol,
        "Certified gap relative to the lower bound (default: 0.01).",
        identifies=True,
        aliases=("tolerance",),
    )
    reg: float | None = keyword(
        None,
        check_positive,
        "Solve the entropic problem with this regularisation η.",
        identifies=True,
        aliases=("regularization",),
    )
    tol: float | None = keyword(
        None,
        check_positive,
        "Certified entropic gap, for use with reg.",
        identifies=True,
        aliases=("stopThr",),
    )
    method: str = keyword("auto", _check_method, "A name from 'epsilot methods', or auto.")
    stop: str = keyword(
        "certificate",
        _choice("certificate", "paper"),
        "When to stop: certificate, or paper (the published procedure).",
        identifies=True,
    )
    max_iter: int | None = keyword(
        None, _check_epochs, "Stop after this many epochs.", aliases=("numItermax",)
    )
    max_seconds: float | None = keyword(
        None, _check_seconds, "Stop after this many seconds.", aliases=("timeout", "time_limit")
    )
    potentials_init: "tuple[ArrayLike, ArrayLike] | None" = keyword(
        None, None, is_written=False, aliases=("warmstart", "init")
    )
    seed: int = keyword(
        0, _count(0), "Seed of all random choices.", identifies=True, aliases=("random_state",)
    )
    n_threads: int | None = keyword(
        None,
        _count(1),
        "Number of threads (default: one per core).",
        is_written=False,
        aliases=("n_jobs", "num_threads", "numThreads", "workers"),
    )
    callback: "Callable[[Record], object] | None" = keyword(None, _check_callback, is_written=False)
    progress: bool = keyword(False, check_flag, is_written=False, aliases=("verbose", "log"))
    on_limit: str = keyword("warn", _choice("warn", "raise", "ignore"), is_written=False)
    on_interrupt: str = keyword("return", _choice("return", "raise"), is_written=False)
    checkpoint: str | None = keyword(
        None, _check_checkpoint, "Save the run to this file as it goes.", is_written=False
    )
    resume: str | None = keyword(
        None, check_path, "Continue the run that was saved in this file.", is_written=False
    )
    multiscale: bool | None = keyword(None, check_flag)
    options: dict[str, object] | None = keyword(
        None,
        lambda _, value: check_options(value),
        "Option of the method; repeatable.",
        is_written=False,
    )
    kind: Kind = field(default_factory=kinds.balanced)

    def __post_init__(self) -> None:
        """Convert NumPy scalars, and reject values that no problem can use."""
        for name, default, check in _CHECKED:
            value = getattr(self, name)
            if value is not default:
                if type(value) not in PLAIN:
                    value = plain(value)
                    object.__setattr__(self, name, value)
                check(name, value)
        self._check_target()

    def _check_target(self) -> None:
        """Reject two targets, and an accuracy of the entropic problem for another problem."""
        given = [name for name in ("eps", "rtol", "reg") if getattr(self, name) is not None]
        if len(given) > 1:
            raise InvalidProblem(
                f"{' and '.join(given)} were given; pass exactly one of eps, rtol and reg."
            )
        if self.tol is not None and self.reg is None:
            raise InvalidProblem(
                f"tol={shown(self.tol)} was given without reg; tol is the accuracy for reg only."
            )
        if self.reg is None and "reg_type" in self.kind.keywords:
            raise InvalidProblem(
                "reg_type was given without reg; it is the type of the regularisation that reg "
                "weighs."
            )

    @classmethod
    def of(cls, keywords: Mapping[str, Any]) -> Self:
        """Return the request of keywords; those without a field are options of the method."""
        options = {name: value for name, value in keywords.items() if name not in _NAMES}
        return cls.of_call({**keywords, "options": options})

    @classmethod
    def of_call(cls, arguments: Mapping[str, Any]) -> Self:
        """Return the request of a function's arguments by name, ``options`` among them.

        Arguments that are not declared here, such as M, are left out.
        """
        if not arguments["options"] and _are_defaults(arguments):
            return cls._of_defaults()
        kind, options = kinds.kind_from_keywords(arguments["options"])
        fields = {name: arguments[name] for name in KEYWORDS if name in arguments}
        return cls(**fields, kind=kind, options=options)

    @classmethod
    @cache
    def _of_defaults(cls) -> Self:
        """Return the request without keywords, which is checked once."""
        return cls(options={})

    def problem(
        self,
        M: "ArrayLike | Geometry",
        a: "ArrayLike | None",
        b: "ArrayLike | None",
        *,
        normalize: bool,
    ) -> "Problem":
        """Validate a user's problem; the papers' constants are those of the costs as given."""
        given = UserProblem(M, a, b, normalize, can_shift=self.stop != "paper")
        return self.kind.problem(given)

    @property
    def is_watched(self) -> bool:
        """Whether a callback, a progress line or files follow the run step by step."""
        return not (
            self.callback is None
            and not self.progress
            and self.checkpoint is None
            and self.resume is None
        )

    def written(self) -> dict[str, str]:
        """Return the keywords that determine the result, as they are written in Python."""
        return dict(self._written)

    @cached_property
    def _written(self) -> dict[str, str]:
        given = {
            name: value
            for name, default in _WRITTEN.items()
            if (value := getattr(self, name)) != default
        }
        given |= self.kind.keywords | (self.options or {})
        written = {name: _literal(value) for name, value in given.items()}
        return written if self.potentials_init is None else written | {"potentials_init": "(f, g)"}

    def identity(self) -> dict[str, object]:
        """Return the keywords that must be the same when a run is resumed."""
        own = {name: getattr(self, name) for name in _IDENTITY}
        return own | {name: _digested(value) for name, value in self.kind.keywords.items()}


def _digested(value: object) -> object:
    """Return a value with arrays replaced by hashes of their entries."""
    if isinstance(value, tuple):
        return tuple(map(_digested, value))
    if hasattr(value, "tobytes") and getattr(value, "ndim", 0) > 0:
        return hashlib.sha256(value.tobytes()).hexdigest()[:16]
    return value


def _literal(value: object) -> str:
    """Return the Python expression of a value, which may be infinite or a NumPy scalar.

    Arrays are shown by the name λ.
    """
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))})"
    if getattr(value, "ndim", 0) > 0:
        return "λ"
    value = value.item() if hasattr(value, "item") else value
    return "math.inf" if value == math.inf else repr(value)


# -- tables that follow from the declarations ----------------------------------------------------

_FIELDS = [f for f in dataclasses.fields(Request) if f.name != "kind"]
#: The declaration of each keyword, and of ``options``.
DECLARED: dict[str, Keyword] = {f.name: f.metadata["keyword"] for f in _FIELDS}
#: The keywords of ``solve`` that do not describe the problem.
KEYWORDS = tuple(name for name in DECLARED if name != "options")
#: The keywords that describe the problem itself.
OF_PROBLEM = ("M", "a", "b", "normalize")
_NAMES = frozenset(KEYWORDS)
_DEFAULTS = tuple(f.default for f in _FIELDS if f.name != "options")
_values = operator.itemgetter(*KEYWORDS)
_CHECKED = [
    (f.name, f.default, check) for f in _FIELDS if (check := DECLARED[f.name].check) is not None
]
_WRITTEN = {f.name: f.default for f in _FIELDS if DECLARED[f.name].is_written}
_IDENTITY = tuple(name for name, declared in DECLARED.items() if declared.identifies)


def _are_defaults(arguments: Mapping[str, Any]) -> bool:
    """Tell whether a function's arguments have every keyword, each with its default."""
    try:
        return all(map(operator.is_, _values(arguments), _DEFAULTS))
    except KeyError:
        return False


def public(function: F, module: str) -> F:
    """Return the function that users of a module call: it suggests names of arguments."""
    return with_suggestions(function, module, meant_keywords)


def meant_keywords() -> dict[str, str]:
    """Return the keywords of ``solve`` by their own names and by those of other libraries."""
    own = {name: name for name in (*OF_PROBLEM, *KEYWORDS, *kinds.keywords())}
    aliases = {name: word.aliases for name, word in DECLARED.items()}
    aliases |= {name: word.aliases for name, word in kinds.keywords().items()}
    return own | {alias: name for name, others in aliases.items() for alias in others}
