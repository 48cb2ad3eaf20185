import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import epsilot
from epsilot import ColorTransfer
from epsilot.applications import pixels
from epsilot.applications.pixels import (
    Pixels,
    clustered,
    histogram,
    local_affine,
    reduced,
    sampled,
)
from epsilot.engine.maps import barycentric
from epsilot_lab.paper.color_transfer import photographs, sliced_distance
from tuning import tune


def picture(rng, low, high, shape=(24, 30, 3), dtype=np.uint8):
    """Return noise between two levels, in parts of the depth."""
    values = rng.uniform(low, high, shape)
    depth = 1 if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
    return (values * depth).astype(dtype)


@pytest.fixture
def model(rng):
    first, second = picture(rng, 0, 0.5), picture(rng, 0.5, 1, (40, 20, 3))
    return ColorTransfer(60).fit(first, second), first, second


@pytest.mark.parametrize("smoothing", [0.0, 0.02])
@pytest.mark.parametrize("palette", ["cluster", "sample"])
def test_colours_move_both_ways(rng, palette, smoothing):
    first, second = picture(rng, 0, 0.5), picture(rng, 0.5, 1, (40, 20, 3))
    model = ColorTransfer(60, palette=palette, smoothing=smoothing).fit(first, second)
    before = sliced_distance(first, second)
    assert sliced_distance(model.transform(first), second) < 0.3 * before
    assert sliced_distance(model.inverse_transform(second), first) < 0.3 * before
    assert 0 <= model.gap_ <= 0.01 * model.cost_


@pytest.mark.parametrize("method", ["pdasmd", "auto"])
def test_photographs_come_close_to_each_other(method):
    first, second = photographs(is_small=True)
    model = ColorTransfer(200, method=method, rtol=0.03).fit(first, second)
    before = sliced_distance(first, second)
    assert sliced_distance(model.transform(first), second) < 0.3 * before
    assert sliced_distance(model.inverse_transform(second), first) < 0.3 * before


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("channels", [(), (1,), (2,), (3,), (4,)])
@pytest.mark.parametrize("smoothing", [0.0, 0.02])
def test_size_depth_and_opacity_are_kept(rng, model, dtype, channels, smoothing):
    image = picture(rng, 0.1, 0.4, (7, 5, *channels), dtype)
    fitted = model[0].set_params(smoothing=smoothing)
    moved = fitted.transform(image)
    assert moved.dtype == image.dtype
    has_alpha = channels in ((2,), (4,))
    assert moved.shape == (7, 5, 3 + has_alpha)
    depth = 1 if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
    assert 0.5 < moved[..., :3].mean() / depth <= 1
    if has_alpha:
        np.testing.assert_array_equal(moved[..., -1], image[..., -1])


@pytest.mark.parametrize("shape", [(9, 8), (9, 8, 1), (9, 8, 2)])
def test_grey_pictures_stay_grey(rng, shape):
    first, second = picture(rng, 0, 0.3, shape), picture(rng, 0.6, 1, (12, 8))
    moved = ColorTransfer(20).fit(first, second).transform(first)
    assert moved.shape == shape
    color = moved[..., 0] if len(shape) == 3 else moved
    assert abs(color.mean() / 255 - 0.8) < 0.05


def test_a_gradient_stays_smooth(rng):
    photograph = photographs(is_small=True)[1]
    ramp = np.broadcast_to(np.linspace(0, 1, 600)[None, :, None], (4, 600, 3)).copy()
    for smoothing in (0.0, 0.01):
        model = ColorTransfer(200, smoothing=smoothing).fit(ramp, photograph)
        moved = model.transform(ramp)
        # A nearest-colour map has steps of 0.2 here.
        assert np.abs(np.diff(moved, axis=1)).max() < 0.05


def test_noise_is_not_amplified_where_the_map_is_steep(rng):
    grey = np.where(np.arange(200) < 100, 0.48, 0.52)[None, :, None] * np.ones((80, 1, 3))
    noisy = np.clip(grey + rng.normal(0, 0.01, grey.shape), 0, 1)
    halves = np.where(np.arange(200) < 100, 0.0, 1.0)[None, :, None] * np.ones((80, 1, 3))
    raw, smooth = (
        ColorTransfer(100, smoothing=radius).fit(noisy, halves).transform(noisy)
        for radius in (0.0, 0.02)
    )
    flat = (slice(10, -10), slice(20, 80))
    assert smooth[flat].std() < 0.5 * raw[flat].std()
    assert smooth[:, 150:].mean() - smooth[:, :50].mean() > 0.6


def test_transparent_pixels_do_not_count(rng):
    image = np.concatenate([picture(rng, 0, 0.2), np.full((24, 30, 1), 255, np.uint8)], axis=2)
    image[:12, :, :3], image[:12, :, 3] = 255, 0
    palette = histogram(Pixels.of(image, "it"))
    assert palette.colors.max() < 0.21
    _, mass = reduced(Pixels.of(image, "it"))
    assert mass.min() < 0.01 < mass.max()
    for make in (clustered, sampled):
        drawn = make(Pixels.of(image, "it"), 30, np.random.default_rng(0))
        assert drawn.colors.max() < 0.21


def test_opacity_is_mass():
    image = np.zeros((2, 2, 4), dtype=np.uint8)
    image[0], image[1] = (255, 255, 255, 85), (0, 0, 0, 255)
    palette = histogram(Pixels.of(image, "it"))
    np.testing.assert_allclose(palette.colors, [[0, 0, 0], [1, 1, 1]], atol=1e-6)
    np.testing.assert_allclose(palette.weights, [0.75, 0.25], atol=1e-6)


def test_barycentres_are_means_whatever_the_weights(rng):
    a, b, Y = rng.random(5), rng.random(6), rng.random((6, 3))
    a, b = a / a.sum(), b / b.sum()
    plan = epsilot.solve(rng.random((5, 6)), a, b, method="sinkhorn", rtol=0.1).plan_operator
    X = plan.toarray()
    np.testing.assert_allclose(barycentric(plan, Y), X @ Y / a[:, None], atol=1e-12)


def test_palettes_hold_the_shares_of_the_picture(rng):
    image = np.zeros((10, 10, 3), dtype=np.uint8)
    image[:3] = 255
    for make in (clustered, sampled):
        palette = make(Pixels.of(image, "it"), 500, np.random.default_rng(0))
        np.testing.assert_allclose(palette.colors, [[0, 0, 0], [1, 1, 1]])
        np.testing.assert_allclose(palette.weights, [0.7, 0.3], atol=0.07)
    cells = histogram(Pixels.of(picture(rng, 0, 1), "it"))
    few = clustered(Pixels.of(picture(rng, 0, 1), "it"), 40, rng)
    assert len(few) <= 40 < len(cells)
    assert few.weights.sum() == pytest.approx(1)
    assert few.weights.std() > 0


@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 50, 3), (50, 1, 4), (3, 2)])
def test_tiny_and_plain_pictures(rng, shape):
    plain = np.full(shape, 200, dtype=np.uint8)
    model = ColorTransfer(30).fit(plain, picture(rng, 0, 0.3))
    assert model.transform(plain)[..., :3].max() < 100
    back = ColorTransfer(30).fit(picture(rng, 0, 0.3), plain)
    assert back.transform(picture(rng, 0, 0.3)).mean() == pytest.approx(200, abs=2)


def test_a_picture_larger_than_the_working_size(rng, monkeypatch):
    first, second = photographs(is_small=True)
    model = ColorTransfer(100).fit(first, second)
    whole = model.transform(first).astype(float)
    tune(monkeypatch, pixels, max_fitted_pixels=1000)
    tune(monkeypatch, pixels, chunk_pixels=777)
    coarse = model.transform(first).astype(float)
    assert 0 < np.abs(whole - coarse).mean() < 20


def test_an_affine_displacement_is_found_again(rng):
    x = rng.random((20, 25, 3))
    A, b = rng.normal(size=(3, 3)), rng.normal(size=3)
    table = local_affine(x, x @ A.T + b, np.ones((20, 25)), 5.0)
    np.testing.assert_allclose(
        table[..., :9].mean(axis=(0, 1)).reshape(3, 3), A + np.eye(3), atol=0.1
    )
    np.testing.assert_allclose(table[..., 9:].mean(axis=(0, 1)), b, atol=0.1)


def test_parameters_survive_cloning():
    model = clone(ColorTransfer(50, method="pdasmd", eps=0.1))
    assert (model.n_colors, model.method, model.eps) == (50, "pdasmd", 0.1)
    with pytest.raises(NotFittedError):
        model.transform(np.zeros((2, 2, 3), np.uint8))


RGB = np.zeros((4, 4, 3), np.uint8)
CLEAR = np.zeros((4, 4, 4), np.uint8)
BAD = {
    "shape": ({}, np.zeros(5, np.uint8), "the source picture has shape"),
    "empty": ({}, np.zeros((0, 4, 3), np.uint8), "has shape"),
    "channels": ({}, np.zeros((4, 4, 5), np.uint8), "with 1 to 4 channels"),
    "type": ({}, np.zeros((4, 4), np.int64), "uint8, uint16 or floats"),
    "NaN": ({}, np.full((4, 4), np.nan), "holds NaN"),
    "range": ({}, np.full((4, 4), 255.0), "outside [0, 1]"),
    "transparent": ({}, CLEAR, "no visible pixel"),
    "transparent sample": ({"palette": "sample"}, CLEAR, "no visible pixel"),
    "palette": ({"palette": "median"}, RGB, "palette is 'median'"),
    "colours": ({"n_colors": 0}, RGB, "n_colors is 0"),
    "neighbours": ({"n_neighbors": 0}, RGB, "n_neighbors is 0"),
    "smoothing": ({"smoothing": -1.0}, RGB, "smoothing is -1.0"),
    "method": ({"method": "pdsmd"}, RGB, "did you mean pdas"),
}


@pytest.mark.parametrize(("keywords", "image", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_sentence(keywords, image, message):
    with pytest.raises(ValueError, match=r"^[^\n]*$") as raised:
        ColorTransfer(**keywords).fit(image, RGB)
    assert message in str(raised.value)
