"""Two results of one small problem."""

import pytest

import epsilot
from epsilot.files.images import grid_cost, synthetic_pair


@pytest.fixture(scope="session")
def images():
    return synthetic_pair(6, seed=0)


@pytest.fixture(scope="session")
def results(images):
    A, B = images
    M = grid_cost(A.shape)
    return {
        name: epsilot.solve(M, A.ravel(), B.ravel(), eps=0.05, method=name)
        for name in ("exact", "sinkhorn")
    }
