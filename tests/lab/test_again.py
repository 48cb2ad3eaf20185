"""Stored lines are solved again, compared and replaced."""

import json

import pytest

from epsilot_lab.paper.ablation import AblationTask
from epsilot_lab.paper.image_tasks import ImageTask
from epsilot_lab.paper.method_map import MapTask
from epsilot_lab.studies.again import EXPERIMENTS, OldLine, differing, main, sample
from epsilot_lab.studies.methods import STUDIES

IMAGES = [
    ImageTask("synthetic", 3, seed, method, "paper", 0.5)
    for seed in (0, 1)
    for method in ("sinkhorn", "stochastic_sinkhorn")
]


@pytest.fixture
def results(tmp_path):
    """Four lines; one of older code, whose count was another."""
    lines = [task.line() for task in IMAGES]
    lines[2]["versions"] = lines[2]["versions"] | {"numerics": "older"}
    lines[2]["operations"] += 1
    (tmp_path / "fig1").mkdir()
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "fig1" / "solves.jsonl").write_text(text, encoding="utf-8")
    return tmp_path


def stored(results):
    text = (results / "fig1" / "solves.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_a_sample_is_compared_and_nothing_is_written(results, capsys):
    before = stored(results)
    main([str(results), "fig1", "--sample", "4"])
    printed = capsys.readouterr().out
    assert "| fig1 | 4 | 4 | 3 |" in printed
    assert f"operations {before[2]['operations']} -> {before[2]['operations'] - 1}" in printed
    assert stored(results) == before


def test_lines_of_older_code_are_replaced_once(results, capsys):
    before = stored(results)
    main([str(results), "fig1", "--replace"])
    assert "| fig1 | 4 | 1 | 0 |" in capsys.readouterr().out
    after = stored(results)
    assert [line["operations"] for line in after] == [
        line["operations"] - (k == 2) for k, line in enumerate(before)
    ]
    assert after[2]["versions"] == before[0]["versions"]
    main([str(results), "fig1", "--replace"])
    assert "| fig1 | 4 | 0 | 0 |" in capsys.readouterr().out


def test_an_interrupted_replacement_keeps_the_later_line(results):
    """A run appends; the file is written anew when it ends."""
    new = IMAGES[2].line()
    with (results / "fig1" / "solves.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(new) + "\n")
    main([str(results), "fig1", "--replace"])
    assert stored(results)[2] == new
    assert len(stored(results)) == 4


def test_a_line_makes_its_own_task():
    study = next(task for table in STUDIES["section6"] for task in table.tasks())
    tasks = {
        "fig1": IMAGES[0],
        "map": MapTask("random", 16, 0.2, 3, "sinkhorn"),
        "ablation": AblationTask("norm l2", 3, 0.5, 2),
        "section6": study,
    }
    for folder, task in tasks.items():
        assert EXPERIMENTS[folder][1](task.identity | {"is_timed": False}) == task


def test_a_sample_has_every_method():
    lines = [OldLine("fig1", {"method": name, "stop": "paper"}) for name in "aaaaaaab"]
    assert {x.line["method"] for x in sample(lines, 2, 0)} == {"a", "b"}
    assert differing({"loops": None, "n_iter": 2}, {"loops": 3, "n_iter": 2}) == []
