"""``epsilot methods``: the table of methods."""

from __future__ import annotations

import dataclasses

from . import options as opt

MEASURED = "operations, n = 144, ε = 0.02"  # benchmarks/methods.py


def methods(json: opt.Json = False) -> None:
    """List the methods: what they are, what is proved of them, and what was measured.

    With --json also their families and options.
    """
    import epsilot

    from ..display import report

    entries = epsilot.methods()
    if json:
        report.print_json({"methods": [dataclasses.asdict(entry) for entry in entries]})
        return
    report.print_table(
        ("year", "name", "paper", "complexity", "entropic", MEASURED),
        [
            (
                str(entry.year),
                entry.name,
                entry.paper,
                entry.complexity,
                "yes" if entry.solves_entropic else "no",
                entry.measured,
            )
            for entry in sorted(entries, key=lambda entry: entry.year)
        ],
    )
