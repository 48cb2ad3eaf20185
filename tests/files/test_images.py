"""Synthetic images, and images of digits from files."""

import gzip
import struct
import tracemalloc

import numpy as np
import pytest

from epsilot.errors import InvalidProblem
from epsilot.files.images import grid_cost, read_digits, read_idx, synthetic_pair
from epsilot_lab.instances import mnist_pair


@pytest.mark.parametrize("side", [2, 5, 20])
def test_images_are_nonnegative_and_of_unit_mass(side):
    for image in synthetic_pair(side, seed=3):
        assert image.shape == (side, side)
        assert image.dtype == np.float64
        assert image.min() >= 0
        assert image.sum() == pytest.approx(1, abs=1e-14)


def test_images_follow_the_seed_and_differ_from_each_other():
    first, second = synthetic_pair(10, seed=1), synthetic_pair(10, seed=1)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first[0], synthetic_pair(10, seed=2)[0])


def test_the_bright_pixels_form_one_square_of_the_right_size():
    edge = round(40 * np.sqrt(0.2))
    for image in synthetic_pair(40, seed=0):
        # Without noise the ratio of the brightest to the background's mean is 3 / 0.5.
        background = np.median(image) / 0.55
        rows, cols = np.nonzero(image > 1.3 * background)
        assert max(np.ptp(rows), np.ptp(cols)) < edge
        assert rows.size > edge**2 / 3


def test_a_side_of_one_pixel_is_refused():
    with pytest.raises(InvalidProblem, match="side is 1; at least 2"):
        synthetic_pair(1, seed=0)


def distance(metric, i, j):
    step = np.abs(np.array(i) - np.array(j))
    return {
        "cityblock": step.sum(),
        "euclidean": np.sqrt((step**2).sum()),
        "sqeuclidean": (step**2).sum(),
    }[metric]


@pytest.mark.parametrize("metric", ["cityblock", "euclidean", "sqeuclidean"])
@pytest.mark.parametrize("shape", [(3, 4), (1, 5), (2, 2)])
def test_grid_cost_is_the_distance_of_pixels_over_the_largest(metric, shape):
    pixels = list(np.ndindex(shape))
    expected = np.array([[distance(metric, i, j) for j in pixels] for i in pixels], dtype=float)
    np.testing.assert_allclose(grid_cost(shape, metric), expected / expected.max(), rtol=1e-15)


def test_a_single_pixel_costs_nothing():
    np.testing.assert_array_equal(grid_cost((1, 1)), [[0.0]])


def test_an_unknown_pixel_metric_is_refused():
    with pytest.raises(InvalidProblem, match="'cosine'; required is one of cityblock"):
        grid_cost((2, 2), "cosine")


IMAGES = np.random.default_rng(0).integers(1, 256, (5, 6, 6)).astype(np.uint8)
CODES = {"u1": 8, "i1": 9, ">i2": 11, ">i4": 12, ">f4": 13, ">f8": 14}


def idx(array, kind="u1"):
    header = struct.pack(f">HBB{array.ndim}I", 0, CODES[kind], array.ndim, *array.shape)
    return header + array.astype(kind).tobytes()


@pytest.mark.parametrize("kind", CODES)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_idx_files_of_every_type_are_read(kind, pack, tmp_path):
    array = np.arange(-4, 20).reshape(2, 3, 4) if kind != "u1" else np.arange(24).reshape(2, 3, 4)
    path = tmp_path / "some-idx3"
    path.write_bytes(pack(idx(array, kind)))
    found = read_idx(path)
    np.testing.assert_array_equal(found, array)
    assert found.dtype.isnative


def write_idx(path):
    path.write_bytes(gzip.compress(idx(IMAGES)))


def write_npz(path):
    np.savez(path, images=IMAGES, labels=np.arange(5))


def write_npy(path):
    np.save(path, IMAGES)


@pytest.mark.parametrize(
    ("name", "write"),
    [("t10k-images-idx3-ubyte.gz", write_idx), ("a.npz", write_npz), ("a.npy", write_npy)],
)
def test_all_files_give_the_same_digits(name, write, tmp_path):
    write(tmp_path / name)
    digits = read_digits(tmp_path / name)
    np.testing.assert_allclose(digits, IMAGES / IMAGES.max(axis=(1, 2), keepdims=True), rtol=1e-15)
    A, B = mnist_pair(3, 0, digits)
    assert A.shape == B.shape == (3, 3)
    assert not np.array_equal(A, B)


def test_digits_are_averaged_by_area():
    A, _ = mnist_pair(3, 0, np.stack([IMAGES[0] / 255.0] * 2))
    blocks = (IMAGES[0] / 255.0).reshape(3, 2, 3, 2).mean(axis=(1, 3)) + 0.01
    np.testing.assert_allclose(A, blocks / blocks.sum(), rtol=1e-12)


BLANK = np.zeros((1, 6, 6), dtype=np.uint8)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"\x01\x02\x08\x03", "not a complete IDX file .*not zero.*download it again"),
        (idx(IMAGES)[:-1], "not a complete IDX file"),
        (gzip.compress(idx(IMAGES))[:-20], "not a complete IDX file"),
        (b"\0\0\x07\x01\0\0\0\1\0", "not a complete IDX file"),
        (idx(np.arange(5)), r"shape \(5,\); square images are required"),
        (idx(IMAGES[:, :, :4]), r"shape \(5, 6, 4\); square"),
        (idx(np.concatenate([IMAGES[:1], BLANK])), "holds 1 usable images; at least two"),
        (idx(-IMAGES.astype(int), ">i2"), "0 usable images"),
    ],
)
def test_bad_files_are_refused_in_one_sentence(content, match, tmp_path):
    path = tmp_path / "bad"
    path.write_bytes(content)
    with pytest.raises(InvalidProblem, match=match):
        read_digits(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InvalidProblem, match="does not exist"):
        read_digits(tmp_path / "nowhere")


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
