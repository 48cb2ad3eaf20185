"""No file is believed, none of somebody else's is replaced, and nothing is left lying about."""

import gzip
import io
import os
import struct
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest

import epsilot
from epsilot import InvalidProblem, files, memory
from epsilot.errors import TooLarge
from epsilot.files.mnist import read_idx
from epsilot.studies.lab.store import Store
from problems import M34


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def header_of(shape, dtype="<f8"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    return file.getvalue()


def packed(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def edited(content, old, new):
    assert old in content
    return content.replace(old, new)


ONE = npy(np.ones(3))
CHECKSUM = struct.pack("<I", zipfile.crc32(ONE))
DISTRUSTED = {
    "a bomb": (packed(x=header_of((2**25,)) + bytes(2**28)), "256.0 MiB.*100.0 MiB are avail"),
    "more than the header says": (packed(x=ONE + bytes(80)), "232 bytes.*promises 24"),
    "less than the header says": (packed(x=ONE[:-8]), "144 bytes.*promises 24"),
    "a header of 8 TiB": (packed(x=header_of((2**40,))), "promises 8,796,093,022,208"),
    "a negative shape": (packed(x=header_of((-3,)) + bytes(24)), "its shape is"),
    "another checksum": (edited(packed(x=ONE), CHECKSUM, b"abcd"), "damaged.*CRC"),
    "objects": (packed(x=npy(np.array([{}]))), "Python objects"),
    "no array": (packed(x=b"hello, world"), "not in NumPy's format"),
    "half an archive": (packed(x=ONE)[:-30], "not a NumPy archive"),
    "text": (b"1,2,3", "not a NumPy archive"),
}


@pytest.mark.parametrize("read", [files.read_array, files.read_archive])
@pytest.mark.parametrize("name", DISTRUSTED)
def test_archives_are_not_believed(name, read, tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 100 << 20)
    content, words = DISTRUSTED[name]
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(InvalidProblem, match=words) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_archives_are_read(tmp_path):
    path = tmp_path / "x.npz"
    arrays = {"a": np.ones((2, 3)), "b": np.array("text"), "c": np.asfortranarray(M34)}
    np.savez_compressed(path, **arrays)
    read = files.read_archive(path)
    assert list(read) == list(arrays) == files.archive_names(path)
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
    assert list(files.read_archive(path, ["c"])) == ["c"]
    with pytest.raises(InvalidProblem, match="'q' is missing"):
        files.read_archive(path, ["q"])
    with pytest.raises(InvalidProblem, match="at most 10 bytes"):
        files.read_archive(path, limit=10)


def test_an_array_file_is_not_believed(tmp_path, monkeypatch):
    path = tmp_path / "x.npy"
    path.write_bytes(header_of((2**40,)) + bytes(80))
    with pytest.raises(InvalidProblem, match="promises more than the file holds"):
        files.read_array(path)
    path.write_bytes(npy(np.ones(2**18)))
    monkeypatch.setattr(memory, "available", lambda: 2**20)
    with pytest.raises(TooLarge, match="use a smaller file"):
        files.read_array(path)


@pytest.mark.parametrize(
    ("shape", "n_bytes", "words"),
    [((2, 2), 2**26, "complete IDX"), ((2, 2), 3, "complete IDX"), ((2**31, 2**9), 3, "GiB")],
)
def test_packed_digits_are_not_believed(shape, n_bytes, words, tmp_path):
    path = tmp_path / "x.gz"
    head = struct.pack(">HBB", 0, 8, len(shape)) + struct.pack(f">{len(shape)}I", *shape)
    path.write_bytes(gzip.compress(head + bytes(n_bytes), 1))
    tracemalloc.start()
    with pytest.raises(InvalidProblem, match=words):
        read_idx(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**22


# -- writing -----------------------------------------------------------------------------------

KILLED = """
import os, sys
from epsilot.files import write_atomically
write_atomically(sys.argv[1], lambda file: (file.write(b"half"), os.kill(os.getpid(), 9)))
"""


def names(directory):
    return sorted(path.name for path in directory.iterdir())


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
        (packed(M=ONE), False),
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


# -- the store of an experiment ----------------------------------------------------------------

LINE = b'{"key": "a", "value": 1}'


@pytest.mark.parametrize(
    ("content", "kept", "after"),
    [
        (b"", 0, b""),
        (LINE + b"\n", 1, LINE + b"\n"),
        (LINE, 1, LINE + b"\n"),
        (LINE + b"\n" + LINE[:10], 1, LINE + b"\n"),
        (LINE[:10], 0, b""),
        (LINE[:1], 0, b""),
        (b"my notes, on one line", None, None),
        (b"my notes\non two lines", None, None),
        (b"\x89PNG\r\n\x1a\n\0\0", None, None),
        (b"[1, 2, 3]", None, None),
        (b"42", None, None),
        (b'{"other": 1}', None, None),
    ],
)
def test_the_store_loses_no_line_and_empties_no_file(content, kept, after, tmp_path):
    path = tmp_path / "solves.jsonl"
    path.write_bytes(content)
    if kept is None:
        with pytest.raises(InvalidProblem):
            Store(path, ["key"])
        assert path.read_bytes() == content
        return
    assert len(Store(path, ["key"])) == kept
    assert path.read_bytes() == after
