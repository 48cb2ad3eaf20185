"""``epsilot methods``: the table of methods."""

from __future__ import annotations

import dataclasses

from . import options as opt


def methods(json: opt.Json = False) -> None:
    """List the methods: what they are, what is proved of them, and what was measured."""
    import epsilot

    from . import report

    entries = epsilot.methods()
    if json:
        report.print_json({"methods": [dataclasses.asdict(entry) for entry in entries]})
        return
    report.print_table(
        ("name", "family", "paper", "complexity", "entropic", "measured", "exactness", "options"),
        [
            (
                entry.name,
                entry.family,
                entry.paper,
                entry.complexity,
                "yes" if entry.solves_entropic else "no",
                entry.measured,
                entry.exactness,
                ", ".join(entry.options),
            )
            for entry in entries
        ],
    )
