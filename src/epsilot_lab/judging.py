"""Judge claims: by paired comparisons, by intervals of slopes, and over all tests of a claim."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .document import Claim, Table, verdict
from .fitting import Fit
from .store import Line

HOLDS, FAILS, UNMEASURED = verdict(True), verdict(False), verdict(None)
UNDECIDED = "undecided"
IN_PART = "holds in part"

#: A comparison is settled if it goes one way in this share of all pairs ...
SHARE = 0.9
#: ... and in this share of the pairs of every size.
SHARE_AT_EACH = 0.8


@dataclass(frozen=True)
class Pairs:
    """Ratios of a quantity between two methods on the same instance, grouped by size."""

    ratios: Mapping[Hashable, tuple[float, ...]]
    size: str = "n"

    @property
    def all(self) -> tuple[float, ...]:
        """Every ratio."""
        return tuple(ratio for group in self.ratios.values() for ratio in group)

    @property
    def verdict(self) -> str:
        """The verdict on whether the quantity is lower."""
        if not self.ratios:
            return UNMEASURED
        if self._is_settled(lambda ratio: ratio < 1):
            return HOLDS
        return FAILS if self._is_settled(lambda ratio: ratio > 1) else UNDECIDED

    def _is_settled(self, agrees: Callable[[float], bool]) -> bool:
        return _share(self.all, agrees) >= SHARE and all(
            _share(group, agrees) >= SHARE_AT_EACH for group in self.ratios.values()
        )

    def __str__(self) -> str:
        if not self.ratios:
            return "–"
        found = self.all
        below = sum(ratio < 1 for ratio in found)
        sizes = sum(_share(g, lambda r: r < 1) >= SHARE_AT_EACH for g in self.ratios.values())
        return (
            f"lower in {below} of {len(found)} pairs, clearly at {sizes} of {len(self.ratios)} "
            f"{self.size}; ratio {np.median(found):.3g} ({min(found):.3g} to {max(found):.3g})"
        )


def _share(ratios: Sequence[float], agrees: Callable[[float], bool]) -> float:
    return sum(map(agrees, ratios)) / len(ratios)


def paired(
    lines: Iterable[Line], others: Iterable[Line], measure: Callable[[Line], float | None]
) -> Pairs:
    """Return the ratios of lines to others with the same n and seed, where both ended."""
    theirs = {(line["n"], line["seed"]): _measured(line, measure) for line in others}
    ratios: dict[Hashable, tuple[float, ...]] = {}
    for line in sorted(lines, key=lambda line: (line["n"], line["seed"])):
        value, other = _measured(line, measure), theirs.get((line["n"], line["seed"]))
        if value is not None and other is not None:
            ratios[line["n"]] = (*ratios.get(line["n"], ()), value / other)
    return Pairs(ratios)


def _measured(line: Line, measure: Callable[[Line], float | None]) -> float | None:
    return measure(line) if line["has_ended"] else None


# -- slopes ------------------------------------------------------------------------------------


def within(fit: Fit, low: float, high: float) -> str:
    """Return whether a slope lies in a band, as far as its interval tells."""
    return _placed(fit, fit.low >= low and fit.high <= high, fit.high < low or fit.low > high)


def at_most(fit: Fit, limit: float) -> str:
    """Return whether a slope is at most a limit, as far as its interval tells."""
    return _placed(fit, fit.high <= limit, fit.low > limit)


def above(fit: Fit, limit: float) -> str:
    """Return whether a slope is above a limit, as far as its interval tells."""
    return _placed(fit, fit.low > limit, fit.high <= limit)


def _placed(fit: Fit, is_in: bool, is_out: bool) -> str:
    if math.isnan(fit.slope):
        return UNMEASURED
    return HOLDS if is_in else FAILS if is_out else UNDECIDED


# -- statements, each with its tests -------------------------------------------------------------


def united(verdicts: Iterable[str]) -> str:
    """Combine the verdicts of several tests of one claim.

    It holds only if every test was made and holds, and in part if one holds where another fails.
    """
    found = set(verdicts)
    if UNMEASURED in found or not found:
        return UNMEASURED
    if len(found) == 1:
        return found.pop()
    if IN_PART in found or found >= {HOLDS, FAILS}:
        return IN_PART
    return UNDECIDED if HOLDS in found else FAILS


@dataclass(frozen=True)
class JudgedClaim:
    """One distinct claim of the paper, where it is made, and every test of it."""

    text: str
    where: str
    tests: tuple[Claim, ...]

    @property
    def verdict(self) -> str:
        """The verdict of all tests together."""
        return united(test.verdict for test in self.tests)


def statement_table(statements: Iterable[JudgedClaim], caption: str = "") -> Table:
    """Return the claims, each once."""
    rows = tuple((s.text, s.where, _outcomes(s.tests), s.verdict) for s in statements)
    return Table(("claim of the paper", "where", "tests", "verdict"), rows, caption)


def _outcomes(tests: Sequence[Claim]) -> str:
    counts = Counter(test.verdict for test in tests)
    words = (HOLDS, IN_PART, UNDECIDED, FAILS, UNMEASURED)
    return ", ".join(f"{word}: {counts[word]}" for word in words if counts[word])


def table_of_tests(statements: Iterable[JudgedClaim], caption: str = "") -> Table:
    """Return every test of every claim."""
    rows = tuple(test.row for statement in statements for test in statement.tests)
    return Table(("claim", "tested on", "measured", "verdict"), rows, caption)


def count(statements: Sequence[JudgedClaim]) -> str:
    """Return how many of the paper's claims hold, each counted once, and name the others."""
    groups: dict[str, list[str]] = {}
    for statement in statements:
        groups.setdefault(statement.verdict, []).append(statement.text)
    held = len(groups.pop(HOLDS, []))
    texts = [f"{held} of {len(statements)} claims of the paper hold in every test"]
    texts += [
        f"{word[0].upper()}{word[1:]} ({len(groups[word])}): {'; '.join(groups[word])}"
        for word in (IN_PART, UNDECIDED, FAILS, UNMEASURED)
        if word in groups
    ]
    return ". ".join(texts) + "."
