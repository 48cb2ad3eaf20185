"""Formulas as MathML, which browsers draw themselves: no script, no font, no network."""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

#: A prime is high by itself; as an exponent it would be high twice, and hardly seen.
PRIME = re.compile(r"<msup>(<mi>[^<]*</mi>)<mi>&#x02032;</mi></msup>")
#: A plus or a minus at the beginning of a formula.
SIGN_FIRST = re.compile(r"^(<math[^>]*><mrow>)<mo>(?=&#x0002B;|&#x02212;)")
#: A command, an escaped character, or a character with the spaces before it.
TOKEN = re.compile(r"\s*(?:\\[A-Za-z]+|\\.|.)", re.DOTALL)
OPENING = {"{", "(", "[", "<", r"\{", r"\langle", r"\lVert", r"\left"}
CLOSING = {"}", ")", "]", ">", r"\}", r"\rangle", r"\rVert", r"\right"}
BARS = {"|", r"\|"}
#: Lines break after a separator where that suffices, else before a relation, a sign or a text.
SEPARATORS = {",", ";", r"\quad", r"\qquad"}
RELATIONS = {"=", "≤", "≥", r"\le", r"\ge", r"\leftarrow"}
SIGNS = {"+", "-", r"\sum", r"\text"}
SPACES = {r"\;", r"\,", r"\ ", r"\quad", r"\qquad"}


def mathml(text: str, display: str) -> str:
    """Return a formula as browsers draw it."""
    beside = r'<mrow>\1<mo lspace="0" rspace="0">&#x02032;</mo></mrow>'
    return PRIME.sub(beside, convert(text, display=display))


def pieces(text: str) -> list[list[str]]:
    """Cut a formula after separators, and each part before relations and signs."""
    parts, depth, bar, before = [[""]], 0, "", ""
    for match in TOKEN.finditer(text.strip()):
        token = match[0].strip()
        if depth == 0 and not bar and before not in {"", "^", "_"}:
            if before in SEPARATORS and token not in SEPARATORS | SPACES:
                parts.append([""])
            elif token in RELATIONS or (
                token in SIGNS and before not in RELATIONS | SEPARATORS | SIGNS
            ):
                parts[-1].append("")
        parts[-1][-1] += match[0]
        depth += (token in OPENING) - (token in CLOSING)
        if token in BARS and bar in {"", token} and before not in {r"\left", r"\right"}:
            bar = "" if bar else token
        if token not in SPACES - SEPARATORS:
            before = token
    return parts


def broken(text: str) -> str:
    """Return a formula on one line, or on several where the page is narrow.

    Browsers do not break formulas, so each piece is one.
    """
    drawn = [[_piece(x) for x in part] for part in pieces(text)]
    return "<wbr>".join(f"<span>{'<wbr>'.join(part)}</span>" for part in drawn)


def _piece(text: str) -> str:
    found = mathml(text, "block").replace('display="block"', 'displaystyle="true"', 1)
    # A sign at the beginning of a piece is not that of a number.
    return SIGN_FIRST.sub(r'\1<mo form="infix">', found)


def inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula that stands in a line."""
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def display(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula that stands by itself; one with alignments is a grid of two columns."""
    text = re.sub(r"\\(begin|end)\{(aligned|split)\}", "", node.astext()).strip()
    if "&" not in text and r"\\" not in text:
        self.body.append(f'<div class="formula">{broken(text)}</div>\n')
        raise nodes.SkipNode
    rows = [row.partition("&") for row in text.split(r"\\") if row.strip()]
    cells = [f"<div>{broken(x) if x.strip() else ''}</div>" for a, _, b in rows for x in (a, b)]
    self.body.append(f'<div class="formula aligned">{"".join(cells)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer that ``html_math_renderer`` names."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
