"""The logarithm is accurate over its whole range."""

import numpy as np
from numba import njit

from epsilot.kernels import exp_log


@njit
def each(x, out, is_rough):
    for i in range(x.size):
        out[i] = exp_log.rough_log(x[i]) if is_rough else exp_log.log(x[i])


def test_logarithm(rng):
    x = np.concatenate([np.exp(rng.uniform(-700, 700, 20_000)), np.linspace(0.5, 2, 20_001)])
    out = np.empty_like(x)
    each(x, out, False)
    np.testing.assert_allclose(out, np.log(x), rtol=5e-16, atol=1e-300)
    each(x, out, True)
    np.testing.assert_allclose(out, np.log(x), rtol=1e-10, atol=1e-300)
    special = np.array([0.0, np.inf, -1.0, np.nan, 1.0])
    out = np.empty_like(special)
    each(special, out, False)
    np.testing.assert_array_equal(out, [-np.inf, np.inf, np.nan, np.nan, 0.0])
