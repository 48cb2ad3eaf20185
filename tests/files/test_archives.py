"""No archive is believed: what it holds is compared with what it says."""

import io
import struct
import zipfile

import numpy as np
import pytest

from epsilot import InvalidProblem, files, memory
from epsilot.errors import TooLarge
from sample_problems import M34


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
