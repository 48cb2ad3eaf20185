"""A saved result is read again as it was, with or without its costs."""

import dataclasses

import numpy as np
import pytest

import epsilot
from epsilot import InvalidProblem, PointCloud, Result
from sample_problems import M34

X, Y = np.random.default_rng(0).random((2, 12, 2))
M = ((X[:, None] - Y) ** 2).sum(axis=2)
TV = {"unbalanced": 0.3, "unbalanced_type": "tv"}
RUNS = {
    "exact": ((M,), {}),
    "gibbs": ((M,), {"method": "sinkhorn"}),
    "entropic": ((M,), {"reg": 0.1}),
    "paper": ((M,), {"method": "sinkhorn", "stop": "paper", "eps": 0.1}),
    "masses": ((3 * M34, [1, 2, 3], [3, 1, 1, 1]), {}),
    "partial": ((M34,), {"mass": 0.5}),
    "unbalanced": ((M34,), {"unbalanced": 1.0}),
    "entropic KL": ((M34, [1, 2, 3], [3, 1, 1, 1]), {"unbalanced": 1.0, "reg": 0.1}),
    "entropic TV": ((M34, [1, 2, 3], [3, 1, 1, 1]), TV | {"reg": 0.1}),
    "free TV": ((0 * M34,), TV),
    "points": ((PointCloud(X, Y),), {}),
}
#: Keywords of ``solve`` that describe the problem.
OF_PROBLEM = ("mass", "unbalanced", "unbalanced_type")


@pytest.fixture(params=RUNS)
def run(request, tmp_path):
    """Return a result, its file, and its problem."""
    problem, keywords = RUNS[request.param]
    result = epsilot.solve(*problem, **keywords)
    result.save(tmp_path / "r.npz")
    kept = {name: keywords[name] for name in OF_PROBLEM if name in keywords}
    return result, tmp_path / "r.npz", problem, kept


def test_a_loaded_result_has_all_fields(run):
    result, path, problem, keywords = run
    for loaded in (Result.load(path), Result.load(path, *problem, **keywords)):
        for field in dataclasses.fields(Result):
            if field.name not in ("problem", "plan_operator", "potentials", "slopes"):
                ours, theirs = getattr(loaded, field.name), getattr(result, field.name)
                assert ours == theirs, field.name
        assert loaded.gap == result.gap
        assert loaded.problem_hash == result.problem_hash
        for ours, theirs in zip(loaded.potentials, result.potentials, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_a_result_loaded_with_its_costs_has_its_plan(run):
    result, path, problem, keywords = run
    loaded = Result.load(path, *problem, **keywords)
    np.testing.assert_array_equal(loaded.plan, result.plan)
    np.testing.assert_array_equal(loaded.plan_sparse.toarray(), result.plan)
    assert repr(loaded) == repr(result)


def test_exact_plans_and_gradients_need_no_costs(tmp_path):
    result = epsilot.solve(M34)
    result.save(tmp_path / "r.npz")
    loaded = Result.load(tmp_path / "r.npz")
    np.testing.assert_array_equal(loaded.plan, result.plan)
    for ours, theirs in zip(loaded.gradients()[:2], result.gradients()[:2], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    loaded.report(tmp_path / "r.html")


def test_what_needs_costs_says_so(tmp_path):
    result = epsilot.solve(M, method="sinkhorn")
    result.save(tmp_path / "r.npz")
    loaded = Result.load(tmp_path / "r.npz")
    with pytest.raises(InvalidProblem, match=r"does not hold the costs.*Result.load\(path, M"):
        _ = loaded.plan
    cloud = epsilot.solve_sample(X, Y)
    cloud.save(tmp_path / "c.npz")
    loaded = Result.load(tmp_path / "c.npz", PointCloud(X, Y))
    np.testing.assert_array_equal(loaded.map(X + 1)[0], cloud.map(X + 1)[0])


@pytest.mark.parametrize(
    ("arguments", "keywords", "sentence"),
    [
        ((2 * M34,), {}, "holds the result of another problem"),
        ((M34.T,), {}, "holds the result of another problem"),
        ((None, [1, 1, 1]), {}, "without its cost"),
        ((M34,), {"rtol": 0.1}, "rtol were given to Result.load"),
    ],
)
def test_other_problems_are_rejected(tmp_path, arguments, keywords, sentence):
    epsilot.solve(M34).save(tmp_path / "r.npz")
    with pytest.raises(InvalidProblem, match=sentence):
        Result.load(tmp_path / "r.npz", *arguments, **keywords)


def test_other_files_are_rejected(tmp_path):
    np.savez(tmp_path / "x.npz", a=1)
    with pytest.raises(InvalidProblem, match="is not an epsilot-result-2 file"):
        Result.load(tmp_path / "x.npz")
