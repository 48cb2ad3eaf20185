import subprocess
import sys

import numpy as np
import ot
import pytest
from PIL import Image

import epsilot
from epsilot.cli.compare import method_names


def test_version_and_help(run):
    assert run("--version").out.strip() == epsilot.__version__
    assert run("--help").code == 0
    for command in ("demo", "solve", "certify", "methods", "compare"):
        assert command in run("--help").out
        assert run(command, "--help").code == 0


def test_help_does_not_load_the_solvers():
    code = (
        "import sys\nfrom epsilot.cli import main\nsys.argv = ['epsilot', 'solve', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numba', 'scipy', 'ot', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_methods(run):
    names = [entry.name for entry in epsilot.methods()]
    found = run("methods", "--json")
    assert found.code == 0
    assert [entry["name"] for entry in found.json["methods"]] == names
    table = [line.split("\t") for line in run("methods").out.splitlines()]
    assert table[0][:2] == ["year", "name"]
    assert sorted(line[1] for line in table[1:]) == sorted(names)
    assert len({len(line) for line in table}) == 1


def test_demo_writes_a_picture_and_two_certificates(run, folder):
    done = run("demo", "--side", 6, "--json")
    assert done.code == 0
    assert len(done.json["results"]) == 2
    for result in done.json["results"]:
        assert result["converged"]
        assert result["gap"] <= 0.02
    assert done.json["picture"] == "demo/epsilot-demo.png"
    with Image.open(folder / "demo" / "epsilot-demo.png") as picture:
        assert min(picture.size) > 600


def test_demo_for_a_person(run, folder):
    done = run("demo", "--side", 5, "--eps", 0.1, "--seed", 4, "--out", "d.svg")
    assert done.code == 0
    assert done.err == ""
    assert done.out.count("certified\n") == 2
    assert done.out.endswith("picture: d.svg\n")
    assert (folder / "d.svg").exists()


def test_compare_runs_methods_on_the_same_problem(run, folder):
    wish = ("--methods", "sinkhorn,exact", "--eps", 0.01)
    done = run("compare", "--cost", "M.npy", *wish, "--plot", "c.png", "--json")
    assert done.code == 0
    assert done.json["plot"] == "c.png"
    assert (folder / "c.png").exists()
    assert [result["method"] for result in done.json["results"]] == ["sinkhorn", "exact"]
    exact = epsilot.exact(np.load("M.npy")).value
    for result in done.json["results"]:
        assert result["lower_bound"] - 1e-12 <= exact <= result["value"] + 1e-12


def test_compare_takes_the_methods_that_fit():
    known = epsilot.methods()
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


@pytest.fixture
def solved(folder):
    """Save POT's exact and entropic answers; return the optimal cost."""
    M = np.load("M.npy")
    a, b = np.full(6, 1 / 6), np.full(8, 1 / 8)
    plan, log = ot.emd(a, b, M, log=True)
    np.save("plan.npy", plan)
    np.save("f.npy", log["u"])
    np.savetxt("g.csv", log["v"])
    np.save("rough.npy", np.exp(-M / 0.1) / 48)
    return log["cost"]


@pytest.mark.parametrize(
    ("answer", "is_tight", "is_feasible"),
    [
        (["--plan", "plan.npy"], True, True),
        (["--plan", "plan.npy", "--potentials", "f.npy", "g.csv"], True, True),
        (["--potentials", "f.npy", "g.csv"], True, True),
        (["--plan", "rough.npy"], False, False),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, list) else "",
)
def test_certify_brackets_the_optimum(run, solved, answer, is_tight, is_feasible):
    found = run("certify", "--cost", "M.npy", *answer, "--json")
    assert found.code == 0
    bracket = found.json
    assert bracket["lower"] - 1e-12 <= solved <= bracket["upper"] + 1e-12
    assert (bracket["gap"] < 1e-3) == is_tight
    assert bracket["is_feasible"] == is_feasible
    assert bracket["shape"] == [6, 8]


@pytest.mark.usefixtures("solved")
def test_certify_for_a_person(run):
    done = run("certify", "--cost", "M.npy", "--plan", "rough.npy")
    assert done.out.startswith("Certificate\n  upper bound: ")
    assert "not feasible, rounded" in done.out


@pytest.mark.usefixtures("solved")
def test_certify_rescales_weights_only_when_asked(run):
    weights = ("certify", "--cost", "M.npy", "--a", "a2.npy", "--b", "b.csv", "--plan", "plan.npy")
    assert run(*weights).code == 2
    assert run(*weights, "--normalize").code == 0


def test_certify_refuses_the_result_of_another_problem(run):
    run("solve", "--cost", "M.npy", "--out", "r.npz")
    np.save("other.npy", 1 + np.load("M.npy") ** 2)
    done = run("certify", "--cost", "other.npy", "--result", "r.npz")
    assert done.code == 2
    assert "another problem" in done.err


@pytest.mark.parametrize("width", ["70", "200"])
def test_a_terminal_gets_panels_and_tables(run, monkeypatch, width):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", width)
    assert "╭─" in run("solve", "--cost", "M.npy").out
    assert "sinkhorn" in run("methods").out
    assert "┃" in run("methods").out
