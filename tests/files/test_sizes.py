"""Files that have no size, or unpack to far more than their own, are refused before they are read.

Limits are lowered, so that a bomb of some megabytes stands for one of gigabytes; what is refused is
never read, which is seen by reading functions that fail.
"""

import gzip
import os
import struct
import sys
import warnings
import zipfile

import numpy as np
import pytest
from PIL import Image

from epsilot import InvalidProblem, files, memory
from epsilot.applications import pictures
from epsilot.files import arrays, paths
from epsilot.files.images import read_idx

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="devices and pipes are POSIX's here")
SIZE = 1 << 22


@pytest.fixture(autouse=True)
def _low_limits(monkeypatch):
    monkeypatch.setattr(paths, "LARGEST_UNPACKED", SIZE // 4)


def never(*_, **__):
    raise AssertionError("the file was read")


def refusal(read, path):
    """Return the sentence of a refusal."""
    with pytest.raises(InvalidProblem) as caught:
        read(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@POSIX
@pytest.mark.parametrize("name", ["x.csv", "x.txt", "x.npy", "x.npz", "x.png"])
@pytest.mark.parametrize("source", ["/dev/zero", "a pipe"])
def test_devices_and_pipes_are_refused(name, source, tmp_path):
    path = tmp_path / name
    if source == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(source)
    assert "is a device or a pipe" in refusal(files.read_array, path)
    assert "is a device or a pipe" in refusal(pictures.read_picture, path)
    assert "is a device or a pipe" in refusal(read_idx, path)


def test_an_archive_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, x=np.zeros(SIZE // 8))
    monkeypatch.setattr(np.lib.format, "read_array", never)
    assert "4.0 MiB" in refusal(files.read_array, path)
    assert "save it without compression" in refusal(files.read_archive, path)


def test_archives_of_numbers_are_read_whatever_their_size(tmp_path, rng):
    path, x = tmp_path / "x.npz", rng.random(SIZE // 8)
    np.savez_compressed(path, x=x)
    np.testing.assert_array_equal(files.read_array(path), x)
    np.savez(path, x=0 * x)
    np.testing.assert_array_equal(files.read_array(path), 0 * x)


def test_an_archive_that_unpacks_to_more_than_it_says_is_damaged(tmp_path):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, x=np.zeros(SIZE // 8))
    said, less = struct.pack("<I", SIZE + 128), struct.pack("<I", 128 + 80)
    content = path.read_bytes().replace(said, less).replace(b"(524288,)", b"(10,)    ")
    path.write_bytes(content)
    with zipfile.ZipFile(path) as archive:
        assert archive.infolist()[0].file_size == 208
    assert "is damaged" in refusal(files.read_array, path)


def test_packed_digits_that_are_a_bomb_are_refused(tmp_path):
    path = tmp_path / "digits.gz"
    with gzip.open(path, "wb") as file:
        file.write(struct.pack(">HBBIII", 0, 8, 3, 1024, 64, 64) + bytes(SIZE))
    assert "save it without compression" in refusal(read_idx, path)


@pytest.mark.parametrize("read", [files.read_image, files.read_array, pictures.read_picture])
def test_an_image_of_far_more_pixels_than_its_size_is_refused(read, tmp_path, monkeypatch):
    path = tmp_path / "x.png"
    Image.new("L", (2000, 2000)).save(path)
    monkeypatch.setattr(Image.Image, "load", never)
    assert "unpacks to" in refusal(read, path)


@pytest.mark.parametrize("read", [files.read_image, pictures.read_picture])
def test_large_images_are_judged_by_memory_and_not_by_a_warning(read, tmp_path, rng, monkeypatch):
    path = tmp_path / "x.png"
    Image.fromarray(rng.integers(0, 256, (40, 40), np.uint8)).save(path)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)  # pillow would warn of a bomb
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(path)
    monkeypatch.setattr(memory, "MIN_CHECKED_BYTES", 0)
    monkeypatch.setattr(memory, "available", lambda: 100_000)
    assert "needs 160,000 bytes of memory" in refusal(read, path)


def test_text_is_read_only_if_it_fits_in_memory(tmp_path, monkeypatch):
    path = tmp_path / "x.csv"
    path.write_text("1,2\n" * 300_000)
    monkeypatch.setattr(memory, "available", lambda: 4 << 20)
    monkeypatch.setattr(type(path), "read_text", never)
    assert "save it as .npy" in refusal(files.read_array, path)


def test_a_file_of_zeros_is_no_text(tmp_path, monkeypatch):
    path = tmp_path / "x.csv"
    path.write_bytes(bytes(10 * arrays.PROBED_BYTES))
    monkeypatch.setattr(memory, "available", lambda: 1 << 30)
    monkeypatch.setattr(type(path), "read_text", never)
    assert "not a text file" in refusal(files.read_array, path)
