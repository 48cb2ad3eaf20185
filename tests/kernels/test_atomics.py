"""Atomic counters under contention."""

import threading

import numpy as np
from numba import njit

from epsilot.kernels import atomics


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
