"""The benchmark beside peers at toy size: lines, limits, restarts and audits."""

import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import epsilot
from epsilot_lab.instances import FAMILIES
from epsilot_lab.peers import benchmark
from epsilot_lab.peers.benchmark import SolverProcess, audit, run_bench, run_selection
from epsilot_lab.peers.selection import KEY, QUICK
from epsilot_lab.peers.solvers import SOLVERS, BenchmarkSolver, PeerAnswer, Tuning
from epsilot_lab.peers.summary import Cells
from epsilot_lab.store import Store

CONSOLE = Console(stderr=True, force_terminal=False, quiet=True)
TOY = replace(
    QUICK,
    families=("images", "random"),
    sizes=(16, 36),
    rtols=(0.1, 1e-6),
    n_seeds=2,
    solvers=("epsilot", "emd2", "sinkhorn"),
    tuning=Tuning((0.1,), (0.3,)),
    least_limit=20.0,
    time_limit=60.0,
    most_repeats=2,
)


def read(folder):
    return [json.loads(text) for text in (folder / "solves.jsonl").read_text().splitlines()]


def identity_of(line):
    return {name: line[name] for name in KEY}


def store(folder):
    return Store(folder / "solves.jsonl", KEY)


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    run_bench(folder, TOY, "epsilot bench --toy", CONSOLE)
    return folder


def test_every_solve_of_ours_is_certified_and_right(toy):
    ours = [line for line in read(toy) if line["solver"] == "epsilot"]
    assert len(ours) == 2 * 2 * 2 * 2 * 2  # families, sizes, seeds, accuracies, repetitions
    for line in ours:
        M, a, b = FAMILIES[line["family"]].build(line["size"], line["seed"])
        exact = epsilot.exact(M, a, b).value
        assert line["status"] == "done"
        assert -1e-12 <= line["error"] <= line["gap"] + 1e-12 <= line["rtol"] + 1e-9
        assert line["value"] == pytest.approx(exact, rel=line["rtol"])
        assert line["lower"] <= exact * (1 + 1e-9)


def test_the_reference_is_exact_by_its_own_duals(toy):
    found = [line for line in read(toy) if line["solver"] == "emd2"]
    assert found
    assert all(line["error"] == 0 and abs(line["gap"]) < 1e-9 for line in found)


def test_sinkhorn_is_tuned_and_judged_by_its_rounded_plan(toy):
    found = [line for line in read(toy) if line["solver"] == "sinkhorn"]
    assert {(line["reg"], line["tol"]) for line in found} == {(0.1, 0.3)}
    assert all(line["error"] > 0 and line["marginal_error"] > 1e-6 for line in found)
    cells = Cells(read(toy))
    assert not cells.cell("images", 16, 0.1, "sinkhorn").failure
    assert not cells.cell("images", 16, 0.1, "sinkhorn").is_feasible
    assert cells.cell("images", 16, 1e-6, "sinkhorn").failure.startswith("inaccurate")


def test_the_folder_holds_lines_tables_and_the_figure(toy):
    assert {path.name for path in toy.iterdir()} == {
        "solves.jsonl",
        "environment.json",
        "summary.md",
        "report.html",
        "times.csv",
        "times.svg",
        "times.png",
    }
    text = (toy / "summary.md").read_text()
    for words in (
        "epsilot bench --toy",
        "Where we lose",
        "## Time to 10 %",
        "Peak memory",
        "32 of 32 solves of ours are certified",
        "tuned in hindsight",
    ):
        assert words in text
    rows = (toy / "times.csv").read_text().splitlines()
    assert len(rows) == 1 + 2 * 2 * 2 * 3
    assert "epsilot" in json.loads((toy / "environment.json").read_text())["versions"]


def test_an_interrupted_run_continues(toy, tmp_path, monkeypatch):
    lines = (toy / "solves.jsonl").read_text().splitlines(keepends=True)
    kept = len(lines) // 2
    (tmp_path / "solves.jsonl").write_text("".join(lines[:kept]) + lines[kept][:20])
    solved = []
    run = SolverProcess.run

    def counted(self, job, limit):
        solved.append(job)
        return run(self, job, limit)

    monkeypatch.setattr(SolverProcess, "run", counted)
    found = run_selection(TOY, store(tmp_path), CONSOLE)
    n_references = sum(job.is_reference for job in solved)
    assert len(lines) - kept <= len(solved) <= len(lines) - kept + 1  # the duals once more
    assert n_references >= 1
    assert [identity_of(line) for line in found] == [identity_of(line) for line in read(toy)]
    assert [line["value"] for line in found] == pytest.approx(
        [line["value"] for line in read(toy)], rel=1e-4
    )


def test_a_finished_run_solves_nothing(toy, monkeypatch):
    monkeypatch.setattr(SolverProcess, "run", lambda *_: pytest.fail("solved again"))
    assert len(run_selection(TOY, store(toy), CONSOLE)) == len(read(toy))


def test_ctrl_c_keeps_what_is_solved(tmp_path, monkeypatch):
    add = benchmark._SolvedLines.add

    def interrupt(self, line):
        add(self, line)
        if line["solver"] == "epsilot":
            raise KeyboardInterrupt

    monkeypatch.setattr(benchmark._SolvedLines, "add", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_selection(TOY, store(tmp_path), CONSOLE)
    assert [line["solver"] for line in read(tmp_path)] == ["emd2", "epsilot"]


@pytest.mark.parametrize(
    ("function", "failure"),
    [
        ("wrong", "inaccurate"),
        ("infeasible", "inaccurate"),
        ("not_finite", "failed: InvalidProblem: the plan has the entry nan"),
        ("broken", "failed: FloatingPointError: overflow in exp"),
        ("slow", "timed out at 2 s"),
    ],
)
def test_a_bad_peer_is_caught(function, failure, tmp_path, monkeypatch):
    fake = BenchmarkSolver("fake", "fake", "entropic", f"fakes:{function}", "epsilot", "epsilot")
    monkeypatch.setitem(SOLVERS, "fake", fake)
    limit = 2.0 if function == "slow" else 60.0
    selection = replace(
        TOY,
        families=("images",),
        sizes=(16, 25),
        n_seeds=1,
        most_repeats=1,
        least_limit=limit,
        time_limit=limit,
        rtols=(0.1,),
        solvers=("epsilot", "emd2", "fake"),
        tuning=Tuning((0.1, 0.01), (0.3,)),
    )
    lines = run_selection(selection, store(tmp_path), CONSOLE)
    cells = Cells(lines)
    first, second = (cells.cell("images", size, 0.1, "fake") for size in (16, 25))
    assert first.failure.startswith(failure)
    assert np.isnan(first.ratio)
    fakes = [line for line in lines if line["solver"] == "fake"]
    if "inaccurate" in failure:
        assert len(fakes) == 4
        is_raw_feasible = function == "wrong"
        assert all((line["marginal_error"] < 1e-6) == is_raw_feasible for line in fakes)
    else:
        assert [line["size"] for line in fakes] == [16]  # neither finer nor larger is tried
        assert second.failure.startswith("–,")
        assert second.failure.endswith("at n = 16")


def test_the_audit_rounds_in_the_peers_favour():
    M, a, b = FAMILIES["random"].build(16, 0)
    result = epsilot.exact(M, a, b)
    line = audit(M, a, b, PeerAnswer(0.9 * result.plan - 1e-18), result.potentials)
    assert line["marginal_error"] == pytest.approx(0.2)
    assert result.value < line["value"] < result.value + 0.1 * M.max()
    assert line["lower"] == pytest.approx(result.value)
