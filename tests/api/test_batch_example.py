"""The examples of docs/batch.md, at toy size."""

import re
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "batch.md"


def block(word):
    """Return the only block of code with a word in it."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    (code,) = [block for block in blocks if word in block]
    return code


def test_clusters_of_histograms():
    pytest.importorskip("sklearn")
    names: dict = {}
    exec(block("AgglomerativeClustering"), names)
    shapes = np.round((names["centres"] - 8) / 12)
    for cluster in range(3):
        assert np.ptp(shapes[names["clusters"] == cluster]) == 0


def test_nearest_neighbours_of_digits():
    pytest.importorskip("sklearn")
    code = block("KNeighborsClassifier")
    assert "n_train, n_test = 500, 500" in code
    names: dict = {}
    exec(code.replace("500, 500", "100, 40"), names)
    assert names["near"].shape == (100, 100)
    assert names["far"].shape == (40, 100)
    np.testing.assert_array_equal(names["near"], names["near"].T)
    assert names["accuracy"] > 0.8
