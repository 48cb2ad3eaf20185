"""Batches of every kind of problem: each answer is that of ``solve``, bit by bit."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import epsilot
from epsilot import BatchResult, ConvergenceWarning, InvalidProblem, Status
from epsilot.engine.batch import engine
from tuning import tune

KEEP = {"plans": True, "potentials": True}
#: name: keywords of a kind, or of another way to solve, that compiled code does not know
KINDS = {
    "entropic": {"reg": 0.1},
    "entropic to a gap": {"reg": 0.1, "tol": 1e-4},
    "partial": {"mass": 0.3},
    "entropic partial": {"mass": 0.3, "reg": 0.1},
    "KL": {"unbalanced": 0.5},
    "KL with two penalties": {"unbalanced": (0.5, math.inf)},
    "entropic KL": {"unbalanced": 0.5, "reg": 0.1},
    "TV": {"unbalanced": 0.5, "unbalanced_type": "tv", "eps": 1e-3},
    "entropic TV": {"unbalanced": 0.5, "unbalanced_type": "tv", "reg": 0.1},
    "a method": {"method": "sinkhorn", "rtol": 0.05},
    "a method with an option": {"method": "pdasmd", "batch_size": 2, "rtol": 0.2, "seed": 3},
    "one epoch": {"method": "sinkhorn", "max_iter": 1},
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def stacks(rng, size=5, n=6, m=4):
    """Return stacked costs and weights of total 1."""
    a, b = rng.dirichlet(np.ones(n), size), rng.dirichlet(np.ones(m), size)
    return rng.random((size, n, m)), a, b


def assert_is(batch, k, alone):
    """Check that the answer to problem k is a result, bit by bit."""
    for name in ("value", "lower_bound", "marginal_error"):
        assert getattr(batch, name)[k] == getattr(alone, name)
    assert batch.status[k] is alone.status
    found = batch[k]
    for name in ("method", "n_iter", "reg", "target", "value_linear", "converged", "mass_price"):
        assert getattr(found, name) == getattr(alone, name), name
    np.testing.assert_array_equal(found.plan, alone.plan)
    np.testing.assert_array_equal(batch.plans[k].toarray(), alone.plan)
    for x, y in zip(found.potentials, alone.potentials, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.filterwarnings("ignore::epsilot.ConvergenceWarning")
@each_kind
def test_every_answer_is_that_of_solve(rng, kind):
    M, a, b = stacks(rng)
    batch = epsilot.solve_batch(M, a, b, **KINDS[kind], **KEEP)
    for k in range(len(M)):
        alone = epsilot.solve(M[k], a[k], b[k], on_limit="ignore", **KINDS[kind])
        assert_is(batch, k, alone)


@pytest.mark.filterwarnings("ignore::epsilot.ConvergenceWarning")
@each_kind
def test_every_answer_is_that_of_solve_sample(rng, kind):
    X, Y = rng.random((4, 6, 2)), rng.random((4, 5, 2))
    batch = epsilot.solve_sample_batch(X, Y, metric="euclidean", **KINDS[kind], **KEEP)
    for k in range(4):
        how = KINDS[kind] | {"metric": "euclidean", "on_limit": "ignore"}
        assert_is(batch, k, epsilot.solve_sample(X[k], Y[k], **how))


@pytest.mark.filterwarnings("ignore::epsilot.ConvergenceWarning")
@pytest.mark.parametrize("kind", [k for k in KINDS if k != "KL with two penalties"])
def test_every_pair_is_that_of_solve(rng, kind):
    H = np.where(rng.random((4, 7)) < 0.3, 0.0, rng.random((4, 7)))
    H /= H.sum(axis=1, keepdims=True)
    M = np.abs(np.subtract.outer(np.arange(7.0), np.arange(7.0)))
    batch = epsilot.pairwise(H, M, **KINDS[kind], **KEEP)
    for k, (i, j) in enumerate(batch.pairing.pairs):
        assert_is(batch, k, epsilot.solve(M, H[i], H[j], on_limit="ignore", **KINDS[kind]))
    D = batch.to_matrix()
    np.testing.assert_array_equal(D, D.T)
    for i in range(4):
        own = epsilot.solve(M, H[i], H[i], on_limit="ignore", **KINDS[kind])
        assert own.lower_bound - 1e-12 <= D[i, i] <= own.value + 1e-12


def test_without_a_second_collection_both_penalties_are_equal(rng):
    H, M = rng.dirichlet(np.ones(3), 2), 1.0 - np.eye(3)
    with pytest.raises(InvalidProblem, match=r"unbalanced is \(1.0, 2.0\); without H2 both"):
        epsilot.pairwise(H, M, unbalanced=(1.0, 2.0))
    D = epsilot.pairwise(H, M, H, unbalanced=(1.0, 2.0)).to_matrix()
    assert D[0, 1] == epsilot.solve(M, H[0], H[1], unbalanced=(1.0, 2.0)).value
    assert D[1, 0] == epsilot.solve(M, H[1], H[0], unbalanced=(1.0, 2.0)).value


@st.composite
def batches(draw):
    """Draw costs, weights of any totals, and a kind with its numbers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size, n, m = draw(st.integers(1, 4)), draw(st.integers(1, 6)), draw(st.integers(1, 6))
    M = rng.normal(size=(size, n, m)) if draw(st.booleans()) else rng.random((size, n, m))
    a, b = (rng.random((size, k)) + 0.1 for k in (n, m))
    price = draw(st.sampled_from([0.5, 2.0, (3.0, 1.5), (2.0, math.inf)]))
    kind = draw(
        st.sampled_from(
            [
                {"mass": float(min(a.sum(1).min(), b.sum(1).min())) * 0.7},
                {"unbalanced": price},
                {"unbalanced": 8.0, "unbalanced_type": "tv"},
            ]
        )
    )
    return M, a, b, kind | ({"reg": 0.2} if draw(st.booleans()) else {"rtol": 0.05})


@pytest.mark.filterwarnings("ignore::epsilot.ConvergenceWarning")
@given(batches())
def test_a_batch_is_a_loop_of_solve(drawn):
    M, a, b, how = drawn
    batch = epsilot.solve_batch(M, a, b, on_error="collect", **how, **KEEP)
    for k in range(len(M)):
        if k in batch.errors:
            with pytest.raises(InvalidProblem) as alone:
                epsilot.solve(M[k], a[k], b[k], **how)
            assert str(alone.value) == batch.errors[k]
        else:
            assert_is(batch, k, epsilot.solve(M[k], a[k], b[k], on_limit="ignore", **how))


@each_kind
@pytest.mark.filterwarnings("ignore::epsilot.ConvergenceWarning")
def test_bits_depend_neither_on_threads_nor_on_chunks(rng, kind, monkeypatch):
    M, a, b = stacks(rng)
    whole = epsilot.solve_batch(M, a, b, n_threads=1, **KINDS[kind], **KEEP)
    tune(monkeypatch, engine, execute_slowdown=1e6)  # one problem per chunk
    for how in ({"n_threads": 3}, {}):
        found = epsilot.solve_batch(iter(M), list(a), b, **KINDS[kind], **how, **KEEP)
        for name in ("value", "lower_bound", "codes"):
            np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
        np.testing.assert_array_equal(found.plans.flow, whole.plans.flow)
        np.testing.assert_array_equal(found.potentials.f, whole.potentials.f)


def test_a_result_of_a_batch_is_not_solved_again(rng, monkeypatch):
    M, a, b = stacks(rng)
    compiled = epsilot.solve_batch(M, a, b, **KEEP)
    single = epsilot.solve_batch(M, a, b, mass=0.5, **KEEP)
    for name in ("execute", "solve_all"):
        monkeypatch.setattr(engine, name, None)
    assert [x.value for x in compiled] == compiled.value.tolist()
    assert [x.value for x in single] == single.value.tolist()
    np.testing.assert_allclose(single[1].gradients().a, single.potentials[1][0])


def test_a_limit_keeps_the_finished_problems_and_resuming_solves_the_rest(
    rng, tmp_path, monkeypatch
):
    M, a, b = stacks(rng, size=8)
    how = {"unbalanced": 0.5, "reg": 0.1}
    path = tmp_path / "batch.npz"
    whole = epsilot.solve_batch(M, a, b, **how, **KEEP)
    solve_one, n_solved = engine.solve_one, 0

    def interrupted(chunk, k, request, clock):
        nonlocal n_solved
        n_solved += 1
        if n_solved == 3:
            clock.ends = -math.inf
        return solve_one(chunk, k, request, clock)

    monkeypatch.setattr(engine, "solve_one", interrupted)
    with pytest.warns(ConvergenceWarning, match="stopped early"):
        part = epsilot.solve_batch(M, a, b, **how, **KEEP, max_seconds=1e6, checkpoint=path)
    assert n_solved == 3
    np.testing.assert_array_equal(part.value[:2], whole.value[:2])
    assert set(part.status[2:]) == {Status.MAX_SECONDS}
    for other in ({"unbalanced": 0.4, "reg": 0.1}, {"unbalanced": 0.5, "reg": 0.2}, {}):
        with pytest.raises(InvalidProblem, match="of other keywords"):
            epsilot.solve_batch(M, a, b, **other, **KEEP, resume=path)
    resumed = epsilot.solve_batch(M, a, b, **how, **KEEP, resume=path, checkpoint=path)
    for found in (resumed, BatchResult.load(path)):
        np.testing.assert_array_equal(found.value, whole.value)
        np.testing.assert_array_equal(found.plans.flow, whole.plans.flow)


def test_a_limit_does_not_count_the_compiler(rng, monkeypatch):
    M, a, b = stacks(rng, size=3)
    execute = engine.execute

    def compiling(problem, request, clock):
        clock.pause(1e6)
        return execute(problem, request, clock)

    monkeypatch.setattr(engine, "execute", compiling)
    ends = []
    solve_one = engine.solve_one

    def watched(chunk, k, request, clock):
        result = solve_one(chunk, k, request, clock)
        ends.append(clock.seconds_left())
        return result

    monkeypatch.setattr(engine, "solve_one", watched)
    epsilot.solve_batch(M, a, b, mass=0.5, max_seconds=1e3)
    assert [round(x / 1e6) for x in ends] == [1, 2, 3]


REFUSED = {
    "two kinds": ({"mass": 0.5, "unbalanced": 1.0}, "mass and unbalanced were given"),
    "a negative mass": ({"mass": -1.0}, "mass is -1.0; it must be"),
    "two goals": ({"mass": 0.5, "reg": 0.1, "eps": 0.1}, "eps and reg were given"),
    "a callback": ({"callback": print}, "callback was given for many problems"),
    "a warm start": ({"potentials_init": ([0.0], [0.0])}, "potentials_init was given for many"),
    "on_limit": ({"on_limit": "raise"}, "on_limit was given for many problems"),
    "an unknown option": ({"verbose": True}, "verbose"),
    "too much mass": ({"mass": 2.0}, "mass is 2, a sums to 1 and b to 1; no more can be moved"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_keywords_that_do_not_fit_are_refused_in_one_sentence(rng, name):
    how, pattern = REFUSED[name]
    M, a, b = stacks(rng)
    for solve in (
        lambda: epsilot.solve_batch(M, a, b, **how),
        lambda: epsilot.solve_sample_batch(rng.random((2, 3, 2)), rng.random((2, 3, 2)), **how),
        lambda: epsilot.pairwise(a, 1.0 - np.eye(6), **how),
    ):
        with pytest.raises(ValueError, match=pattern) as caught:  # both of our errors
            solve()
        assert "\n" not in str(caught.value)
