"""Atomic counters under contention, and the bounded exponential and maximum beside them."""

import threading

import numpy as np
import pytest
from numba import njit

from epsilot.kernels import atomics
from epsilot.kernels.dense import SUM
from epsilot.kernels.vexp import exp_below, larger


@njit(nogil=True)
def count(counters, n):
    for _ in range(n):
        atomics.add(counters, 0, 1)
        while True:
            seen = atomics.load(counters, 1)
            if atomics.swap_if(counters, 1, seen, seen + 1):
                break
            atomics.give_way()
    atomics.store(counters, 2, 7)


def test_no_increment_is_lost():
    counters = np.zeros(3, dtype=np.int64)
    count(counters, 0)  # compiled before the race
    crowd = [threading.Thread(target=count, args=(counters, 20_000)) for _ in range(3)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    assert counters.tolist() == [60_000, 60_000, 7]


def test_swap_happens_only_from_the_expected_value():
    counters = np.array([5, 0, 0], dtype=np.int64)
    swap = njit(lambda c, old: atomics.swap_if(c, 0, old, 9))
    assert not swap(counters, 4)
    assert counters[0] == 5
    assert swap(counters, 5)
    assert counters[0] == 9


@njit(**{**SUM, "cache": False})
def exponentials(x, out):
    for j in range(x.size):
        out[j] = exp_below(x[j])


@njit(**{**SUM, "cache": False})
def largest(x):
    best = x[0]
    for j in range(x.size):
        best = larger(x[j], best)
    return best


@pytest.mark.parametrize(("dtype", "low", "rtol"), [
    (np.float64, -708.0, 1e-14), (np.float32, -87.0, 3e-7),
])  # fmt: skip
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
