"""Every script of benchmarks/ at toy size: it runs, and prints the table it is for."""

import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

SCRIPTS = {path.stem for path in (Path(__file__).parents[2] / "benchmarks").glob("*.py")}

#: script, arguments, what it prints
RUNS = [
    ("accelerated_family", "--quick --only published --eps 0.2 --seeds 1", ["n=36 apdgcd"]),
    ("auction_stages", "--scale 0.005 --set NEARLY=1", ["500 rows:", "pivots,", "s in all, gap"]),
    ("barycenters", "--toy", ["| cityblock | POT, reg 0.01, sinkhorn |", "| 12 x 12 |"]),
    ("batch", "--sizes 36 --batches 1 4 --repeats 1", ["n = 36", "against B = 1"]),
    ("batch_problems", "--toy", ["| points in 20-d | 8 |", "uniform weights | 32 |", "| 500 |"]),
    ("beyond", "--toy", ["| images, l1 | 36 |", "| random costs | 5 |"]),
    ("calibrate", "--quick", ["n = 256:", '"restricted_simplex": {']),
    ("color_transfer", "--quick --methods auto", ["at least 70%: yes", "peak memory"]),
    ("digits", "--train 20 --test 10", ["390 distances", "right by transport"]),
    ("dotmark", "--sides 32 --classes Shapes --draws 1", ["| Shapes | 32 | 1,088 / 2,385"]),
    ("geometry", "--quick --part grid", ["24 x 24", "ot.emd2 ms"]),
    ("geometry", "--quick --part square", ["32 x 32", "peak GiB"]),
    ("geometry", "--quick --part points", ["2000 in 2-d"]),
    ("geometry", "--quick --part sweep", ["half-sweep at n = 4000"]),
    ("gradients", "--toy", ["| 2 | 16 | epsilot |", "| 64 | 16 | ot.emd2 |"]),
    ("grid_or_matrix", "--sides 9 --rtol 0.1 --classes Shapes", ["| Shapes | 9 | cityblock |"]),
    ("hybrid", "--sizes 16 --seeds 1", ["| random | 16 | 0.005 |"]),
    ("kernels", "--size 64 --rounds 1", ["row c-transform", "float32 in cache"]),
    ("limits", "--scale 0.001 --only KL --limit 0.2 --signal 0.2",
     ["| cloud 2-d, KL | 30 | max_seconds |", "| SIGINT | "]),
    ("line", "--sizes 300", ["| 300 | euclidean | random |"]),
    ("methods", "--quick", ["sinkhorn                 7", "exact                    not counted"]),
    ("odd_costs", "--size 64 --seeds 1", ["n = 64", "| clusters |", "| products |"]),
    ("pdasmd", "--sizes 48", ["n = 48: 3n² exponentials", "NumPy listing"]),
    ("pdasmd_slopes", "--quick --only ratio", ["n = 64, eps = 0.05 [at least 15x]"]),
    ("simplex", "--sizes 64 --problems points2 --seeds 1", ["| 64 | 2-d points, Euclidean |"]),
    ("sinkhorn_family", "--sizes 36 --eps 0.2 --seeds 1", ["AAM dual, line search"]),
    ("stages", "--problems points2 --sizes 64 --seeds 1 --budget 0.01",
     ["| 64 | 2-d points, Euclidean | 1e-06 |", "certificates"]),
    ("unbalanced", "--toy", ["| images, l1 | 16 | 0.05 | 0.02 |", "| random costs | 16 | 5 |"]),
]  # fmt: skip
#: Those with a test of their own, and a listing that another one runs.
ELSEWHERE = {
    "campaign",
    "cluster",
    "dijkstra_plain",
    "direct_family",
    "exactness",
    "explore",
    "first_calls",
    "first_passes",
    "gallery",
    "growth",
    "large",
    "peers",
    "same_bits",
    "section6",
}


@pytest.mark.parametrize(("name", "arguments", "printed"), RUNS, ids=lambda x: str(x)[:40])
def test_a_script_runs_at_toy_size(name, arguments, printed, capsys):
    if name == "gradients":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    import_module(name).main(arguments.split())
    out = capsys.readouterr().out
    for text in printed:
        assert text in out


def test_every_script_is_run():
    assert {name for name, _, _ in RUNS} | ELSEWHERE == SCRIPTS


def test_first_calls_compile_and_later_ones_do_not(monkeypatch, capsys):
    script = import_module("first_calls")
    caches = []
    monkeypatch.setattr(script, "seconds", lambda call, cache: caches.append(cache) or 2.0)
    script.main(["--calls", "solve"])
    script.main(["--calls", "exact", "--warm", "here"])
    assert caches[0] == caches[1] != "here" == caches[2]
    out = capsys.readouterr().out
    assert "| `epsilot.solve(M)` | 2.0 | 2.0 |" in out
    assert "| `epsilot.solve(M, method='exact')` | – | 2.0 |" in out


def test_large_problems_are_run_once(tmp_path, capsys):
    large, path = import_module("large"), tmp_path / "large.jsonl"
    for _ in range(2):
        large.main(
            [str(path), "--cases", *list(large.CASES)[1:2], "--seeds", "1", "--scale", "2e-3"]
        )
        out = capsys.readouterr().out
        assert "| 2-d squared, random weights | small_simplex | 1e-09 |" in out
    assert [line["converged"] for line in large.read(path)] == [True, True]


def test_growth_is_drawn(tmp_path, capsys):
    import_module("growth").main(
        [str(tmp_path), "--sizes", "200", "--seeds", "1", "--families", "white noise, l1"]
    )
    assert "| white noise, l1 | emd2 |" in capsys.readouterr().out
    assert (tmp_path / "growth.svg").stat().st_size > 10_000


def test_section_6_is_tabulated_and_drawn(tmp_path, capsys):
    for _ in range(2):
        import_module("section6").main([str(tmp_path), "--toy"])
        printed = capsys.readouterr()
    assert "of" not in printed.err  # all lines were there
    assert "| images | long steps, independent rows |" in printed.out
    assert (tmp_path / "section6.svg").stat().st_size > 10_000


@pytest.mark.parametrize(("what", "size"), [("points", 150), ("morph", 12)])
def test_pictures_of_plans_are_drawn(what, size, tmp_path):
    path = tmp_path / "picture.jpg"
    import_module("gallery").main([what, str(path), "--size", str(size)])
    assert path.stat().st_size > 10_000


def test_the_direct_family_is_certified(capsys):
    import_module("direct_family").main(["--quick"])
    out = capsys.readouterr().out
    for word in ("DE-adapt", "LMR plain", "PR", "PK-fast", "BCN-fast", "packing_lp", "square"):
        assert word in out
    worst = out.split("largest certified gap / ε:")[1].split(";")[0]
    assert float(worst) <= 1


def test_sinkhorn_takes_the_iterations_of_its_specification():
    family = import_module("sinkhorn_family")
    cell = family.measure(family.ALGORITHMS[0], 36, 0.2, 5)
    assert (cell.iterations, cell.n_failed) == (202, 0)
    assert family.speed(20, 20, 1) in (True, False)


def test_regot_is_not_needed(capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    import_module("accelerated_family").main(["--quick", "--only", "regot", "--size", "20"])
    assert "regot is not installed" in capsys.readouterr().out


def test_regot_is_timed_in_turns(capsys, monkeypatch):
    def peer(M, a, b, reg, tol, max_iter):
        return SimpleNamespace(mar_errs=[0.5**k for k in range(max_iter)])

    monkeypatch.setitem(sys.modules, "regot", SimpleNamespace(sinkhorn_apdagd=peer))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    import_module("accelerated_family").main(["--quick", "--only", "regot", "--size", "12"])
    out = capsys.readouterr().out
    assert "regot                 10 iterations" in out
    assert "epsilot, 1 thread" in out


def test_measured_operations_are_written_beside_what_was_known(tmp_path, capsys):
    out = tmp_path / "measured.json"
    out.write_text('{"sinkhorn": {"growth": {"paper": 1}}}')
    import_module("methods").main(["--quick", "--out", str(out)])
    text = out.read_text()
    assert text.startswith('{\n  "sinkhorn": {"growth": {"paper": 1}, "operations": "7')


def test_the_benchmark_beside_peers_is_the_command(monkeypatch):
    given = []
    monkeypatch.setattr("epsilot.cli.main", lambda: given.append(sys.argv[1:]))
    monkeypatch.setattr(sys, "argv", ["peers.py", "--quick"])
    import_module("peers").run()
    assert given == [["bench", "--quick"]]
