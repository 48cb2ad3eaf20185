"""Judge every claim of the paper from the stored lines alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ..judging import JudgedClaim
from ..store import Line, read_lines
from . import color_transfer, fig1, table1, table2, two_moons


def _fig1(lines: Sequence[Line]) -> list[JudgedClaim]:
    return fig1.statements(lines, fig1.chosen_panels(tuple(fig1.NAMES), ()))


def _table1(lines: Sequence[Line]) -> list[JudgedClaim]:
    return table1.statements(table1.rows_of(lines, ("synthetic",)))


#: Folder of the lines -> the claims that they judge, in the order of the page.
JUDGES: dict[str, Callable[[Sequence[Line]], list[JudgedClaim]]] = {
    "fig1": _fig1,
    "table1": _table1,
    "table2": table2.statements,
    "two-moons": two_moons.figure_statements,
    "color-transfer": color_transfer.statements,
}


def judged(results: Path) -> list[JudgedClaim]:
    """Return the claims of the paper, judged by the lines in a folder of results."""
    return [
        claim
        for folder, judge in JUDGES.items()
        for claim in judge(read_lines(results / folder / "solves.jsonl"))
    ]
