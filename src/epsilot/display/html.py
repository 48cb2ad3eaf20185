"""Build self-contained web pages: no scripts, no external requests, light and dark themes."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Sequence

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --faint: #59636e; --line: #d1d9e0;
  --soft: #f6f8fa; --link: #0550ae; --good: #116329; --bad: #a40e26;
  --from: #0072b2; --to: #c24e00 }
@media (prefers-color-scheme: dark) { :root { --paper: #11151a; --ink: #e6e9ed; --faint: #9aa5b1;
  --line: #343c46; --soft: #1a2027; --link: #79b8ff; --good: #56d364; --bad: #ff8a80;
  --from: #56b4e9; --to: #f59e4c } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 76rem; color: var(--ink);
  background: var(--paper); font: 16px/1.55 system-ui, sans-serif; -webkit-text-size-adjust: 100% }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 1rem }
h2 { font-size: 1.3rem; margin: 2.5rem 0 .75rem; padding-bottom: .3rem;
  border-bottom: 1px solid var(--line) }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .5rem }
p { max-width: 50rem }
nav { margin: 1.25rem 0; padding: .75rem 1.25rem; background: var(--soft); border-radius: 6px }
nav ul { margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: .25rem 1.5rem;
  list-style: none }
a { color: var(--link) }
figure { margin: 1.5rem 0 }
figure > img { display: block; width: 100%; height: auto; background: #fff; border-radius: 4px }
figcaption, caption { color: var(--faint); font-size: .9rem; text-align: left }
figcaption { margin-top: .5rem } caption { margin-bottom: .5rem; caption-side: top }
.scroll { overflow-x: auto; margin: 1rem 0 }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums }
th, td { padding: .35rem .75rem; border: 1px solid var(--line); text-align: left;
  vertical-align: top }
thead th { background: var(--soft); position: sticky; top: 0 }
td.yes { color: var(--good); font-weight: 600 } td.no { color: var(--bad); font-weight: 600 }
pre { background: var(--soft); padding: .75rem 1rem; border-radius: 6px; overflow-x: auto }
code { font: .9em ui-monospace, monospace }
@media print { thead th { position: static } h2 { break-after: avoid }
  figure { break-inside: avoid } }
"""
# Browsers load nothing that is not part of the page.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def page(title: str, body: str, *, style: str = "") -> str:
    """Return a complete page; ``style`` is added to the common style sheet."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}{style}</style>\n</head>\n<body>\n"
        f"<main>\n<h1>{html.escape(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )


def contents(titles: Iterable[str]) -> str:
    """Return links to the headings of a page."""
    links = "".join(f'<li><a href="#{_slug(t)}">{html.escape(t)}</a></li>' for t in titles)
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>'


def heading(text: str, level: int = 2) -> str:
    """Return a heading; those of level 2 can be linked to."""
    anchor = f' id="{_slug(text)}"' if level == 2 else ""
    return f"<h{level}{anchor}>{html.escape(text)}</h{level}>"


def paragraph(text: str) -> str:
    """Return a paragraph."""
    return f"<p>{inline(text)}</p>"


def command(text: str) -> str:
    """Return a block of code; lines do not wrap inside the name of an option."""
    words = re.sub(r"(?<!\S)--[\w-]+", r"<span>\g<0></span>", html.escape(text))
    return f"<pre><code>{words}</code></pre>"


def image(content: bytes, kind: str, alt: str) -> str:
    """Return an image embedded in the page; ``kind`` is its MIME subtype."""
    data = base64.b64encode(content).decode()
    return f'<img src="data:image/{kind};base64,{data}" alt="{html.escape(alt)}">'


def figure(picture: str, caption: str) -> str:
    """Return an image with its caption."""
    return f"<figure>{picture}<figcaption>{html.escape(caption)}</figcaption></figure>"


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    caption: str = "",
    marks: dict[str, str] | None = None,
) -> str:
    """Return a table; ``marks`` maps the text of a cell to its CSS class."""
    head = "".join(f'<th scope="col">{inline(name)}</th>' for name in columns)
    cells = ("".join(_cell(text, marks or {}) for text in row) for row in rows)
    body = "\n".join(f"<tr>{row}</tr>" for row in cells)
    title = f"<caption>{inline(caption)}</caption>" if caption else ""
    return (
        f'<div class="scroll"><table>{title}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _cell(text: str, marks: dict[str, str]) -> str:
    kind = marks.get(text)
    return f'<td class="{kind}">{text}</td>' if kind else f"<td>{inline(text)}</td>"


def inline(text: str) -> str:
    """Escape a text; `backticks` become code and **double stars** become bold."""
    escaped = html.escape(text)
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", escaped)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
