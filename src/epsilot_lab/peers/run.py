"""The benchmark from choices to summary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from epsilot.display.text import clock
from epsilot.errors import InvalidProblem
from epsilot.wording import shown

from ..instances import FAMILIES
from ..store import Store
from .contest import run_contest
from .entrants import ENTRANTS, OURS, REFERENCE, Tuning
from .selection import KEY, Selection
from .summary import write_environment, write_summary

if TYPE_CHECKING:
    from rich.console import Console


SMALLEST, LARGEST = 4, 20_000

N = TypeVar("N", int, float)

_EVERYTHING = tuple(FAMILIES)
QUICK = Selection(
    families=_EVERYTHING,
    sizes=(256, 512, 1024),
    rtols=(0.1, 0.01, 0.001, 1e-6),
    solvers=(),
    n_seeds=2,
    tuning=Tuning((0.1, 0.01), (0.3,)),
    time_limit=5.0,
    least_limit=0.5,
    most_repeats=3,
    entropic_families_up_to=256,
)
FULL = replace(
    QUICK,
    sizes=(256, 512, 1024, 2304, 4096, 8192, 10_000),
    n_seeds=3,
    tuning=Tuning((0.1, 0.02, 0.004, 0.001), (1.0, 0.1)),
    time_limit=20.0,
    least_limit=1.0,
    entropic_families_up_to=1024,
)


@dataclass(frozen=True)
class Wishes:
    """What was asked for in place of the usual; None where nothing was."""

    solvers: tuple[str, ...] | None = None
    families: tuple[str, ...] | None = None
    sizes: tuple[int, ...] | None = None
    rtols: tuple[float, ...] | None = None
    n_seeds: int | None = None
    time_limit: float | None = None


def selected(base: Selection, wishes: Wishes) -> Selection:
    """Return the checked selection; we and the reference always take part."""
    if wishes.time_limit is not None:
        _within([wishes.time_limit], 0.1, 900, "time limit")
    solvers = (OURS, REFERENCE, *_solvers(wishes.solvers))
    return replace(
        base,
        families=_known(wishes.families or base.families, FAMILIES, "problem"),
        sizes=_within(wishes.sizes or base.sizes, SMALLEST, LARGEST, "size"),
        rtols=_within(wishes.rtols or base.rtols, 1e-9, 0.5, "rtol"),
        n_seeds=wishes.n_seeds or base.n_seeds,
        time_limit=wishes.time_limit or base.time_limit,
        solvers=tuple(dict.fromkeys(solvers)),
    )


def _solvers(names: Sequence[str] | None) -> list[str]:
    """Return the solvers asked for, which must be installed, or all that are."""
    if names is None:
        return [name for name, entrant in ENTRANTS.items() if entrant.is_installed]
    for name in _known(names, ENTRANTS, "solver"):
        entrant = ENTRANTS[name]
        if not entrant.is_installed:
            raise InvalidProblem(
                f"solver {name!r} needs the package {entrant.distribution}, which is not "
                f"installed; it must be (pip install {entrant.distribution})"
            )
    return list(names)


def _known(names: Iterable[str], known: Iterable[str], what: str) -> tuple[str, ...]:
    known = list(known)
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else "see epsilot bench --help"
            raise InvalidProblem(
                f"{what} {shown(name)} is unknown; it must be one of {', '.join(known)} ({hint})"
            )
    return tuple(dict.fromkeys(names))


def _within(values: Sequence[N], low: float, high: float, what: str) -> tuple[N, ...]:
    for value in values:
        if not (math.isfinite(value) and low <= value <= high):
            raise InvalidProblem(
                f"the {what} is {value:g}; it must be between {low:g} and {high:g} (choose another)"
            )
    return tuple(dict.fromkeys(values))


def run_bench(out: Path, selection: Selection, command: str, console: Console) -> None:
    """Solve what is missing in a folder, then draw and summarise everything."""
    out.mkdir(parents=True, exist_ok=True)
    store = Store(out / "solves.jsonl", KEY)
    missing = [task for task in selection.tasks() if task not in store]
    if missing:
        absent = [e.label for e in ENTRANTS.values() if not e.is_installed]
        expected = clock(sum(task.seconds for task in missing))
        console.print(
            f"At most {len(missing)} solves, about {expected}"
            + (f"; not installed: {', '.join(absent)}." if absent else "."),
            highlight=False,
        )
        write_environment(out)
    lines = run_contest(selection, store, console)
    write_summary(out, lines, selection, command)
