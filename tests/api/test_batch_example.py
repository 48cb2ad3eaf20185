"""The example of docs/batch.md, at toy size."""

import re
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "batch.md"


def test_nearest_neighbours_of_digits():
    pytest.importorskip("sklearn")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    (code,) = [block for block in blocks if "KNeighborsClassifier" in block]
    assert "n_train, n_test = 500, 500" in code
    names: dict = {}
    exec(code.replace("500, 500", "100, 40"), names)
    assert names["near"].shape == (100, 100)
    assert names["far"].shape == (40, 100)
    np.testing.assert_array_equal(names["near"], names["near"].T)
    assert names["accuracy"] > 0.8
