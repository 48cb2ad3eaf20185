"""Batches on a cluster: the same bits as here, whatever happens to the workers."""

import asyncio

import numpy as np
import pytest
from distributed import Client

import epsilot
from epsilot import BatchResult, ConvergenceWarning, InvalidProblem
from epsilot.distributed import task_payloads
from tuning import tune

pytestmark = pytest.mark.xdist_group("cluster")

GRID = np.abs(np.subtract.outer(np.arange(40.0), np.arange(40.0)))


def costs():
    return np.random.default_rng(0).random((600, 12, 12))


def ragged():
    rng = np.random.default_rng(1)
    shapes = [(3, 4), (300, 20), (2, 2), *[(15, 9)] * 40]
    return [np.full((2, 2), np.nan), *(rng.random(shape) for shape in shapes)]


def bags():
    rng = np.random.default_rng(2)
    H = np.where(rng.random((60, 40)) < 0.5, 0.0, rng.random((60, 40)))
    return H / H.sum(axis=1, keepdims=True)


#: name: what is solved, with keywords for where and how
BATCHES = {
    "stacked": lambda **how: epsilot.solve_batch(costs(), **how),
    "shared": lambda **how: epsilot.solve_batch(GRID, bags(), bags()[::-1], **how),
    "stream": lambda **how: epsilot.solve_batch(iter(costs()), **how),
    "ragged": lambda **how: epsilot.solve_batch(ragged(), on_error="collect", **how),
    "clouds": lambda **how: epsilot.solve_sample_batch(costs()[:200], costs()[200:400], **how),
    "pairs": lambda **how: epsilot.pairwise(bags(), GRID, **how),
    "partial": lambda **how: epsilot.solve_batch(costs()[:60], mass=0.5, **how),
    "entropic KL": lambda **how: epsilot.pairwise(bags()[:9], GRID, unbalanced=2.0, reg=0.5, **how),
    "nothing": lambda **how: epsilot.solve_batch(np.zeros((0, 2, 2)), **how),
}


def assert_same(found, expected):
    for name in ("value", "lower_bound", "marginal_error", "codes"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.errors == expected.errors
    for name in ("plans", "potentials"):
        there, here = getattr(found, name), getattr(expected, name)
        if here is not None:
            for key, array in here.arrays().items():
                np.testing.assert_array_equal(there.arrays()[key], array)


@pytest.mark.parametrize("name", BATCHES)
def test_the_bits_are_those_of_this_process(client, name):
    solve = BATCHES[name]
    assert_same(
        solve(client=client, plans=True, potentials=True), solve(plans=True, potentials=True)
    )


def test_a_killed_worker_costs_its_tasks_only(client, kill_later):
    H = np.random.default_rng(3).dirichlet(np.ones(40), 130)
    kill_later(0.2, 1)
    assert_same(epsilot.pairwise(H, GRID, client=client), epsilot.pairwise(H, GRID))


def test_what_a_limit_leaves_is_resumed(client, tmp_path):
    path = tmp_path / "batch.npz"
    with pytest.warns(ConvergenceWarning, match="stopped early"):
        part = BATCHES["stacked"](client=client, checkpoint=path, max_seconds=0)
    assert 0 < part.converged.sum() < 600
    assert_same(BATCHES["stacked"](client=client, resume=path), BATCHES["stacked"]())


def test_arrays_that_problems_share_are_sent_once(client, monkeypatch):
    from epsilot.distributed.cluster import Cluster

    sent, send = [], Cluster.send
    monkeypatch.setattr(Cluster, "send", lambda self, x: sent.append(x) or send(self, x))
    tune(monkeypatch, task_payloads, first_task_items=1)
    H = np.random.default_rng(4).dirichlet(np.ones(120), 400)
    pairs = np.random.default_rng(5).integers(0, 400, (3000, 2))
    M = np.abs(np.subtract.outer(np.arange(120.0), np.arange(120.0)))
    epsilot.pairwise(H, M, pairs=pairs, client=client)
    assert M.nbytes in [x.nbytes for x in sent]
    assert len(sent) == len({id(x) for x in sent}) <= 6


def test_the_command_line_asks_a_scheduler(client, tmp_path, monkeypatch, capsys):
    from epsilot.cli.app import app

    monkeypatch.chdir(tmp_path)
    np.save("H.npy", bags())
    np.save("M.npy", GRID)
    address = client.scheduler.address
    with pytest.raises(SystemExit) as ended:
        app(["pairwise", "H.npy", "--cost", "M.npy", "--out", "D.npz", "--scheduler", address])
    assert not ended.value.code
    assert "certified: 1,770" in capsys.readouterr().out
    assert_same(BatchResult.load("D.npz"), BATCHES["pairs"]())


def asynchronous(client):
    async def make():
        async with Client(client.scheduler.address, asynchronous=True, set_as_default=False) as c:
            return c

    return asyncio.run(make())


@pytest.mark.parametrize(
    ("make", "sentence"),
    [(str, "must be a distributed.Client"), (asynchronous, "is asynchronous")],
)
def test_what_is_no_client_is_refused(client, make, sentence):
    with pytest.raises(InvalidProblem, match=sentence):
        BATCHES["pairs"](client=make(client))


def test_an_address_where_nobody_answers(tmp_path, monkeypatch, capsys):
    from epsilot.cli import main

    monkeypatch.chdir(tmp_path)
    np.save("H.npy", bags())
    np.save("M.npy", GRID)
    words = "epsilot pairwise H.npy --cost M.npy --scheduler tcp://127.0.0.1:1"
    monkeypatch.setattr("sys.argv", words.split())
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "no Dask scheduler answers at 'tcp://127.0.0.1:1'" in capsys.readouterr().err
