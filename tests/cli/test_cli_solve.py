import errno
import html
import math
import re

import numpy as np
import pytest
from PIL import Image

import epsilot
from epsilot.engine import storage

BOUNDS = "value value_linear lower_bound gap target marginal_error converged"
RUN = "method reg seed options version n_iter operations certificate_operations"
SECONDS = ("seconds", "compile_seconds")
FIELDS = {*BOUNDS.split(), *RUN.split(), *SECONDS, "choice", "cost", "status", "message"}
FIELDS |= {"shape", "files"}


@pytest.mark.parametrize(
    "problem",
    [
        ["--cost", "M.npy"],
        ["--cost", "M.csv"],
        ["--cost", "all.npz:M", "--a", "all.npz:a", "--b", "b.csv"],
        ["--points", "x.csv", "y.txt"],
        ["--points", "x.csv", "y.txt", "--metric", "cosine"],
        ["--points", "x.csv", "y.txt", "--max-distance", "100"],
        ["--points", "x.csv", "y.txt", "--k-neighbors", "100"],
        ["--images", "one.png", "two.png"],
        ["--cost", "M.npy", "--a", "a2.npy", "--b", "b.csv", "--normalize"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("method", ["sinkhorn", "auto"])
def test_problems_of_all_kinds_are_certified(run, problem, method):
    done = run("solve", *problem, "--rtol", 0.05, "--method", method, "--json")
    assert done.code == 0
    assert done.err == ""
    found = done.json
    assert set(found) == FIELDS
    assert found["converged"]
    assert found["gap"] <= found["target"]
    assert found["value"] - found["lower_bound"] == pytest.approx(found["gap"])


def test_the_command_returns_the_result_of_the_library(run):
    options = ("--eps", 0.01, "--method", "sinkhorn", "--seed", 5)
    done = run("solve", "--cost", "M.npy", *options, "--json")
    expected = epsilot.solve(np.load("M.npy"), eps=0.01, method="sinkhorn", seed=5)
    assert done.json["seed"] == 5
    assert done.json["value"] == expected.value
    assert done.json["lower_bound"] == expected.lower_bound
    assert done.json["n_iter"] == expected.n_iter
    assert done.json["target"] == 0.01


@pytest.mark.parametrize("metric", [None, "sqeuclidean", "euclidean", "chebyshev"])
def test_images_have_the_units_of_the_library(run, metric):
    """``--images`` is ``solve_grid`` of images of total mass 1: distances in pixels."""
    options = () if metric is None else ("--metric", metric)
    found = run("solve", "--images", "one.png", "two.png", *options, "--json").json
    A, B = (np.asarray(Image.open(f"{name}.png"), dtype=float) for name in ("one", "two"))
    keywords = {} if metric is None else {"metric": metric}
    expected = epsilot.solve_grid(A, B, normalize=True, **keywords)
    assert found["shape"] == [20, 20]
    assert found["value"] == pytest.approx(expected.value, rel=1e-12)
    assert expected.value > 0


def test_points_use_the_given_metric(run):
    x, y = np.loadtxt("x.csv", delimiter=",", skiprows=1), np.loadtxt("y.txt")
    square = ((x[:, None] - y) ** 2).sum(axis=-1)
    for metric, M in (("sqeuclidean", square), ("euclidean", np.sqrt(square))):
        done = run("solve", "--points", "x.csv", "y.txt", "--metric", metric, "--json")
        assert done.json["value"] == pytest.approx(epsilot.exact(M).value, rel=0.011)


def test_plain_lines_in_a_pipe(run):
    done = run("solve", "--cost", "M.npy", "--eps", 0.01)
    assert done.code == 0
    assert done.out.startswith("Certified\n  problem: 6 × 8\n  value: ")
    assert "\x1b" not in done.out
    assert done.err == ""


def test_the_entropic_problem(run):
    done = run("solve", "--cost", "M.npy", "--reg", 0.1, "--tol", 1e-5, "--json")
    assert done.code == 0
    assert done.json["reg"] == 0.1
    assert done.json["value"] < done.json["value_linear"]


@pytest.mark.parametrize("limit", [["--max-iter", 1], ["--max-seconds", 0]])
def test_stopping_early_is_exit_code_1_and_still_writes(run, limit):
    common = ("--cost", "M.npy", "--eps", 1e-6, "--method", "sinkhorn", *limit)
    done = run("solve", *common, "--out", "r.npz", "--plot", "r.png", "--json")
    assert done.code == 1
    assert done.err == ""
    assert not done.json["converged"]
    assert done.json["gap"] > 1e-6
    assert done.json["files"] == {"out": "r.npz", "plot": "r.png"}
    assert run("certify", "--cost", "M.npy", "--result", "r.npz").code == 0
    assert run("solve", *common).out.startswith("Stopped before the target\n")


def test_a_saved_result_is_proved_again(run):
    solved = run("solve", "--cost", "M.npy", "--eps", 0.01, "--out", "r.npz", "--json").json
    again = run("certify", "--cost", "M.npy", "--result", "r.npz", "--json").json
    assert again["upper"] == pytest.approx(solved["value"], rel=1e-12)
    assert again["lower"] == pytest.approx(solved["lower_bound"], rel=1e-12)
    assert again["claimed"]["value"] == solved["value"]


def test_a_resumed_run_ends_like_an_uninterrupted_one(run):
    common = ("solve", "--cost", "M.npy", "--eps", 1e-4, "--method", "sinkhorn", "--json")
    whole = run(*common).json
    assert run(*common, "--max-iter", 7, "--checkpoint", "c.npz").code == 1
    rest = run(*common, "--resume", "c.npz").json
    for field in ("value", "lower_bound", "n_iter", "operations"):
        assert rest[field] == whole[field]


def test_options_reach_the_method(run):
    done = run(
        "solve", "--cost", "M.npy", "--method", "exact", "--option", "max_pivots=5000", "--json"
    )
    assert done.json["options"]["max_pivots"] == 5000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("3.5", 3.5),
        ("1e-3", 1e-3),
        ("true", True),
        ("False", False),
        ("none", None),
        ("l2", "l2"),
        ("", ""),
        ("a=b", "a=b"),
    ],
)
def test_option_values_are_typed(text, value):
    from epsilot.cli.options import parse_options

    (parsed,) = parse_options([f"batch-size={text}"]).values()
    assert parsed == value
    assert type(parsed) is type(value)


def test_files_hold_penalties_per_point(run):
    prices = np.linspace(0.1, 0.4, 6)
    np.savetxt("lam.csv", prices)
    kind = {"unbalanced": (prices, 0.5), "unbalanced_type": "tv"}
    done = run(
        "solve",
        "--cost",
        "M.npy",
        "--unbalanced",
        "lam.csv,0.5",
        "--unbalanced-type",
        "tv",
        "--json",
    )
    assert done.json["value"] == pytest.approx(epsilot.solve(np.load("M.npy"), **kind).value)
    wrong = run("solve", "--cost", "M.npy", "--unbalanced", "lam.csv")
    assert (wrong.code, "holds 6 numbers for the" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    "kind", [["--mass", 0.5], ["--unbalanced", "0.3,inf", "--unbalanced-type", "tv"]], ids=str
)
def test_problem_kinds_are_solved_and_audited(run, kind):
    solved = run("solve", "--cost", "M.npy", "--out", "result.npz", "--json", *kind).json
    for answer in (["--result", "result.npz"], ["--plan", "plan.npy"]):
        np.save("plan.npy", epsilot.solve(np.load("M.npy"), **OF_KIND[kind[0]]).plan)
        audited = run("certify", "--cost", "M.npy", *answer, "--json", *kind)
        assert audited.json["upper"] == pytest.approx(solved["value"])


OF_KIND = {
    "--mass": {"mass": 0.5},
    "--unbalanced": {"unbalanced": (0.3, math.inf), "unbalanced_type": "tv"},
}


def test_results_of_another_kind_are_rejected(run):
    run("solve", "--cost", "M.npy", "--out", "result.npz", "--mass", 0.5)
    done = run("certify", "--cost", "M.npy", "--result", "result.npz")
    assert done.code == 2
    assert "another problem" in done.err


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (["--cost", "M.npy"], "6 × 8 blocks"),
        (["--points", "x.csv", "y.txt"], "x and y"),
        (["--images", "one.png", "two.png"], "Mean displacement"),
        (["--images", "one.png", "two.png", "--metric", "euclidean"], "Mean displacement"),
    ],
)
def test_the_page_shows_the_command(run, folder, source, words):
    done = run("solve", *source, "--seed", 2, "--report", "my page.html", "--json")
    assert done.code == 0
    assert done.json["files"] == {"report": "my page.html"}
    page = (folder / "my page.html").read_text(encoding="utf-8")
    text = html.unescape(re.sub(r"</?span>", "", page))
    assert words in text
    assert f"epsilot solve {' '.join(source)} --seed 2 --report 'my page.html' --json<" in text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no/out.html", "no directory"),
        ("out.png", "a report is a web page"),
        (".", "it is a directory"),
    ],
)
def test_page_paths_are_checked_before_the_solve(run, monkeypatch, name, words):
    monkeypatch.delattr("epsilot.api.solve.execute")
    done = run("solve", "--cost", "M.npy", "--report", name)
    assert done.code == 2
    assert words in done.err
    assert done.out == ""


def test_the_page_needs_its_own_file_name(run):
    done = run("solve", "--cost", "M.npy", "--plot", "a.svg", "--report", "a.svg")
    assert done.code == 2
    assert "--plot and --report are both a.svg" in done.err


@pytest.mark.filterwarnings("always::epsilot.UnsavedWarning")
def test_a_checkpoint_that_cannot_be_written_is_one_sentence_and_not_listed(run, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(storage, "write_atomically", full)
    options = ("--method", "sinkhorn", "--checkpoint", "run.npz", "--max-iter", 3)
    done = run("solve", "--cost", "M.npy", *options, "--json")
    assert done.err.startswith("epsilot: run.npz could not be written (No space left on device).")
    assert len(set(done.err.splitlines())) == 1
    assert done.json["files"] == {}
