"""What the paper says of Figure 1, beside what was measured."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from ..document import Claim, Table
from ..fitting import Curve, Fit
from ..judging import Pairs, Statement, above, paired, united, within
from ..store import Line
from .fig1_curves import batch_curves, batch_lines, loops, seconds, series_lines, size_curves
from .fig1_panels import (
    AAM,
    APDAGD,
    APDRCD,
    CONSTANTS,
    NAMES,
    ONE_CRITERION,
    OWN_RULES,
    PDASGD,
    PDASMD,
    PDASMD_SHARP,
    SHARP,
    SINKHORN,
    STOCHASTIC_SINKHORN,
    Series,
    certified,
    kind_of,
)
from .image_tasks import source_name
from .measures import operations

#: A measured slope "close to" the claimed one lies in these bounds.
SLOPE_N = (1.85, 2.15)
SLOPE_B = (0.4, 0.6)
#: A running time that fell as 1/√B would have a slope below this.
PARALLEL = -0.4
#: Up to this batch size the paper's running time falls.
TURNING_BATCH = math.exp(2.5)
#: What the paper calls lower than PDASMD, with the panel; of the others it says nothing in words.
BELOW = {AAM: "a", SINKHORN: "a", STOCHASTIC_SINKHORN: "b"}
OTHERS = {APDAGD: "a", PDASGD: "b", APDRCD: "b"}
#: The methods of panel a under the rules of their own papers.
OWN = dict(zip(ONE_CRITERION["a"], OWN_RULES, strict=True))
TWICE = {"with B = 1": 1, "from B = 2 on": 2}


def statements(lines: Sequence[Line], panels: dict[str, str]) -> list[Statement]:
    """Return the paper's claims on Figure 1, each once, with all tests that the panels allow."""
    found = [
        Statement(
            "operations of PDASMD grow as n²",
            "Figure 1 a, b, e, f",
            tuple(_growths(lines, _data_of(panels, "ab"))),
        )
    ]
    for series, kind in BELOW.items():
        text = fewer(series)
        tests = tuple(_comparisons(lines, series, _data_of(panels, kind)))
        found.append(Statement(text, f"Figure 1 {_letters(kind)}", tests))
    found.append(
        Statement(
            "operations of PDASMD-B grow as √B",
            "Figure 1 c, g",
            tuple(_batches(lines, _data_of(panels, "c"))),
        )
    )
    for text, test in (
        ("running time does not fall as 1/√B", _speedup),
        (f"running time falls up to B ≈ {TURNING_BATCH:.0f}", _falls),
    ):
        tests = tuple(
            Claim(text, where, *test(own)) for where, own in _timed(lines, _data_of(panels, "d"))
        )
        found.append(Statement(text, "Figure 1 d, h", tests))
    return [statement for statement in found if statement.tests]


def directions(lines: Sequence[Line], panels: dict[str, str]) -> list[Claim]:
    """Return which way the methods go that the paper draws but does not compare in words."""
    return [
        claim
        for series, kind in OTHERS.items()
        for claim in _comparisons(lines, series, _data_of(panels, kind))
    ]


def _letters(kind: str) -> str:
    return {"a": "a, e", "b": "b, f"}[kind]


def _data_of(panels: dict[str, str], kinds: str) -> list[str]:
    """Return the data sets for which one of the panels is shown."""
    return list(dict.fromkeys(data for k, data in panels.items() if kind_of(k) in kinds))


def _name(data: str) -> str:
    return NAMES.get(data, source_name(data))


def fewer(series: Series) -> str:
    """Return what is claimed of a method."""
    return f"{series.label.partition(',')[0]} uses fewer operations than PDASMD"


# -- operations against n ----------------------------------------------------------------------


def _growths(lines: Sequence[Line], every: Iterable[str]) -> Iterator[Claim]:
    for data in every:
        for constant, options in CONSTANTS.items():
            series = Series("", "pdasmd", options)
            (found,) = size_curves(lines, (series,), data, "paper")
            yield _growth(found.fit, f"{_name(data)}, {constant}")


def _growth(fit: Fit, where: str) -> Claim:
    text = "operations of PDASMD grow as n²"
    return Claim(text, where, f"slope {fit}", within(fit, *SLOPE_N))


def _comparisons(lines: Sequence[Line], series: Series, every: Iterable[str]) -> Iterator[Claim]:
    """Compare on every pair, for both constants, and for both rules where they differ."""
    rules = {"one criterion": series, "own rule": OWN.get(series, series)}
    if rules["own rule"] == series:
        del rules["own rule"]
    for data in every:
        for rule, own in rules.items():
            for constant, options in CONSTANTS.items():
                rival = Series("", "pdasmd", options)
                pairs = paired(
                    series_lines(lines, own, data, "paper"),
                    series_lines(lines, rival, data, "paper"),
                    operations,
                )
                where = f"{_name(data)}, {constant}, {rule}"
                yield Claim(fewer(series), where, str(pairs), pairs.verdict)


def certificate_claims(lines: Sequence[Line], panels: dict[str, str], eps: float) -> list[Claim]:
    """Return the same statements under the certificate, of which the paper says nothing."""
    found = []
    for data in _data_of(panels, "ab"):
        where = f"{_name(data)}, ε = {eps:g}"
        own = series_lines(lines, certified(PDASMD), data, "certificate", eps)
        (grown,) = size_curves(lines, (certified(PDASMD),), data, "certificate", eps)
        found.append(_growth(grown.fit, where))
        for series, kind in (BELOW | OTHERS).items():
            if data in _data_of(panels, kind):
                theirs = series_lines(lines, certified(series), data, "certificate", eps)
                pairs = paired(theirs, own, operations)
                found.append(Claim(fewer(series), where, str(pairs), pairs.verdict))
    return found


# -- against B ---------------------------------------------------------------------------------


def _batches(lines: Sequence[Line], every: Iterable[str]) -> Iterator[Claim]:
    text = "operations of PDASMD-B grow as √B"
    for data in every:
        for constant, options in CONSTANTS.items():
            own = batch_lines(lines, data, "paper", options)
            for how, least in TWICE.items():
                curves = batch_curves(own, operations, least)
                where = f"{_name(data)}, {constant}, {how}"
                yield Claim(text, where, slopes(curves), _all_within(curves))


def loop_claims(lines: Sequence[Line], panels: dict[str, str]) -> list[Claim]:
    """Return how outer loops grow with B, which is what the paper proves and counts alike."""
    found = []
    for data in _data_of(panels, "c"):
        for constant, options in CONSTANTS.items():
            curves = batch_curves(batch_lines(lines, data, "paper", options), loops)
            where = f"{_name(data)}, {constant}"
            text = "outer loops of PDASMD-B grow as √B"
            found.append(Claim(text, where, slopes(curves), _all_within(curves)))
    return found


def _all_within(curves: Sequence[Curve]) -> str:
    return united(within(c.fit, *SLOPE_B) for c in curves)


def slopes(curves: Sequence[Curve]) -> str:
    """Return the slope of every curve."""
    return "; ".join(f"{c.label}: slope {c.fit}" for c in curves) or "–"


def _timed(lines: Sequence[Line], every: Iterable[str]) -> Iterator[tuple[str, list[Line]]]:
    """Yield the timed solves, by what was timed: the compiled kernel, and NumPy as the paper."""
    for data in every:
        for constant, options in CONSTANTS.items():
            where = f"{_name(data)}, {constant}, compiled"
            yield where, batch_lines(lines, data, "paper", options)
        where = f"{_name(data)}, L̄ = 1/η, NumPy"
        yield where, batch_lines(lines, data, "paper", SHARP, is_numpy=True)


def _speedup(own: Sequence[Line]) -> tuple[str, str]:
    curves = batch_curves(own, seconds)
    return slopes(curves), united(above(c.fit, PARALLEL) for c in curves)


def _falls(own: Sequence[Line]) -> tuple[str, str]:
    """Compare the times of successive B up to the turning point, on every pair."""
    times = {(line["n"], line["seed"], line["B"]): seconds(line) for line in own}
    ratios: dict[Hashable, tuple[float, ...]] = {}
    for n, seed in dict.fromkeys(key[:2] for key in times):
        early = sorted(B for m, s, B in times if (m, s) == (n, seed) and B <= TURNING_BATCH)
        for small, large in pairwise(early):
            ratio = times[n, seed, large] / times[n, seed, small]
            ratios[n, small] = (*ratios.get((n, small), ()), ratio)
    pairs = Pairs(ratios, "steps from B to 2B")
    least = "; ".join(map(_minimum, batch_curves(own, seconds)))
    return (f"{pairs}. {least}" if least else "–"), pairs.verdict


def _minimum(curve: Curve) -> str:
    best = int(np.argmin(curve.median))
    share = curve.median[best] / curve.median[0]
    return f"{curve.label}: least at B = {curve.x[best]:g} ({share:.2f} of the time of B = 1)"


# -- slopes of all ------------------------------------------------------------------------------


def slope_table(lines: Sequence[Line], panels: dict[str, str], certified_to: list[float]) -> Table:
    """Return the exponent of n of every method, under every stop and on all data."""
    every = _data_of(panels, "ab")
    rows = []
    for series in dict.fromkeys(s for kind in "ab" for s in ONE_CRITERION[kind]):
        cells = [series.label]
        for data in every:
            fits = [
                size_curves(lines, (shown,), data, "paper")[0].fit
                for shown in (series, OWN.get(series, series))
            ]
            if series is not PDASMD_SHARP:
                fits += [
                    size_curves(lines, (certified(series),), data, "certificate", eps)[0].fit
                    for eps in certified_to
                ]
            missing = len(certified_to) + 2 - len(fits)
            cells += [*map(str, fits), *["as above"] * missing]
        rows.append(tuple(cells))
    stops = ("one criterion", "own rule", *(f"certificate, ε = {e:g}" for e in certified_to))
    columns = ("method", *(f"{_name(data)}: {stop}" for data in every for stop in stops))
    return Table(columns, tuple(rows), "Exponents of n with 95 % intervals.")
