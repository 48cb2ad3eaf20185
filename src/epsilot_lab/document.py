"""Build a report from blocks, and write it as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from epsilot.files import write_atomically

from .environment import machine, versions
from .store import Line


@dataclass(frozen=True)
class Heading:
    """The heading of a section."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """Some sentences; `code` between backticks."""

    text: str


@dataclass(frozen=True)
class Table:
    """Columns with a name each; the first one labels the rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


@dataclass(frozen=True)
class Picture:
    """A figure in the same folder, and what it shows in words."""

    name: str  # of an .svg file
    caption: str


@dataclass(frozen=True)
class Command:
    """A line for the shell."""

    text: str


Block = Heading | Paragraph | Table | Picture | Command


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, where it is made, what was measured, and whether it holds."""

    text: str
    where: str
    measured: str
    verdict: str

    @property
    def row(self) -> tuple[str, ...]:
        """Cells of the table of claims."""
        return self.text, self.where, self.measured, self.verdict


def verdict(holds: bool | None) -> str:
    """Return the word for a claim that was tested, or could not be."""
    return {True: "holds", False: "does not hold", None: "not measured yet"}[holds]


def claim_table(claims: Iterable[Claim], caption: str) -> Table:
    """Return the table of claims."""
    columns = ("claim", "where", "measured", "verdict")
    return Table(columns, tuple(claim.row for claim in claims), caption)


def environment_table(lines: Sequence[Line]) -> Table:
    """Return versions and machine of the solves; several values where the lines differ."""
    rows: dict[str, list[str]] = {}
    for line in lines or [{"versions": versions(), "machine": machine()}]:
        made_with = line.get("versions", {"epsilot": line.get("version", "unknown")})
        for name, value in {**made_with, **line.get("machine", {})}.items():
            if str(value) not in rows.setdefault(name, []):
                rows[name].append(str(value))
    return Table(
        ("part", "value"), tuple((name, ", ".join(values)) for name, values in rows.items())
    )


def to_markdown(title: str, blocks: Sequence[Block]) -> str:
    """Return the blocks as Markdown."""
    return "\n\n".join([f"# {title}", *map(_markdown, blocks)]) + "\n"


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {block.text}"
    if isinstance(block, Command):
        return f"```sh\n{block.text}\n```"
    if isinstance(block, Picture):
        return f"![{block.caption}]({block.name})\n\n*{block.caption}*"
    if isinstance(block, Table):
        lines = [block.columns, tuple("---" for _ in block.columns), *block.rows]
        text = "\n".join(map(markdown_row, lines))
        return f"{block.caption}\n\n{text}" if block.caption else text
    return block.text


def markdown_row(cells: Iterable[str]) -> str:
    """Return a row of a Markdown table."""
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def write_text(path: Path, text: str) -> None:
    """Write a text file completely or not at all."""
    write_atomically(path, lambda file: file.write(text.encode()))
