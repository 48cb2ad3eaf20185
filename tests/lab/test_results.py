"""The lines under docs/results were written once; they stay readable, and count as solved."""

import json
import shutil
from pathlib import Path

import pytest

from epsilot_lab.paper import color_transfer, fig1, image_tasks, table1, table2, two_moons
from epsilot_lab.peers import images, selection
from epsilot_lab.peers.selection import FULL, SelectionOverrides, selected
from epsilot_lab.store import Store
from epsilot_lab.studies import methods

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def fig1_tasks():
    panels = fig1.chosen_panels(("synthetic", "mnist"), ())
    return fig1.tasks_of(fig1.FULL, panels, 5)


def table1_tasks():
    """Yield the tasks of the methods that the published run knew."""
    lines = (RESULTS / "table1" / "solves.jsonl").read_text(encoding="utf-8").splitlines()
    for name in sorted({json.loads(line)["method"] for line in lines}):
        for stop in ("paper", "certificate"):
            chosen = "synthetic", name, stop, table1.AXES, 5
            yield from table1.tasks_of(table1.FULL, *chosen)


def moons_tabulated():
    return table2.tasks_of(10, table2.GOALS, two_moons.VALIDATION)


def contest():
    return selected(FULL, SelectionOverrides(solvers=("epsilot", "emd2"))).tasks()


def section6_tasks():
    return [task for table in methods.STUDIES["section6"] for task in table.tasks()]


#: folder -> (fields that identify a line, tasks, the least share of them that is solved there)
FOLDERS = {
    "fig1": (image_tasks.KEY, fig1_tasks, 0.9),
    "table1": (image_tasks.KEY, table1_tasks, 0.9),
    "table2": (two_moons.KEY, moons_tabulated, 1.0),
    "two-moons": (two_moons.KEY, two_moons.figure_tasks, 1.0),
    "color-transfer": (
        color_transfer.KEY,
        lambda: [color_transfer.TransferTask(method) for method in color_transfer.METHODS],
        1.0,
    ),
    "bench": (selection.KEY, contest, 0.9),
    "bench-emd2": (selection.KEY, contest, 1.0),
    "section6": (methods.KEY, section6_tasks, 1.0),
    "images": (images.KEY, lambda: images.tasks_of(images.QUICK, (32, 64, 128, 256), None), 1.0),
}


@pytest.mark.parametrize("folder", FOLDERS)
def test_published_lines_are_read_and_count_as_solved(folder, tmp_path):
    fields, tasks, least = FOLDERS[folder]
    path = tmp_path / "solves.jsonl"
    shutil.copy(RESULTS / folder / "solves.jsonl", path)
    store = Store(path, fields)
    assert len(store) == path.read_bytes().count(b"\n")
    wanted = list(tasks())
    assert sum(task in store for task in wanted) >= least * len(wanted)


def test_the_readme_has_the_tally_of_the_results():
    tally = (RESULTS / "claims.md").read_text(encoding="utf-8").splitlines()[2]
    readme = " ".join((RESULTS.parents[1] / "README.md").read_text(encoding="utf-8").split())
    assert tally.partition(" hold in every test")[0] in readme


def test_our_setting_is_the_one_that_validation_chose():
    path = RESULTS / "table2" / "solves.jsonl"
    lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    found = table2.chosen(lines)
    assert found is None or found[:2] == two_moons.CHOSEN
