"""Where files may be written is asked first, and somebody else's are never replaced."""

import io
import os
import zipfile

import numpy as np
import pytest

import epsilot
from epsilot import InvalidProblem, files
from sample_problems import M34


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def packed(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def test_a_read_only_directory_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InvalidProblem, match="is read-only"):
        files.check_writable(tmp_path / "t.bin")


@pytest.mark.parametrize(
    ("name", "words"), [("x" * 300, "too long"), ("a\0b", "null"), ("y" * 250, None)]
)
def test_names_that_cannot_be_written(name, words, tmp_path):
    if words is None:
        files.write_atomically(tmp_path / name, lambda file: file.write(b"new"))
        return
    with pytest.raises(InvalidProblem, match=words):
        files.check_writable(tmp_path / name)


def test_a_read_only_file_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "t.bin"
    path.touch()
    monkeypatch.setattr(os, "access", lambda place, _: place != path)
    with pytest.raises(InvalidProblem, match="exists and is read-only"):
        files.check_writable(path)


@pytest.mark.parametrize(
    ("content", "is_ours"),
    [
        (None, True),
        (b"", True),
        (packed(header=npy(np.array('{"format": "epsilot-checkpoint-1"}'))), True),
        (packed(header=npy(np.array('{"format": "epsilot-result-1"}'))), False),
        (packed(M=npy(np.ones(3))), False),
        (packed(header=npy(np.array("text"))), False),
        (b"notes", False),
    ],
)
def test_only_our_own_checkpoints_are_replaced(content, is_ours, tmp_path):
    path = tmp_path / "c.npz"
    if content is not None:
        path.write_bytes(content)
    if is_ours:
        epsilot.solve(M34, method="sinkhorn", eps=0.1, checkpoint=path)
        assert "header" in files.archive_names(path)
        return
    with pytest.raises(InvalidProblem, match=r"no epsilot-checkpoint file.*another name"):
        epsilot.solve(M34, method="sinkhorn", eps=0.1, checkpoint=path)
    assert path.read_bytes() == content
