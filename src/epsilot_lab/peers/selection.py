"""Select solvers, problems and settings of the benchmark, and skip hopeless solves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from typing import TypeVar

from epsilot.errors import InvalidProblem
from epsilot.version import __version__
from epsilot.wording import shown

from ..fitting import select
from ..instances import FAMILIES
from ..store import Line
from .solvers import OURS, REFERENCE, SOLVERS, RelativeSetting, Tuning

# -- tasks -------------------------------------------------------------------------------------

#: The families on which entropic solvers are run at every size.
HEADLINE = ("images", "points2-squared")
#: One seed beyond the size; repetitions of a solve up to a size.
SEEDS_UP_TO = 2304
REPEATS = ((1024, 3), (4096, 2))
#: A peer may take so many times as long as we do, and always a little while.
PATIENCE = 10.0
#: Entropic solvers are not driven beyond this accuracy, at which they are not meant to work.
FINEST_ENTROPIC = 1e-4


@dataclass(frozen=True)
class PeerTask:
    """A solver with a setting on an instance, for the first time or once more."""

    family: str
    size: int
    seed: int
    solver: str
    setting: RelativeSetting
    repeat: int
    seconds: float  # expected

    @property
    def instance(self) -> tuple[str, int, int]:
        """Family, size and seed of what it solves."""
        return self.family, self.size, self.seed

    @property
    def identity(self) -> Line:
        """The fields that distinguish its line from all others."""
        return {
            "family": self.family,
            "size": self.size,
            "seed": self.seed,
            "solver": self.solver,
            **asdict(self.setting),
            "repeat": self.repeat,
            "version": __version__,
        }

    @property
    def label(self) -> str:
        """A few words for the progress line."""
        return f"{self.solver}, {self.family}, n = {FAMILIES[self.family].n_points(self.size)}"

    @property
    def is_entropic(self) -> bool:
        """Tell whether its solver is tuned."""
        return SOLVERS[self.solver].kind == "entropic"

    @property
    def is_reference(self) -> bool:
        """Tell whether it gives the value that all others are judged by."""
        return self.solver == REFERENCE and self.repeat == 0


#: Fields of a line that make its key, in the order of ``PeerTask.identity``.
KEY = ("family", "size", "seed", "solver", "rtol", "reg", "tol", "repeat", "version")


@dataclass(frozen=True)
class Selection:
    """The solvers, problems, sizes and settings of a run."""

    families: tuple[str, ...]
    sizes: tuple[int, ...]
    rtols: tuple[float, ...]
    solvers: tuple[str, ...]
    n_seeds: int
    tuning: Tuning
    time_limit: float
    least_limit: float
    most_repeats: int
    #: Size up to which entropic solvers see all families; they see one instance of each.
    entropic_families_up_to: int

    def tasks(self) -> list[PeerTask]:
        """Return all solves, small sizes first: what fails there is not tried on large ones."""
        return [
            task
            for size in sorted(self.sizes)
            for family in self.families
            if FAMILIES[family].has(size)
            for seed in range(self.n_seeds if size <= SEEDS_UP_TO else 1)
            for repeat in range(self._n_repeats(size))
            for task in self._round(family, size, seed, repeat)
        ]

    def _n_repeats(self, size: int) -> int:
        return min(self.most_repeats, next((k for top, k in REPEATS if size <= top), 1))

    def _round(self, family: str, size: int, seed: int, repeat: int) -> Iterator[PeerTask]:
        """Yield one solve of each setting in turn, the order of solvers turned every time.

        In the first round the reference comes first and we second, since the others' limits
        depend on them.
        """
        first = [REFERENCE, OURS] if repeat == 0 else []
        rest = [name for name in self.solvers if name not in first]
        shift = (seed + repeat) % max(len(rest), 1)
        for names in (*([name] for name in first), rest[shift:] + rest[:shift]):
            settings = {name: self._settings(name, family, size, seed) for name in names}
            for k in range(max(map(len, settings.values()), default=0)):
                for name in names:
                    if k < len(settings[name]):
                        setting = settings[name][k]
                        seconds = self._expected(size, setting)
                        yield PeerTask(family, size, seed, name, setting, repeat, seconds)

    def _settings(self, name: str, family: str, size: int, seed: int) -> list[RelativeSetting]:
        solver = SOLVERS[name]
        is_left_out = solver.largest is not None and size > solver.largest
        if solver.kind == "entropic":
            is_left_out |= seed > 0
            is_left_out |= family not in HEADLINE and size > self.entropic_families_up_to
        return [] if is_left_out else self.tuning.settings(solver, self.rtols)

    def _expected(self, size: int, setting: RelativeSetting) -> float:
        """Return a guess of the seconds, auditing included; it only moves the progress bar."""
        around = 0.1 + 0.2 * math.pow(size / 1024, 2.3)
        return around if setting.reg is None else around + 0.2 * self.limit(around)

    def limit(self, ours: float) -> float:
        """Return the seconds a peer may take where we took ``ours``."""
        return min(self.time_limit, max(self.least_limit, PATIENCE * ours))


def is_worth_trying(task: PeerTask, lines: Sequence[Line], rtols: Sequence[float]) -> bool:
    """Tell whether a solve could still matter, from the lines of its solver and family.

    It cannot if a coarser setting has failed on this or a smaller size, if a coarser one was
    accurate enough for every target, or if it is a repetition of a run that was not the fastest
    accurate one.
    """
    if any(_implies_failure(line, task) for line in lines if line["status"] != "done"):
        return False
    if not task.is_entropic:
        return True
    family, size, seed = task.instance
    first = [
        line
        for line in select(lines, family=family, size=size, seed=seed, repeat=0)
        if line["status"] == "done"
    ]
    aims = entropic_aims(rtols)
    if task.repeat == 0:
        return not any(line["error"] <= min(aims) for line in first)
    winners = [fastest_accurate(first, rtol) for rtol in aims]
    return any((w["reg"], w["tol"]) == (task.setting.reg, task.setting.tol) for w in winners if w)


def _implies_failure(line: Line, task: PeerTask) -> bool:
    """Tell whether a failure makes another solve hopeless: no easier, and no smaller."""
    if line["size"] > task.size:
        return False
    if task.setting.reg is None or task.setting.tol is None:
        return bool(line["rtol"] == task.setting.rtol)
    is_coarser = bool(line["reg"] >= task.setting.reg)
    return is_coarser and line["reg"] * line["tol"] >= task.setting.reg * task.setting.tol


def entropic_aims(rtols: Sequence[float]) -> list[float]:
    """Return the accuracies that entropic solvers are tuned for."""
    return [rtol for rtol in rtols if rtol >= FINEST_ENTROPIC] or list(rtols)


def fastest_accurate(lines: Sequence[Line], rtol: float) -> Line | None:
    """Return the fastest of the lines whose audited value is within rtol of the optimum."""
    accurate = [line for line in lines if line["status"] == "done" and line["error"] <= rtol]
    return min(accurate, key=spent, default=None)


def spent(line: Line) -> float:
    """Return the processor seconds of a solve; lines of older versions have wall seconds only."""
    return float(line["processor"] if "processor" in line else line["seconds"])


# -- selections and their checks ---------------------------------------------------------------

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
class SelectionOverrides:
    """Choices of the user that replace the defaults; None keeps the default."""

    solvers: tuple[str, ...] | None = None
    families: tuple[str, ...] | None = None
    sizes: tuple[int, ...] | None = None
    rtols: tuple[float, ...] | None = None
    n_seeds: int | None = None
    time_limit: float | None = None


def selected(base: Selection, overrides: SelectionOverrides) -> Selection:
    """Return the checked selection; we and the reference always take part."""
    if overrides.time_limit is not None:
        _within([overrides.time_limit], 0.1, 900, "time limit")
    solvers = (OURS, REFERENCE, *_solvers(overrides.solvers))
    return replace(
        base,
        families=_known(overrides.families or base.families, FAMILIES, "problem"),
        sizes=_within(overrides.sizes or base.sizes, SMALLEST, LARGEST, "size"),
        rtols=_within(overrides.rtols or base.rtols, 1e-9, 0.5, "rtol"),
        n_seeds=overrides.n_seeds or base.n_seeds,
        time_limit=overrides.time_limit or base.time_limit,
        solvers=tuple(dict.fromkeys(solvers)),
    )


def _solvers(names: Sequence[str] | None) -> list[str]:
    """Return the chosen solvers, which must be installed, or all installed ones."""
    if names is None:
        return [name for name, solver in SOLVERS.items() if solver.is_installed]
    for name in _known(names, SOLVERS, "solver"):
        solver = SOLVERS[name]
        if not solver.is_installed:
            raise InvalidProblem(
                f"solver {name!r} needs the package {solver.distribution}, which is not "
                f"installed; it must be (pip install {solver.distribution})"
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
