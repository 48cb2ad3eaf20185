"""``epsilot methods``: the table of methods."""

from __future__ import annotations

import dataclasses

from . import options as opt


def methods(json: opt.Json = False) -> None:
    """List the methods: name, family, paper, complexity, exactness."""
    import epsilot

    from . import report

    entries = epsilot.methods()
    if json:
        report.print_json({"methods": [dataclasses.asdict(entry) for entry in entries]})
        return
    report.print_table(
        ("name", "family", "paper", "complexity", "exactness", "options"),
        [
            (
                entry.name,
                entry.family,
                entry.paper,
                entry.complexity,
                entry.exactness,
                ", ".join(entry.options),
            )
            for entry in entries
        ],
    )
