"""Sums do not depend on how, where and when a kernel was compiled, nor on where its arrays lie."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numba import njit

from epsilot.kernels import sums
from epsilot.kernels.exp_log import exp

ONE = {"total": np.sum, "l1": lambda x: np.abs(x).sum(), "positive": lambda x: x[x > 0].sum()}
TWO = {"dot": np.dot, "distance": lambda x, y: np.abs(x - y).sum()}


@njit
def each(x, y):
    return sums.total(x), sums.l1(x), sums.positive(x), sums.dot(x, y), sums.distance(x, y)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 31, 32, 33, 64, 65, 1000])
def test_sums(size, dtype, rng):
    x, y = rng.normal(size=(2, size)).astype(dtype)
    wide = [np.asarray(v, dtype=np.float64) for v in (x, y)]
    expected = [f(wide[0]) for f in ONE.values()] + [f(*wide) for f in TWO.values()]
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(each(x, y), expected, rtol=20 * eps, atol=640 * eps)


@njit
def stored(row, g, v, d, f, inv_eta, x):
    for j in range(row.size):
        x[j] = exp((f + g[j] - row[j]) * inv_eta)
    mass, moved = sums.total(x), sums.dot(x, v)
    for j in range(row.size):
        x[j] *= v[j]
    return mass, moved, sums.total(x), sums.dot(x, row), sums.dot(row, d)


@njit
def computed(row, g, v, d, f, inv_eta, x):
    mass = sums.gibbs_into(row, g, x, f, inv_eta)
    return (
        mass,
        sums.gibbs_dot(row, g, v, f, inv_eta),
        *sums.gibbs_price(row, g, v, d, f, inv_eta),
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1, 8, 31, 33, 1000])
def test_a_fused_sum_has_the_bits_of_one_over_stored_terms(size, dtype, rng):
    row, g, v, d = rng.random((4, size)).astype(dtype)
    x, y = np.empty_like(row), np.empty_like(row)
    f, inv_eta = dtype(0.3), dtype(7.0)
    assert computed(row, g, v, d, f, inv_eta, x) == stored(row, g, v, d, f, inv_eta, y)
    np.testing.assert_array_equal(x * v, y)


@njit
def weigh(line, other, out):
    return sums.gibbs_into(line, other, out, 0.3, 7.0)


@pytest.mark.parametrize("n", [4, 8, 9, 16, 20, 31])
def test_a_sum_does_not_depend_on_the_distance_of_arrays(n, rng):
    line, other = rng.random((2, n))
    found = set()
    for gap in (0, 2, 4, 8, 16, 32, 64, 1000):
        arena = np.zeros(3 * n + 2 * gap)
        a, b = arena[:n], arena[n + gap : 2 * n + gap]
        a[:], b[:] = line, other
        out = arena[2 * n + 2 * gap :]
        found.add((weigh(a, b, out), out.tobytes()))
    assert len(found) == 1


AGAIN = """
import numpy as np
from epsilot.kernels import dense
rng = np.random.default_rng(0)
C, g, out = rng.random((50, 40)), rng.random(40), np.empty(50)
dense.lse_rows(C, g, 30.0, out, 0, 50)
print(out.tobytes().hex())
"""


def test_a_kernel_from_the_cache_does_what_it_did_when_compiled(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    found = {
        subprocess.check_output([sys.executable, "-c", AGAIN], env=environment) for _ in range(2)
    }
    assert len(found) == 1
