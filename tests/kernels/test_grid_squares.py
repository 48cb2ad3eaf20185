"""The squared Euclidean kernel on a grid leaves out terms that are 0, and no other."""

import numpy as np
import pytest

from epsilot.geometry.axes import split
from epsilot.kernels.grid import sq_log


def whole_sums(t, z, w, factors, powers, price, n_out):
    """Return levels and sums over all cells of the axis."""
    length, n_lines = t.shape
    out = np.full((3, n_out, n_lines), -np.inf)
    out[1:] = 0
    d = abs(np.subtract.outer(np.arange(n_out), np.arange(length)))
    for i in range(n_out):
        levels = t + powers[d[i]][:, None]
        out[0, i] = levels.max(axis=0)
        base = np.where(out[0, i] > -np.inf, out[0, i], 0.0)
        x = factors[d[i]][:, None] * np.exp2(np.maximum(levels - base, -1001.0))
        x[levels - base < -1000] = 0
        out[1, i] = (z * x).sum(axis=0)
        out[2, i] = ((w + price * d[i][:, None] ** 2 * z) * x).sum(axis=0)
    return out


@pytest.mark.parametrize("eta", [1e-3, 0.1, 3.0, 1e3])
@pytest.mark.parametrize("empty", [0.0, 0.3, 0.95])
@pytest.mark.parametrize("shape", [(40, 70), (1, 5), (65, 1)])
def test_sums_are_whole(shape, empty, eta, rng):
    length, n_lines = shape
    g = 50 * np.cos(np.add.outer(np.arange(length) / 7, np.arange(n_lines) / 3))
    g[rng.random(shape) < empty] = -np.inf
    g[:, n_lines // 2 :: 9] = -np.inf  # lines with nothing at all
    m, k = (x.reshape(shape) for x in split(g.ravel(), 0.0, eta))
    z, w = m * rng.random(shape) ** 20, m * rng.random(shape)
    n_out = length + 3
    factors, powers = split(-(np.arange(n_out) ** 2.0), 0.0, eta)
    found = np.empty((3, 1, n_out, n_lines))
    args = [x[None].copy() for x in (np.where(m > 0, k, -np.inf), z, w)]
    sq_log(*args, factors, powers, 2.0, *found, 0, n_lines)
    expected = whole_sums(*(x[0] for x in args), factors, powers, 2.0, n_out)
    np.testing.assert_array_equal(found[0, 0], expected[0])
    np.testing.assert_allclose(found[1:, 0], expected[1:], rtol=1e-13)
