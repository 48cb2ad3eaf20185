import json

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from epsilot.studies.lab.runner import in_processes, run_tasks
from epsilot.studies.lab.store import Store
from epsilot.studies.paper import table2, two_moons
from epsilot.studies.paper.moons import KEY, MoonTask, rotated, sample


@pytest.fixture
def console():
    return Console(stderr=True)


def solved(path, tasks, jobs, console):
    return run_tasks(tasks, Store(path, KEY), console, in_processes(jobs))


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_samples_are_what_the_paper_says():
    data = sample(30, seed=0)
    assert len(data.Xs) == len(data.Xt) == 300
    assert np.bincount(data.ys).tolist() == [150, 150]
    assert len(data.X_test) == 2000
    back = rotated(data.Xt, -30)
    assert not np.allclose(np.sort(back, axis=0), np.sort(data.Xs, axis=0))
    np.testing.assert_allclose(back.mean(axis=0), [0.5, 0.25], atol=0.05)
    np.testing.assert_allclose(rotated(np.array([[1.5, 0.25]]), 90), [[0.5, 1.25]])
    assert not np.array_equal(data.Xs, sample(30, seed=1).Xs)


def test_table2_at_toy_size(tmp_path, console):
    tasks = list(
        table2.tasks_of(2, (table2.MAIN,), (table2.PUBLISHED,), angles=(10, 90), n_moon=15)
    )
    path = tmp_path / "solves.jsonl"
    lines = solved(path, tasks, 1, console)
    assert len(lines) == len(tasks) == 2 * 2 * 4
    assert read(path) == lines
    table2.write(tmp_path, lines, "epsilot reproduce table2")
    text = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "| 10° | 0.022 |" in text
    assert "| 90° | 0.488 |" in text
    assert "the paper's procedure, ε = 0.5" in text
    easy, hard = (table2.select(lines, angle, "sinkhorn", table2.MAIN) for angle in (10, 90))
    assert easy.mean() < hard.mean()
    first, second = (table2.select(lines, 10, m, table2.MAIN) for m in table2.METHODS)
    np.testing.assert_allclose(first, second, atol=0.02)


def test_a_run_continues_where_it_stopped(tmp_path, console, monkeypatch):
    tasks = [MoonTask(10, seed, "none", ("none", 0.0), 5) for seed in range(3)]
    path = tmp_path / "solves.jsonl"
    solved(path, tasks[:2], 1, console)
    before = read(path)
    made = []
    line = MoonTask.line
    monkeypatch.setattr(MoonTask, "line", lambda self: made.append(self.seed) or line(self))
    assert solved(path, tasks, 1, console)[:2] == before
    assert made == [2]


def test_processes_give_the_same_lines(tmp_path, console):
    tasks = [MoonTask(10, seed, "none", ("none", 0.0), 5) for seed in range(4)]
    one, two = (solved(tmp_path / f"{jobs}.jsonl", tasks, jobs, console) for jobs in (1, 2))
    assert one == two


def test_the_standard_the_paper_sets():
    def lines(errors):
        return [
            {"angle": 10, "method": "sinkhorn", "goal": list(table2.MAIN), "errors": {"default": e}}
            for e in errors
        ]

    assert table2.reaches(lines([0.0, 0.0]), 10, "sinkhorn")
    assert not table2.reaches(lines([0.1, 0.11]), 10, "sinkhorn")
    assert not table2.reaches(lines([0.1]), 10, "sinkhorn")


def test_two_moons_at_toy_size(tmp_path, console):
    goals = (("reg", 0.1), ("rtol", 0.05))
    tasks = [MoonTask(angle, 0, "sinkhorn", goal, 20) for goal in goals for angle in (20, 90)]
    figure = two_moons.draw(tasks)
    assert len(figure.axes) == 4
    figure.savefig(tmp_path / "f.png", dpi=40)
    with Image.open(tmp_path / "f.png") as image:
        assert np.asarray(image.convert("L")).std() > 5
