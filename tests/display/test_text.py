"""Numbers in words."""

import pytest

from epsilot.display.text import clock, is_counted, operations_text, scientific
from epsilot.problems.work import Work


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (9999, "9999"), (10_000, "1.0·10⁴"), (1.25e-3, "0.00125"), (6e23, "6.0·10²³")],
)
def test_scientific(number, text):
    assert scientific(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 ms"), (0.9999, "1.0 s"), (59.96, "1:00"), (3599.9, "1:00:00"), (7325, "2:02:05")],
)
def test_clock(seconds, text):
    assert clock(seconds) == text


@pytest.mark.parametrize(
    ("work", "text"),
    [
        (Work(), "0 operations"),
        (Work({"pivot": 3}), "uncounted operations"),
    ],
)
def test_operations_of_foreign_code_are_uncounted(work, text):
    assert operations_text(work) == text
    assert is_counted(work) == (not text.startswith("un"))
