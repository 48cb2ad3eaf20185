"""Reproduce the paper's figures and tables, one module each."""

from __future__ import annotations

#: name -> module:function; each function is ``run(out, quick, seeds, jobs, console)`` and
#: returns the page it wrote.
EXPERIMENTS: dict[str, str] = {
    "fig1": "fig1:run",
    "table1": "table1:run",
    "table2": "table2:run",
    "two-moons": "two_moons:run",
    "color-transfer": "color_transfer:run",
    "ablation": "ablation:run",
    "expectations": "expectations:run",
    "section6": "further:section6",
    "barycenters": "further:barycenters",
    "map": "method_map:run",
}
#: Experiments that ``all`` leaves out: the whole map takes days.
ALONE = frozenset({"map"})
