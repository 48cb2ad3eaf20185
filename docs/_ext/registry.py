"""The table of methods, from the registry: ``{methods}`` in a Markdown page."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import epsilot

HEAD = "| method | family | papers | proved | answer | costs | measured |\n" + "|---" * 7 + "|"


class Methods(SphinxDirective):
    """Every registered method with what its record says of it."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        rows = [
            f"| [`{x.name}`]({x.name}.md) | {x.family} | {x.paper} | {x.complexity} "
            f"| {x.exactness} | {x.costs} | {x.measured} |"
            for x in epsilot.methods()
        ]
        return self.parse_text_to_nodes("\n".join([HEAD, *rows]))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("methods", Methods)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
