"""The live line that counts problems."""

import pytest

from epsilot.display.counter import Counter


@pytest.mark.parametrize(
    ("size", "start", "n_done", "seconds", "text"),
    [
        (1000, 0, 250, 5.0, "250 of 1,000 problems  5.0 s  50 a second  about 15.0 s left"),
        (1000, 200, 250, 5.0, "250 of 1,000 problems  5.0 s  10 a second  about 1:15 left"),
        (None, 0, 1234, 2.0, "1,234 problems  2.0 s  617 a second"),
        (10, 0, 0, 0.0, "0 of 10 problems  0 ms  0 a second"),
    ],
)
def test_the_line(size, start, n_done, seconds, text):
    assert Counter(size, start).line(n_done, seconds) == text


def test_it_is_drawn_on_standard_error_only_where_somebody_looks(capsys):
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
