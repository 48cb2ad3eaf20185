"""Figure 1's panels: what is drawn in each, and the solves that takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..._types import Passed
from ...errors import InvalidProblem
from ..lab.fitting import Curve, curve, select
from ..lab.store import Line
from .costs import priced
from .image_tasks import ImageTask, source_name
from .measures import STOPS, operations

NAMES = {"synthetic": "synthetic images", "mnist": "MNIST digits"}
#: What is read off a line, None where it was not counted.
Measure = Callable[[Line], float | None]
LETTERS = {"synthetic": "abcd", "mnist": "efgh"}


@dataclass(frozen=True)
class Series:
    """A line of a panel; ``style`` is its colour, the same wherever the method is drawn."""

    label: str
    method: str
    options: tuple[tuple[str, Passed], ...] = ()
    style: int = 0


PDASMD = Series("PDASMD", "pdasmd")
SHARP = Series("PDASMD with L̄ = 1/η", "pdasmd", (("smoothness", "sharp"),), style=7)
DETERMINISTIC = (
    PDASMD,
    SHARP,
    Series("APDAGD", "apdagd", style=1),
    Series("AAM", "aam", style=2),
    Series("Sinkhorn", "sinkhorn", style=3),
)
STOCHASTIC = (
    PDASMD,
    SHARP,
    Series("PDASGD", "pdasgd", style=4),
    Series("APDRCD", "apdrcd", style=5),
    Series("Stochastic Sinkhorn", "stochastic_sinkhorn", style=6),
)


@dataclass(frozen=True)
class Scale:
    """How large an experiment is: image sides, and the seconds expected of a solve at most."""

    sides: tuple[int, ...]
    batch_sides: tuple[int, ...]
    batches: tuple[int, ...]
    seeds: int = 5
    budget: float = 10.0
    eps: float = 0.05

    @classmethod
    def of(cls, quick: bool) -> Scale:
        """Return the size that takes minutes, or the one that takes an hour."""
        return QUICK if quick else FULL


QUICK = Scale((4, 6, 8, 10, 12, 16), (8, 12), (1, 2, 4, 8, 16))
FULL = Scale(
    (4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32), (8, 12, 16), (1, 2, 4, 8, 16, 32), budget=150.0
)


def chosen_panels(data: Sequence[str], panel: Sequence[str]) -> dict[str, str]:
    """Return the letters of the panels to make, each with its data set."""
    panels: dict[str, str] = {}
    if len(digits := set(data) - {"synthetic"}) > 1:
        raise InvalidProblem(
            f"data names {len(digits)} sets of digits; panels e to h show one (name it alone)."
        )
    for each in data:
        source_name(each)
        panels |= dict.fromkeys(LETTERS["synthetic" if each == "synthetic" else "mnist"], each)
    letters = [letter for part in panel for letter in part.lower()]
    if unknown := [letter for letter in letters if letter not in panels]:
        raise InvalidProblem(
            f"panel is {unknown[0]!r}; it must be one of {', '.join(panels)} (a to d are of "
            "synthetic images, e to h of digits)."
        )
    return {k: v for k, v in panels.items() if not letters or k in letters}


def kind_of(letter: str) -> str:
    """Return the panel of the synthetic images that shows the same."""
    return "abcd"["abcdefgh".index(letter) % 4]


def tasks_of(scale: Scale, panels: dict[str, str], seeds: int) -> Iterator[ImageTask]:
    """Yield the solves of the panels, each once, in the order of the file."""
    seen = set()
    for letter, data in panels.items():
        kind = kind_of(letter)
        for stop in STOPS:
            made = _batches(scale, data, stop) if kind in "cd" else _sizes(scale, kind, data, stop)
            for side, series, is_timed in made:
                for seed in range(seeds):
                    goal = series.method, stop, scale.eps, series.options
                    task = priced(ImageTask(data, side, seed, *goal, is_timed))
                    if task not in seen and task.seconds <= scale.budget:
                        seen.add(task)
                        yield task


def _sizes(scale: Scale, kind: str, data: str, stop: str) -> Iterator[tuple[int, Series, bool]]:
    for side in scale.sides:
        if data == "synthetic" or side <= 28:
            for series in series_of(kind, stop):
                yield side, series, False


def series_of(kind: str, stop: str) -> tuple[Series, ...]:
    """Return the lines of a panel; under the certificate the sharp constant is the default."""
    every = DETERMINISTIC if kind == "a" else STOCHASTIC
    return every if stop == "paper" else tuple(s for s in every if s is not SHARP)


def _batches(scale: Scale, data: str, stop: str) -> Iterator[tuple[int, Series, bool]]:
    for side in scale.batch_sides:
        for batch in scale.batches:
            if 4 * batch <= side**2:
                yield side, _batch(batch), True


def _batch(size: int) -> Series:
    return Series(f"B = {size}", "pdasmd", (("batch_size", size),))


# -- what was found ---------------------------------------------------------------------------


def size_curves(lines: Sequence[Line], kind: str, data: str, stop: str) -> tuple[Curve, ...]:
    """Return operations against n for each line of a panel."""
    own = select(lines, data=source_name(data), stop=stop, is_timed=False)
    return tuple(
        curve(
            series.label,
            select(own, method=series.method, given=dict(series.options)),
            lambda line: line["n"],
            operations,
        )
        for series in series_of(kind, stop)
    )


def batch_curves(lines: Sequence[Line], data: str, stop: str, what: Measure) -> tuple[Curve, ...]:
    """Return a quantity of PDASMD-B against B for each n."""
    own = select(lines, data=source_name(data), stop=stop, is_timed=True)
    return tuple(
        curve(f"n = {n}", select(own, n=n), lambda line: line["B"], what)
        for n in sorted({line["n"] for line in own})
    )
