"""Aggregate lines into cells: medians, ratios to ours, failures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..fitting import select
from ..store import Line
from .selection import fastest_accurate, spent
from .solvers import OURS, SOLVERS

# -- cells -------------------------------------------------------------------------------------

#: A plan whose marginals are off by more, in l1 and relative to the mass, is not a plan.
FEASIBLE = 1e-6
#: Round-off allowed in a recomputed relative gap.
ROUND_OFF = 1e-10


@dataclass(frozen=True)
class Cell:
    """A solver on the problems of one family and size, to one accuracy.

    ``ratio`` is its time over ours, the median of the ratios problem by problem. ``failure``
    tells why there are no numbers.
    """

    family: str
    size: int
    n: int
    rtol: float
    solver: str
    n_problems: int = 0
    seconds: float = math.nan
    ratio: float = math.nan
    peak_mib: float = math.nan
    error: float = math.nan  # the largest
    is_feasible: bool = False  # before rounding
    settings: str = ""
    failure: str = ""


class Cells:
    """All cells of a run, and the solvers that took part."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines: dict[tuple[str, int, str], list[Line]] = {}
        for line in lines:
            place = line["family"], line["size"], line["solver"]
            self._lines.setdefault(place, []).append(line)
        self.places = list(
            dict.fromkeys((line["family"], line["size"], line["n"]) for line in lines)
        )
        self.rtols = sorted({line["rtol"] for line in lines if line["rtol"]}, reverse=True)
        known = {line["solver"] for line in lines}
        self.solvers = [name for name in SOLVERS if name in known]

    @property
    def families(self) -> list[str]:
        """The families, in the order of the problems."""
        return list(dict.fromkeys(family for family, _, _ in self.places))

    @cached_property
    def all(self) -> list[Cell]:
        """Every cell."""
        return [
            self.cell(family, size, rtol, solver)
            for family, size, _ in self.places
            for rtol in self.rtols
            for solver in self.solvers
        ]

    def sizes(self, family: str) -> list[int]:
        """Return the sizes of a family."""
        return sorted(size for name, size, _ in self.places if name == family)

    def cell(self, family: str, size: int, rtol: float, solver: str) -> Cell:
        """Return one cell."""
        n = next(n for f, s, n in self.places if (f, s) == (family, size))
        lines = self._lines.get((family, size, solver), [])
        seeds = sorted({line["seed"] for line in lines})
        chosen = {seed: _chosen(select(lines, seed=seed), rtol) for seed in seeds}
        runs = [run for run in chosen.values() if run]
        failure = self._failure(family, size, rtol, solver, len(runs), len(seeds))
        if failure:
            return Cell(family, size, n, rtol, solver, len(seeds), failure=failure)
        ours = self._lines.get((family, size, OURS), [])
        ratios = [
            _seconds(run) / _seconds(mine)
            for seed, run in chosen.items()
            if run and (mine := _chosen(select(ours, seed=seed), rtol))
        ]
        everything = [line for run in runs for line in run]
        peaks = [line["peak_mib"] for line in everything if line["peak_mib"] is not None]
        return Cell(
            family,
            size,
            n,
            rtol,
            solver,
            len(seeds),
            seconds=float(np.median([_seconds(run) for run in runs])),
            ratio=float(np.median(ratios)) if ratios else math.nan,
            peak_mib=float(np.median(peaks)) if peaks else math.nan,
            error=max(line["error"] for line in everything),
            is_feasible=all(line["marginal_error"] <= FEASIBLE for line in everything),
            settings="; ".join(dict.fromkeys(_setting(run[0]) for run in runs)),
        )

    def _failure(
        self, family: str, size: int, rtol: float, solver: str, n_good: int, n_seeds: int
    ) -> str:
        """Return why a solver has no time here, or nothing if it has one."""
        if n_seeds and n_good == n_seeds:
            return ""
        some = f" on {n_seeds - n_good} of {n_seeds}" if 0 < n_good < n_seeds else ""
        lines = _eligible(self._lines.get((family, size, solver), []), rtol)
        if late := [line for line in lines if line["status"] == "timeout"]:
            return f"timed out at {max(line['limit'] for line in late):.3g} s{some}"
        for smaller in reversed([s for s in self.sizes(family) if s < size]):
            before = _eligible(self._lines.get((family, smaller, solver), []), rtol)
            if any(line["status"] == "timeout" for line in before):
                return f"–, timed out at n = {before[0]['n']}"
            if any(line["status"] == "error" for line in before) and not lines:
                return f"–, failed at n = {before[0]['n']}"
        if done := [line["error"] for line in lines if line["status"] == "done"]:
            return f"inaccurate ({min(done):.1e}){some}"
        if broken := [line for line in lines if line["status"] == "error"]:
            return f"failed: {broken[0]['message']}"
        return "not run"


def _eligible(lines: Sequence[Line], rtol: float) -> list[Line]:
    """Return the lines that may serve an accuracy: a certified solver's own, or any."""
    return [line for line in lines if line["rtol"] in (None, rtol)]


def _chosen(lines: Sequence[Line], rtol: float) -> list[Line]:
    """Return the repetitions of the fastest accurate setting on one problem, if there is one.

    Of a certified solver the certificate counts as well: its own gap must be within rtol.
    """
    eligible = _eligible(lines, rtol)
    best = fastest_accurate([line for line in eligible if line["repeat"] == 0], rtol)
    if best is None or (best["rtol"] is not None and not is_certified(best)):
        return []
    same = select(eligible, reg=best["reg"], tol=best["tol"])
    return [line for line in same if line["status"] == "done"]


def is_certified(line: Line) -> bool:
    """Tell whether a run proved its target, and its value agrees."""
    allowed = line["rtol"] + ROUND_OFF
    return bool(line["status"] == "done" and max(line["gap"], line["error"]) <= allowed)


def _seconds(run: Sequence[Line]) -> float:
    return float(np.median([spent(line) for line in run]))


def _setting(line: Line) -> str:
    if line["reg"] is None:
        return ""
    return f"reg {line['reg']:g}, tol {line['tol']:g}"


def accuracy_text(rtol: float) -> str:
    """Return an accuracy as it is said.

    Examples
    --------
    >>> accuracy_text(0.001), accuracy_text(1e-6)
    ('0.1 %', '1e-6 (exact)')
    """
    return f"{100 * rtol:g} %" if rtol > 1e-5 else f"{rtol:.0e} (exact)".replace("e-0", "e-")


def soundness(lines: Sequence[Line]) -> str:
    """Return how many of our results prove their target and agree with the exact value."""
    ours = [line for line in lines if line["solver"] == OURS]
    ended = [line for line in ours if line["status"] == "done"]
    good = sum(map(is_certified, ended))
    worst = max((line["error"] / line["rtol"] for line in ended), default=0.0)
    return (
        f"{good} of {len(ours)} solves of ours are certified and within rtol of the exact value; "
        f"their largest error is {worst:.2g} rtol."
    )
