"""Many problems at once: what is proved of each, and that none depends on the others."""

import os
import signal

import numpy as np
import pytest
from scipy import sparse

import epsilot
from batches import COSTS, WEIGHTS, assert_proved, problems
from epsilot import BatchResult, ConvergenceWarning, InvalidProblem, Status
from epsilot.engine.batch import engine
from epsilot.engine.batch import problems as problems_module
from epsilot.errors import InvalidBatch
from tuning import tune

KEEP = {"plans": True, "potentials": True}


def bits(batch):
    """Return all numbers of a batch."""
    numbers = [batch.value, batch.lower_bound, batch.marginal_error]
    if batch.plans is not None:
        numbers += [batch.plans.flow, batch.potentials.f, batch.potentials.g]
        numbers += [batch.plans.i, batch.plans.j]
    return b"".join(x.tobytes() for x in numbers)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("cost", COSTS)
def test_every_answer_is_that_of_solve(rng, cost, weights):
    shapes = [(1, 1), (1, 9), (7, 1), (6, 6), (16, 16), (5, 23), (30, 11), (40, 41)]
    M = [COSTS[cost](rng, n, m) for n, m in shapes]
    a = [WEIGHTS[weights](rng, n) for n, _ in shapes]
    b = [WEIGHTS[weights](rng, m) for _, m in shapes]
    batch = epsilot.solve_batch(M, a, b, rtol=1e-9, **KEEP)
    assert_proved(batch, M, a, b)
    assert batch.converged.all()
    for k, parts in enumerate(zip(M, a, b, strict=True)):
        size = np.abs(M[k]).max()
        for alone in (epsilot.solve(*parts, rtol=1e-9), epsilot.exact(*parts)):
            assert abs(batch.value[k] - alone.value) <= 1e-12 * size
            assert abs(batch.lower_bound[k] - alone.lower_bound) <= 1e-12 * size


def test_ten_thousand_random_problems_are_proved(rng):
    M, a, b = problems(rng, 10_000, largest=14)
    batch = epsilot.solve_batch(M, a, b, **KEEP)
    assert len(batch) == 10_000
    assert batch.converged.all()
    assert not batch.errors
    assert_proved(batch, M, a, b)


@pytest.mark.parametrize("seed", range(4))
def test_bits_depend_on_nothing_else(seed):
    rng = np.random.default_rng(seed)
    M, a, b = problems(rng, 300)
    whole = bits(epsilot.solve_batch(M, a, b, n_threads=1, **KEEP))
    assert bits(epsilot.solve_batch(M, a, b, n_threads=3, **KEEP)) == whole
    assert bits(epsilot.solve_batch(iter(M), iter(a), iter(b), **KEEP)) == whole
    back = epsilot.solve_batch(M[::-1], a[::-1], b[::-1])
    np.testing.assert_array_equal(back.value[::-1], epsilot.solve_batch(M, a, b).value)
    for k in rng.integers(300, size=5):
        assert (
            epsilot.solve_batch(M[k : k + 1], a[k : k + 1], b[k : k + 1]).value[0]
            == (epsilot.solve_batch(M, a, b).value[k])
        )


def test_chunks_do_not_matter(rng, monkeypatch):
    M, a, b = rng.random((200, 9, 12)), rng.random((200, 9)), rng.random((200, 12))
    whole = bits(epsilot.solve_batch(M, a, b, normalize=True, **KEEP))
    for most in (1, 7, 200):
        tune(monkeypatch, problems_module, max_chunk_problems=most)
        assert bits(epsilot.solve_batch(M, a, b, normalize=True, **KEEP)) == whole
        assert bits(epsilot.solve_batch(list(M), list(a), list(b), normalize=True, **KEEP)) == whole


SHAPES = {
    "stacked": lambda M, a, b: (M, a, b),
    "lists": lambda M, a, b: (list(M), list(a), list(b)),
    "nested lists": lambda M, a, b: (M.tolist(), a.tolist(), b.tolist()),
    "iterators": lambda M, a, b: (iter(M), (x for x in a), map(np.asarray, b)),
    "an iterator and stacks": lambda M, a, b: (iter(M), a, b),
    "float32": lambda M, a, b: (M.astype("f4").astype("f8"), a, b),
    "column-major": lambda M, a, b: (np.asfortranarray(M), np.asfortranarray(a), b),
    "read-only": lambda M, a, b: (np.broadcast_to(M, M.shape), a, b),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_problems_come_in_many_shapes(rng, shape):
    M, a, b = rng.random((20, 4, 5)), rng.dirichlet(np.ones(4), 20), rng.dirichlet(np.ones(5), 20)
    M = M.astype("f4").astype("f8")
    expected = epsilot.solve_batch(M, a, b).value
    np.testing.assert_array_equal(epsilot.solve_batch(*SHAPES[shape](M, a, b)).value, expected)


@pytest.mark.parametrize("is_array", [True, False])
def test_what_is_shared(rng, is_array):
    form = np.asarray if is_array else list
    M, a, b = rng.random((4, 5)), rng.dirichlet(np.ones(4), 3), rng.dirichlet(np.ones(5), 3)
    for arguments, single in (
        ((M, form(a), form(b)), lambda k: (M, a[k], b[k])),
        ((M, a[0], form(b)), lambda k: (M, a[0], b[k])),
        ((M, form(a), None), lambda k: (M, a[k], None)),
        ((form([M, M + 1, 2 * M]), None, b[0]), lambda k: ([M, M + 1, 2 * M][k], None, b[0])),
        ((form([M, M + 1, 2 * M]), None, None), lambda k: ([M, M + 1, 2 * M][k], None, None)),
    ):
        batch = epsilot.solve_batch(*arguments)
        for k in range(3):
            assert batch.value[k] == pytest.approx(epsilot.solve(*single(k)).value, abs=1e-14)
    assert len(epsilot.solve_batch(M)) == 1


def test_weights_of_some_problems_only(rng):
    M, a = rng.random((4, 3, 5)), rng.dirichlet(np.ones(3), 4)
    batch = epsilot.solve_batch(M, [None, a[1], None, a[3]], [None] * 4)
    for k, w in enumerate((None, a[1], None, a[3])):
        assert batch.value[k] == pytest.approx(epsilot.solve(M[k], w).value, abs=1e-14)


def test_masses_units_and_types(rng):
    M, a, b = rng.random((6, 5, 5)), rng.random((6, 5)), rng.random((6, 5))
    b *= (a.sum(1) / b.sum(1))[:, None]
    batch = epsilot.solve_batch(M, 7 * a, 7 * b, eps=1e-9, **KEEP)
    assert batch[2].value == batch.value[2]
    assert batch.value[2] == pytest.approx(epsilot.solve(M[2], 7 * a[2], 7 * b[2]).value)
    rough = epsilot.solve_batch(M, a.astype(np.float32), b.astype(np.float32))
    np.testing.assert_allclose(rough.value * 7, batch.value, rtol=1e-5)
    counts = epsilot.solve_batch(M, np.ones((6, 5), int), [[1, 1, 1, 1, 1]] * 6)
    assert counts.value[0] == pytest.approx(5 * epsilot.solve(M[0]).value)


BAD = {
    "NaN": (lambda M, a, b: (np.full_like(M, np.nan), a, b)),
    "infinite cost": (lambda M, a, b: (np.where(M > 0.5, np.inf, M), a, b)),
    "negative weight": (lambda M, a, b: (M, -a, b)),
    "no mass": (lambda M, a, b: (M, 0 * a, b)),
    "NaN weight": (lambda M, a, b: (M, a, b * np.nan)),
    "totals differ": (lambda M, a, b: (M, a, 2 * b)),
    "weights too short": (lambda M, a, b: (M, a[1:], b)),
    "no matrix": (lambda M, a, b: (M[0], a, b)),
    "empty": (lambda M, a, b: (np.zeros((0, 3)), a, b)),
    "words": (lambda M, a, b: ([["a", "b"]], a, b)),
    "no arcs": (lambda M, a, b: (sparse.csr_array(0 * M), a, b)),
    "out of range": (lambda M, a, b: (1e-306 * M, a, b)),
}


@pytest.mark.parametrize("place", [0, 4])
@pytest.mark.parametrize("name", BAD)
def test_a_bad_problem_spoils_no_other_and_says_what_solve_says(rng, name, place):
    M, a, b = problems(rng, 9)
    good = epsilot.solve_batch(M, a, b)
    M[place], a[place], b[place] = BAD[name](rng.random((5, 6)), np.full(5, 0.2), np.full(6, 1 / 6))
    with pytest.raises(InvalidProblem) as alone:
        epsilot.solve(M[place], a[place], b[place])
    batch = epsilot.solve_batch(M, a, b, on_error="collect", **KEEP)
    assert batch.errors == {place: str(alone.value)}
    assert batch.status[place] is Status.REFUSED
    others = np.arange(9) != place
    np.testing.assert_array_equal(batch.value[others], good.value[others])
    assert np.isnan(batch.value[place])
    assert np.isnan(batch.gap[place])
    assert batch.plans[place].nnz == 0
    with pytest.raises(InvalidProblem, match=f"problem {place} has no result"):
        batch[place]
    with pytest.raises(
        InvalidBatch, match=f"1 of 9 problems were refused, first problem {place}"
    ) as all_:
        epsilot.solve_batch(M, a, b)
    np.testing.assert_array_equal(all_.value.result.value, batch.value)


REFUSED = {
    "client": ({"client": "tcp://somewhere"}, "must be a distributed.Client"),
    "on_error": ({"on_error": "ignore"}, "on_error.*'raise' or 'collect'"),
    "plans": ({"plans": 3}, "plans is 3"),
    "eps and rtol": ({"eps": 1.0, "rtol": 1.0}, "eps and rtol"),
    "rtol": ({"rtol": 1e-20}, "rtol"),
    "threads": ({"n_threads": 0}, "n_threads"),
    "max_seconds": ({"max_seconds": -1}, "max_seconds"),
    "resume": ({"resume": 3}, "resume is 3"),
    "no file": ({"resume": "no such file"}, "no such file"),
    "dimensions": ({"M": np.ones((2, 2, 2, 2))}, "M has 4 dimensions"),
    "a number": ({"M": 3.0}, "M has 0 dimensions"),
    "counts differ": ({"a": np.ones((3, 2))}, "M has 2 and a has 3 problems"),
    "stacked weights of another size": ({"a": np.ones((2, 3)) / 3}, r"a has shape \(3,\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_arguments_are_refused_in_one_sentence(name):
    changes, pattern = REFUSED[name]
    with pytest.raises(InvalidProblem, match=pattern) as caught:
        epsilot.solve_batch(**({"M": np.ones((2, 2, 2))} | changes))
    assert "\n" not in str(caught.value)


def test_an_accuracy_out_of_reach_is_refused_problem_by_problem(rng):
    M = [rng.random((3, 3)), 1e9 * rng.random((3, 3))]
    batch = epsilot.solve_batch(M, eps=1e-6, on_error="collect")
    assert list(batch.errors) == [1]
    assert "float64" in batch.errors[1]


def test_no_problems_at_all():
    for M in ([], iter([]), np.zeros((0, 3, 3))):
        batch = epsilot.solve_batch(M, **KEEP)
        assert len(batch) == 0
        assert batch.value.size == 0
        assert len(batch.plans) == len(batch.potentials) == 0


def test_a_batch_is_a_sequence_of_results(rng):
    M, a, b = problems(rng, 40)
    batch = epsilot.solve_batch(M, a, b, **KEEP)
    for k, result in enumerate(batch):
        assert (result.value, result.lower_bound) == (batch.value[k], batch.lower_bound[k])
        assert result.marginal_error == batch.marginal_error[k]
        assert result.gap <= result.target
        np.testing.assert_array_equal(result.plan, batch.plans[k].toarray())
        for x, y in zip(result.potentials, batch.potentials[k], strict=True):
            np.testing.assert_array_equal(x, y)
        assert epsilot.certify(M[k], a[k], b[k], plan=result.plan).upper == pytest.approx(
            result.value, rel=1e-12
        )
    assert [result.value for result in batch[3:5]] == list(batch.value[3:5])
    assert batch[-1].value == batch.value[-1]
    with pytest.raises(IndexError):
        batch[40]
    with pytest.raises(InvalidProblem, match="index"):
        batch["a"]
    assert batch.plans.tosparse().shape == (sum(map(len, a)), sum(map(len, b)))
    assert batch.plans.tosparse().sum() == pytest.approx(40)


def test_results_of_problems_that_changed_or_are_gone(rng):
    M = rng.random((3, 4, 4))
    a = rng.dirichlet(np.ones(4), 3)
    batch = epsilot.solve_batch(M, a, **KEEP)
    M[1] += 1
    a[2] = a[2, ::-1]
    assert batch[0].converged
    for k in (1, 2):
        with pytest.raises(InvalidProblem, match=f"problem {k} was changed"):
            batch[k]
    with pytest.raises(InvalidProblem, match="iterator"):
        epsilot.solve_batch(iter(M), **KEEP)[0]


@pytest.mark.parametrize("keep", [{}, {"plans": True}, {"potentials": True}])
@pytest.mark.parametrize("kind", [{}, {"reg": 0.1}, {"mass": 0.5}])
def test_an_answer_that_was_not_kept_is_solved_again_to_the_same_bits(rng, keep, kind):
    M = rng.random((3, 4, 4))
    batch, kept = (epsilot.solve_batch(M, **kind, **x) for x in (keep, KEEP))
    for k, (again, stored) in enumerate(zip(batch, kept, strict=True)):
        assert again.value == stored.value == batch.value[k]
        assert again.plan.tobytes() == stored.plan.tobytes()
        for x, y in zip(again.potentials, stored.potentials, strict=True):
            assert x.tobytes() == y.tobytes()


def test_large_problems_take_the_ordinary_path(rng):
    sizes = (5, 300, 8, 280)
    M = [rng.random((n, n)) for n in sizes]
    a = [rng.dirichlet(np.ones(n)) for n in sizes]
    batch = epsilot.solve_batch(M, a, a, rtol=1e-6, **KEEP)
    assert batch.converged.all()
    for k in range(4):
        assert batch.value[k] == pytest.approx(epsilot.exact(M[k], a[k], a[k]).value, rel=1e-6)
        assert batch.plans[k].shape == M[k].shape
        f, g = batch.potentials[k]
        assert (f[:, None] + g <= M[k]).all()
    assert batch[1].value == batch.value[1]
    assert [plan.shape for plan in batch.plans[2:]] == [x.shape for x in M[2:]]
    assert [f.size for f, _ in batch.potentials[::-1]] == [*sizes[::-1]]


def test_geometries_are_costs_too(rng):
    cloud = epsilot.PointCloud(rng.random((6, 2)), rng.random((7, 2)))
    batch = epsilot.solve_batch([cloud, rng.random((3, 3))], **KEEP)
    assert batch.converged.all()
    assert batch.plans[0].shape == (6, 7)
    assert batch.value[0] == pytest.approx(epsilot.solve(cloud).value)


@pytest.mark.parametrize("keep", [{}, KEEP])
def test_a_limit_keeps_what_is_done_and_resuming_does_the_rest(rng, tmp_path, keep):
    M, a, b = problems(rng, 900)
    whole = epsilot.solve_batch(M, a, b, **keep)
    path = tmp_path / "batch.npz"
    with pytest.warns(ConvergenceWarning, match="stopped early: of 900 problems"):
        part = epsilot.solve_batch(M, a, b, max_seconds=0, n_threads=1, checkpoint=path, **keep)
    n = int(part.converged.sum())
    assert 0 < n < 900
    np.testing.assert_array_equal(part.value[:n], whole.value[:n])
    assert np.isnan(part.value[n:]).all()
    assert set(part.status[n:]) == {Status.MAX_SECONDS}
    with pytest.raises(InvalidProblem, match="problem 899 has no result, since the batch stopped"):
        part[899]
    resumed = epsilot.solve_batch(M, a, b, resume=path, checkpoint=path, **keep)
    assert bits(resumed) == bits(whole)
    if keep:
        assert resumed[899].value == whole.value[899]
        assert resumed[0].plan.tobytes() == whole[0].plan.tobytes()
    assert bits(BatchResult.load(path)) == bits(whole)
    with pytest.raises(InvalidProblem, match="other problems"):
        epsilot.solve_batch(M[:-1], a[:-1], b[:-1], resume=path, **keep)
    with pytest.raises(InvalidProblem, match="other problems"):
        epsilot.solve_batch(M, a, b, rtol=0.1, resume=path, **keep)
    with pytest.raises(InvalidProblem, match="iterator"):
        epsilot.solve_batch(iter(M), iter(a), iter(b), resume=path, **keep)


def test_resuming_with_more_wishes_is_refused(rng, tmp_path):
    path = tmp_path / "batch.npz"
    epsilot.solve_batch(rng.random((3, 2, 2)), checkpoint=path)
    M = np.random.default_rng(0).random((3, 2, 2))
    with pytest.raises(InvalidProblem, match=r"no plans and no potentials"):
        epsilot.solve_batch(M, resume=path, **KEEP)


@pytest.mark.parametrize("n", [1, 5, 8, 32])
def test_assignments_have_the_same_bits_in_both_kernels(rng, n, monkeypatch):
    """Batches of equal masses are solved by a kernel without the simplex."""
    M, a = rng.random((6, n, n)), np.full((6, n), 1 / n)
    alone = epsilot.solve_batch(M, **KEEP)
    monkeypatch.setattr("epsilot.engine.batch.engine.have_equal_masses", lambda problems: False)
    for batch in (epsilot.solve_batch(M, **KEEP), epsilot.solve_batch(M, a, a, **KEEP)):
        np.testing.assert_array_equal(batch.value, alone.value)
        np.testing.assert_array_equal(batch.lower_bound, alone.lower_bound)
        for field in ("i", "j", "flow"):
            ours, theirs = getattr(batch.plans, field), getattr(alone.plans, field)
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(batch.potentials.f, alone.potentials.f)


@pytest.mark.parametrize(
    ("weights", "are_equal"),
    [
        ((None, None), True),
        ((np.full(3, 2.0), None), True),
        ((np.array([1.0, 2.0, 3.0]), None), False),
        ((np.array([0.0, 1.0, 1.0]), None), False),
    ],
)
def test_batches_of_equal_masses_are_recognised(weights, are_equal, rng, monkeypatch):
    seen = []
    solve_all = engine.solve_all
    monkeypatch.setattr(
        engine, "solve_all", lambda *call: seen.append(call[-1] is None) or solve_all(*call)
    )
    epsilot.solve_batch(rng.random((2, 3, 3)), *weights, normalize=True)
    assert seen[-1] == are_equal


def test_ctrl_c_keeps_what_is_done(rng):
    M = rng.random((4, 6, 6))

    def interrupted():
        for k in range(100_000):
            if k == 5000:
                os.kill(os.getpid(), signal.SIGINT)
            yield M[k % 4]

    with pytest.warns(ConvergenceWarning, match="stopped early"):
        batch = epsilot.solve_batch(interrupted())
    assert 5000 <= len(batch) < 100_000
    np.testing.assert_array_equal(batch.value, np.resize(epsilot.solve_batch(M).value, len(batch)))


def test_saved_batches_come_back(rng, tmp_path):
    M, a, b = problems(rng, 20)
    M[3] = np.full((2, 2), np.nan)
    batch = epsilot.solve_batch(M, a, b, on_error="collect", **KEEP)
    path = tmp_path / "batch.npz"
    batch.save(path)
    back = BatchResult.load(path)
    assert bits(back) == bits(batch)
    assert back.errors == batch.errors
    assert list(back.status) == list(batch.status)
    np.testing.assert_array_equal(back.plans[5].toarray(), batch.plans[5].toarray())
    with pytest.raises(InvalidProblem, match="read from a file"):
        back[0]
    with pytest.raises(InvalidProblem, match="no pairs"):
        back.to_matrix()
    with np.load(path) as saved:
        content = dict(saved)
    content["value"] = content["value"] + 1
    np.savez(path, **content)
    with pytest.raises(InvalidProblem, match="changed"):
        BatchResult.load(path)


def test_repr_is_one_line(rng):
    text = repr(epsilot.solve_batch(rng.random((4, 3, 3))))
    assert "4 of 4 certified" in text
    assert "\n" not in text


METRICS = ["sqeuclidean", "euclidean", "cityblock", "cosine", lambda x, Y: abs(Y - x).sum(1) ** 0.5]


@pytest.mark.parametrize("metric", METRICS, ids=lambda x: x if isinstance(x, str) else "callable")
def test_clouds(rng, metric):
    X, Y = rng.normal(size=(12, 7, 3)), rng.normal(size=(12, 9, 3))
    a, b = rng.dirichlet(np.ones(7), 12), rng.dirichlet(np.ones(9), 12)
    batch = epsilot.solve_sample_batch(X, Y, a, b, metric=metric, **KEEP)
    ragged = epsilot.solve_sample_batch(list(X), iter(Y), a, b, metric=metric, **KEEP)
    assert bits(batch) == bits(ragged)
    for k in range(12):
        alone = epsilot.solve_sample(X[k], Y[k], a[k], b[k], metric=metric, rtol=1e-9)
        assert batch.value[k] == pytest.approx(alone.value, abs=1e-12 * abs(alone.value))
    assert batch[4].value == batch.value[4]
    shared = epsilot.solve_sample_batch(X[0], Y, a[0], None, metric=metric)
    assert shared.value[0] == pytest.approx(
        epsilot.solve_sample(X[0], Y[0], a[0], metric=metric).value, rel=1e-12
    )


CLOUDS = {
    "NaN": (np.full((3, 2), np.nan), "not finite"),
    "another space": (np.ones((3, 5)), "one space"),
    "no points": (np.ones((0, 2)), "shape"),
    "too far": (np.array([[0.0, 1e200]]), "apart"),
}


@pytest.mark.parametrize("name", CLOUDS)
def test_bad_clouds_say_what_solve_sample_says(rng, name):
    bad, pattern = CLOUDS[name]
    X = [rng.random((4, 2)), bad, rng.random((3, 2))]
    batch = epsilot.solve_sample_batch(X, rng.random((5, 2)), on_error="collect")
    assert list(batch.errors) == [1]
    assert pattern in batch.errors[1]
    assert np.isfinite(batch.value[[0, 2]]).all()


def test_clouds_whose_squares_underflow(rng):
    X, Y = 1e-170 * rng.random((2, 5, 2)), 1e-170 * rng.random((2, 4, 2))
    batch = epsilot.solve_sample_batch(X, Y, metric="euclidean")
    alone = epsilot.solve_sample(X[1], Y[1], metric="euclidean")
    assert batch.value[1] == pytest.approx(alone.value, rel=1e-12)
    assert batch.value[1] > 0
    with pytest.raises(InvalidProblem, match="metric is 'euclid'"):
        epsilot.solve_sample_batch(X, Y, metric="euclid")
