import os
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest

import epsilot
from epsilot.cli import inputs

COST = ["--cost", "M.npy"]
BAD = [
    (["solve"], "no problem was given; exactly one of --cost"),
    (["solve", *COST, "--points", "x.csv", "y.txt"], "--cost and --points were given"),
    (["solve", "x.csv", "y.txt"], "x.csv and y.txt were given without an option; pass points as"),
    (["compare", "M.npy"], "M.npy was given without an option"),
    (["certify", *COST, "--plan", "M.npy", "b.csv"], "b.csv was given without an option"),
    (["solve", "--cost", "none.npy"], "none.npy does not exist"),
    (["solve", "--cost", "."], ". is a directory"),
    (["solve", "--cost", "empty.csv"], "empty.csv is empty"),
    (["solve", "--cost", "word.csv"], "word.csv, line 2, column 1 holds 'word'"),
    (["solve", "--cost", "objects.npy"], "holds Python objects"),
    (["solve", "--cost", "all.npz"], "holds 3 arrays (M, a, b)"),
    (["solve", "--cost", "all.npz:c"], "holds no array 'c'"),
    (["solve", "--cost", "notes.docx"], "has the file type .docx"),
    (["solve", "--cost", "nan.npy"], "costs must be finite"),
    (["solve", *COST, "--a", "M.npy"], "shape (6, 8); a vector is required"),
    (["solve", *COST, "--a", "b.csv"], "are a and b swapped?"),
    (["solve", *COST, "--a", "a2.npy", "--b", "b.csv"], "(pass --normalize to rescale both to 1)"),
    (["solve", *COST, "--metric", "euclidean"], "--metric euclidean was given with --cost"),
    (["solve", "--points", "x.csv", "y.txt", "--metric", "euclid"], "did you mean euclidean?"),
    (["solve", "--points", "x.csv", "M.npy"], "2 and 8 coordinates"),
    (["solve", "--points", "nan.npy", "M.npy"], "NaN or infinity in point 1"),
    (["solve", "--images", "one.png", "black.png"], "completely black"),
    (["solve", "--images", "one.png", "M.npy"], "an image is required"),
    (["solve", "--images", "one.png", "two.png", "--a", "b.csv"], "the images are the weights"),
    (["solve", "--images", "one.png", "two.png", "--metric", "cosine"], "cityblock, sqeuclidean"),
    (["solve", *COST, "--eps", "1", "--rtol", "1"], "exactly one of eps, rtol and reg"),
    (["solve", *COST, "--eps", "1", "--reg", "1"], "exactly one of eps, rtol and reg"),
    (["solve", *COST, "--tol", "1"], "without reg"),
    (["solve", *COST, "--eps", "0"], "eps is 0"),
    (["solve", *COST, "--eps", "-1"], "eps is -1"),
    (["solve", *COST, "--eps", "nan"], "eps is nan"),
    (["solve", *COST, "--eps", "1e-30"], "float64"),
    (["solve", *COST, "--max-iter", "-1"], "max_iter is -1"),
    (["solve", *COST, "--method", "sinkorn"], "did you mean sinkhorn"),
    (["solve", *COST, "--seed", "-1"], "seed is -1; it must be an integer, 0 or more"),
    (["solve", *COST, "--threads", "0"], "n_threads is 0; it must be an integer, 1 or more"),
    (["solve", *COST, "--stop", "never"], "stop is 'never'"),
    (["solve", *COST, "--option", "eps=1"], "use --eps"),
    (["solve", *COST, "--option", "eps"], "not of the form key=value"),
    (["solve", *COST, "--method", "exact", "--option", "max_pivot=1"], "max_pivots"),
    (
        ["solve", *COST, "--method", "pdasmd", "--option", "batch_size=1e3"],
        "batch_size is 1000.0; it must be an integer",
    ),
    (["solve", *COST, "--method", "apdagd", "--option", "average=x"], "average is 'x'"),
    (["solve", "--points", "number.npy", "y.txt"], "shape (); points must be a table"),
    (["solve", "--points", "x.csv", "bomb.npz"], "bomb.npz:x is damaged"),
    (["solve", *COST, "--resume", "none.npz"], "none.npz"),
    (["solve", *COST, "--resume", "all.npz"], "all.npz"),
    (["solve", *COST, "--out", "none/r.npz"], "none/r.npz cannot be written"),
    (["solve", *COST, "--out", "."], "it is a directory"),
    (["solve", *COST, "--out", "all.npz"], "all.npz exists and is no epsilot-result file"),
    (["solve", *COST, "--checkpoint", "M.npy"], "M.npy exists and is no epsilot-checkpoint file"),
    (["solve", *COST, "--out", "r.npz", "--checkpoint", "./r.npz"], "--out and --checkpoint"),
    (["transfer", "one.png", "two.png", "-o", "t.png", "--back", "t.png"], "--out and --back"),
    (["solve", *COST, "--plot", "r.doc"], "has the file type doc"),
    (["solve", *COST, "--checkpoint", "none/c.npz"], "none/c.npz cannot be written"),
    (["certify", *COST], "nothing to audit"),
    (["certify", *COST, "--plan", "M.npy", "--result", "r.npz"], "--result with a plan"),
    (["certify", *COST, "--plan", "a2.npy"], "the plan has shape"),
    (["certify", *COST, "--result", "all.npz"], "all.npz"),
    (["certify", *COST, "--potentials", "b.csv", "b.csv"], "potentials"),
    (["reproduce", "fig1", "--data", ","], "--data is ','"),
    (["solve", *COST, "--unbalanced", "1e-320"], "unbalanced is 1e-320"),
    (["solve", *COST, "--unbalanced", "1e300"], "unbalanced is 1e+300"),
    (["solve", *COST, "--unbalanced", "nan"], "unbalanced is 'nan'"),
    (["solve", *COST, "--mass", "1e-320"], "mass is 1e-320"),
    (["solve", *COST, "--mass", "1e300"], "mass is 1e+300"),
    (["solve", *COST, "--mass", "nan"], "mass is nan"),
    (["solve", *COST, "--mass", "inf"], "mass is inf"),
    (["solve", *COST, "--reg", "1e-320"], "reg is 1e-320"),
    (["solve", *COST, "--reg", "1e300"], "reg is 1e+300"),
    (["solve", *COST, "--reg", "nan"], "reg is nan"),
    (["solve", *COST, "--reg", "inf"], "reg is inf"),
    (["solve", *COST, "--unbalanced", "1e-320", "--unbalanced-type", "tv"], "unbalanced is 1e-320"),
    (["solve", *COST, "--unbalanced", "1e300", "--unbalanced-type", "tv"], "unbalanced is 1e+300"),
    (["compare"], "no problem was given"),
    (["compare", "--demo", *COST], "--demo was given with another problem"),
    (["compare", "--demo", "--methods", ","], "at least one method"),
    (["compare", "--demo", "--methods", "exakt"], "did you mean exact"),
    (["demo", "--side", "1"], "at least 2 pixels"),
    (["demo", "--eps", "0"], "eps is 0"),
    (["demo", "--out", "none/d.png"], "none/d.png cannot be written"),
]


@pytest.fixture
def bad_folder(folder):
    (folder / "empty.csv").touch()
    (folder / "word.csv").write_text("1,2\nword,3\n")
    (folder / "notes.docx").write_bytes(b"PK")
    np.save("objects.npy", np.array([None]), allow_pickle=True)
    np.save("number.npy", 3.0)
    with zipfile.ZipFile("bomb.npz", "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00\x05\x00hello")
    np.save("nan.npy", np.array([[1.0, 2.0], [np.nan, 1.0]]))
    return folder


def test_named_columns_of_two_tables_are_matched(run, folder):
    X, Y = np.loadtxt("x.csv", delimiter=",", skiprows=1), np.loadtxt("y.txt")
    np.savetxt("turned.csv", Y[:, ::-1], delimiter=",", header="y,x", comments="")
    expected = epsilot.solve_sample(X, Y).value
    answer = run("solve", "--points", "x.csv", "turned.csv", "--json").json
    assert answer["value"] == pytest.approx(expected)
    np.savetxt("other.csv", Y, delimiter=",", header="u,v", comments="")
    refused = run("solve", "--points", "x.csv", "other.csv")
    assert refused.code == 2
    assert "other.csv has the columns 'u', 'v' and x.csv has 'x', 'y'" in refused.err


@pytest.mark.parametrize(
    ("arguments", "message"), BAD, ids=lambda x: " ".join(x) if isinstance(x, list) else ""
)
@pytest.mark.usefixtures("bad_folder")
def test_bad_input_is_one_sentence_and_exit_code_2(run, arguments, message):
    done = run(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert message in done.err
    assert done.err.startswith("epsilot: ")
    assert done.err.endswith(".\n")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["solve", "--nothing"],
        ["solve", "--eps", "small"],
        ["solve", "--points", "x.csv"],
    ],
)
def test_wrong_usage_is_exit_code_2(run, arguments):
    done = run(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert "Error" in done.err
    assert "Traceback" not in done.err


def test_an_argument_of_a_command_that_takes_only_options_is_named(run):
    assert "x was given without an option" in run("demo", "x").err


def test_output_paths_are_checked_before_the_solve(run, monkeypatch):
    monkeypatch.setattr("epsilot.api.solve.run_request", lambda *_, **__: pytest.fail("solved"))
    assert run("solve", *COST, "--out", "none/r.npz").code == 2


def test_system_errors_are_one_sentence(run, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device", "r.npz")

    monkeypatch.setattr("epsilot.files.writing.os.fsync", full)
    done = run("solve", *COST, "--out", "r.npz")
    assert done.code == 2
    assert done.err.startswith("epsilot: r.npz: No space left on device;")


def test_out_of_memory_is_one_sentence(run, monkeypatch):
    def exhausted(name):
        raise MemoryError

    monkeypatch.setattr(inputs, "read", exhausted)
    done = run("solve", *COST)
    assert done.code == 2
    assert "out of memory" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
def test_interrupting_reports_the_best_answer(folder):
    np.save("big.npy", np.random.default_rng(0).random((300, 300)))
    code = "from epsilot.cli import main; main()"
    arguments = ["solve", "--cost", "big.npy", "--eps", "1e-9", "--method", "sinkhorn"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments, "--checkpoint", "c.npz", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while process.poll() is None and not os.path.exists("c.npz"):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=600)
    assert process.returncode == 1, err
    assert '"status": "interrupted"' in out
    assert err == ""


WAITING = """
import time
from epsilot.cli import inputs, main

def read(name):
    print("reading", flush=True)
    time.sleep(120)

inputs.read = read
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_does_not_solve_ends_by_any_signal(by, folder):
    with subprocess.Popen(
        [sys.executable, "-c", WAITING, "solve", *COST],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(by, signal.SIG_DFL),  # a shell may have it ignored
    ) as process:
        assert process.stdout.readline() == "reading\n"
        process.send_signal(by)
        out, err = process.communicate(timeout=600)
    assert process.returncode == 130  # as shells know it
    assert "Traceback" not in err
    assert out == ""
