import json
import os
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

import epsilot
from epsilot.engine.interrupts import graceful_interrupts
from epsilot.errors import InvalidProblem
from epsilot_lab.paper.image_tasks import KEY, ImageTask
from epsilot_lab.runner import in_processes, run_tasks
from epsilot_lab.store import Store

CONSOLE = Console(stderr=True, force_terminal=False)
TASKS = [
    ImageTask("synthetic", side, seed, method, stop, 0.2, cost=1e6 * side)
    for side in (2, 3)
    for seed in (0, 1)
    for method in ("sinkhorn", "stochastic_sinkhorn")
    for stop in ("paper", "certificate")
]
TIMED = [ImageTask("mnist", 3, 0, "pdasmd", "paper", 0.5, (("batch_size", 2),), True, 1e6)]


def without_times(path):
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    for line in lines:
        del line["seconds"]
    return lines


def identity_of(line):
    return {name: line[name] for name in KEY}


def solved(path, tasks, jobs=1):
    run_tasks(tasks, Store(path, KEY), CONSOLE, in_processes(jobs))
    return without_times(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The lines of an uninterrupted run."""
    return solved(tmp_path_factory.mktemp("whole") / "solves.jsonl", TASKS + TIMED)


def test_lines_are_in_the_order_of_the_tasks_and_complete(whole):
    assert [identity_of(line) for line in whole] == [task.identity for task in TASKS + TIMED]
    wanted = {
        "versions",
        "machine",
        "seed",
        "options",
        "method",
        "stop",
        "n",
        "eps",
        "B",
        "operations",
        "exponentials",
        "certificate_operations",
        "n_iter",
        "gap",
        "value",
        "lower_bound",
        "status",
    }
    for line in whole:
        assert wanted <= set(line)
        assert line["n"] == line["side"] ** 2
        assert line["has_ended"]
        assert line["is_certified"]
    assert whole[-1]["B"] == 2


@pytest.mark.parametrize("kept", [0, 1, 7, len(TASKS)])
def test_a_run_cut_short_anywhere_resumes_to_the_same_lines(kept, whole, tmp_path, monkeypatch):
    path = tmp_path / "solves.jsonl"
    solved(path, TASKS[:kept])
    made, line = [], ImageTask.line
    monkeypatch.setattr(ImageTask, "line", lambda self: made.append(self) or line(self))
    assert solved(path, TASKS + TIMED) == whole
    assert len(made) == len(TASKS + TIMED) - kept


def test_a_torn_last_line_is_solved_again(whole, tmp_path):
    path = tmp_path / "solves.jsonl"
    solved(path, TASKS[:3])
    path.write_bytes(path.read_bytes()[:-40])
    assert len(Store(path, KEY)) == 2
    assert path.read_bytes().endswith(b"}\n")
    assert solved(path, TASKS + TIMED) == whole


def test_lines_of_other_runs_are_kept_behind(whole, tmp_path):
    path = tmp_path / "solves.jsonl"
    solved(path, TASKS[:4])
    lines = solved(path, TASKS[2:6])
    assert [identity_of(line) for line in lines[:4]] == [task.identity for task in TASKS[2:6]]
    kept = [identity_of(line) for line in lines[4:]]
    assert sorted(map(str, kept)) == sorted(str(task.identity) for task in TASKS[:2])
    assert Store(path, KEY).lines(TASKS[5:9]) == Store(path, KEY).lines(TASKS[5:6])


def test_a_line_that_is_no_solve_is_refused(tmp_path):
    path = tmp_path / "solves.jsonl"
    path.write_text('{"data": 1}\n')
    with pytest.raises(InvalidProblem, match="line 1 is not a solve"):
        Store(path, KEY)


def test_processes_give_the_same_lines(whole, tmp_path):
    assert solved(tmp_path / "solves.jsonl", TASKS + TIMED, jobs=2) == whole


def test_an_interrupted_solve_is_not_written(tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        """Certify the result although Ctrl-C came on the way."""
        with graceful_interrupts():
            result = epsilot.solve(*arguments, **options)
            signal.raise_signal(signal.SIGINT)
        return result

    monkeypatch.setattr("epsilot_lab.paper.image_tasks.solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        solved(tmp_path / "solves.jsonl", TASKS)
    assert not (tmp_path / "solves.jsonl").exists()


KILLED = """
import sys
from pathlib import Path
from rich.console import Console
from epsilot_lab.runner import in_processes, run_tasks
from epsilot_lab.store import Store
from epsilot_lab.paper.image_tasks import KEY
sys.path.insert(0, {folder!r})
from test_image_tasks import TASKS, TIMED
if __name__ == "__main__":
    store = Store(Path({path!r}), KEY)
    run_tasks(TASKS + TIMED, store, Console(stderr=True), in_processes({jobs}))
"""


@pytest.mark.parametrize(
    ("by", "jobs"), [(signal.SIGKILL, 2), (signal.SIGINT, 1), (signal.SIGINT, 2)]
)
def test_a_killed_run_resumes_to_the_same_lines(by, jobs, whole, tmp_path):
    path, script = tmp_path / "solves.jsonl", tmp_path / "script.py"
    folder = os.path.dirname(__file__)
    script.write_text(KILLED.format(folder=folder, path=str(path), jobs=jobs))
    process = subprocess.Popen([sys.executable, script], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not path.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(by)
    process.wait(60)
    assert path.exists()
    assert solved(path, TASKS + TIMED) == whole
