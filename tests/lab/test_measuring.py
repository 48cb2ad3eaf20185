"""Clocks and peaks of memory."""

import sys
import time

import numpy as np
import pytest

from epsilot_lab import measuring
from epsilot_lab.measuring import Runs, Seconds, in_turns, repeated, timed


def test_every_clock_is_read():
    seconds, result = timed(lambda: sum(range(10**5)))
    assert result == sum(range(10**5))
    assert seconds.wall > 0
    assert seconds.processor > 0
    assert seconds.thread > 0
    asleep, _ = timed(lambda: time.sleep(0.05))
    assert asleep.wall >= 0.05 > asleep.thread


def test_the_least_and_the_median_are_taken_clock_by_clock():
    runs = Runs([Seconds(3.0, 1.0, 1.0), Seconds(1.0, 2.0, 5.0), Seconds(2.0, 9.0, 3.0)])
    assert runs.least == (1.0, 1.0, 1.0)
    assert runs.median == (2.0, 2.0, 3.0)


def test_repetitions_keep_to_their_budget_and_numbers():
    calls = []
    assert len(repeated(lambda: calls.append(1), 60.0, most=7).seconds) == 7
    assert len(repeated(lambda: time.sleep(0.01), 0.0).seconds) == 1
    assert len(repeated(lambda: time.sleep(0.01), 0.0, least=3).seconds) == 3
    assert not repeated(lambda: time.sleep(0.01), -1.0, least=0).seconds
    assert len(calls) == 7


def test_calls_take_turns():
    order = []
    runs = in_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b") or 5}, 3)
    assert order == ["a", "b"] * 3
    assert runs["b"].result == 5
    assert len(runs["a"].seconds) == 3


def test_the_peak_is_not_below_what_is_held():
    held = np.ones(1 << 20)
    assert measuring.peak() > held.nbytes


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_a_peak_is_forgotten_and_seen_again():
    before = measuring.forget_peak()
    if before is None:
        pytest.skip("this system does not let a process forget its peak")
    np.ones(1 << 23)
    assert measuring.recent_peak() - before > 60 << 20
    again = measuring.forget_peak()
    assert measuring.recent_peak() - again < 30 << 20
