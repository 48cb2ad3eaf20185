"""A disk that is full: commands print their answer, and say which file is not there."""

import errno
import os

import numpy as np
import pytest


@pytest.mark.parametrize(
    "command",
    [
        ["solve", "--cost", "M.npy", "--out", "out.npz"],
        ["batch", "problems.npz", "--out", "out.npz"],
        ["barycenter", "one.png", "two.png", "--out", "out.npy"],
    ],
    ids=lambda command: command[0],
)
def test_results_are_printed_before_write_errors(run, rng, command, monkeypatch):
    np.savez("problems.npz", M=rng.random((5, 4, 3)))

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("epsilot.files.writing.os.fsync", full)
    done = run(*command)
    assert done.code == 2
    assert "ertified" in done.out
    assert "No space left on device" in done.err
