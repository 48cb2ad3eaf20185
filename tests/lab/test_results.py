"""The lines under docs/results were written once; they stay readable, and count as solved."""

import json
import math
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from epsilot_lab.instances import images
from epsilot_lab.judging import count, short_count
from epsilot_lab.paper import color_transfer, fig1, image_tasks, table1, table2, two_moons
from epsilot_lab.paper.claims import judged
from epsilot_lab.peers import images as image_bench
from epsilot_lab.peers import selection
from epsilot_lab.peers.selection import FULL, SelectionOverrides, selected
from epsilot_lab.store import Store, read_lines
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
    return table2.tasks_of(10)


def contest(**overrides):
    chosen = SelectionOverrides(solvers=("epsilot", "emd2"), **overrides)
    return selected(FULL, chosen).tasks()


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
    "bench": (selection.KEY, partial(contest, sizes=(256, 1024), n_seeds=1), 1.0),
    "bench-emd2": (selection.KEY, contest, 1.0),
    "section6": (methods.KEY, section6_tasks, 1.0),
    "images": (
        image_bench.KEY,
        lambda: image_bench.tasks_of(image_bench.QUICK, (32, 64, 128), None),
        1.0,
    ),
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


@pytest.fixture(scope="module")
def claims():
    """The claims of the paper, judged anew from the stored lines."""
    return {claim.text: claim for claim in judged(RESULTS)}


def test_the_readme_and_the_table_of_claims_follow_from_the_lines(claims):
    found = list(claims.values())
    table = (RESULTS / "claims.md").read_text(encoding="utf-8")
    assert count(found) in table
    for claim in found:
        assert f"| {claim.text} | {claim.where} |" in table, claim.text
    for page in (RESULTS.parents[1] / "README.md", RESULTS.parent / "paper.md"):
        assert short_count(found) in " ".join(page.read_text(encoding="utf-8").split()), page


def test_the_page_of_the_paper_has_every_claim_with_its_verdict(claims):
    page = (RESULTS.parent / "paper.md").read_text(encoding="utf-8").splitlines()
    for claim in claims.values():
        own = [line for line in page if line.startswith(f"| {claim.text} | {claim.where} |")]
        assert [line.rstrip("| ").rpartition("| ")[2] for line in own] == [claim.verdict], (
            claim.text
        )


def test_the_page_of_the_paper_has_table_2_of_the_lines():
    """Means of the authors' script to three digits, with their intervals."""
    page = (RESULTS.parent / "paper.md").read_text(encoding="utf-8").replace("**", "")
    lines = read_lines(RESULTS / "table2" / "solves.jsonl")
    for row in table2.script_table(lines).rows[:-1]:
        assert f"| {' | '.join(row[:4])} |" in page, row


def own_lines(method, stop="paper", folder="fig1", **fields):
    lines = read_lines(RESULTS / folder / "solves.jsonl")
    wanted = {"method": method, "stop": stop, "data": "synthetic", **fields}
    return [line for line in lines if all(line[name] == value for name, value in wanted.items())]


def test_the_verdict_on_the_norm_recomputed(claims):
    """PDASGD and PDASMD with 1/η: the mean of log ratios of outer loops is 0 within 1 %."""
    loops = [
        {
            (x["side"], x["seed"]): x["n_iter"]
            for x in own_lines(method, given=given, is_timed=False)
        }
        for method, given in (("pdasmd", {"smoothness": "sharp"}), ("pdasgd", {}))
    ]
    ratios = np.log([loops[0][key] / loops[1][key] for key in loops[1]])
    assert len(ratios) == 55
    assert abs(ratios.mean()) < 0.01
    assert np.abs(ratios).max() < 0.02
    assert claims[fig1.HEADLINE].verdict == "does not hold"


def test_the_verdict_on_sinkhorns_bound_recomputed(claims):
    """Theorem 1 of Dvurechensky et al.: 2 + 4 (‖C‖/η - log min(p', q')) / (ε'/2) half-steps."""
    lines = own_lines("sinkhorn", folder="table1")
    shares = []
    for line in lines:
        eps, n = line["eps"], line["n"]
        _, a, b = images(line["side"], line["seed"])
        least = (1 - eps / 64) * min(a.min(), b.min()) + eps / (64 * n)
        radius = 4 * math.log(n) / eps - math.log(least)
        shares.append(line["n_iter"] / (2 + 4 * radius / (eps / 16)))
    claim = claims["sinkhorn: O(n²/ε²)"]
    assert max(shares) < 0.011
    assert f"at most {max(shares):.2g} " in claim.tests[0].measured
    assert claim.verdict == "holds"


def test_the_verdict_on_sinkhorn_beyond_50_degrees_recomputed(claims):
    """The interval of the paired differences in error lies within 0.01 of 0."""
    lines = read_lines(RESULTS / "table2" / "solves.jsonl")
    errors = {
        (x["method"], x["angle"], x["seed"]): x["errors"]["cross-validated"]
        for x in lines
        if x["goal"][0] == "published" and x["angle"] > 50
    }
    differences = [e - errors["sinkhorn", *k[1:]] for k, e in errors.items() if k[0] == "pdasmd"]
    reach = 2.1 * np.std(differences, ddof=1) / math.sqrt(len(differences))
    assert len(differences) == 20
    assert abs(np.mean(differences)) + reach < 0.01
    assert claims["PDASMD has a lower error than Sinkhorn beyond 50°"].verdict == "does not hold"
