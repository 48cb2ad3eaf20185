"""With NUMBA_BOUNDSCHECK=1 explicit vectors are checked as numba checks indices."""

import os
import subprocess
import sys

import numba
import pytest

SCRIPT = """
import numba
import numpy as np
from epsilot.kernels import atomics, products, simd8, sums

x, sets, counts = np.ones(16), np.zeros((2, simd8.BYTES), np.uint8), np.zeros(3, np.int64)
out = np.zeros((products.HEIGHT, products.WIDTH))
A, panel = np.ones((products.HEIGHT, 5)), np.ones((5, products.WIDTH))
CALLS = [
    (sums.dot, (x, x), (x, x[:15])),
    (simd8.least_of_row, (x, x), (x, x[:15])),
    (simd8.unite, (sets, 0, 1, 1), (sets, 2, 1, 1)),
    (simd8.subtract, (sets, 0, 1, 1), (sets, 0, -1, 1)),
    (simd8.add_where, (sets, 1, 2.0, x), (sets, 2, 2.0, x)),
    (atomics.load, (counts, 2), (counts, 3)),
    (atomics.add, (counts, 0, 1), (counts, -1, 1)),
    (products._wide_tile, (A, 0, 0, panel, out, 0, 0), (A, 0, 0, panel, out, 1, 0)),
    (products._wide_tile, (A, 0, 0, panel, out, 0, 0), (A, 0, 1, panel, out, 0, 0)),
]
for call, inside, outside in CALLS:
    names = ", ".join(f"x{k}" for k in range(len(inside)))
    compiled = numba.njit(eval(f"lambda {names}: call({names})", {"call": call}))
    compiled(*inside)
    try:
        compiled(*outside)
    except IndexError:
        continue
    raise SystemExit(f"{call} went out of bounds: {outside}")
"""


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="NumPy checks indices itself")
def test_vectors_out_of_bounds_raise(tmp_path):
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
