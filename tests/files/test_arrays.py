"""Numbers and images read from files of any kind, or one sentence."""

import builtins
import io
import os

import numpy as np
import pytest
from PIL import Image

from epsilot import files
from epsilot.errors import InvalidProblem, MissingExtra

TABLE = np.array([[1.0, 2.5], [3.0, -4e-3]])


def saved(array, **arrays):
    """Return the bytes of a .npy file, or of a .npz file of named arrays."""
    buffer = io.BytesIO()
    if arrays:
        np.savez(buffer, **arrays)
    else:
        np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def put(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        "1,2.5\n3,-4e-3\n",
        "1, 2.5\n3, -0.004",
        "1;2.5\n3;-4e-3\n",
        "1 2.5\n3\t-4e-3\n",
        "x,y\n1,2.5\n3,-4e-3\n",
        '"x","y"\n"1","2.5"\n"3","-4e-3"\n',
        "# x y\n\n1 2.5\n3 -4e-3 # last\n",
        "\ufeffx;y\r\n1;2.5\r\n3;-4e-3\r\n",
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".txt", ".CSV"])
def test_text_tables(tmp_path, text, suffix):
    np.testing.assert_array_equal(files.read_array(put(tmp_path, f"t{suffix}", text)), TABLE)


@pytest.mark.parametrize(("text", "shape"), [("1\n2\n3\n", (3, 1)), ("1,2,3", (1, 3))])
def test_text_is_always_two_dimensional(tmp_path, text, shape):
    assert files.read_array(put(tmp_path, "t.csv", text)).shape == shape


@pytest.mark.parametrize(
    "array",
    [
        TABLE,
        TABLE.astype(np.float32),
        np.arange(6).reshape(2, 3),
        np.asfortranarray(TABLE),
        TABLE.astype(">f8"),
    ],
)
def test_npy_keeps_numbers_and_kind(tmp_path, array):
    read = files.read_array(put(tmp_path, "t.npy", saved(array)))
    np.testing.assert_array_equal(read, array)
    assert read.dtype.isnative
    assert read.dtype.kind == array.dtype.kind
    assert read.dtype.itemsize == array.dtype.itemsize


def test_booleans_become_numbers(tmp_path):
    read = files.read_array(put(tmp_path, "t.npy", saved(np.array([True, False]))))
    assert read.dtype == np.float64


def test_npz_with_one_array_or_a_named_one(tmp_path):
    one = put(tmp_path, "one.npz", saved(None, M=TABLE))
    two = put(tmp_path, "two.npz", saved(None, M=TABLE, a=np.ones(2)))
    np.testing.assert_array_equal(files.read_array(one), TABLE)
    np.testing.assert_array_equal(files.read_array(two, "a"), np.ones(2))


TWO = saved(None, M=TABLE, a=np.ones(2))
BAD_FILES = [
    ("t.npy", b"", "is empty (0 bytes)"),
    ("t.csv", b"", "is empty (0 bytes)"),
    ("t.csv", "\n# nothing\n", "holds no numbers"),
    ("t.csv", "1,2\n3,oops\n", "line 2, column 2 holds 'oops'"),
    ("t.csv", "x,y\n\n1,2\n3,oops\n", "line 4, column 2 holds 'oops'"),
    ("t.csv", "1,2,\n", "line 1, column 3 holds ''"),
    ("t.csv", "1,5;2,5\n", "line 1, column 1 holds '1,5'"),
    ("t.csv", "1,2\n3\n", "line 2 holds 1 value and line 1 holds 2"),
    ("t.csv", "x,y\n", "line 1, column 1 holds 'x'"),
    ("t.csv", b"\xff\xfe1\x00,\x002\x00", "is not a text file in UTF-8"),
    ("t.npy", b"1,2\n", "is not in NumPy's format"),
    ("t.npy", saved(TABLE)[:-5], "is damaged"),
    ("t.npy", saved(TABLE)[:30], "is damaged"),
    ("t.npy", saved(np.array([1, "a"], dtype=object)), "holds Python objects"),
    ("t.npy", saved(np.array(["a", "b"])), "holds values of type <U1"),
    ("t.npy", saved(np.array([1j])), "holds values of type complex128"),
    ("t.npy", saved(np.zeros((0, 3))), "shape (0, 3) without any number"),
    ("t.npz", b"PK nothing", "is not a NumPy archive"),
    ("t.npz", TWO, "holds 2 arrays (M, a); one must be chosen"),
    ("t.npz", TWO[:200], "is not a NumPy archive"),
    ("t.npz", saved(None, x=np.array([None])), "holds Python objects"),
    ("t.png", b"no picture", "cannot be read as an image"),
    ("t.xlsx", b"PK", "has the file type .xlsx"),
    ("t", b"1", "has the file type (none)"),
]


@pytest.mark.parametrize(("name", "content", "message"), BAD_FILES)
def test_bad_files_get_one_sentence(tmp_path, name, content, message):
    path = put(tmp_path, name, content)
    with pytest.raises(InvalidProblem) as caught:
        files.read_array(path)
    sentence = str(caught.value)
    assert message in sentence
    assert str(path) in sentence
    assert "\n" not in sentence
    assert "required" in sentence or "must" in sentence
    assert sentence.endswith(")"), "the remedy comes last, in parentheses"


def test_missing_files_directories_and_keys(tmp_path):
    with pytest.raises(InvalidProblem, match="does not exist"):
        files.read_array(tmp_path / "none.npy")
    with pytest.raises(InvalidProblem, match="is a directory"):
        files.read_array(tmp_path)
    archive = put(tmp_path, "t.npz", TWO)
    with pytest.raises(InvalidProblem, match=r"holds no array 'q'.*it has: M, a"):
        files.read_array(archive, "q")
    with pytest.raises(InvalidProblem, match=r"only \.npz archives hold named arrays"):
        files.read_array(put(tmp_path, "t.csv", "1"), "q")


def test_a_file_of_another_user_is_named(tmp_path, monkeypatch):
    path = put(tmp_path, "t.csv", "1")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InvalidProblem, match="is not readable by this user"):
        files.read_array(path)


GREY = np.array([[0, 51, 255], [102, 204, 153]], dtype=np.uint8)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (Image.fromarray(GREY), GREY / 255),
        (Image.fromarray(GREY).convert("RGB"), GREY / 255),
        (Image.fromarray(GREY.astype(np.uint16) * 257), GREY / 255),
        (Image.fromarray(GREY > 100), GREY > 100),
        (Image.fromarray(GREY).convert("P"), GREY / 255),
        (Image.merge("LA", [Image.fromarray(GREY)] * 2), (GREY / 255.0) ** 2),
        (Image.new("RGB", (3, 2), (255, 0, 0)), np.full((2, 3), 0.299)),
        (Image.new("RGBA", (3, 2), (255, 255, 255, 51)), np.full((2, 3), 0.2)),
    ],
    ids=["L", "RGB", "16 bit", "1", "P", "LA", "red", "RGBA"],
)
def test_images_become_mass(tmp_path, image, expected):
    image.save(tmp_path / "t.png")
    mass = files.read_image(tmp_path / "t.png")
    assert mass.dtype == np.float64
    np.testing.assert_allclose(mass, expected, atol=1e-12)
    np.testing.assert_array_equal(files.read_array(tmp_path / "t.png"), mass)


@pytest.mark.parametrize("suffix", files.IMAGE_SUFFIXES)
def test_every_image_type_is_read(tmp_path, suffix):
    flat = Image.fromarray(np.full((4, 5), 128, dtype=np.uint8))
    flat.save(tmp_path / f"t{suffix}")
    mass = files.read_image(tmp_path / f"t{suffix}")
    np.testing.assert_allclose(mass, np.full((4, 5), 128 / 255), atol=0.01)


def test_only_images_are_images(tmp_path):
    with pytest.raises(InvalidProblem, match="an image is required"):
        files.read_image(put(tmp_path, "t.npy", saved(TABLE)))


def test_negative_pixels_are_refused(tmp_path):
    Image.fromarray(np.full((2, 2), -1.0, dtype=np.float32)).save(tmp_path / "t.tif")
    with pytest.raises(InvalidProblem, match="negative or non-finite pixels"):
        files.read_image(tmp_path / "t.tif")


def test_without_pillow_the_extra_is_named(tmp_path, monkeypatch):
    real = builtins.__import__

    def without_pillow(name, *args, **kwargs):
        if name == "PIL":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    path = put(tmp_path, "t.png", b"x")
    monkeypatch.setattr(builtins, "__import__", without_pillow)
    with pytest.raises(MissingExtra, match=r'pip install "epsilot\[plot\]"'):
        files.read_image(path)
