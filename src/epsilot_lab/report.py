"""Write a report as one self-contained web page without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from epsilot.display import html

from .document import (
    Block,
    Command,
    Heading,
    Paragraph,
    Picture,
    Table,
    to_markdown,
    write_text,
)
from .judging import JudgedClaim, count, statement_table

_VERDICTS = {"holds": "yes", "does not hold": "no"}
#: Suffix -> MIME subtype.
_IMAGES = {".svg": "svg+xml", ".png": "png", ".jpg": "jpeg"}


@dataclass(frozen=True)
class Page:
    """The report of an experiment: its blocks, and the claims of the paper it tested."""

    title: str
    blocks: tuple[Block, ...]
    statements: tuple[JudgedClaim, ...] = ()


def publish(folder: Path, title: str, blocks: Sequence[Block]) -> None:
    """Write the blocks as ``summary.md`` and as ``report.html``."""
    write_text(folder / "summary.md", to_markdown(title, blocks))
    write_text(folder / "report.html", to_html(title, blocks, folder))


def publish_all(folder: Path, title: str, pages: Mapping[str, Page]) -> None:
    """Write the claims of all pages as ``claims.md``, and everything as one ``report.html``.

    Pages are named by their folders, in which their pictures are.
    """
    statements = [statement for page in pages.values() for statement in page.statements]
    overview: list[Block] = [Paragraph(count(statements)), statement_table(statements)]
    write_text(folder / "claims.md", to_markdown(title, overview))
    blocks = [Heading("Claims of the paper"), *overview]
    for name, page in pages.items():
        blocks.append(Heading(page.title))
        blocks += [_inside(block, name) for block in page.blocks]
    write_text(folder / "report.html", to_html(title, blocks, folder))


def _inside(block: Block, folder: str) -> Block:
    """Return a block as a part of a larger page: one level down, its picture in a folder."""
    if isinstance(block, Heading):
        return replace(block, level=block.level + 1)
    return replace(block, name=f"{folder}/{block.name}") if isinstance(block, Picture) else block


def to_html(title: str, blocks: Sequence[Block], folder: Path) -> str:
    """Return the blocks as a web page, with the pictures of the folder inside it."""
    titles = [b.text for b in blocks if isinstance(b, Heading) and b.level == 2]
    body = "\n".join(_block(block, folder) for block in blocks)
    return html.page(title, f"{html.contents(titles)}\n{body}")


def _block(block: Block, folder: Path) -> str:
    if isinstance(block, Heading):
        return html.heading(block.text, block.level)
    if isinstance(block, Command):
        return html.command(block.text)
    if isinstance(block, Picture):
        content, kind = (folder / block.name).read_bytes(), _IMAGES[Path(block.name).suffix]
        return html.figure(html.image(content, kind, block.caption), block.caption)
    if isinstance(block, Table):
        return html.table(block.columns, block.rows, block.caption, _VERDICTS)
    assert isinstance(block, Paragraph)
    return html.paragraph(block.text)
