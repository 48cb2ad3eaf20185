import csv
import json

import pytest
from rich.console import Console

import epsilot
from epsilot.errors import InvalidProblem
from epsilot.studies.paper import table1
from epsilot.studies.paper.table1_tasks import FULL, QUICK, Scale, tasks_of

TOY = Scale(
    sides=(2, 3),
    n_sides=2,
    base_sides=(2,),
    accuracies={"paper": (0.8, 0.5), "certificate": (0.4, 0.2)},
    base_accuracies={"paper": (0.8,), "certificate": (0.4,)},
    n_accuracies=2,
    seeds=1,
    budget=1e12,
)
CONSOLE = Console(stderr=True, force_terminal=False)
NAMES = [method.name for method in epsilot.methods() if method.costs == "any"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("table1")
    table1.run(out, True, None, 1, CONSOLE, scale=TOY)
    return out


def test_every_method_has_a_row_for_each_stop(folder):
    with (folder / "table1.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["method"], row["stop"]) for row in rows] == [
        (name, stop) for name in NAMES for stop in ("paper", "certificate")
    ]
    for row in rows:
        ended, _, planned = row["solves ended"].partition(" of ")
        assert ended == planned, row
        assert row["exponent of n"][0] in "-0123456789", row
        assert row["published"]
    assert all((folder / name).exists() for name in ("table1.md", "table1.svg", "table1.png"))
    summary = (folder / "summary.md").read_text()
    assert "pdasmd: at most (n)^2" in summary
    assert "epsilot reproduce table1 --quick" in summary


def test_drawing_reads_lines_and_never_solves(folder, monkeypatch):
    before = (folder / "table1.csv").read_text()
    monkeypatch.delattr("epsilot.studies.paper.image_tasks.solve")
    table1.run(folder, True, None, 1, CONSOLE, scale=TOY)
    assert (folder / "table1.csv").read_text() == before


def test_uncounted_methods_are_measured_in_seconds(folder):
    lines = [json.loads(text) for text in (folder / "solves.jsonl").read_text().splitlines()]
    rows = {(row.method, row.stop): row for row in table1.rows_of(lines, ("synthetic",))}
    assert not rows["exact", "paper"].is_counted
    assert rows["sinkhorn", "paper"].is_counted
    assert "(time)" in (folder / "table1.md").read_text()


@pytest.mark.parametrize("scale", [QUICK, FULL], ids=["quick", "full"])
@pytest.mark.parametrize("stop", ["paper", "certificate"])
@pytest.mark.parametrize("method", NAMES)
def test_every_method_can_afford_a_fit(method, stop, scale):
    tasks = list(tasks_of(scale, "synthetic", method, stop, ("n", "eps"), 1))
    sizes = {}
    for task in tasks:
        sizes.setdefault(task.eps, set()).add(task.side)
    assert max(map(len, sizes.values())) >= 3
    accuracies = {}
    for task in tasks:
        accuracies.setdefault(task.side, set()).add(task.eps)
    assert max(map(len, accuracies.values())) >= 3
    assert all(task.seconds <= scale.budget for task in tasks)


def fake(n, eps, work):
    return {
        "data": "synthetic",
        "stop": "paper",
        "method": "pdasmd",
        "n": n,
        "eps": eps,
        "operations": work,
        "certificate_operations": 0,
        "has_ended": True,
        "seconds": 1.0,
    }


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (2.0, 1.0, ["holds", "holds"]),
        (2.4, 1.0, ["does not hold", "holds"]),
        (1.5, 1.4, ["holds", "does not hold"]),
    ],
)
def test_exponents_are_fitted_and_judged(a, b, expected):
    points = [(n, 0.1) for n in (16, 36, 64, 100)] + [(36, eps) for eps in (0.4, 0.2, 0.05)]
    lines = [fake(n, eps, 1e3 * n**a * eps**-b) for n, eps in points]
    (row,) = table1.rows_of(lines, ("synthetic",))
    assert (row.base_eps, row.base_n) == (0.1, 36)
    assert (row.n.fit.slope, row.eps.fit.slope) == pytest.approx((a, b))
    assert [claim.verdict for claim in table1.claims([row])] == expected


def test_an_unknown_axis_is_refused(tmp_path):
    with pytest.raises(InvalidProblem, match="panel is 'm'; it must be n or eps"):
        table1.run(tmp_path, True, None, 1, CONSOLE, panel=("m",))
