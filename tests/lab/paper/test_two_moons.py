import json
import math

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from epsilot.errors import InvalidProblem
from epsilot_lab.paper import table2, two_moons
from epsilot_lab.paper.two_moons import CHOSEN, KEY, PAPER, PUBLISHED, MoonTask, rotated, sample
from epsilot_lab.runner import ExperimentSetup, in_processes, run_tasks
from epsilot_lab.store import Store


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


GOAL = CHOSEN[0]


def test_table2_at_toy_size(tmp_path, console):
    tasks = list(table2.tasks_of(2, angles=(10, 90), n_moon=15))
    path = tmp_path / "solves.jsonl"
    lines = solved(path, tasks, 1, console)
    assert len(lines) == len(tasks) == 2 * 2 * 5
    assert read(path) == lines
    page = table2.write(tmp_path, lines, "epsilot reproduce table2")
    text = (tmp_path / "summary.md").read_text(encoding="utf-8")
    first = text.partition("## By the paper's procedure")[2].partition("##")[0]
    assert "| 10° | 0.022 |" in first
    assert "| 90° | 0.488 |" in first
    assert "mean absolute difference" in first
    assert "| PDASMD, η = 0.3 |" in text.partition("## Our own setting")[2]
    assert len(page.statements) == 2
    easy, hard = (table2.select(lines, angle, "sinkhorn", GOAL) for angle in (10, 90))
    assert easy.size == hard.size == 2
    assert easy.mean() < hard.mean()
    first, second = (table2.select(lines, 10, m, GOAL) for m in table2.METHODS)
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


def made(errors, method="pdasmd", goal=PUBLISHED, seed=0):
    """Return lines with the given errors at all rotations."""
    return [
        {
            "angle": angle,
            "seed": seed,
            "method": method,
            "goal": list(goal),
            "errors": {"cross-validated": error, "default": 0.5},
        }
        for angle, error in zip(table2.ANGLES, errors, strict=True)
    ]


@pytest.mark.parametrize(
    ("shift", "spread", "expected"),
    [
        (0.0, 0.01, "holds"),
        (0.01, 0.01, "holds"),
        (0.1, 0.01, "does not hold"),
        (-0.1, 0.01, "does not hold"),
        # the same difference, where ten repetitions scatter as much
        (0.1, 0.2, "holds"),
    ],
)
def test_the_column_is_compared_both_ways(shift, spread, expected):
    lines = [
        line
        for seed in range(10)
        for line in made([e + shift + spread * (-1) ** seed for e in PAPER["pdasmd"]], seed=seed)
    ]
    column, better = table2.statements(lines)
    assert column.verdict == expected
    assert f"{abs(shift):.3f} (from" in column.tests[0].measured
    assert better.verdict == "not measured yet"


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ([0.4] * 5, "holds"),
        ([0.2] * 5, "does not hold"),
        # within 0.01 of each other: equivalent
        ([0.3] * 5, "does not hold"),
        ([0.1, 0.2, 0.3, 0.4, 0.5], "undecided"),
    ],
)
def test_methods_are_compared_on_the_same_samples(other, expected):
    lines = [
        line
        for seed, error in enumerate(other)
        for line in made([0.3] * 7, seed=seed) + made([error] * 7, "sinkhorn", seed=seed)
    ]
    _, better = table2.statements(lines)
    assert better.verdict == expected


def test_the_authors_script_tests_two_classifiers():
    def scripted(default, sharp):
        return [
            line | {"errors": dict(zip(two_moons.AUTHORS_KINDS, (d, s), strict=True)), "seed": seed}
            for seed in range(10)
            for line, d, s in zip(
                made([0.0] * 7, "auto", two_moons.SCRIPT_GOAL),
                [e + 0.001 * (-1) ** seed for e in default],
                [e + 0.001 * (-1) ** seed for e in sharp],
                strict=True,
            )
        ]

    lines = scripted(PAPER["pdasmd"], [0.5] * 7)
    column, _ = table2.statements(lines)
    assert [test.verdict for test in column.tests] == ["holds", "does not hold"]
    *rows, mean = table2.script_table(lines).rows
    assert [row[4] for row in rows] == ["default"] * 7
    assert float(mean[-1]) < 0.001


def test_epsilon_and_points_of_the_script_can_be_chosen(tmp_path, console):
    """A page of other settings has these solves alone; they solve the entropic problem."""
    setup = ExperimentSetup(tmp_path, True, 1, 1, console)
    table2.run(setup, eps=(0.05,), sizes=(12,))
    page = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "authors' script, ε = 0.05" in page
    assert "epsilot reproduce table2 --protocol authors --quick --eps 0.05 --sizes 12" in page
    lines = read(tmp_path / "solves.jsonl")
    line = next(x for x in lines if x["goal"] == ["script", 0.05])
    assert line["reg"] == pytest.approx(0.05 / (4 * math.log(24)))
    assert line["is_certified"]
    assert not any(table2._is_of_the_page(x) for x in lines)
    assert table2._is_of_the_page(line | {"goal": ["script", 0.005], "n_moon": 150})
    with pytest.raises(InvalidProblem, match="--eps names 2 values"):
        table2.run(setup, eps=(0.05, 0.1))


def test_the_figure_judges_the_fit_up_to_50_degrees():
    lines = [
        {"angle": angle, "goal": list(goal), "distances": [1.0, after]}
        for goal in (PUBLISHED, CHOSEN[0])
        for angle, after in ((20, 0.1), (50, 0.4), (90, 0.9))
    ]
    (found,) = two_moons.figure_statements(lines)
    assert [test.verdict for test in found.tests] == ["holds", "does not hold"]


def test_two_moons_at_toy_size(tmp_path, console):
    goals = (("reg", 0.1), ("rtol", 0.05))
    tasks = [MoonTask(angle, 0, "sinkhorn", goal, 20) for goal in goals for angle in (20, 90)]
    figure = two_moons.draw(tasks)
    assert len(figure.axes) == 4
    figure.savefig(tmp_path / "f.png", dpi=40)
    with Image.open(tmp_path / "f.png") as image:
        assert np.asarray(image.convert("L")).std() > 5
