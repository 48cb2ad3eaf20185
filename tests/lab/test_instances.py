import numpy as np
import pytest

from epsilot_lab import instances
from epsilot_lab.instances import FAMILIES


@pytest.mark.parametrize(
    "build",
    [
        lambda seed: instances.images(6, seed),
        lambda seed: instances.images(6, seed, "mnist"),
        lambda seed: instances.points(36, seed),
        lambda seed: instances.points(36, seed, "normal"),
        lambda seed: instances.points(36, seed, "spread"),
        lambda seed: instances.random(36, seed),
        *(lambda seed, family=family: family.build(36, seed) for family in FAMILIES.values()),
    ],
)
def test_instances_are_drawn_from_their_seed(build):
    M, a, b = build(0)
    assert M.shape == (36, 36) == (a.size, b.size)
    assert M.dtype == float
    assert M.min() >= 0
    assert (a.sum(), b.sum()) == pytest.approx((1, 1))
    for mine, again in zip((M, a, b), build(0), strict=True):
        np.testing.assert_array_equal(mine, again)
    assert any((x != y).any() for x, y in zip((M, a, b), build(1), strict=True))


def test_images_have_the_largest_square_number_of_pixels():
    assert [FAMILIES["images"].n_points(size) for size in (36, 40, 8192)] == [36, 36, 8100]


def test_digits_end_at_their_own_size():
    assert FAMILIES["mnist"].n_points(1024) == 784
    assert not FAMILIES["mnist"].has(2304)


def test_squared_distances():
    X, Y = np.array([[0.0, 0.0], [1.0, 2.0]]), np.array([[3.0, 4.0]])
    np.testing.assert_array_equal(instances.squared(X, Y), [[25.0], [8.0]])
