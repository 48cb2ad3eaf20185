"""The table of methods, as users see it."""

from __future__ import annotations

from ..solvers import Method
from ..solvers import methods as registered


class MethodTable(list[Method]):
    """Rows of the table of methods; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        from ..display.notebook import table_card

        columns = "method", "family", "paper", "proved", "answer", "costs"
        rows = [(x.name, x.family, x.paper, x.complexity, x.exactness, x.costs) for x in self]
        return table_card(f"{len(self)} methods", columns, rows)


def methods() -> MethodTable:
    """Return the table of methods: name, family, paper, complexity, exactness, options.

    Examples
    --------
    >>> import epsilot
    >>> [m.name for m in epsilot.methods()][:1]
    ['sinkhorn']
    """
    return MethodTable(registered())
