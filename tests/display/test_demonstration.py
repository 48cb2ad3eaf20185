"""The picture of the demonstration."""

import numpy as np
import pytest
from PIL import Image

from epsilot.display import demonstration, movement


def texts(figure):
    """Return all that is written on a figure."""
    return " ".join(
        artist.get_text() for artist in figure.findobj(match=lambda a: hasattr(a, "get_text"))
    )


def test_the_demonstration_shows_certificates_of_all(images, results, tmp_path):
    figure = demonstration.plot_demo(*images, results, tmp_path / "demo.png")
    written = texts(figure)
    for name, result in results.items():
        assert name in written
        assert f"{result.lower_bound:.6g} ≤ OT" in written
    with Image.open(tmp_path / "demo.png") as picture:
        assert min(picture.size) > 600


@pytest.mark.parametrize("entries", [0, 1 << 22])
def test_large_plans_are_drawn_as_distances(images, results, entries, monkeypatch):
    monkeypatch.setattr(demonstration, "PLAN_ENTRIES", entries)
    written = texts(demonstration.plot_demo(*images, results))
    assert ("Mean distance travelled" in written) == (entries == 0)
    assert ("Transport plan" in written) == (entries > 0)


def test_cells_keep_the_sum(rng):
    field = rng.random((35, 2))
    cells = movement.per_cell(field, (5, 7), 3)
    assert cells.shape == (6, 2)
    np.testing.assert_allclose(cells.sum(axis=0), field.sum(axis=0))
