"""A folder with a small problem in it, and a way to run commands there."""

import json
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from PIL import Image

from epsilot.cli import main


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        assert self.out.count("\n") == 1, "exactly one line"
        return json.loads(self.out)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Change to a directory that holds one problem in all its forms."""
    rng = np.random.default_rng(0)
    monkeypatch.chdir(tmp_path)
    np.save("M.npy", rng.random((6, 8)))
    np.savez("all.npz", M=np.load("M.npy"), a=np.full(6, 1 / 6), b=np.full(8, 1 / 8))
    np.savetxt("M.csv", np.load("M.npy"), delimiter=",", fmt="%.17g")
    np.savetxt("b.csv", np.full(8, 1 / 8), header="weight", comments="")
    np.save("a2.npy", np.full(6, 1 / 3))
    np.savetxt("x.csv", rng.random((6, 2)), delimiter=",", header="x,y", comments="")
    np.savetxt("y.txt", rng.random((8, 2)))
    for name in ("one", "two"):
        Image.fromarray(rng.integers(0, 255, (4, 5)).astype(np.uint8)).save(f"{name}.png")
    Image.fromarray(np.zeros((4, 5), dtype=np.uint8)).save("black.png")
    Image.fromarray(np.ones((3, 3), dtype=np.uint8)).save("small.png")
    return tmp_path


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """Return a function that runs a command as the shell would."""

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["epsilot", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Outcome(ended.value.code or 0, out, err)

    return command
