"""What a caller asks of a run: every keyword with its type, default and sentence, once.

The command line reads the fields without loading NumPy; what is heavy is imported where needed.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from . import kinds
from .kinds import PROBLEM, Balanced, CliHelp, Kind

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..problems.record import Record

#: Headings of the command line's help.
TARGET, METHOD = "What to reach", "Method"


def said(help: str, panel: str | None = None, **more: "Any") -> dict[str, CliHelp]:
    """Return the metadata of a field: what is said of it."""
    return {"said": CliHelp(help, panel, **more)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """What to reach, how, and within which limits; valid as soon as it exists.

    The keywords of :func:`epsilot.solve` that do not describe the problem, and the options of the
    method.
    """

    eps: float | None = field(
        default=None, metadata=said("Certified gap, in units of the cost.", TARGET)
    )
    rtol: float | None = field(
        default=None,
        metadata=said("Certified gap relative to the lower bound (default: 0.01).", TARGET),
    )
    reg: float | None = field(
        default=None, metadata=said("Solve the entropic problem with this η instead.", TARGET)
    )
    tol: float | None = field(
        default=None, metadata=said("With --reg: certified entropic gap.", TARGET)
    )
    method: str = field(
        default="auto", metadata=said("A name from 'epsilot methods', or auto.", METHOD)
    )
    stop: str = field(
        default="certificate",
        metadata=said("certificate, or paper: the published procedure.", METHOD),
    )
    max_iter: int | None = field(
        default=None, metadata=said("Stop after so many epochs.", metavar="N")
    )
    max_seconds: float | None = field(
        default=None, metadata=said("Stop after so many seconds.", metavar="S")
    )
    potentials_init: "tuple[ArrayLike, ArrayLike] | None" = field(
        default=None, metadata=said("Warm start (f, g), in units of the cost.", is_option=False)
    )
    seed: int = field(default=0, metadata=said("Seed of all random choices.", least=0))
    n_threads: int | None = field(
        default=None,
        metadata=said(
            "Threads to use (default: one for each core).", metavar="N", least=1, flag="threads"
        ),
    )
    callback: "Callable[[Record], object] | None" = field(
        default=None,
        metadata=said(
            "Called with a Record at each evaluation; returning True stops.", is_option=False
        ),
    )
    progress: bool = field(
        default=False, metadata=said("Show a live line with the gap.", is_option=False)
    )
    on_limit: str = field(
        default="warn",
        metadata=said("warn, raise or ignore when a limit ends the run first.", is_option=False),
    )
    checkpoint: str | None = field(
        default=None, metadata=said("Save the run here as it goes.", metavar="FILE", kind=Path)
    )
    resume: str | None = field(
        default=None,
        metadata=said("Continue a run saved with --checkpoint.", metavar="FILE", kind=Path),
    )
    multiscale: bool | None = field(
        default=None,
        metadata=said(
            "Start a point cloud from a coarse version of it (default: large ones).",
            is_option=False,
        ),
    )
    options: dict[str, object] | None = field(
        default=None,
        metadata=said(
            "Option of the method; repeatable.",
            METHOD,
            metavar="KEY=VALUE",
            flag="option",
            kind=list[str],
        ),
    )

    kind: Kind = field(
        default=Balanced(), metadata=said("Kind of problem, made from its keywords.", PROBLEM)
    )

    def __post_init__(self) -> None:
        """Refuse what no problem can make sense of."""
        from .request_checks import check_request

        check_request(self)

    @classmethod
    def of(cls, keywords: "Mapping[str, Any]") -> Self:
        """Return the request of keywords: those of a kind make it, others are options."""
        fields = {name: value for name, value in keywords.items() if name in KEYWORDS}
        rest = {name: value for name, value in keywords.items() if name not in KEYWORDS}
        kind, options = kinds.kind_from_keywords(rest)
        return cls(**fields, kind=kind, options=options)

    def written(self) -> dict[str, str]:
        """Return the keywords that ask for the same answer, as they are written in Python."""
        given = {
            name: value
            for name, default in _WRITTEN.items()
            if (value := getattr(self, name)) != default
        }
        given |= self.kind.keywords | (self.options or {})
        said = {name: _literal(value) for name, value in given.items()}
        return said if self.potentials_init is None else said | {"potentials_init": "(f, g)"}


def _literal(value: object) -> str:
    """Return a value as it is written in Python, infinite or NumPy's though it may be."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))})"
    value = value.item() if hasattr(value, "item") else value
    return "math.inf" if value == math.inf else repr(value)


#: What is said of each field, in order.
SAID: dict[str, CliHelp] = {f.name: f.metadata["said"] for f in dataclasses.fields(Request)}
#: The fields that are keywords of ``solve``: all but what other keywords are collected in.
KEYWORDS = tuple(name for name in SAID if name not in ("options", "kind"))
#: Keywords that no answer depends on, or that are not written as they are.
_UNWRITTEN = (
    *("potentials_init", "n_threads", "callback", "progress", "on_limit"),
    *("checkpoint", "resume", "options", "kind"),
)
#: The others, and what each is when it is not given.
_WRITTEN = {f.name: f.default for f in dataclasses.fields(Request) if f.name not in _UNWRITTEN}
#: The keywords that describe the problem itself.
OF_PROBLEM = ("M", "a", "b", "normalize")


def known_keywords() -> tuple[str, ...]:
    """Return the names of a caller's keywords, which a misspelt option may mean."""
    return (*OF_PROBLEM, *KEYWORDS, *kinds.keywords())
