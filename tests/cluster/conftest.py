"""One cluster of real processes for the tests of a file, and the means to harm it.

It does not outlive them: its threads draw random numbers, which Hypothesis takes for a strategy's.
Test files have ``pytestmark = pytest.mark.xdist_group("cluster")``: one process runs them all.
"""

import logging
import os
import signal

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
        return list(client.run(os.getpid).values())

    yield pids
    client.wait_for_workers(2, timeout=60)


@pytest.fixture
def kill(workers):
    """Return a function that kills some workers, as a machine that fails would."""

    def kill(n):
        for pid in workers()[:n]:
            os.kill(pid, signal.SIGKILL)

    return kill
