"""Every study at toy size: it runs, and prints the table it is for."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from scipy.optimize import linear_sum_assignment

from epsilot_lab.__main__ import STUDIES, main
from epsilot_lab.store import read_lines
from epsilot_lab.studies import first_calls, large, methods

ROOT = Path(__file__).parents[2]

#: study, arguments, what it prints
RUNS = [
    ("methods", "sinkhorn --toy", ["| images | 36 | ε = 0.2 | 234 / "]),
    ("methods", "accelerated --toy", ["stop='paper'", "| images | 36 | ε = 0.2 |"]),
    ("methods", "direct --toy", ["| packing_lp |", "| images | 16 | ε = 0.2 |"]),
    ("methods", "options --toy", ["| images | 36 | η = 0.02, gap 1e-6 |"]),
    ("methods", "hybrid --toy", ["| random | 16 | ε = 0.005 |", "geometric means"]),
    ("methods", "pdasmd --toy", ["Exponents of n", "exponents of B: loops, operations"]),
    ("methods", "unbalanced --toy", ["| images | 16 | λ = 0.05, η = 0.02 |", "proved steps"]),
    ("races", "line grid-or-matrix --toy", ["| 300 | euclidean | random |", "| Shapes | 9 |"]),
    ("races", "metrics wasserstein-1d --toy", ["| canberra | 20 |", "| 30 | 3 |"]),
    ("races", "partial unbalanced --toy", ["| images, l1 | 36 |", "| random costs | 16 | 5 |"]),
    ("races", "diagrams --toy", ["| noise | 30 | 1 | inf |", "| clusters | 30 | 2 | 2 |"]),
    ("races", "pot-names --toy", ["| emd2, random weights | 20 |", "| sinkhorn, reg 0.01 | 20 |"]),
    ("races", "updates --toy", ["| Greenkhorn update | 20 |", "| log-domain Sinkhorn"]),
    ("again", "docs/results fig1 --sample 1 --most 0.02 --untimed",
     ["| experiment | lines | solved again | equal counts |"]),
    ("barycenters", "--toy", ["| cityblock | POT, reg 0.01, sinkhorn |", "| 12 x 12 |"]),
    ("batches", "--toy", ["| points in 20-d | 8 |", "uniform weights | 8 |", "| 120 pairs |"]),
    ("calibrate", "--quick", ["n = 256:", '"restricted_simplex": {']),
    ("gradients", "--toy", ["| 2 | 16 | epsilot |", "| 64 | 16 | ot.emd2 |"]),
    ("limits", "--scale 0.001 --only KL --limit 0.2 --signal 0.2",
     ["| KL cloud | max_seconds | 0.2 |", "| dense KL | SIGINT |"]),
    ("priced", "--problems 40", ["or with a negative gap: 0 []", "largest difference from HiGHS"]),
    ("registry", "--quick",
     ["sinkhorn                 7", "exact                    not counted"]),
    ("results", "docs/results", ["| fig1 | 0.1.0, 0.2.0 | ", "| bench-emd2 | 0.2.0 |"]),
    ("sparse", "--arcs 300 --grids 4 --only random", ["| random arcs, uniform | 30 |"]),
    ("sparse", "--check 8", ["cut: ", "optimum: "]),
    ("stages", "--shapes --sizes 60",
     ["| 2-d squared, uniform |", "| Euclidean, squares apart |"]),
    ("stages", "--problems points2 --sizes 64 --seeds 1 --budget 0.01",
     ["| 64 | 2-d points, Euclidean | 1e-06 |", "certificates"]),
]  # fmt: skip
#: Those with a test of their own, here or elsewhere.
ELSEWHERE = {
    *(
        "campaign",
        "first-calls",
        "gallery",
        "gromov",
        "growth",
        "large",
        "pot-tests",
        "regret",
        "same-bits",
    ),
}


@pytest.mark.filterwarnings("ignore:JAXopt:DeprecationWarning")  # which OTT-JAX imports
@pytest.mark.parametrize(("name", "arguments", "printed"), RUNS, ids=lambda x: str(x)[:40])
def test_a_study_runs_at_toy_size(name, arguments, printed, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    if name == "gradients":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    assert main([name, *arguments.split()]) == 0
    out = capsys.readouterr().out
    for text in printed:
        assert text in out


def test_every_study_is_run():
    assert {name for name, _, _ in RUNS} | ELSEWHERE == set(STUDIES)
    tables = {arguments.split()[0] for name, arguments, _ in RUNS if name == "methods"}
    assert tables | {"section6"} == set(methods.STUDIES)


def test_studies_are_listed(capsys):
    assert main(["--help"]) == 0
    assert main([]) == main(["nonsense"]) == 2
    printed = capsys.readouterr()
    assert printed.out.count("campaign         fuzz the library") == 3
    assert "study 'nonsense' is unknown" in printed.err


@pytest.mark.parametrize("name", STUDIES)
def test_studies_run_without_docstrings(name, monkeypatch, capsys):
    folder = "fuzz" if name == "campaign" else "studies"
    module = import_module(f"epsilot_lab.{folder}.{name.replace('-', '_')}")
    monkeypatch.setattr(module, "__doc__", None)  # as under python -OO
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    assert "usage:" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["campaign", "same_bits", "limits", "first_calls"])
def test_scripts_of_benchmarks_are_studies(name):
    command = [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), "--help"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert "usage:" in done.stdout


def test_first_calls_compile_and_later_ones_do_not(monkeypatch, capsys):
    calls = []

    def run(call, cache, source):
        calls.append((cache, source))
        return ["0.010 s  a function", "7 2.0"]

    monkeypatch.setattr(first_calls, "run", run)
    first_calls.main(["--calls", "solve_batch"])
    first_calls.main(["--calls", "pdasmd", "--warm", "here"])
    assert calls[0][0] == calls[1][0] != "here" == calls[2][0]
    first_calls.main(["--calls", "pairwise", "--against", "there"])
    assert [source for _, source in calls[-4:]] == ["there"] * 2 + [calls[0][1]] * 2
    first_calls.main(["--calls", "pairwise", "--functions"])
    out = capsys.readouterr().out
    assert "| solve_batch | 2.0 | 7 | 2.00 |" in out
    assert "| pdasmd | nan | 0 | 2.00 |" in out
    assert "| pairwise | 2.0 | 7 | 2.00 | 2.0 | 7 | 2.00 | 1.00 |" in out
    assert "0.010 s  a function" in out


POT_TESTS = """
import ot
import pytest


def test_bounds():
    log = ot.emd([0.5, 0.5], [0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]], log=True)[1]
    assert log["gap"] <= 1e-12


def test_wrong():
    assert ot.emd2([1.0], [1.0], [[1.0]]) == 2


@pytest.mark.skip
def test_skipped():
    pass
"""


def test_tests_of_pot_run_on_our_functions_and_are_counted(tmp_path, capsys):
    with pytest.raises(SystemExit, match="does not hold POT's tests"):
        main(["pot-tests", str(tmp_path)])
    (tmp_path / "test_ot.py").write_text(POT_TESTS)
    main(["pot-tests", str(tmp_path), "--files", "test_ot.py", "unbalanced"])
    assert "| test_ot.py | 1 of 2 | `test_wrong` | 0 | 1 |" in capsys.readouterr().out
    main(["pot-tests", str(tmp_path), "--files", "test_ot.py", "--plain"])  # POT's logs have no gap
    assert (
        "| test_ot.py | 0 of 2 | `test_bounds`, `test_wrong` | 0 | 1 |" in capsys.readouterr().out
    )


def test_large_problems_are_run_once(tmp_path, capsys):
    path = tmp_path / "large.jsonl"
    for _ in range(2):
        large.main(
            [str(path), "--cases", *list(large.CASES)[1:2], "--seeds", "1", "--scale", "2e-3"]
        )
        out = capsys.readouterr().out
        assert "| 2-d squared, random weights | small_simplex | 1e-09 |" in out
    assert [line["converged"] for line in read_lines(path)] == [True, True]


def test_regrets_are_measured_once(tmp_path, capsys):
    words = [
        "regret",
        str(tmp_path),
        "--toy",
        "--cases",
        "clusters, 1,000",
        "reg 0.1, 2-d points, 100",
    ]
    main([*words, "--methods", "auction", "exact", "box_newton"])
    assert "0 problems" in capsys.readouterr().out
    main(words)
    assert "2 problems" in capsys.readouterr().out
    lines = (tmp_path / "solves.jsonl").read_text()
    main(words)
    assert (tmp_path / "solves.jsonl").read_text() == lines
    assert "| small_simplex |" in capsys.readouterr().out


def test_growth_is_drawn(tmp_path, capsys):
    words = ["--sizes", "200", "--seeds", "1", "--families"]
    main(["growth", str(tmp_path), *words, "white noise, l1"])
    assert "| white noise, l1 | emd2 |" in capsys.readouterr().out
    assert (tmp_path / "growth.svg").stat().st_size > 10_000


def test_gromov_is_compared(tmp_path, capsys):
    words = ["--sizes", "20", "--block", "4", "--blocks", "2", "--brute", "6"]
    words += ["--growth", "8", "20", "--seeds", "1"]
    for _ in range(2):
        main(["gromov", str(tmp_path), *words])
        out = capsys.readouterr().out
        assert "| circles | 20 |" in out
        assert "time of n = 20 over n = 8" in out
        assert "8 random instances" in out
        assert "is below our bound in 0," in out
        assert "| blocks | 20 |" in out
        assert "24 instances of two to seven points" in out


def test_section_6_is_tabulated_drawn_and_resumed(tmp_path, monkeypatch, capsys):
    main(["methods", "section6", "--toy", "--out", str(tmp_path)])
    first = capsys.readouterr().out
    monkeypatch.delattr("epsilot.solve")  # all lines are there
    main(["methods", "section6", "--toy", "--out", str(tmp_path)])
    assert capsys.readouterr().out == first
    assert "## Long steps, independent rows, stop='certificate'" in first
    assert (tmp_path / "section6.svg").stat().st_size > 10_000


def test_sinkhorn_takes_the_iterations_of_a_prototype_in_numpy():
    table = methods.STUDIES["sinkhorn"][0]
    case = ("images", 36, "ε = 0.2")
    lines = [table.task(case, "Sinkhorn", seed).line() for seed in range(5)]
    assert methods.median(lines, "loops") == 202
    assert all(line["has_ended"] and line["gap"] <= 1 for line in lines)


def test_lapx_is_not_needed(capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    import_module("epsilot_lab.studies.races").main(["assignments", "--toy"])
    assert "lapx is not installed" in capsys.readouterr().out


def test_assignments_are_timed_beside_another_solver(capsys, monkeypatch):
    def peer(M):
        rows, cols = linear_sum_assignment(M)
        return M[rows, cols].sum(), cols, rows

    def of_stack(costs, n_threads):
        assert n_threads == 1
        return [peer(M) for M in costs]

    module = SimpleNamespace(lapjv=peer, lapjvx_batch=of_stack)
    monkeypatch.setitem(sys.modules, "lap", module)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    import_module("epsilot_lab.studies.races").main(["assignments", "--toy", "--seeds", "1"])
    out = capsys.readouterr().out
    assert "| 8 | 64-d, squared | small_simplex |" in out


def test_measured_operations_are_written_beside_what_was_known(tmp_path, capsys):
    out = tmp_path / "measured.json"
    out.write_text('{"sinkhorn": {"growth": {"paper": 1}}}')
    main(["registry", "--quick", "--out", str(out)])
    text = out.read_text()
    assert text.startswith('{\n  "sinkhorn": {"growth": {"paper": 1}, "operations": "7')


def test_the_picture_of_points_is_drawn(tmp_path):
    path = tmp_path / "picture.jpg"
    main(["gallery", str(path), "--points", "150"])
    assert path.stat().st_size > 10_000
