import time

from epsilot_lab.timing import Runs, Seconds, in_turns, repeated, timed


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


def test_rivals_take_turns():
    order = []
    runs = in_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b") or 5}, 3)
    assert order == ["a", "b"] * 3
    assert runs["b"].result == 5
    assert len(runs["a"].seconds) == 3
