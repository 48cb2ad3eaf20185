"""Sums do not depend on how, where and when a kernel was compiled, nor on where its arrays lie."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numba import njit

from epsilot.kernels import coordinate, sums

ONE = {"total": np.sum, "l1": lambda x: np.abs(x).sum(), "positive": lambda x: x[x > 0].sum()}
TWO = {"dot": np.dot, "distance": lambda x, y: np.abs(x - y).sum()}


@njit
def each(x, y, z):
    return (
        sums.total(x), sums.l1(x), sums.positive(x), sums.dot(x, y), sums.distance(x, y),
        *sums.total_and_dot(x, y), *sums.two_dots(x, y, z), *sums.price(x, y, z),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 31, 32, 33, 64, 65, 1000])
def test_sums(size, dtype, rng):
    x, y, z = rng.normal(size=(3, size)).astype(dtype)
    wide = [np.asarray(v, dtype=np.float64) for v in (x, y, z)]
    expected = [f(wide[0]) for f in ONE.values()] + [f(*wide[:2]) for f in TWO.values()]
    expected += [wide[0].sum(), wide[0] @ wide[1], wide[0] @ wide[1], wide[0] @ wide[2]]
    expected += [wide[0].sum(), wide[0] @ wide[1], wide[1] @ wide[2]]
    np.testing.assert_allclose(each(x, y, z), expected, rtol=0, atol=np.finfo(dtype).eps * 20 * 32)


@pytest.mark.parametrize("n", [4, 8, 9, 16, 20, 31])
def test_a_sum_does_not_depend_on_the_distance_of_arrays(n, rng):
    line, other = rng.random((2, n))
    found = set()
    for gap in (0, 2, 4, 8, 16, 32, 64, 1000):
        arena = np.zeros(3 * n + 2 * gap)
        a, b = arena[:n], arena[n + gap : 2 * n + gap]
        a[:], b[:] = line, other
        out = arena[2 * n + 2 * gap :]
        found.add((coordinate._weigh(a, b, 0.3, 7.0, out), out.tobytes()))
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
