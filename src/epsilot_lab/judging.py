"""Judge claims: by paired comparisons, by intervals of slopes, and over all tests of a claim.

A claim is the conjunction of its tests, and :func:`united` is its three-valued truth.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .document import Claim, Table, verdict
from .fitting import CONFIDENCE, Fit
from .store import Line

HOLDS, FAILS, UNMEASURED = verdict(True), verdict(False), verdict(None)
UNDECIDED = "undecided"
#: A claim that no run of ours can test, such as one about a subroutine that we replace.
UNTESTED = "not tested"

#: Two quantities are the same for every purpose if their mean ratio is within this share of 1.
EQUIVALENT = 0.05


@dataclass(frozen=True)
class Interval:
    """A mean with Student's 95 % interval, which is unknown (NaN) for a single value."""

    mean: float
    low: float
    high: float

    @property
    def exp(self) -> Interval:
        """The exponentials of all three."""
        return Interval(math.exp(self.mean), math.exp(self.low), math.exp(self.high))

    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"{self.mean:.4g}"
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"


def interval(values: ArrayLike) -> Interval:
    """Return the mean of some values with its interval.

    >>> print(interval([1.0, 2.0, 3.0]))
    2 [-0.4841, 4.484]
    """
    from scipy.stats import t as student

    x = np.asarray(values, dtype=np.float64)
    mean = float(x.mean())
    if x.size < 2:
        return Interval(mean, math.nan, math.nan)
    error = float(x.std(ddof=1)) / math.sqrt(x.size)
    reach = error * float(student.ppf((1 + CONFIDENCE) / 2, x.size - 1))
    return Interval(mean, mean - reach, mean + reach)


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
    def mean(self) -> Interval:
        """The geometric mean of all ratios, with its interval."""
        return interval(np.log(self.all)).exp

    @property
    def verdict(self) -> str:
        """The verdict on whether the quantity is lower.

        It holds if the interval of the geometric mean is below 1, and the median at every size;
        it does not if the interval is above 1, or so close to 1 that the two are equivalent.
        """
        if not self.ratios:
            return UNMEASURED
        mean = self.mean
        is_same = mean.low >= 1 - EQUIVALENT and mean.high <= 1 + EQUIVALENT
        if is_same or mean.low > 1:
            return FAILS
        is_lower = all(np.median(group) < 1 for group in self.ratios.values())
        return HOLDS if mean.high < 1 and is_lower else UNDECIDED

    def __str__(self) -> str:
        if not self.ratios:
            return "–"
        found = self.all
        below = sum(ratio < 1 for ratio in found)
        sizes = sum(np.median(group) < 1 for group in self.ratios.values())
        return (
            f"mean ratio {self.mean}, from {min(found):.3g} to {max(found):.3g}; lower in {below} "
            f"of {len(found)} pairs, in the median at {sizes} of {len(self.ratios)} {self.size}"
        )


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


#: The words for a claim from the strongest to the weakest: the first that a test has decides.
_DECISIVE = (FAILS, UNMEASURED, UNTESTED, UNDECIDED, HOLDS)


def united(verdicts: Iterable[str]) -> str:
    """Combine the verdicts of all tests of one claim, which says that all of them hold.

    One test that fails refutes it. Else a test that was not made, or decided nothing, leaves it
    open. It holds if every test does.

    >>> united(["holds", "undecided", "does not hold"])
    'does not hold'
    """
    found = set(verdicts)
    return next((word for word in _DECISIVE if word in found), UNMEASURED)


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


def statement_table(statements: Iterable[JudgedClaim]) -> Table:
    """Return the claims, each once."""
    rows = tuple((s.text, s.where, _outcomes(s.tests), s.verdict) for s in statements)
    return Table(("claim of the paper", "where", "tests", "verdict"), rows)


def _outcomes(tests: Sequence[Claim]) -> str:
    counts = Counter(test.verdict for test in tests)
    words = _DECISIVE[::-1]
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
        for word in (FAILS, UNDECIDED, UNTESTED, UNMEASURED)
        if word in groups
    ]
    return ". ".join(texts) + "."


def short_count(statements: Sequence[JudgedClaim]) -> str:
    """Return the numbers alone.

    >>> short_count([])
    '0 of 0 claims of the paper hold'
    """
    found = Counter(statement.verdict for statement in statements)
    texts = [f"{found[HOLDS]} of {len(statements)} claims of the paper hold"]
    for word, one, many in (
        (FAILS, "does not hold", "do not hold"),
        (UNDECIDED, "is undecided", "are undecided"),
        (UNTESTED, "is not tested", "are not tested"),
        (UNMEASURED, "is not measured yet", "are not measured yet"),
    ):
        if found[word]:
            texts.append(f"{found[word]} {one if found[word] == 1 else many}")
    return ", ".join(texts)
