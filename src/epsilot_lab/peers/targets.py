"""What the project set itself to reach against the network simplex, and whether it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..document import Claim, verdict
from ..store import Line
from .analysis import Cell, Cells, is_certified
from .entrants import OURS, REFERENCE

RTOLS = (0.01, 1e-6)
SMALL, SLOWDOWN = 512, 1.15
#: size -> how many times faster, on images and on points of the plane
SPEEDUPS = {1024: 1.3, 2304: 2.5, 4096: 5.0, 8192: 6.0}
FAMILIES = ("images", "points2-squared", "points2")


def accuracy_text(rtol: float) -> str:
    """Return an accuracy as it is said.

    Examples
    --------
    >>> accuracy_text(0.001), accuracy_text(1e-6)
    ('0.1 %', '1e-6 (exact)')
    """
    return f"{100 * rtol:g} %" if rtol > 1e-5 else f"{rtol:.0e} (exact)".replace("e-0", "e-")


def judged(cells: Cells, lines: Sequence[Line]) -> list[Claim]:
    """Return every target with what was measured."""
    return [claim for rtol in RTOLS for claim in _speed(cells, rtol)] + [_soundness(lines)]


def _speed(cells: Cells, rtol: float) -> Iterator[Claim]:
    where = accuracy_text(rtol)
    small = [(f, s) for f, s, _ in cells.places if s <= SMALL]
    text = f"at most {SLOWDOWN:g}x slower than ot.emd2 at n ≤ {SMALL}, all problems"
    yield _claim(text, where, _reference_cells(cells, rtol, small), 1 / SLOWDOWN)
    for size, speedup in SPEEDUPS.items():
        places = [(f, s) for f, s, _ in cells.places if s == size and f in FAMILIES]
        text = f"at least {speedup:g}x faster at n = {size}, images and 2-d points"
        yield _claim(text, where, _reference_cells(cells, rtol, places), speedup)


def _reference_cells(cells: Cells, rtol: float, places: Sequence[tuple[str, int]]) -> list[Cell]:
    if rtol not in cells.rtols:
        return []
    return [cells.cell(family, size, rtol, REFERENCE) for family, size in places]


def _claim(text: str, where: str, found: Sequence[Cell], least: float) -> Claim:
    """Return the claim that all ratios are at least so large; a ratio we lack fails it."""
    if not found:
        return Claim(text, where, "–", verdict(None))
    measured = "; ".join(f"{faster(cell.ratio)} ({cell.family}, {cell.n})" for cell in found)
    return Claim(text, where, measured, verdict(all(cell.ratio >= least for cell in found)))


def faster(ratio: float) -> str:
    """Return a ratio of times, theirs over ours, in words."""
    if ratio != ratio:
        return "no time of ours"
    return f"{ratio:.2f}x faster" if ratio >= 1 else f"{1 / ratio:.2f}x slower"


def _soundness(lines: Sequence[Line]) -> Claim:
    text = "every result of ours is certified and within rtol of the exact value"
    ours = [line for line in lines if line["solver"] == OURS]
    good = [line for line in ours if is_certified(line)]
    ended = [line for line in ours if line["status"] == "done"]
    worst = max((line["error"] / line["rtol"] for line in ended), default=0.0)
    measured = f"{len(good)} of {len(ours)} solves; largest error {worst:.2g} rtol"
    return Claim(text, "all", measured, verdict(len(good) == len(ours) if ours else None))
