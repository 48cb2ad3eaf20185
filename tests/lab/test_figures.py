from itertools import pairwise

import pytest

from epsilot_lab.figures import Panel, draw_panels
from epsilot_lab.fitting import NO_FIT, Curve

SQUARES = [side**2 for side in (4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32)]


def panel(places):
    values = tuple(float(x) for x in places)
    return Panel("t", "n", "y", (Curve("c", values, values, values, values, NO_FIT, 1),))


@pytest.mark.parametrize(
    "places", [SQUARES, SQUARES[:10], [1, 2, 4, 8, 16, 32], [9, 16, 25, 36, 49], [784, 900, 1024]]
)
def test_labels_of_ticks_do_not_touch_and_the_last_is_there(places):
    figure = draw_panels([[panel(places), panel(places)]], "title")
    figure.canvas.draw()
    for ax in figure.axes:
        shown = [label for label in ax.get_xticklabels() if label.get_text()]
        boxes = [label.get_window_extent() for label in shown]
        character = boxes[0].width / len(shown[0].get_text())
        assert all(right.x0 - left.x1 > character / 2 for left, right in pairwise(boxes))
        assert shown[-1].get_text() == str(places[-1])


def test_what_was_not_measured_is_said():
    (ax,) = draw_panels([[Panel("t", "n", "y", ())]], "title").axes
    assert [text.get_text() for text in ax.texts] == ["not measured yet"]
