"""Exponentials and logarithms are accurate over their whole range."""

import numba
import numpy as np
import pytest
from numba import njit

from epsilot.kernels import exp_log
from epsilot.kernels.compiling import KERNEL
from epsilot.kernels.exp_log import exp, exp_below, larger


@numba.njit
def _exp_all(x):
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = exp(x[i])
    return out


@pytest.mark.parametrize(
    ("dtype", "low", "high", "tolerance"),
    [(np.float64, -708, 709.7, 1e-14), (np.float32, -87, 88.7, 5e-7)],
)
def test_exp_is_accurate_over_its_whole_range(dtype, low, high, tolerance):
    x = np.linspace(low, high, 200_001).astype(dtype)
    exact = np.exp(x.astype(np.longdouble))
    assert (np.abs(_exp_all(x) - exact) <= tolerance * exact).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exp_at_its_ends(dtype):
    x = np.array([0.0, -0.0, -np.inf, np.inf, np.nan, -1e30, 1e30], dtype=dtype)
    expected = np.array([1, 1, 0, np.inf, np.nan, 0, np.inf], dtype=dtype)
    np.testing.assert_array_equal(_exp_all(x), expected)


@njit(**{**KERNEL, "cache": False})
def exponentials(x, out):
    for j in range(x.size):
        out[j] = exp_below(x[j])


@njit(**{**KERNEL, "cache": False})
def largest(x):
    best = x[0]
    for j in range(x.size):
        best = larger(x[j], best)
    return best


@pytest.mark.parametrize(
    ("dtype", "low", "rtol"),
    [
        (np.float64, -708.0, 1e-14),
        (np.float32, -87.0, 3e-7),
    ],
)
def test_bounded_exponential(dtype, low, rtol):
    x = np.linspace(low, 20, 5001).astype(dtype)
    out = np.empty_like(x)
    exponentials(x, out)
    np.testing.assert_allclose(out, np.exp(x.astype(float)), rtol=rtol)
    below = np.array([2 * low, -1e30, -np.inf], dtype=dtype)
    out = np.empty_like(below)
    exponentials(below, out)
    np.testing.assert_allclose(out.astype(float), np.exp(low), rtol=1e-6)


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_maximum_with_infinities(size, rng):
    x = rng.normal(size=size)
    x[::2] = -np.inf
    assert largest(x) == x.max()


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
