"""Reproduce the paper's figures and tables, one module each."""

from __future__ import annotations

#: name -> module:function; each function takes a ``runner.ExperimentSetup`` and its own
#: choices, and returns the page it wrote.
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
#: Experiments without repetitions, and what they have in their place.
WITHOUT_PAIRS = {
    "two-moons": "one sample is drawn",
    "color-transfer": "there is one pair of photographs",
    "barycenters": "the study has one set of images",
}
#: (experiment, option) -> why it has no such choice.
NO_CHOICE = {
    ("table2", "batches"): "the plan of an η is unique, whatever the batches that find it",
    ("two-moons", "batches"): "the plan of an η is unique, whatever the batches that find it",
    ("table1", "batches"): "every method runs with its own default",
    ("table1", "sizes"): "sizes follow from the time that a method needs",
    ("table1", "eps"): "accuracies follow from the time that a method needs",
}
