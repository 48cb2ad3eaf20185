"""Formulas as MathML, which browsers draw themselves: no script, no font, no network."""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

#: A prime is high by itself; as an exponent it would be high twice, and hardly seen.
PRIME = re.compile(r"<msup>(<mi>[^<]*</mi>)<mi>&#x02032;</mi></msup>")


def mathml(text: str, display: str) -> str:
    """Return a formula as browsers draw it."""
    beside = r'<mrow>\1<mo lspace="0" rspace="0">&#x02032;</mo></mrow>'
    return PRIME.sub(beside, convert(text, display=display))


def inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula that stands in a line."""
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def display(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula that stands by itself; one with alignments is a table."""
    # What everybody calls aligned the converter knows as split.
    text = node.astext().strip().replace("{aligned}", "{split}")
    if r"\begin" not in text and ("&" in text or r"\\" in text):
        text = rf"\begin{{split}}{text}\end{{split}}"
    self.body.append(f'<div class="formula">{mathml(text, "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer that ``html_math_renderer`` names."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
