"""One cluster of real processes for the tests of a file, and the means to harm it.

It does not outlive them: its threads draw random numbers, which Hypothesis takes for a strategy's.
Test files have ``pytestmark = pytest.mark.xdist_group("cluster")``: one process runs them all.
"""

import logging
import os
import signal
import threading
from contextlib import suppress

import pytest

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    # A busy machine takes its time to start a worker again, and must not be given up.
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"})
    with (
        patient,
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster, set_as_default=False) as made:
        yield made


@pytest.fixture
def workers(client):
    """Return a function that gives the processes of the workers; all are back afterwards."""

    def pids():
        found = client.run(os.getpid, on_error="return").values()
        return [pid for pid in found if isinstance(pid, int)]

    yield pids
    client.wait_for_workers(2, timeout=600)
    while len(pids()) < 2:  # the scheduler does not notice at once that a worker is dead
        client.wait_for_workers(2, timeout=600)


@pytest.fixture
def kill_later(workers):
    """Return a function that kills some workers after some seconds, within the test."""
    timers = []

    def kill(n):
        for pid in workers()[:n]:
            with suppress(ProcessLookupError):  # the worker has just been killed
                os.kill(pid, signal.SIGKILL)

    def start(seconds, n):
        timers.append(threading.Timer(seconds, kill, [n]))
        timers[-1].start()

    yield start
    for timer in timers:
        timer.join()
