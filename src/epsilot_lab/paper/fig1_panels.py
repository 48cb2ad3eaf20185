"""Figure 1's panels: what is drawn in each, and the solves that takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from epsilot.errors import InvalidProblem

from .costs import priced
from .image_tasks import ImageTask, source_name
from .numpy_pdasmd import NumpyTask

NAMES = {"synthetic": "synthetic images", "mnist": "MNIST digits"}
LETTERS = {"synthetic": "abcd", "mnist": "efgh"}
Options = tuple[tuple[str, Any], ...]
Fig1Task = ImageTask | NumpyTask


@dataclass(frozen=True)
class Series:
    """A line of a panel; ``style`` is its colour, the same wherever the method is drawn."""

    label: str
    method: str
    options: Options = ()
    style: int = 0


#: L̄ as printed, and as it is in the authors' code, where 1/η is proved to be enough.
PRINTED: Options = ()
SHARP: Options = (("smoothness", "sharp"),)
CONSTANTS = {"L̄ = 5/η": PRINTED, "L̄ = 1/η": SHARP}
APPENDIX_C: Options = (("rule", "violation"),)
OWN_RULE: Options = (("rule", "duality"),)

PDASMD = Series("PDASMD, L̄ = 5/η", "pdasmd", PRINTED)
PDASMD_SHARP = Series("PDASMD, L̄ = 1/η", "pdasmd", SHARP, style=7)
SINKHORN = Series("Sinkhorn", "sinkhorn", style=3)
APDAGD = Series("APDAGD", "apdagd", APPENDIX_C, style=1)
AAM = Series("AAM", "aam", APPENDIX_C, style=2)
PDASGD = Series("PDASGD", "pdasgd", style=4)
APDRCD = Series("APDRCD", "apdrcd", style=5)
STOCHASTIC_SINKHORN = Series("Stochastic Sinkhorn", "stochastic_sinkhorn", style=6)

#: Panel -> its lines under one criterion for all, the paper's Appendix C.
ONE_CRITERION = {
    "a": (PDASMD, PDASMD_SHARP, APDAGD, AAM, SINKHORN),
    "b": (PDASMD, PDASMD_SHARP, PDASGD, APDRCD, STOCHASTIC_SINKHORN),
}
#: Panel a, each method under the rule of its own paper; those of panel b have Appendix C's.
OWN_RULES = (
    PDASMD,
    PDASMD_SHARP,
    replace(APDAGD, options=OWN_RULE),
    replace(AAM, options=()),
    SINKHORN,
)


@dataclass(frozen=True)
class Scale:
    """How large an experiment is: image sides, and the seconds expected of a solve at most."""

    sides: tuple[int, ...]
    batch_sides: tuple[int, ...]
    batches: tuple[int, ...]
    numpy_sides: tuple[int, ...] = ()
    seeds: int = 5
    budget: float = 10.0
    certificate_budget: float = 4.0
    eps: float = 0.05
    #: Of the certificate: small enough that no first guess qualifies.
    certified_eps: tuple[float, ...] = (0.005, 0.001)

    @classmethod
    def of(cls, quick: bool) -> Scale:
        """Return the size that takes minutes, or the one that takes an hour."""
        return QUICK if quick else FULL


QUICK = Scale((4, 6, 8, 10, 12, 16), (8,), (1, 2, 4, 8, 16), (6,), certified_eps=(0.005,))
FULL = Scale(
    (4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32),
    (8, 12, 16),
    (1, 2, 4, 8, 16, 32),
    (8, 12),
    budget=150.0,
    certificate_budget=20.0,
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


def certified(series: Series) -> Series:
    """Return a series as it runs under the certificate, where options are left to the method."""
    return replace(series, options=(), label=series.label.partition(",")[0])


def certified_series(kind: str) -> tuple[Series, ...]:
    """Return the lines of a panel under the certificate."""
    return tuple(certified(s) for s in ONE_CRITERION[kind] if s is not PDASMD_SHARP)


# -- solves ------------------------------------------------------------------------------------


def tasks_of(scale: Scale, panels: dict[str, str], seeds: int) -> Iterator[Fig1Task]:
    """Yield the solves of the panels, each once, in the order of the file."""
    seen = set()
    for letter, data in panels.items():
        kind = kind_of(letter)
        made = _of_batches(scale, kind, data) if kind in "cd" else _of_sizes(scale, kind, data)
        for task in made:
            for seed in range(seeds):
                own = replace(task, seed=seed)
                limit = scale.budget if _stop(own) == "paper" else scale.certificate_budget
                if own not in seen and own.seconds <= limit:
                    seen.add(own)
                    yield own


def _stop(task: Fig1Task) -> str:
    return task.stop if isinstance(task, ImageTask) else "paper"


def _of_sizes(scale: Scale, kind: str, data: str) -> Iterator[ImageTask]:
    """Yield the solves against n of the first pair of images."""
    published = dict.fromkeys(ONE_CRITERION[kind] + (OWN_RULES if kind == "a" else ()))
    goals = [(series, "paper", scale.eps) for series in published]
    goals += [
        (series, "certificate", eps)
        for eps in scale.certified_eps
        for series in certified_series(kind)
    ]
    for series, stop, eps in goals:
        for side in scale.sides:
            if data == "synthetic" or side <= 28:
                task = ImageTask(data, side, 0, series.method, stop, eps, options=series.options)
                yield priced(task)


def _of_batches(scale: Scale, kind: str, data: str) -> Iterator[Fig1Task]:
    """Yield the solves against B of the first pair of images, all of them timed."""
    goals = [("paper", scale.eps, options) for options in CONSTANTS.values()]
    goals += [("certificate", eps, PRINTED) for eps in scale.certified_eps[:1]]
    for stop, eps, options in goals:
        for side, batch in _sizes_and_batches(scale.batch_sides, scale.batches):
            given = (("batch_size", batch), *options)
            task = ImageTask(data, side, 0, "pdasmd", stop, eps, options=given, is_timed=True)
            yield priced(task)
    if kind == "d":
        for side, batch in _sizes_and_batches(scale.numpy_sides, scale.batches):
            yield NumpyTask(data, side, 0, scale.eps, batch)


def _sizes_and_batches(sides: Sequence[int], batches: Sequence[int]) -> Iterator[tuple[int, int]]:
    return ((side, batch) for side in sides for batch in batches if 4 * batch <= side**2)
