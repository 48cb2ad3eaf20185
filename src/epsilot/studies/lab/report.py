"""A run as one web page that holds everything it shows: no script, no outside request."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

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
from .judging import Statement, count, statement_table

_STYLE = """
:root { color-scheme: light; --ink: #1b1f24; --faint: #59636e; --line: #d1d9e0; --soft: #f6f8fa }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 76rem; color: var(--ink);
  background: #fff; font: 16px/1.55 system-ui, sans-serif }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 1rem }
h2 { font-size: 1.3rem; margin: 2.5rem 0 .75rem; padding-bottom: .3rem;
  border-bottom: 1px solid var(--line) }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .5rem }
p { max-width: 50rem }
nav { margin: 1.25rem 0; padding: .75rem 1.25rem; background: var(--soft); border-radius: 6px }
nav ul { margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: .25rem 1.5rem;
  list-style: none }
a { color: #0550ae }
figure { margin: 1.5rem 0 } figure img { display: block; width: 100%; height: auto }
figcaption, caption { color: var(--faint); font-size: .9rem; text-align: left }
figcaption { margin-top: .5rem } caption { margin-bottom: .5rem; caption-side: top }
.scroll { overflow-x: auto; margin: 1rem 0 }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums }
th, td { padding: .35rem .75rem; border: 1px solid var(--line); text-align: left;
  vertical-align: top }
thead th { background: var(--soft); position: sticky; top: 0 }
td.yes { color: #116329; font-weight: 600 } td.no { color: #a40e26; font-weight: 600 }
pre { background: var(--soft); padding: .75rem 1rem; border-radius: 6px; overflow-x: auto }
code { font: .9em ui-monospace, monospace }
@media print { thead th { position: static } h2 { break-after: avoid }
  figure { break-inside: avoid } }
"""
# Whatever a file might try, a browser loads nothing but what is written in it.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_VERDICTS = {"holds": "yes", "does not hold": "no"}
#: What browsers call the kinds of pictures.
_IMAGES = {".svg": "svg+xml", ".png": "png", ".jpg": "jpeg"}


@dataclass(frozen=True)
class Page:
    """What an experiment found, and which claims of the paper it tested."""

    title: str
    blocks: tuple[Block, ...]
    statements: tuple[Statement, ...] = ()


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
    contents = "".join(f'<li><a href="#{_slug(t)}">{html.escape(t)}</a></li>' for t in titles)
    body = "\n".join(_block(block, folder) for block in blocks)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<main>\n<h1>{html.escape(title)}</h1>\n"
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav>\n{body}\n</main>\n</body>\n</html>\n'
    )


def _block(block: Block, folder: Path) -> str:
    if isinstance(block, Heading):
        tag, anchor = f"h{block.level}", f' id="{_slug(block.text)}"' if block.level == 2 else ""
        return f"<{tag}{anchor}>{html.escape(block.text)}</{tag}>"
    if isinstance(block, Command):
        return f"<pre><code>{html.escape(block.text)}</code></pre>"
    if isinstance(block, Picture):
        return _picture(block, folder)
    if isinstance(block, Table):
        return _table(block)
    assert isinstance(block, Paragraph)
    return f"<p>{_inline(block.text)}</p>"


def _picture(block: Picture, folder: Path) -> str:
    content = base64.b64encode((folder / block.name).read_bytes()).decode()
    caption, kind = html.escape(block.caption), _IMAGES[Path(block.name).suffix]
    return (
        f'<figure><img src="data:image/{kind};base64,{content}" alt="{caption}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _table(block: Table) -> str:
    head = "".join(f'<th scope="col">{_inline(name)}</th>' for name in block.columns)
    rows = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in block.rows)
    caption = f"<caption>{_inline(block.caption)}</caption>" if block.caption else ""
    return (
        f'<div class="scroll"><table>{caption}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


def _cell(text: str) -> str:
    kind = _VERDICTS.get(text)
    return f'<td class="{kind}">{text}</td>' if kind else f"<td>{_inline(text)}</td>"


def _inline(text: str) -> str:
    """Escape a text, and set what stands between backticks as code, between stars as strong."""
    escaped = html.escape(text)
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", escaped)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
