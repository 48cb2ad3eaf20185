"""Squared distances by inner products: within rounding of the largest, the same on any threads."""

import numpy as np
import pytest

from epsilot import parallel
from epsilot.kernels.products import squared_distances

#: points of both clouds, coordinates, how far from the origin
CASES = [(1, 1, 1, 0.0), (5, 7, 16, 0.0), (33, 17, 300, 1e6), (200, 16, 520, -1e3)]


def by_differences(x, y):
    x, y = np.asarray(x, np.longdouble), np.asarray(y, np.longdouble)
    return ((x[:, None] - y) ** 2).sum(axis=2)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("n", "m", "d", "shift"), CASES)
def test_squared_distances(n, m, d, shift, dtype, rng):
    shift = min(max(shift, -1e4), 1e4) if dtype is np.float16 else shift
    x, y = ((rng.normal(size=(k, d)) + shift).astype(dtype) for k in (n, m))
    found, expected = np.empty((n, m)), by_differences(x, y)
    squared_distances(x, y, found)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * expected.max())
    itself = np.empty((n, n))
    squared_distances(x, x, itself)
    assert (itself >= 0).all()


def test_threads_do_not_change_a_bit(rng):
    x, y = rng.normal(size=(2, 150, 300))
    found = set()
    for n_threads in (1, 2, 3):
        out = np.empty((150, 150))
        with parallel.limit(n_threads):
            squared_distances(x, y, out)
        found.add(out.tobytes())
    assert len(found) == 1
