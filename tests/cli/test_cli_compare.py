import numpy as np

import epsilot
from epsilot.cli.compare import method_names


def test_compare_runs_methods_on_the_same_problem(run, folder):
    options = ("--methods", "sinkhorn,exact", "--eps", 0.01)
    done = run("compare", "--cost", "M.npy", *options, "--plot", "c.png", "--json")
    assert done.code == 0
    assert done.json["plot"] == "c.png"
    assert (folder / "c.png").exists()
    assert [result["method"] for result in done.json["results"]] == ["sinkhorn", "exact"]
    exact = epsilot.exact(np.load("M.npy")).value
    for result in done.json["results"]:
        assert result["lower_bound"] - 1e-12 <= exact <= result["value"] + 1e-12


def test_compare_selects_methods_that_solve_the_problem():
    known = [entry for entry in epsilot.methods() if entry.costs == "any"]
    assert method_names("all", entropic=False) == [entry.name for entry in known]
    assert set(method_names(None, entropic=False)) < {entry.name for entry in known}
    assert method_names("all", entropic=True) == [e.name for e in known if e.solves_entropic]
    assert "exact" not in method_names(None, entropic=True)


def test_compare_prints_a_table(run):
    done = run("compare", "--points", "x.csv", "y.txt", "--methods", "exact, sinkhorn,exact")
    lines = [line.split("\t") for line in done.out.splitlines()]
    assert [line[0] for line in lines] == ["method", "exact", "sinkhorn"]
    assert len({len(line) for line in lines}) == 1


def test_compare_tells_when_a_method_stopped_early(run):
    limits = ("--max-iter", 1, "--eps", 1e-7)
    done = run("compare", "--cost", "M.npy", "--methods", "exact,sinkhorn", *limits, "--json")
    assert done.code == 1
    assert [result["converged"] for result in done.json["results"]] == [True, False]
