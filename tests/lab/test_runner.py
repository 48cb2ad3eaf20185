import json
import os

import pytest
from rich.console import Console
from serving import Counted

from epsilot_lab.runner import in_processes, run_tasks
from epsilot_lab.store import Store
from epsilot_lab.worker import Died

CONSOLE = Console(stderr=True, force_terminal=False)


def solved(path, tasks, jobs=1):
    return run_tasks(tasks, Store(path, ["number"]), CONSOLE, in_processes(jobs))


def test_shared_tasks_have_a_thread_each_and_timed_ones_run_here(tmp_path, monkeypatch):
    monkeypatch.setenv("EPSILOT_WARM", "0")
    tasks = [Counted(0, is_timed=True), *(Counted(k) for k in range(1, 5))]
    lines = solved(tmp_path / "solves.jsonl", tasks, jobs=2)
    assert [line["number"] for line in lines] == [0, 1, 2, 3, 4]
    assert lines[0]["pid"] == os.getpid()
    for line in lines[1:]:
        assert (line["pid"] != os.getpid(), line["threads"], line["blas"]) == (True, 1, "1")
    assert os.environ["EPSILOT_WARM"] == "1"  # one variant, compiled once and here


def test_the_longest_come_first_and_the_file_is_in_order(tmp_path):
    path = tmp_path / "solves.jsonl"
    written = []
    store = Store(path, ["number"])
    store.append = lambda line: written.append(line["number"]) or Store.append(store, line)
    tasks = [Counted(k, seconds=k) for k in range(4)]
    run_tasks(tasks, store, CONSOLE, in_processes(1))
    assert written == [3, 2, 1, 0]
    numbers = [json.loads(line)["number"] for line in path.read_text().splitlines()]
    assert numbers == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("fault", "error"), [("interrupted", KeyboardInterrupt), ("broken", ValueError), ("died", Died)]
)
def test_what_a_process_raises_is_raised_here_and_the_rest_is_kept(fault, error, tmp_path):
    path = tmp_path / "solves.jsonl"
    tasks = [Counted(0, seconds=2.0), Counted(1, fault=fault, seconds=1.0), Counted(2, seconds=2.0)]
    with pytest.raises(error):
        solved(path, tasks, jobs=2)
    kept = {json.loads(line)["number"] for line in path.read_text().splitlines()}
    assert kept <= {0, 2}
    assert kept
    assert [line["number"] for line in solved(path, [Counted(k) for k in range(3)])] == [0, 1, 2]


def test_what_is_not_worth_solving_has_no_line_but_is_shown_as_done(tmp_path):
    def way(missing):
        for task in missing:
            yield task, task.line() if task.number % 2 else None

    store = Store(tmp_path / "solves.jsonl", ["number"])
    lines = run_tasks([Counted(k) for k in range(4)], store, CONSOLE, way)
    assert [line["number"] for line in lines] == [1, 3]
