"""Barycentres with free points: values fall, brackets are those of the points returned."""

import signal
from dataclasses import replace

import numpy as np
import pytest

import epsilot
from epsilot.barycenters import free_support
from epsilot.engine.clock import Clock


@pytest.fixture
def clouds(rng):
    return [rng.normal(size=(n, 2)) + shift for n, shift in ((12, 0.0), (9, 3.0), (15, -2.0))]


def cost(result, clouds, masses):
    """Return Σ w_k OT(a_k, b) of the result's points, by the exact method."""
    total = 0.0
    for w, X, a in zip(result.weights, clouds, masses, strict=True):
        M = ((X[:, None] - result.points) ** 2).sum(axis=2)
        total += w * epsilot.exact(M, a, result.barycenter).value
    return total


@pytest.mark.parametrize("weights", [None, [3, 1, 0]])
def test_the_bracket_is_that_of_the_points(clouds, weights, rng):
    masses = [rng.random(len(X)) + 0.1 for X in clouds]
    masses = [a / a.sum() for a in masses]
    result = epsilot.barycenter_sample(clouds, 6, masses=masses, weights=weights, rtol=1e-6)
    assert result.converged
    assert "local optimum" in str(result.status)
    assert result.lower_bound - 1e-9 <= cost(result, clouds, masses) <= result.value + 1e-9
    assert result.gap <= 1e-5 * result.value
    falls = -np.diff(result.history)
    assert (falls >= -1e-5 * result.value).all()
    for plan, a in zip(result.plans, masses, strict=True):
        r, c = plan.marginals()
        assert abs(r - a).sum() + abs(c - result.barycenter).sum() <= 1e-12


def test_points_are_means_of_what_they_receive(clouds):
    result = epsilot.barycenter_sample(clouds, 5, decrease=0.0, max_iter=30, seed=3)
    again = sum(
        w * (plan.T @ X) / result.barycenter[:, None]
        for w, plan, X in zip(result.weights, result.plans, clouds, strict=True)
    )
    np.testing.assert_allclose(result.points, again, atol=1e-9)


def test_one_cloud_is_its_own_barycentre(rng):
    X = rng.normal(size=(7, 3))
    result = epsilot.barycenter_sample([X], 7, init=X)
    np.testing.assert_allclose(result.points, X, atol=1e-12)
    assert result.value == pytest.approx(0.0, abs=1e-12)


LIMITS = [({"max_iter": 0}, "max_iter"), ({"max_seconds": 0.0}, "max_seconds")]


@pytest.mark.parametrize(("limit", "word"), LIMITS)
def test_limits(clouds, limit, word):
    result = epsilot.barycenter_sample(clouds, 4, **limit)
    assert word in str(result.status)
    assert not result.converged
    assert result.n_iter == 0


REFUSED = [
    ({"clouds": []}, "clouds is empty"),
    ({"clouds": [np.ones((2, 2)), np.ones((2, 3))]}, "all clouds must have the same number"),
    ({"n_points": 0}, "n_points is 0"),
    ({"masses": [[1.0]]}, "masses has 1 entries for 3 clouds"),
    ({"b": [1.0, 0, 0, 1]}, r"b\[1\] is 0; every point"),
    ({"b": [1.0]}, r"b has shape \(1,\)"),
    ({"init": np.zeros((4, 3))}, r"init has shape \(4, 3\)"),
    ({"weights": [1, 2]}, r"weights has shape \(2,\)"),
    ({"decrease": -1}, "decrease is -1"),
    ({"rtol": 0}, "rtol is 0"),
]


@pytest.mark.parametrize(("changed", "sentence"), REFUSED)
def test_refusals_are_one_sentence(clouds, changed, sentence):
    asked = {"clouds": clouds, "n_points": 4} | changed
    with pytest.raises(epsilot.InvalidProblem, match=sentence):
        epsilot.barycenter_sample(**asked)


def trace(result):
    arrays = [result.points, *(x for pair in result.potentials for x in pair)]
    bits = [x.tobytes() for x in arrays] + [plan.toarray().tobytes() for plan in result.plans]
    return bits, result.history, result.value, result.lower_bound, result.n_iter, result.status


@pytest.mark.parametrize("max_iter", [0, 1, 2])
def test_a_resumed_run_repeats_the_uninterrupted_one(clouds, max_iter, tmp_path):
    path = tmp_path / "run.npz"
    whole = epsilot.barycenter_sample(clouds, 6, seed=3)
    assert whole.n_iter > max_iter
    epsilot.barycenter_sample(clouds, 6, seed=3, max_iter=max_iter, checkpoint=path)
    assert trace(epsilot.barycenter_sample(clouds, 6, seed=3, resume=path)) == trace(whole)
    with pytest.raises(epsilot.InvalidProblem, match="was saved with problem"):
        epsilot.barycenter_sample(clouds[:2], 6, seed=3, resume=path)


def test_a_callback_sees_every_round_and_may_end_the_run(clouds):
    seen = []
    result = epsilot.barycenter_sample(clouds, 6, callback=seen.append)
    assert [record.upper for record in seen] == result.history
    assert [record.n_iter for record in seen] == list(range(1, len(seen) + 1))
    stopped = epsilot.barycenter_sample(clouds, 6, callback=lambda record: record.n_iter == 2)
    assert stopped.status.name == "CALLBACK"
    assert stopped.history == result.history[:2]


def test_ctrl_c_returns_certified_plans(clouds):
    result = epsilot.barycenter_sample(
        clouds, 6, callback=lambda record: signal.raise_signal(signal.SIGINT)
    )
    assert result.status.name == "INTERRUPTED"
    assert result.lower_bound <= result.value == result.history[0]


def test_every_solve_has_the_time_that_is_left(clouds, monkeypatch):
    limits, execute = [], free_support.execute

    def noted(problem, request):
        limits.append(request.max_seconds)
        return execute(problem, request)

    monkeypatch.setattr(free_support, "execute", noted)
    epsilot.barycenter_sample(clouds, 6, max_seconds=600)
    assert len(limits) > len(clouds)
    assert 600 > limits[0] > limits[-1] > 0


def test_a_round_that_a_limit_made_worse_is_abandoned(clouds, monkeypatch):
    whole, solved = epsilot.barycenter_sample(clouds, 6), free_support.FreeSupport.solved
    rounds = []

    def late(self, Y):
        rounds.append(Y)
        if len(rounds) < 3:
            return solved(self, Y)
        return solved(replace(self, clock=Clock(0.0)), Y)

    monkeypatch.setattr(free_support.FreeSupport, "solved", late)
    result = epsilot.barycenter_sample(clouds, 6)
    assert result.status.name == "MAX_SECONDS"
    assert result.value == whole.history[1]
