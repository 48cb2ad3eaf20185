"""Many problems on the command line: what is read, written, drawn and continued."""

import numpy as np
import pytest
from scipy import sparse

import epsilot
from epsilot import BatchResult

GRID = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))


@pytest.fixture
def H(folder, rng):
    weights = np.where(rng.random((9, 6)) < 0.4, 0.0, rng.random((9, 6)))
    weights /= weights.sum(1, keepdims=True)
    np.save("H.npy", weights)
    np.savetxt("H.csv", weights, delimiter=",", fmt="%.17g")
    sparse.save_npz("H.npz", sparse.csr_matrix(weights))
    sparse.save_npz("H.csc.npz", sparse.csc_matrix(weights))
    np.save("C.npy", GRID)
    return weights


@pytest.mark.parametrize("name", ["H.npy", "H.csv", "H.npz"])
def test_pairwise(run, H, name):
    done = run("pairwise", name, "--cost", "C.npy", "--out", "D.npz", "--plot", "D.png", "--json")
    assert done.code == 0
    assert (done.json["problems"], done.json["certified"]) == (36, 36)
    assert done.json["files"] == {"out": "D.npz", "plot": "D.png"}
    D = BatchResult.load("D.npz").to_matrix()
    np.testing.assert_array_equal(D, epsilot.pairwise(H, GRID).to_matrix())


def test_pairwise_of_two_files(run, H):
    done = run("pairwise", "H.npy", "--cost", "C.npy", "--second", "H.csv", "-o", "D.npz")
    assert done.code == 0
    assert "81" in done.out
    assert BatchResult.load("D.npz").to_matrix().shape == (9, 9)


ARCHIVES = {
    "stacked": lambda M, a, b: {"M": M, "a": a, "b": b},
    "shared": lambda M, a, b: {"M": M[0], "a": a, "b": b},
    "uniform": lambda M, a, b: {"M": M},
    "numbered": lambda M, a, b: {f"M_{k}": C[: k + 1] for k, C in enumerate(M)},
    "clouds": lambda M, a, b: {"X_a": M, "X_b": M + 1, "a": a},
}


@pytest.mark.parametrize("kind", ARCHIVES)
def test_batch(run, rng, kind):
    M, a, b = rng.random((5, 4, 3)), rng.dirichlet(np.ones(4), 5), rng.dirichlet(np.ones(3), 5)
    arrays = ARCHIVES[kind](M, a, b)
    np.savez("problems.npz", **arrays)
    done = run("batch", "problems.npz", "--out", "out.npz", "--plot", "values.svg")
    assert done.code == 0
    assert "certified: 5" in done.out
    if kind == "numbered":
        expected = epsilot.solve_batch(list(arrays.values()))
    elif kind == "clouds":
        expected = epsilot.solve_sample_batch(**arrays)
    else:
        expected = epsilot.solve_batch(**arrays)
    np.testing.assert_array_equal(BatchResult.load("out.npz").value, expected.value)


def test_a_limit_and_the_rest(run, rng):
    M = rng.random((500, 12, 12))
    np.savez("problems.npz", M=M)
    command = "batch", "problems.npz", "--out", "out.npz", "--threads", "1"
    first = run(*command, "--max-seconds", "0")
    assert first.code == 1
    assert "--resume" in first.out
    part = BatchResult.load("out.npz")
    assert 0 < part.converged.sum() < 500
    second = run(*command, "--resume", "--json")
    assert second.code == 0
    assert second.json["certified"] == 500
    np.testing.assert_array_equal(BatchResult.load("out.npz").value, epsilot.solve_batch(M).value)


def test_refused_problems_are_named_and_the_others_written(run, rng):
    M = rng.random((4, 3, 3))
    M[2, 1, 1] = np.nan
    np.savez("problems.npz", M=M)
    done = run("batch", "problems.npz", "--out", "out.npz", "--json")
    assert done.code == 1
    assert list(done.json["errors"]) == ["2"]
    assert "row 1, column 1 is nan" in done.json["errors"]["2"]
    assert np.isnan(BatchResult.load("out.npz").value).tolist() == [False, False, True, False]
    assert "refused: 1, first problem 2" in run("batch", "problems.npz").out


REFUSED = {
    "no archive": (("batch", "M.npy"), "not an .npz archive"),
    "nothing known": (("batch", "odd.npz"), "must hold costs M"),
    "costs and clouds": (("batch", "both.npz"), "must hold costs M"),
    "a number is missing": (("batch", "gap.npz"), "count from 0"),
    "metric with costs": (("batch", "all.npz", "--metric", "euclidean"), "leave it out"),
    "resume what": (("batch", "all.npz", "--resume"), "--resume was given without --out"),
    "another file": (("batch", "all.npz", "--out", "gap.npz"), "no epsilot-batch file"),
    "csc": (("pairwise", "H.csc.npz", "--cost", "C.npy"), "form csr"),
    "no cost": (("pairwise", "H.npy", "--cost", "nothing.npy"), "does not exist"),
    "a cost of another size": (("pairwise", "H.npy", "--cost", "M.npy"), "M has shape"),
    "eps": (("pairwise", "H.npy", "--cost", "C.npy", "--eps", "-1"), "eps"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_one_sentence_and_exit_code_2(run, H, name):
    np.savez("odd.npz", x=np.ones(3))
    np.savez("both.npz", M=np.ones((2, 2)), X_a=np.ones((2, 2)), X_b=np.ones((2, 2)))
    np.savez("gap.npz", M_0=np.ones((2, 2)), M_2=np.ones((2, 2)))
    arguments, pattern = REFUSED[name]
    done = run(*arguments)
    assert done.code == 2
    assert pattern in done.err
    assert done.err.count("\n") == 1


#: name: options, and the same keywords in Python
KINDS = {
    "partial": (["--mass", "0.5"], {"mass": 0.5}),
    "entropic": (["--reg", "0.1", "--tol", "1e-4"], {"reg": 0.1, "tol": 1e-4}),
    "two penalties": (["--unbalanced", "0.5,inf"], {"unbalanced": (0.5, float("inf"))}),
    "TV": (
        ["--unbalanced", "0.5", "--unbalanced-type", "tv"],
        {"unbalanced": 0.5, "unbalanced_type": "tv"},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_problem(run, H, kind):
    options, keywords = KINDS[kind]
    np.savez("problems.npz", M=GRID, a=H[:4], b=H[4:8])
    assert run("batch", "problems.npz", "--out", "out.npz", *options).code == 0
    expected = epsilot.solve_batch(GRID, H[:4], H[4:8], **keywords)
    np.testing.assert_array_equal(BatchResult.load("out.npz").value, expected.value)
    second = ["--second", "H.csv"]
    assert run("pairwise", "H.npy", "--cost", "C.npy", *second, "-o", "D.npz", *options).code == 0
    D = epsilot.pairwise(H, GRID, H, **keywords).to_matrix()
    np.testing.assert_array_equal(BatchResult.load("D.npz").to_matrix(), D)
