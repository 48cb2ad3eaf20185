"""How a run ends, what it leaves, and how it goes on."""

import signal
import warnings

import numpy as np
import pytest

import epsilot
from epsilot import ConvergenceWarning, InvalidProblem, NotConverged
from sample_problems import PROBLEMS, assert_feasible, trace

IMAGES = next(row for row in PROBLEMS if row.name == "images 6x6")
METHODS = sorted(entry.name for entry in epsilot.methods() if entry.costs == "any")

# Limits: a target out of reach of the allowance, for the iterative method.
HARD = {"M": IMAGES.M, "a": IMAGES.a, "b": IMAGES.b, "eps": 1e-3, "method": "sinkhorn"}
LIMITS = {
    "max_iter=0": {"max_iter": 0},
    "max_iter=1": {"max_iter": 1},
    "max_iter=7": {"max_iter": 7},
    "max_seconds=0": {"max_seconds": 0},
    "callback": {"callback": lambda record: True},
    "callback returning a NumPy bool": {"callback": lambda record: np.bool_(True)},
}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_leaves_a_feasible_plan_with_its_true_gap(limit):
    result = epsilot.solve(**HARD, **LIMITS[limit], on_limit="ignore")
    assert not result.converged
    assert result.gap > 1e-3
    assert_feasible(result, IMAGES.M, IMAGES.a, IMAGES.b)
    assert result.n_iter <= LIMITS[limit].get("max_iter", np.inf)
    assert len(str(result.status)) > 0


@pytest.mark.parametrize("limit", [{"max_iter": 0}, {"max_seconds": 0}], ids=str)
def test_a_limit_before_the_first_step(limit):
    result = epsilot.solve(**HARD | {"method": "exact"}, **limit, on_limit="ignore")
    assert not result.converged
    assert_feasible(result, IMAGES.M, IMAGES.a, IMAGES.b)


@pytest.mark.parametrize("stop", ["certificate", "paper"])
@pytest.mark.parametrize("max_iter", [1, 200, None])
def test_status_agrees_with_converged(max_iter, stop):
    arguments = HARD | {"eps": 0.05, "stop": stop}
    result = epsilot.solve(**arguments, max_iter=max_iter, on_limit="ignore")
    reached = {epsilot.Status.CERTIFIED, epsilot.Status.PUBLISHED_STOP}
    assert result.converged == (result.status in reached)
    assert result.converged == (result.gap <= 0.05)


@pytest.mark.parametrize("limit", ["max_iter=0", "max_iter=7", "max_seconds=0"])
def test_on_limit_raise_carries_the_result(limit):
    with pytest.raises(NotConverged) as caught:
        epsilot.solve(**HARD, **LIMITS[limit], on_limit="raise")
    assert_feasible(caught.value.result, IMAGES.M, IMAGES.a, IMAGES.b)


def test_on_limit_warns_by_default():
    with pytest.warns(ConvergenceWarning, match="gap"):
        result = epsilot.solve(**HARD, max_iter=3)
    assert result.n_iter == 3


def test_on_limit_ignore_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        epsilot.solve(**HARD, max_iter=3, on_limit="ignore")


def test_callback_sees_each_record():
    seen = []
    result = epsilot.solve(**HARD, max_iter=40, on_limit="ignore", callback=seen.append)
    assert seen == list(result.history)


def test_ctrl_c_ends_in_a_feasible_result():
    def interrupt(record):
        signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    result = epsilot.solve(**HARD, on_limit="ignore", callback=interrupt)
    assert signal.getsignal(signal.SIGINT) is before
    assert not result.converged
    assert_feasible(result, IMAGES.M, IMAGES.a, IMAGES.b)


@pytest.mark.parametrize("method", METHODS)
def test_result_does_not_follow_later_changes_of_the_input(method):
    M, a, b = IMAGES.M.copy(), IMAGES.a.copy(), IMAGES.b.copy()
    result = epsilot.solve(M, a, b, eps=IMAGES.eps, method=method)
    for array in (M, a, b):
        array[...] = 1.0
    assert_feasible(result, IMAGES.M, IMAGES.a, IMAGES.b)
    assert result.value == pytest.approx((IMAGES.M * result.plan).sum(), rel=1e-12)


def test_number_of_threads_does_not_change_the_trace(rng):
    M = rng.uniform(0, 1, (300, 440))  # enough entries for two threads
    arguments = {"M": M, "eps": 0.01, "method": "sinkhorn", "max_iter": 4, "on_limit": "ignore"}
    one, two = (epsilot.solve(**arguments, n_threads=n) for n in (1, 2))
    assert trace(one) == trace(two)
    np.testing.assert_array_equal(one.plan, two.plan)


def test_warm_start_saves_iterations():
    cold = epsilot.solve(**HARD)
    warm = epsilot.solve(**HARD, potentials_init=cold.potentials)
    assert warm.n_iter < cold.n_iter


TARGETS = {
    "eps": {"eps": 1e-3},
    "rtol": {"rtol": 0.02},
    "reg": {"reg": 0.01, "tol": 1e-7},
    "paper": {"eps": 0.05, "stop": "paper"},
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_resume_reproduces_the_uninterrupted_run(target, share, tmp_path):
    arguments = dict(M=IMAGES.M, a=IMAGES.a, b=IMAGES.b, method="sinkhorn", **TARGETS[target])
    whole = epsilot.solve(**arguments)
    stop = {"max_iter": int(share * whole.n_iter), "on_limit": "ignore"}
    path = tmp_path / "state.npz"
    part = epsilot.solve(**arguments, **stop, checkpoint=path)
    assert part.n_iter < whole.n_iter
    resumed = epsilot.solve(**arguments, resume=path)
    assert trace(resumed) == trace(whole)
    assert resumed.work.operations == whole.work.operations
    np.testing.assert_array_equal(resumed.plan, whole.plan)


def test_resume_refuses_another_problem(tmp_path):
    path = tmp_path / "state.npz"
    epsilot.solve(**HARD, max_iter=5, on_limit="ignore", checkpoint=path)
    other = HARD | {"M": IMAGES.M + np.eye(len(IMAGES.M))}
    with pytest.raises(InvalidProblem, match=r"(?i)checkpoint|state\.npz"):
        epsilot.solve(**other, resume=path)


def test_result_says_what_ran():
    result = epsilot.solve(**HARD, seed=3)
    assert result.method == "sinkhorn"
    assert result.seed == 3
    assert result.version
    assert result.seconds >= 0
    assert result.work.certificate > 0
    assert len(repr(result).splitlines()) == 3
    with pytest.raises(AttributeError):
        result.gap = 0.0
