"""Live lines: the gap of a run, and the number of problems solved."""

import sys

import numpy as np
import pytest

import epsilot
from epsilot.display import progress
from epsilot.display.progress import Counter, Progress
from epsilot.problems.work import Record

RECORD = Record(1234, 4_230_000, 75.0, 0.0775, 0.0666, 0.0109, 1e-3, 0.0125)


def test_nothing_is_drawn_without_a_terminal(capsys):
    with Progress("sinkhorn", eps=0.02, rtol=None) as line:
        line(RECORD)
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.usefixtures("wide")
def test_the_line_shows_all_numbers_on_stderr(capsys):
    with Progress("sinkhorn", eps=0.02, rtol=None, force=True) as line:
        line(RECORD)
    out, err = capsys.readouterr()
    assert out == ""
    for piece in ["sinkhorn", "1:15", "0.0109", "0.02", "0.0666, 0.0775", "1,234", "0.013"]:
        assert piece in err
    assert "4.2·10⁶ ops" in err


@pytest.mark.usefixtures("wide")
def test_a_relative_target_follows_the_lower_bound(capsys):
    with Progress("sinkhorn", eps=None, rtol=0.5, force=True) as line:
        line(RECORD)
    assert "(target 0.0333)" in capsys.readouterr().err


@pytest.mark.usefixtures("wide")
def test_at_most_ten_updates_per_second(capsys, monkeypatch):
    times = iter([0.0, 0.04, 0.08, 0.12, 0.5])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times))
    line = Progress("m", eps=1.0, rtol=None, force=True)
    line._live = drawn = Drawn()
    for n_iter in range(5):
        line(RECORD._replace(n_iter=n_iter))
    assert [text.split("epoch ")[1][0] for text in drawn.texts] == ["0", "3", "4"]


def test_the_line_is_redrawn_between_evaluations(monkeypatch):
    times = iter(range(9))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times))
    line = Progress("m", eps=1.0, rtol=None, force=True)
    line._live = drawn = Drawn()
    line.beat(1, 0.5)
    line(RECORD)
    line.beat(1300, 80.0)
    assert drawn.texts[0] == "m  500 ms  no bounds yet  epoch 1"
    assert "gap 0.0109" in drawn.texts[2]
    assert "1:20" in drawn.texts[2]
    assert "1,300" in drawn.texts[2]


def test_every_step_of_a_run_is_a_beat(monkeypatch):
    beats = []
    monkeypatch.setattr(Progress, "beat", lambda self, n_iter, seconds: beats.append(n_iter))
    M = np.random.default_rng(0).random((30, 30))
    result = epsilot.solve(M, method="restricted_simplex", progress=True)
    assert sorted(set(beats)) == list(range(1, result.n_iter + 1))


class Drawn:
    """Stand in for rich's live display."""

    def __init__(self):
        self.texts = []

    def update(self, text, *, refresh):
        assert refresh
        self.texts.append(text.plain)


def test_an_error_removes_the_line(monkeypatch):
    line = Progress("m", eps=1.0, rtol=None, force=True)
    with pytest.raises(KeyboardInterrupt), line:
        raise KeyboardInterrupt
    assert line._live is None
    assert sys.exc_info() == (None, None, None)


@pytest.mark.parametrize(
    ("size", "start", "n_done", "seconds", "text"),
    [
        (1000, 0, 250, 5.0, "250 of 1,000 problems  5.0 s  50 per second  about 15.0 s left"),
        (1000, 200, 250, 5.0, "250 of 1,000 problems  5.0 s  10 per second  about 1:15 left"),
        (None, 0, 1234, 2.0, "1,234 problems  2.0 s  617 per second"),
        (10, 0, 0, 0.0, "0 of 10 problems  0 ms  0 per second"),
    ],
)
def test_text_of_a_count(size, start, n_done, seconds, text):
    assert Counter(size, start).line(n_done, seconds) == text


def test_a_count_is_drawn_on_standard_error_of_a_terminal_only(capsys):
    with Counter(10) as counter:
        counter.show(3)
    assert capsys.readouterr() == ("", "")
    with Counter(10, force=True) as counter:
        counter.show(3)
        counter.show(4)  # too soon to be drawn
    out, err = capsys.readouterr()
    assert out == ""
    assert "3 of 10 problems" in err
    assert "4 of 10 problems" not in err
