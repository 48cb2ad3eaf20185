"""`solve_sample` validates each cloud once."""

import numpy as np
import pytest

import epsilot
from epsilot.geometry import coordinates


@pytest.mark.parametrize("keywords", [{}, {"lazy": True}, {"lazy": False}, {"mass": 0.5}])
def test_each_cloud_is_validated_once(keywords, monkeypatch, rng):
    validated = []
    as_points = coordinates.as_points

    def count(X, name):
        validated.append(name)
        return as_points(X, name)

    monkeypatch.setattr(coordinates, "as_points", count)
    epsilot.solve_sample(rng.random((30, 2)), rng.random((20, 2)), **keywords)
    assert validated == ["X_a", "X_b"]


def test_points_are_rejected_by_the_name_of_their_argument():
    with pytest.raises(epsilot.InvalidProblem, match="X_b"):
        epsilot.solve_sample(np.zeros((2, 2)), np.full((2, 2), np.nan))
