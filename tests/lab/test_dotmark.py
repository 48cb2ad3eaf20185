import numpy as np
import pytest

from epsilot import InvalidProblem
from epsilot_lab.dotmark import CLASSES, field, matern, pair, read_pair


@pytest.mark.parametrize("side", [8, 33])
@pytest.mark.parametrize("name", CLASSES)
def test_images_are_grey_values_drawn_from_their_seed(name, side):
    images = pair(name, side)
    for image in images:
        assert image.shape == (side, side)
        assert image.max() > 0
        np.testing.assert_array_equal(image, np.clip(np.rint(image), 0, 255))
    for mine, again in zip(images, pair(name, side), strict=True):
        np.testing.assert_array_equal(mine, again)
    assert (images[0] != images[1]).any()
    assert (images[0] != pair(name, side, seed=1)[0]).any()


def test_the_covariance_is_matern_s():
    r = np.array([0.0, 0.1, 1.0])
    np.testing.assert_allclose(matern(r, 2.0, 0.5, 0.3), 2 * np.exp(-r / 0.3), rtol=1e-12)


def test_fields_have_their_covariance():
    rng = np.random.default_rng(0)
    drawn = np.stack([field(16, rng, 2.0, 0.5, 0.2) for _ in range(800)])
    for step in (0, 1, 3):
        found = float((drawn[:, :, : 16 - step] * drawn[:, :, step:]).mean())
        assert found == pytest.approx(float(matern(np.array(step / 16), 2.0, 0.5, 0.2)), abs=0.08)


def test_smoother_classes_are_smoother():
    def roughness(name):
        image = pair(name, 64)[0]
        return np.abs(np.diff(image, axis=0)).mean() / image.std()

    order = ["WhiteNoise", "GRFrough", "GRFmoderate", "GRFsmooth"]
    found = [roughness(name) for name in order]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("inside", ["", "Data"])
def test_files_of_the_benchmark_are_read(tmp_path, inside):
    folder = tmp_path / inside / "ClassicImages"
    folder.mkdir(parents=True)
    images = np.arange(2 * 64.0).reshape(2, 8, 8)
    for number, image in zip((1003, 1004), images, strict=True):
        np.savetxt(folder / f"data8_{number}.csv", image, delimiter=",")
    for read, image in zip(read_pair(tmp_path, "ClassicImages", 8, 1), images, strict=True):
        np.testing.assert_array_equal(read, image)
    np.savetxt(folder / "data8_1003.csv", images[0][:5], delimiter=",")
    with pytest.raises(InvalidProblem, match=r"shape \(5, 8\); an image of 8 x 8 pixels"):
        read_pair(tmp_path, "ClassicImages", 8, 1)
