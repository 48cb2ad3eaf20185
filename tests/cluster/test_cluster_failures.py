"""Failures: workers, schedulers and connections that fail, and what is kept."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from distributed import Client
from distributed.comm import CommClosedError

import epsilot
from epsilot import ConvergenceWarning, Status
from epsilot.distributed import ClusterError
from epsilot.distributed import cluster as cluster_module
from epsilot.distributed.cluster import Cluster
from epsilot.engine.batch.engine import BatchAccumulator
from tuning import tune

pytestmark = pytest.mark.xdist_group("cluster")

DASK = Path(sys.executable).with_name("dask")
X, Y = np.random.default_rng(0).random((2, 400, 2))
HOW = {"method": "sinkhorn", "rtol": 1e-9, "multiscale": False, "on_limit": "ignore"}


@pytest.fixture(autouse=True)
def _small_passes_are_sent_too(monkeypatch):
    tune(monkeypatch, cluster_module, max_local_entries=0)


def solve(**how):
    return epsilot.solve_sample(X, Y, **{"lazy": None, "max_iter": 4, **HOW, **how})


def assert_same(found, expected):
    assert (found.value, found.lower_bound) == (expected.value, expected.lower_bound)
    for x, y in zip(found.potentials, expected.potentials, strict=True):
        np.testing.assert_array_equal(x, y)


def test_twenty_kills_at_random_moments(client, cluster, workers):
    rng, left, expected = random.Random(0), [20], solve(lazy=True)

    def kill():
        while left[0] > 0:
            time.sleep(0.3 * rng.random())
            # A nanny gives up on a worker that dies while it starts.
            up = [x for x in cluster.workers.values() if x.status.name == "running" and x.pid]
            if up:
                with suppress(ProcessLookupError, TypeError):  # it has just gone
                    os.kill(rng.choice(up).pid, signal.SIGKILL)
                    left[0] -= 1

    killer = threading.Thread(target=kill)
    killer.start()
    n_runs = 0
    while killer.is_alive() or n_runs == 0:
        assert_same(solve(client=client), expected)
        n_runs += 1


def fail_twice():
    """Make the passes of this worker raise, two times."""
    from epsilot.distributed import passes

    compute, left = passes.compute, [2]

    def failing(*args):
        if left[0] > 0:
            left[0] -= 1
            raise OSError("a disk that is out of order")
        return compute(*args)

    passes.compute = failing


def test_a_task_that_raises_is_tried_again(client, workers):
    client.run(fail_twice, workers=list(client.nthreads())[:1])
    try:
        assert_same(solve(client=client), solve(lazy=True))
    finally:
        client.restart(wait_for_workers=True)


def test_a_connection_that_breaks_is_made_again(cluster):
    with Client(cluster, set_as_default=False) as own:

        def look(record):
            own.loop.add_callback(own.scheduler_comm.comm.abort)
            time.sleep(0.2)

        there = solve(client=own, callback=look)
    assert_same(there, solve(lazy=True, callback=lambda record: None))


def test_a_client_that_is_closed(cluster, tmp_path):
    own = Client(cluster, set_as_default=False)
    with pytest.raises(ClusterError, match="is lost; start it again and create a new client"):
        solve(client=own, callback=lambda record: own.close())
    with pytest.raises(ClusterError, match="is lost"):
        solve(client=own)


def test_an_interruption_returns_the_best_so_far(client):
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        result = solve(
            client=client,
            on_limit="warn",
            max_iter=1000,
            callback=lambda record: os.kill(os.getpid(), signal.SIGINT),
        )
    assert result.status is Status.INTERRUPTED
    assert 0 < result.gap < np.inf


def test_an_interruption_keeps_what_a_batch_has(client, tmp_path, monkeypatch):
    M, path = np.random.default_rng(1).random((4000, 16, 16)), tmp_path / "batch.npz"
    add, asked = BatchAccumulator.add, []

    def add_and_interrupt(held, answered):
        add(held, answered)
        if not asked:
            asked.append(os.kill(os.getpid(), signal.SIGINT))

    monkeypatch.setattr(BatchAccumulator, "add", add_and_interrupt)
    with pytest.warns(ConvergenceWarning, match="stopped early"):
        part = epsilot.solve_batch(M, client=client, checkpoint=path)
    assert 0 < part.converged.sum() < 4000
    whole = epsilot.solve_batch(M, client=client, resume=path)
    np.testing.assert_array_equal(whole.value, epsilot.solve_batch(M).value)


# -- a scheduler and workers of their own ------------------------------------------------------


@pytest.fixture
def programs():
    """Return a function that starts a program in the background; all of them end with the test."""
    running = []

    def start(*words, path=None):
        env = os.environ if path is None else os.environ | {"PYTHONPATH": str(path)}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        running.append(subprocess.Popen([str(word) for word in words], env=env, **quiet))
        return running[-1]

    yield start
    for program in running:
        program.kill()
        program.wait()


@pytest.fixture
def outside(programs, tmp_path):
    """Return a scheduler's process and a client of it."""
    file = tmp_path / "scheduler.json"
    scheduler = programs(
        DASK, "scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", file
    )
    with Client(scheduler_file=str(file), timeout=600, set_as_default=False) as client:
        yield scheduler, client


def worker(programs, client, path=None):
    programs(DASK, "worker", client.scheduler.address, "--nthreads", "1", "--no-nanny",
             "--no-dashboard", path=path)  # fmt: skip


def test_a_scheduler_that_is_gone(programs, outside, tmp_path, monkeypatch):
    tune(monkeypatch, cluster_module, reconnect_seconds=0.5)
    scheduler, client = outside
    worker(programs, client)
    run, batch = tmp_path / "run.npz", tmp_path / "batch.npz"
    M = np.random.default_rng(1).random((60, 300, 8))
    epsilot.solve_batch(M[:2], client=client)
    with pytest.raises(ClusterError, match=r"scheduler at tcp://.* is lost"):
        solve(client=client, checkpoint=run, max_iter=100, callback=lambda _: scheduler.kill())
    resumed = solve(lazy=True, resume=run, max_iter=20)
    assert_same(resumed, solve(lazy=True, max_iter=20, callback=lambda _: None))
    with pytest.raises(ClusterError, match="is lost"):
        epsilot.solve_batch(M, client=client, checkpoint=batch)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("__version__ = '0.0.1'", "has epsilot 0.0.1 and this process has"),
        ("raise ImportError('no such thing')", "cannot import epsilot, and this process has"),
    ],
)
def test_a_worker_with_another_version_or_none(programs, outside, tmp_path, module, words):
    _, client = outside
    (tmp_path / "epsilot").mkdir()
    (tmp_path / "epsilot" / "__init__.py").write_text(module)
    worker(programs, client, path=tmp_path)
    client.wait_for_workers(1, timeout=600)
    with pytest.raises(ClusterError, match=words):
        solve(client=client)


def test_a_worker_that_goes_while_it_is_asked_is_not_judged(client, monkeypatch):
    found = {"tcp://gone": CommClosedError("closed"), "tcp://here": epsilot.__version__}
    monkeypatch.setattr(client, "run", lambda *args, **how: found)
    Cluster.of(client)
    found["tcp://here"] = ImportError("no such thing")
    with pytest.raises(ClusterError, match="tcp://here cannot import epsilot"):
        Cluster.of(client)


def test_a_late_worker_with_another_version(programs, outside, tmp_path):
    _, client = outside
    copied = shutil.ignore_patterns("__pycache__", "data")
    shutil.copytree(Path(epsilot.__file__).parent, tmp_path / "epsilot", ignore=copied)
    (tmp_path / "epsilot" / "version.py").write_text("__version__ = '0.0.1'")
    threading.Timer(0.5, worker, [programs, client, tmp_path]).start()
    with pytest.raises(ClusterError, match=r"has epsilot 0\.0\.1 and this process has"):
        solve(client=client)
