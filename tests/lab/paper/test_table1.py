import json
import math

import pytest
from rich.console import Console

import epsilot
from epsilot import theory
from epsilot.errors import InvalidProblem
from epsilot_lab.paper import table1
from epsilot_lab.paper.table1 import FULL, QUICK, Table1Scale, rows_of, statements, tasks_of
from epsilot_lab.runner import ExperimentSetup

TOY = Table1Scale(
    sides=(2, 3),
    n_sides=2,
    base_sides=(2,),
    accuracies={"paper": (0.8, 0.5), "certificate": (0.4, 0.2)},
    base_accuracies={"paper": (0.8,), "certificate": (0.4,)},
    n_accuracies=2,
    seeds=1,
    budget=1e12,
    least=2,
)
CONSOLE = Console(stderr=True, force_terminal=False)
NAMES = [method.name for method in epsilot.methods() if method.costs == "any"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("table1")
    table1.run(ExperimentSetup(out, True, None, 1, CONSOLE), scale=TOY)
    return out


def test_every_method_has_a_row_for_each_stop(folder):
    lines = [json.loads(text) for text in (folder / "solves.jsonl").read_text().splitlines()]
    measured = table1.table(rows_of(lines, ("synthetic",)), lines)
    rows = [dict(zip(measured.columns, row, strict=True)) for row in measured.rows]
    assert [(row["method"], row["stop"]) for row in rows] == [
        (name, stop) for name in NAMES for stop in ("paper", "certificate")
    ]
    for row in rows:
        ended, _, planned = row["solves ended"].partition(" of ")
        assert ended == planned, row
        assert row["exponent of n"][0] in "-0123456789", row
        assert row["published"]
    assert (folder / "table1-bounds.svg").exists()
    summary = (folder / "summary.md").read_text()
    assert "pdasmd: operations within the bound" in summary
    assert "packing_lp: at most (n)^2" in summary
    assert "| box_newton: O(n²/ε) | Table 1 | not tested: 1 | not tested |" in summary
    assert "of 16 claims of the paper hold in every test" in summary
    assert "epsilot reproduce table1 --quick" in summary


def test_drawing_reads_lines_and_never_solves(folder, monkeypatch):
    before = (folder / "summary.md").read_text()
    monkeypatch.delattr("epsilot_lab.paper.image_tasks.solve")
    table1.run(ExperimentSetup(folder, True, None, 1, CONSOLE), scale=TOY)
    assert (folder / "summary.md").read_text() == before


def test_uncounted_methods_are_measured_in_seconds(folder):
    lines = [json.loads(text) for text in (folder / "solves.jsonl").read_text().splitlines()]
    rows = {(row.method, row.stop): row for row in rows_of(lines, ("synthetic",))}
    assert not rows["exact", "paper"].is_counted
    assert rows["sinkhorn", "paper"].is_counted
    assert "(time)" in (folder / "summary.md").read_text()


#: What a quick run cannot fit: three points of ε up to 0.2 take longer.
TOO_LONG = {("packing_lp", "n"), ("packing_lp", "eps"), ("dual_extrapolation", "n")}


@pytest.mark.parametrize("scale", [QUICK, FULL], ids=["quick", "full"])
@pytest.mark.parametrize("stop", ["paper", "certificate"])
@pytest.mark.parametrize("method", NAMES)
def test_every_method_can_afford_a_fit(method, stop, scale):
    for axis in ("n", "eps"):
        tasks = list(tasks_of(scale, "synthetic", method, stop, (axis,), 1))
        points = {(task.side, task.eps) for task in tasks}
        assert len(points) == len(tasks)
        if not points:
            assert scale is QUICK
            assert (method, axis) in TOO_LONG
            continue
        assert len(points) >= 3
        assert len({place[axis == "n"] for place in points}) == 1, "one of the two is fixed"
        assert all(task.seconds <= scale.budget for task in tasks)
        assert all(task.eps <= 0.2 for task in tasks)


def fake(n, eps, work, method="apdrcd"):
    return {
        "data": "synthetic",
        "side": math.isqrt(n),
        "seed": 0,
        "stop": "paper",
        "method": method,
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
        (2.5, 1.0, ["holds", "holds"]),
        (2.9, 1.0, ["does not hold", "holds"]),
        (1.5, 1.4, ["holds", "does not hold"]),
    ],
)
def test_exponents_are_fitted_without_logarithms_and_judged(a, b, expected):
    points = [(n, 0.1) for n in (16, 36, 64, 100)] + [(36, eps) for eps in (0.2, 0.05, 0.02)]
    lines = [fake(n, eps, 1e3 * n**a * eps**-b * math.sqrt(math.log(n))) for n, eps in points]
    (row,) = rows_of(lines, ("synthetic",))
    assert (row.base_eps, row.base_n) == (0.1, 36)
    assert (row.without_logs.slope, row.eps.fit.slope) == pytest.approx((a, b))
    assert row.n.fit.slope == pytest.approx(a + 0.13, abs=0.02)
    found = {statement.text: statement for statement in statements([row])}
    own = found.pop("apdrcd: O(n^2.5/ε)")
    del found["some methods with a proof for n^2.5/ε show n²/ε in practice"]
    assert own.where == "Table 1"
    assert [test.verdict for test in own.tests] == expected
    assert {statement.verdict for statement in found.values()} == {"not measured yet"}


@pytest.mark.parametrize(("share", "expected"), [(0.5, "holds"), (1.5, "does not hold")])
def test_every_solve_is_compared_with_its_bound(share, expected):
    """An exponent cannot refute a bound, and a slow solve at one n does."""
    lines = [
        fake(n, eps, float(n) ** 3, "dijkstra_dfs") | {"n_iter": 1}
        for n in (16, 36, 64)
        for eps in (0.2, 0.1)
    ]
    lines[-1]["n_iter"] = round(share * theory.dijkstra_phases(0.1, 1.0))
    (row,) = rows_of(lines, ("synthetic",))
    (own,) = [s for s in statements([row]) if s.text.startswith("dijkstra_dfs")]
    assert own.verdict == expected
    most = lines[-1]["n_iter"] / theory.dijkstra_phases(0.1, 1.0)
    assert f"at most {most:.2g}" in own.tests[0].measured


def test_logarithms_of_eps_are_divided_out_where_the_bound_has_them():
    points = [(25, eps) for eps in (0.2, 0.1, 0.05)]
    lines = [fake(n, e, math.log(1 / e) / e, "packing_lp") for n, e in points]
    (row,) = rows_of(lines, ("synthetic",))
    assert row.eps_without_logs.slope == pytest.approx(1.0)
    assert row.eps.fit.slope > 1.3


@pytest.mark.parametrize(("a", "expected"), [(2.0, "holds"), (2.5, "does not hold")])
def test_some_methods_may_do_better_than_their_proofs(a, expected):
    lines = [fake(n, 0.1, n**a * math.sqrt(math.log(n))) for n in (16, 36, 64, 100)]
    *_, found = statements(rows_of(lines, ("synthetic",)))
    assert (found.where, found.verdict) == ("Section 6", expected)


def test_an_unknown_axis_is_refused(tmp_path):
    with pytest.raises(InvalidProblem, match="panel is 'm'; it must be n or eps"):
        table1.run(ExperimentSetup(tmp_path, True, None, 1, CONSOLE), panel=("m",))
