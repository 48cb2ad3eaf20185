"""Files are written whole or not at all, and nothing is left lying about."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from epsilot import files
from epsilot.errors import InvalidProblem

KILLED = """
import os, sys
from epsilot.files import write_atomically
write_atomically(sys.argv[1], lambda file: (file.write(b"half"), os.kill(os.getpid(), 9)))
"""


def put(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_a_complete_file_replaces_the_old_one(tmp_path):
    path = put(tmp_path, "t.bin", b"old")
    files.write_atomically(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["t.bin"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, ValueError])
@pytest.mark.parametrize("old", [b"old", None])
def test_an_interrupted_writer_leaves_the_old_file(tmp_path, error, old):
    path = tmp_path / "t.bin"
    if old is not None:
        path.write_bytes(old)

    def writer(file):
        file.write(b"half of the new o")
        file.flush()
        raise error

    with pytest.raises(error):
        files.write_atomically(path, writer)
    assert names(tmp_path) == ([] if old is None else ["t.bin"])
    assert old is None or path.read_bytes() == old


def test_the_old_file_is_whole_while_the_new_one_is_written(tmp_path):
    path = put(tmp_path, "t.bin", b"old")
    seen = []
    files.write_atomically(
        path, lambda file: (file.write(b"new"), file.flush(), seen.append(path.read_bytes()))
    )
    assert seen == [b"old"]


def test_a_link_stays_a_link_and_permissions_are_ordinary(tmp_path):
    target = put(tmp_path, "real.bin", b"old")
    (tmp_path / "link.bin").symlink_to(target)
    files.write_atomically(tmp_path / "link.bin", lambda file: file.write(b"new"))
    assert (tmp_path / "link.bin").is_symlink()
    assert target.read_bytes() == b"new"
    (tmp_path / "ordinary").touch()
    assert target.stat().st_mode == (tmp_path / "ordinary").stat().st_mode


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none/t.bin", "there is no directory"),
        (".", "it is a directory"),
        ("t.txt/x.bin", "there is no directory"),
        ("pipe", "it is not a regular file"),
    ],
)
def test_places_that_cannot_be_written(tmp_path, name, message):
    put(tmp_path, "t.txt", "1")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidProblem, match=message):
        files.write_atomically(tmp_path / name, lambda file: file.write(b"x"))


def test_relative_paths_are_accepted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files.write_atomically("t.bin", lambda file: file.write(b"x"))
    assert Path("t.bin").read_bytes() == b"x"


def test_drafts_of_killed_processes_are_removed(tmp_path):
    path = tmp_path / "t.bin"
    subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    (left,) = names(tmp_path)
    *_, machine, process, _, _ = left.split(".")
    live = left.replace(f".{process}.", f".{os.getppid()}.")
    others = [
        live,
        left.replace(machine, "0" * 8),
        left.replace("t.bin", "u.bin"),
        ".t.bin.notes.tmp",
        "t.bin.tmp",
    ]
    for name in others:
        (tmp_path / name).write_bytes(b"somebody's")
    files.write_atomically(path, lambda file: file.write(b"new"))
    assert names(tmp_path) == sorted([*others, "t.bin"])


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_replaced_file_keeps_its_mode(mode, tmp_path):
    path = tmp_path / "t.bin"
    path.touch()
    path.chmod(mode)
    files.write_atomically(path, lambda file: file.write(b"new"))
    assert path.stat().st_mode & 0o777 == mode
