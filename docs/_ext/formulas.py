"""Formulas as MathML, which browsers draw themselves: no script, no font, no network."""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula that stands in a line."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def display(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula that stands by itself; one with alignments is a table."""
    # What everybody calls aligned the converter knows as split.
    text = node.astext().strip().replace("{aligned}", "{split}")
    if r"\begin" not in text and ("&" in text or r"\\" in text):
        text = rf"\begin{{split}}{text}\end{{split}}"
    drawn = convert(text, display="block")
    self.body.append(f'<div class="formula">{drawn}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer that ``html_math_renderer`` names."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
