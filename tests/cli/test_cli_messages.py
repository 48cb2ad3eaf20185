"""What commands say of wrong arguments: little, whatever the length of what was given."""

import os
import re
import sys

import numpy as np
import pytest

LONG = "x" * 10_000
#: Characters of the longest sentence, and of a usage error with its frame.
SENTENCE, USAGE = 320, 1200

WRONG = [
    [LONG],
    ["solve", "--cost", LONG],
    ["solve", "--cost", f"{LONG}.csv"],
    ["solve", "--cost", "M.npy", "--eps", LONG],
    ["solve", "--cost", "M.npy", f"--{LONG}"],
    ["solve", "--cost", "M.npy", LONG],
    ["solve", LONG, LONG],
    ["solve", "--cost", "M.npy", "--seed", LONG],
    ["solve", "--cost", "M.npy", "--method", LONG],
    ["solve", "--cost", "M.npy", "--option", LONG],
    ["solve", "--cost", "M.npy", "--option", f"{LONG}=3"],
    ["solve", "--cost", "M.npy", "--method", "pdasmd", "--option", f"batch_size={LONG}"],
    ["solve", "--cost", "M.npy", "--unbalanced", LONG],
    ["solve", "--cost", "M.npy", "--plot", f"{LONG}.png"],
    ["solve", "--cost", "M.npy", "--checkpoint", LONG],
    ["solve", "--cost", "M.npy", "--resume", LONG],
    ["solve", "--cost", "M.npy", "--a", LONG],
    ["solve", "--cost", "M.npy", "--metric", LONG],
    ["solve", "--cost", "many.npz"],
    ["solve", "--cost", f"many.npz:{LONG}"],
    ["solve", "--cost", "long.npz"],
    ["solve", "--cost", "cell.csv"],
    ["solve", "--cost", "wide\nname.csv"],
    ["solve", "--points", "M.npy", "M.npy", "--metric", LONG],
    ["solve", "--images", LONG, LONG],
    ["certify", "--cost", "M.npy", "--plan", LONG],
    ["certify", "--cost", "M.npy", "--result", LONG],
    ["compare", "--cost", "M.npy", "--methods", LONG],
    ["methods", LONG],
    ["batch", LONG],
    ["batch", "many.npz"],
    ["pairwise", LONG, LONG],
    ["transfer", LONG, LONG, "-o", "o.png"],
    ["transfer", "one.png", "two.png", "-o", f"{LONG}.png"],
    ["barycenter", "one.png", LONG, "-o", "o.png"],
    ["barycenter", "one.png", "two.png", "-o", "o.png", "--weights", LONG],
    ["reproduce", LONG],
    ["bench", LONG],
]


@pytest.mark.parametrize("arguments", WRONG, ids=lambda words: " ".join(words)[:60])
def test_wrong_arguments_are_not_repeated_at_length(run, arguments):
    np.savez("many.npz", **{f"arr_{k}": np.ones(3) for k in range(2000)})
    np.savez("long.npz", **{letter * 200: np.ones(3) for letter in "abcdefgh"})
    with open("cell.csv", "w", encoding="utf-8") as file:
        file.write("1,2\n3," + "q" * 5000)
    done = run(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert not re.search(r"(?<![A-Za-z0-9])_[A-Za-z]|Traceback|\.tmp", done.err)
    if done.err.startswith("epsilot: "):
        assert done.err.count("\n") == 1
        assert len(done.err) <= SENTENCE
    else:
        assert len(done.err) <= USAGE


@pytest.mark.skipif(sys.platform == "win32", reason="devices are POSIX's here")
@pytest.mark.parametrize("name", ["z.csv", "z.npy", "z.npz", "z.png"])
@pytest.mark.parametrize("command", [["solve", "--cost"], ["batch"], ["transfer", "-o", "o.png"]])
def test_endless_files_are_rejected(run, command, name):
    os.symlink("/dev/zero", name)
    done = run(*command, name, *([name] if command[0] == "transfer" else []))
    assert done.code == 2
    assert "is a device or a pipe" in done.err or "is not an .npz archive" in done.err
