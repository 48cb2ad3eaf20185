import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

from epsilot.applications import lattice


def places(height, width, h, w):
    """Return the place of each pixel of a picture among the centres of a coarser one."""
    y = np.clip((np.arange(height) + 0.5) * h / height - 0.5, 0, h - 1)
    x = np.clip((np.arange(width) + 0.5) * w / width - 0.5, 0, w - 1)
    return np.stack(np.meshgrid(y, x, indexing="ij"), axis=-1).reshape(-1, 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_trilinear_is_linear_in_each_cell(rng, dtype):
    table = rng.random((5, 5, 5, 3)).astype(dtype)
    colors = np.concatenate([rng.random((200, 3)), [[0, 0, 0], [1, 1, 1], [0, 1, 0.5]]])
    out = np.empty((203, 3), dtype)
    lattice.trilinear(table, colors.astype(dtype), out, 0, 203)
    axis = np.linspace(0, 1, 5)
    np.testing.assert_allclose(out, RegularGridInterpolator((axis,) * 3, table)(colors), atol=1e-5)


def test_trilinear_clamps_colours_outside_the_cube(rng):
    table, out = rng.random((3, 3, 3, 3)), np.empty((2, 3))
    lattice.trilinear(table, np.array([[-1.0, -0.5, -2.0], [2.0, 1.5, 1.1]]), out, 0, 2)
    np.testing.assert_allclose(out, [table[0, 0, 0], table[2, 2, 2]])


@pytest.mark.parametrize(
    ("height", "width", "h", "w"), [(12, 10, 4, 5), (7, 9, 7, 9), (5, 3, 1, 1)]
)
def test_affine_is_bilinear_in_place(rng, height, width, h, w):
    maps = rng.random((h, w, 12))
    colors, out = rng.random((height * width, 3)), np.zeros((height * width, 3))
    half = height * width // 2
    lattice.affine(maps, colors[half:], height, width, half, out[half:], 0, len(out) - half)
    lattice.affine(maps, colors, height, width, 0, out, 0, half)
    grid = np.pad(maps, ((0, 1), (0, 1), (0, 0)), mode="edge")
    local = RegularGridInterpolator((np.arange(h + 1), np.arange(w + 1)), grid)(
        places(height, width, h, w)
    )
    expected = np.einsum("kcd,kd->kc", local[:, :9].reshape(-1, 3, 3), colors) + local[:, 9:]
    np.testing.assert_allclose(out, expected, atol=1e-12)
