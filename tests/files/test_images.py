import numpy as np
import pytest

from epsilot.errors import InvalidProblem
from epsilot.files.images import grid_cost, synthetic_pair


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
