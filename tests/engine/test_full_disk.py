"""A disk that is full costs the file, never the answer."""

import errno
import os

import numpy as np
import pytest

import epsilot
from epsilot import UnsavedWarning
from epsilot.engine.batch import engine
from sample_problems import trace
from tuning import tune

RNG = np.random.default_rng(4)
M, H = RNG.random((9, 9)), RNG.dirichlet(np.ones(9), 5)


@pytest.fixture
def fill_disk(monkeypatch):
    """Return a function after which nothing can be written."""

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return lambda: monkeypatch.setattr("epsilot.files.writing.os.fsync", full)


def solve(**more):
    keywords = {"method": "sinkhorn", "rtol": 1e-3, "on_limit": "ignore"}
    return epsilot.solve(M, H[0], H[1], **keywords, **more)


def test_a_run_whose_checkpoint_cannot_be_written_returns_its_answer(tmp_path, fill_disk):
    whole, path = solve(), tmp_path / "run.npz"
    fill_disk()
    with pytest.warns(UnsavedWarning, match=r"run\.npz could not be written \(No space left"):
        found = solve(checkpoint=path)
    assert trace(found) == trace(whole)
    assert found.value == whole.value
    assert list(tmp_path.iterdir()) == []


def test_the_last_checkpoint_that_was_written_can_be_resumed(tmp_path, fill_disk):
    whole, path = solve(), tmp_path / "run.npz"
    solve(checkpoint=path, max_iter=2)
    fill_disk()
    with pytest.warns(UnsavedWarning):
        found = solve(checkpoint=path, resume=path)
    assert trace(found) == trace(whole)
    assert trace(solve(resume=path)) == trace(whole)


def test_a_run_goes_on_when_the_directory_of_its_checkpoint_is_gone(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()

    def remove(record):
        if folder.exists():
            folder.rmdir()

    with pytest.warns(UnsavedWarning, match="there is no directory"):
        found = solve(checkpoint=folder / "run.npz", callback=remove)
    assert trace(found) == trace(solve())


@pytest.mark.parametrize("seconds", [0.0, 3600.0], ids=["as it goes", "in the end"])
def test_a_batch_that_cannot_be_written_is_returned(seconds, tmp_path, fill_disk, monkeypatch):
    tune(monkeypatch, engine, save_seconds=seconds)
    whole = epsilot.solve_batch(M, H[0], H)
    fill_disk()
    with pytest.warns(UnsavedWarning, match="No space left"):
        found = epsilot.solve_batch(M, H[0], H, checkpoint=tmp_path / "batch.npz")
    np.testing.assert_array_equal(found.value, whole.value)
    assert found.is_complete
    assert list(tmp_path.iterdir()) == []
