"""Barycentres on the driver: checkpoints, resumed runs, interruptions, callbacks, limits."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from barycenter_problems import make

import epsilot
from epsilot.barycenters import semi_dual
from epsilot.barycenters.bregman import Bregman
from epsilot.deadline import OutOfTime

FIELD = np.full((2, 40, 60), 0.1 / 2400)
FIELD[0, 5:15, 5:15] += 0.9 / 100
FIELD[1, 20:30, 40:50] += 0.9 / 100


def stored(name, **keywords):
    return lambda **more: epsilot.barycenter(*make(name).args, **keywords, **more)


def grid(**keywords):
    return lambda **more: epsilot.barycenter_grid(
        FIELD, metric="sqeuclidean", spacing=0.02, normalize=True, **keywords, **more
    )


#: Runs by method, with and without reg, from coarse grids.
RUNS = {
    "anderson": stored("images", method="anderson", rtol=1e-3),
    "anderson, long memory": stored("squared", method="anderson", rtol=1e-3, memory=12),
    "ibp": stored("l1", method="ibp", rtol=0.02),
    "lbfgs": stored("ragged", method="lbfgs", rtol=1e-4),
    "pdasmd": stored("images", method="pdasmd", rtol=0.02, seed=3),
    "exact": stored("images", method="exact", rtol=1e-9),
    "exact, few arcs": stored("l1", method="exact", rtol=1e-9, arcs=1),
    "entropic": stored("zeros", method="anderson", reg=0.05, tol=1e-9),
    "entropic lbfgs": stored("squared", method="lbfgs", reg=0.05, tol=1e-9),
    "coarse grids": grid(method="anderson", rtol=0.05),
    "coarse grids, lbfgs": grid(method="lbfgs", rtol=0.1),
}


def trace(result):
    """Return everything that a resumed run must repeat, but the seconds."""
    history = [record._replace(seconds=0.0) for record in result.history]
    arrays = [result.barycenter, *(x for pair in result.potentials for x in pair)]
    bits = [x.tobytes() for x in arrays] + [plan.row(0).tobytes() for plan in result.plans]
    return history, bits, result.value, result.lower_bound, result.n_iter, result.status


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("name", RUNS)
def test_a_resumed_run_repeats_the_uninterrupted_one(name, share, tmp_path):
    run, path = RUNS[name], tmp_path / "run.npz"
    whole = run()
    assert whole.converged
    run(max_iter=max(1, int(share * whole.n_iter)), checkpoint=path, on_limit="ignore")
    resumed = run(resume=path)
    assert trace(resumed) == trace(whole)
    assert resumed.work == whole.work


KILLED = """
import os, signal, sys
sys.path[:0] = {paths!r}
from test_barycenter_runs import RUNS
def kill(record):
    if record.n_iter >= {n_iter}:
        os.kill(os.getpid(), signal.SIGKILL)
RUNS[{name!r}](checkpoint={path!r}, callback=kill)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["anderson", "pdasmd", "exact, few arcs"])
def test_a_killed_run_is_resumed_to_the_same_bits(name, tmp_path):
    run, path = RUNS[name], tmp_path / "run.npz"
    whole = run()
    last = whole.history[-1].n_iter
    assert len(whole.history) > 1
    code = KILLED.format(paths=sys.path, name=name, path=str(path), n_iter=last)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    assert trace(run(resume=path)) == trace(whole)


def test_a_run_that_was_interrupted_in_a_step_is_resumed(monkeypatch, tmp_path):
    """A step that the clock abandons leaves the state whole, and is repeated by a resumed run."""
    run, path, calls = RUNS["lbfgs"], tmp_path / "run.npz", []
    whole, evaluate = run(), semi_dual.evaluate

    def late(*args):
        calls.append(args)
        if len(calls) == 40:
            raise OutOfTime
        return evaluate(*args)

    monkeypatch.setattr(semi_dual, "evaluate", late)
    stopped = run(checkpoint=path, on_limit="ignore")
    assert stopped.status is epsilot.Status.MAX_SECONDS
    assert 0 < stopped.n_iter < whole.n_iter
    assert stopped.gap < np.inf
    monkeypatch.setattr(semi_dual, "evaluate", evaluate)
    assert trace(run(resume=path)) == trace(whole)


def test_an_abandoned_first_certificate_still_proves_the_state_before(monkeypatch):
    """Potentials before an abandoned step prove better bounds than the crude ones."""
    step, steps = Bregman.step, []

    def late(self, target, state, rng):
        steps.append(state.columns)
        if len(steps) == 8:
            raise OutOfTime
        return step(self, target, state, rng)

    monkeypatch.setattr(Bregman, "step", late)
    result = RUNS["anderson"](on_limit="ignore")
    assert result.status is epsilot.Status.MAX_SECONDS
    assert result.n_iter == 7
    assert result.lower_bound > 0  # the least cost is 0


def test_ctrl_c_returns_the_best_certified_answer():
    seen = []

    def interrupt(record):
        seen.append(record)
        signal.raise_signal(signal.SIGINT)

    keywords = {"rtol": 1e-9, "method": "anderson", "on_limit": "ignore", "callback": interrupt}
    result = epsilot.barycenter(*make("images").args, **keywords)
    assert result.status is epsilot.Status.INTERRUPTED
    assert len(seen) == 1
    assert result.lower_bound <= result.value < np.inf
    with pytest.raises(KeyboardInterrupt):  # handlers are put back
        signal.raise_signal(signal.SIGINT)


def test_a_callback_that_changes_costs_changes_no_proof():
    A, M = np.eye(3), np.ones((3, 3)) - np.eye(3)
    expected = epsilot.barycenter(A, M.copy(), method="anderson").value

    def spoil(record):
        M[:] = 5.0

    assert epsilot.barycenter(A, M, method="anderson", callback=spoil).value == expected


def test_progress_and_limits_of_a_run(capsys):
    result = RUNS["anderson"](progress=True)
    assert result.converged
    assert RUNS["anderson"](max_iter=5, on_limit="ignore").n_iter == 5


def test_a_checkpoint_of_another_family_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    stored("images", method="anderson", max_iter=2, on_limit="ignore")(checkpoint=path)
    for other, changed in (("l1", {}), ("images", {"method": "lbfgs"}), ("images", {"seed": 4})):
        keywords = {"method": "anderson"} | changed
        with pytest.raises(epsilot.InvalidProblem, match="was saved with"):
            epsilot.barycenter(*make(other).args, **keywords, resume=path)


def test_a_memory_beyond_the_machine_is_refused():
    with pytest.raises(MemoryError, match="use a smaller memory"):
        epsilot.barycenter(*make("images").args, method="anderson", memory=10**12)


@pytest.mark.parametrize("keywords", [{"mass": 0.5}, {"unbalanced": 1.0}])
def test_other_kinds_of_problem_are_refused_in_one_sentence(keywords):
    name = next(iter(keywords))
    with pytest.raises(epsilot.InvalidProblem, match=f"{name} was given; a barycentre"):
        epsilot.barycenter(*make("images").args, **keywords)
