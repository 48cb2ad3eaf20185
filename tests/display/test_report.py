"""What commands print: one JSON object, plain lines in a pipe, panels on a terminal."""

import json
import math

import numpy as np
import pytest

import epsilot
from epsilot.display import report


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (math.inf, None),
        (np.float64("nan"), None),
        (np.int64(3), 3),
        ((1, np.float32(0.5)), [1, 0.5]),
        ({"a": {1: True}}, {"a": {"1": True}}),
        (epsilot.Status.CERTIFIED, str(epsilot.Status.CERTIFIED)),
        (None, None),
    ],
)
def test_json_knows_every_value(value, plain, capsys):
    report.print_json({"x": value})
    assert json.loads(capsys.readouterr().out) == {"x": plain}


def test_a_result_in_words(results):
    lines = report.result_lines(results["sinkhorn"])
    assert lines["problem"] == "36 × 36"
    assert lines["status"] == str(epsilot.Status.CERTIFIED)
    assert "transport cost" not in lines
    assert "uncounted operations" in report.result_lines(results["exact"])["work"]


def test_an_entropic_result_has_its_cost_beside():
    result = epsilot.solve(np.eye(3), reg=0.5)
    assert report.result_lines(result)["transport cost"] == f"{result.value_linear:.10g}"


def test_the_fields_of_a_result_are_its_own(results):
    result = results["exact"]
    fields = report.result_fields(result)
    assert fields["operations"] is None
    for name in ("value", "lower_bound", "gap", "target", "seed", "n_iter"):
        assert fields[name] == getattr(result, name)


@pytest.mark.parametrize(("limit", "text"), [(None, "Certified"), (0, "Stopped before the target")])
def test_the_verdict(limit, text):
    M = np.arange(25.0).reshape(5, 5) % 7
    result = epsilot.solve(M, rtol=1e-3, method="sinkhorn", max_iter=limit, on_limit="ignore")
    assert report.verdict(result) == text


def test_tables_and_lines_in_a_pipe(capsys):
    report.print_lines("Title", {"gap": "1", "value": "2"}, good=True)
    report.print_table(("a", "b"), [("1", "2"), ("3", "4")])
    assert capsys.readouterr().out == "Title\n  gap: 1\n  value: 2\na\tb\n1\t2\n3\t4\n"


def test_tables_and_panels_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    report.print_lines("Title", {"gap": "[1, 2]"}, good=False)
    report.print_table(("a", "b"), [("1", "[2]")])
    out = capsys.readouterr().out
    assert "Title" in out
    assert "[1, 2]" in out
    assert "[2]" in out
