"""Remove the blank lines at the end of code, which doctests of Markdown pages need."""

from docutils import nodes
from sphinx.application import Sphinx


def trim(app: Sphinx, doctree: nodes.document) -> None:
    """Trim every block of code of one page."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext().rstrip()
        if text != block.astext():
            block[:] = [nodes.Text(text)]
            block.rawsource = text


def setup(app: Sphinx) -> dict[str, bool]:
    """Trim code as soon as a page is read."""
    app.connect("doctree-read", trim)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
