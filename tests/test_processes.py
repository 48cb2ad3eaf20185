"""Functions of others run in a process of their own, which ends when the time is up."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import epsilot
from epsilot import Status, deadline, processes
from epsilot.barycenters import column_generation
from epsilot.deadline import OutOfTime
from epsilot.engine.clock import Clock
from epsilot.solvers import exact
from tuning import tune


@pytest.fixture
def started(monkeypatch):
    """The processes that were started."""
    found, popen = [], subprocess.Popen

    def noted(*args, **keywords):
        found.append(popen(*args, **keywords))
        return found[-1]

    monkeypatch.setattr(subprocess, "Popen", noted)
    return found


def test_the_answer_of_another_process_is_returned(started):
    assert processes.call("math", "hypot", 3.0, 4.0) == 5.0
    assert len(started) == 1
    assert processes.call("os", "getpid") == started[1].pid


def test_a_process_is_ended_when_the_time_is_up(started):
    n_threads, looks = threading.active_count(), iter([False, False, True])
    with pytest.raises(OutOfTime), deadline.until(lambda: next(looks)):
        processes.call("time", "sleep", 3600)
    assert started[0].returncode != 0
    assert threading.active_count() == n_threads


ORPHAN = """
import functools, os, subprocess, threading
from epsilot import processes
os.set_inheritable(os.dup(1), True)
subprocess.Popen = functools.partial(subprocess.Popen, close_fds=False)
threading.Timer(0.1, os._exit, [0]).start()
processes.call("time", "sleep", 3600)
"""


def test_a_process_ends_with_its_parent():
    paths = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    # Both hold the pipe: this returns only when both have ended.
    subprocess.run([sys.executable, "-c", ORPHAN], env=paths, stdout=subprocess.PIPE, timeout=300)


@pytest.mark.parametrize("executable", ["", "/no/such/python", "/usr/bin/embedding-program"])
def test_without_a_process_the_function_is_called_here(executable, monkeypatch):
    monkeypatch.setattr(sys, "executable", executable)
    assert processes.call("os", "getpid") == os.getpid()


def test_an_error_of_the_function_is_raised_here():
    with pytest.raises(ValueError, match="math domain"):
        processes.call("math", "sqrt", -1.0)


def test_pot_gives_the_same_bits_in_a_process_of_its_own(rng, started, monkeypatch):
    M, a, b = rng.random((30, 40)), rng.dirichlet(np.ones(30)), rng.dirichlet(np.ones(40))
    here = epsilot.solve(M, a, b, method="exact")
    assert not started
    tune(monkeypatch, exact, max_inline_seconds=0.0)
    there = epsilot.solve(M, a, b, method="exact")
    assert len(started) == 1
    assert started[0].returncode == 0
    np.testing.assert_array_equal(here.plan, there.plan)
    for x, y in zip(here.potentials, there.potentials, strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_limit_ends_exact(rng, started, monkeypatch):
    tune(monkeypatch, exact, max_inline_seconds=0.0)
    monkeypatch.setattr(Clock, "is_late", lambda clock: bool(started))
    found = epsilot.solve(rng.random((30, 40)), method="exact", on_limit="ignore")
    assert found.status is Status.MAX_SECONDS
    assert started[0].returncode != 0
    assert found.lower_bound <= found.value


def test_barycentres_are_the_same_bits_if_highs_runs_in_a_process(rng, started, monkeypatch):
    A, M = rng.dirichlet(np.ones(9), 3), rng.random((9, 9))
    here = epsilot.barycenter(A, M, method="exact")
    assert not started
    tune(monkeypatch, column_generation, max_arcs_in_process=0)
    there = epsilot.barycenter(A, M, method="exact")
    assert {process.returncode for process in started} == {0}
    np.testing.assert_array_equal(here.barycenter, there.barycenter)
    assert (here.value, here.lower_bound) == (there.value, there.lower_bound)


def test_a_limit_ends_the_linear_program_of_a_barycentre(rng, started, monkeypatch):
    tune(monkeypatch, column_generation, max_arcs_in_process=0)
    monkeypatch.setattr(Clock, "is_late", lambda clock: bool(started))
    A, M = rng.dirichlet(np.ones(9), 3), rng.random((9, 9))
    found = epsilot.barycenter(A, M, method="exact", rtol=1e-9, on_limit="ignore")
    assert found.status is Status.MAX_SECONDS
    assert started[0].returncode != 0
    assert found.lower_bound <= found.value
