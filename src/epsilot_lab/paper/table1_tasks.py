"""Table 1's solves: the largest sizes and smallest accuracies that each method can afford."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .costs import priced
from .image_tasks import ImageTask

AXES = ("n", "eps")


@dataclass(frozen=True)
class Scale:
    """Sizes to choose from: a method takes the largest it can afford within the budget.

    No ε is above 0.2: the independent plan is within about 0.3 of the optimum on the images, so
    that nearly any plan solves what is easier.
    """

    sides: tuple[int, ...]
    n_sides: int
    base_sides: tuple[int, ...]  # at which ε varies, best first
    accuracies: dict[str, tuple[float, ...]]  # for each stop, decreasing
    base_accuracies: dict[str, tuple[float, ...]]  # at which n varies, best first
    n_accuracies: int
    seeds: int
    budget: float  # seconds of a solve
    least: int = 3  # points of a fit; with fewer of them nothing is fitted

    @classmethod
    def of(cls, quick: bool) -> Scale:
        """Return the size that takes minutes, or the one that takes an hour."""
        return QUICK if quick else FULL


QUICK = Scale(
    sides=(3, 4, 5, 6, 7, 8, 10, 12),
    n_sides=5,
    base_sides=(8, 6, 5, 4, 3),
    accuracies={
        "paper": (0.2, 0.1, 0.05, 0.025),
        "certificate": (0.1, 0.05, 0.02, 0.01, 0.005),
    },
    base_accuracies={"paper": (0.05, 0.1, 0.2), "certificate": (0.02, 0.05)},
    n_accuracies=4,
    seeds=3,
    budget=1.5,
)
FULL = Scale(
    sides=(3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28),
    n_sides=7,
    base_sides=(12, 10, 8, 6, 5, 4),
    accuracies={
        "paper": (0.2, 0.1, 0.05, 0.025, 0.0125),
        "certificate": (0.1, 0.05, 0.02, 0.01, 0.005, 0.002),
    },
    base_accuracies={"paper": (0.05, 0.1, 0.2), "certificate": (0.02, 0.05)},
    n_accuracies=5,
    seeds=5,
    budget=15.0,
)


def tasks_of(
    scale: Scale, data: str, method: str, stop: str, axes: Sequence[str], seeds: int
) -> Iterator[ImageTask]:
    """Yield a method's solves: sizes at one accuracy, then accuracies at one size."""
    wanted: list[tuple[int, float]] = []
    if "n" in axes:
        wanted += _size_axis(scale, method, stop)
    if "eps" in axes:
        wanted += _accuracy_axis(scale, method, stop)
    for side, eps in dict.fromkeys(wanted):
        for seed in range(seeds):
            yield priced(ImageTask(data, side, seed, method, stop, eps))


def _size_axis(scale: Scale, method: str, stop: str) -> list[tuple[int, float]]:
    """Return the largest sizes that can be paid for, at the first accuracy that affords most."""
    best: list[tuple[int, float]] = []
    for eps in scale.base_accuracies[stop]:
        paid = [(side, eps) for side in scale.sides if _is_paid(scale, method, stop, side, eps)]
        best = max(best, paid[-scale.n_sides :], key=len)
    return best if len(best) >= scale.least else []


def _accuracy_axis(scale: Scale, method: str, stop: str) -> list[tuple[int, float]]:
    """Return the smallest accuracies that can be paid for, at the largest size that fits all.

    Where no size does, that is the largest which fits enough of them.
    """
    paid = [
        [(side, e) for e in scale.accuracies[stop] if _is_paid(scale, method, stop, side, e)]
        for side in scale.base_sides
    ]
    for least in (scale.n_accuracies, scale.least):
        for found in paid:
            if len(found) >= least:
                return found[-scale.n_accuracies :]
    return []


def _is_paid(scale: Scale, method: str, stop: str, side: int, eps: float) -> bool:
    return priced(ImageTask("synthetic", side, 0, method, stop, eps)).seconds <= scale.budget
