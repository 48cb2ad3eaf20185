"""Stored costs that are distances between cells: recognised, solved as such, proved as stored."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import epsilot
from epsilot.geometry import Dense, Grid


def pixel_costs(shape, spacing=1.0, metric="cityblock"):
    cells = np.indices(shape).reshape(len(shape), -1).T * np.broadcast_to(spacing, len(shape))
    return cdist(cells, cells, metric)


def put(M, i, j, value):
    changed = M.copy()
    changed[i, j] += value
    return changed


SQUARE = pixel_costs((9, 9))
#: cost, the shape of its l1 cells or None, whether it is one of squares
COSTS = {
    "l1": (SQUARE, (9, 9), False),
    "over its largest": (SQUARE / SQUARE.max(), (9, 9), False),
    "uneven": (pixel_costs((8, 11), (0.3, 1.7)), (8, 11), False),
    "a line": (pixel_costs((80,), 0.1), (80,), False),
    "a side of two": (pixel_costs((2, 40)), (2, 40), False),
    "a side of one": (pixel_costs((40, 1, 2)), (40, 2), False),
    "3-d": (pixel_costs((5, 4, 6), (1.0, 0.5, 2.0)), (5, 4, 6), False),
    "squares": (pixel_costs((9, 8), (1.0, 0.7), "sqeuclidean"), None, True),
    "distances": (pixel_costs((9, 9), metric="euclidean"), None, False),
    "4-d": (pixel_costs((3, 3, 3, 3)), None, False),
    "one entry off": (put(SQUARE, 40, 7, 1e-9), None, False),
    "the first row off": (put(SQUARE, 0, 7, 1e-9), None, False),
    "the last entry off": (put(SQUARE, 80, 79, -1e-9), None, False),
    "another order": (SQUARE[::-1, ::-1][np.random.default_rng(0).permutation(81)], None, False),
    "few cells": (pixel_costs((7, 9)), None, False),
    "wide": (SQUARE[:, :72], None, False),
    "zero": (np.zeros((81, 81)), None, False),
    "constant steps": (np.ones((81, 81)) - np.eye(81), None, False),
}


@pytest.mark.parametrize("name", COSTS)
def test_cells_are_recognised(name):
    M, shape, is_square = COSTS[name]
    geometry = Dense(M)
    lattice = geometry.lattice
    assert (None if lattice is None else lattice.shape_a) == shape
    assert (geometry.embedding is not None) == is_square
    if lattice is not None:
        np.testing.assert_allclose(Grid(shape, spacing=lattice.spacing).block(0, len(M)), M)


@pytest.mark.parametrize("empty", [0.0, 0.4])
@pytest.mark.parametrize(
    ("name", "method"),
    [("over its largest", "grid_flow"), ("3-d", "grid_flow"), ("squares", "auction")],
)
def test_what_is_recognised_is_solved_and_proved_as_stored(rng, name, method, empty):
    M, _, _ = COSTS[name]
    a, b = (rng.random(len(M)) * (rng.random(len(M)) >= empty) for _ in "ab")
    a, b = 2 * a / a.sum(), 2 * b / b.sum()
    result = epsilot.solve(M, a, b, rtol=1e-9, method=method)
    assert result.converged
    assert result.value == pytest.approx(epsilot.exact(M, a, b).value, rel=1e-9)
    f, g = result.potentials
    assert (f[:, None] + g <= M).all()
    np.testing.assert_allclose(result.plan.sum(axis=1), a, atol=1e-14)


@pytest.mark.parametrize("n_empty", [0, 7])
def test_auto_takes_a_flow_for_a_matrix_of_pixel_distances(rng, n_empty):
    a, b = rng.dirichlet(np.ones(400), 2)
    a[:n_empty] = b[-n_empty:] = 0 if n_empty else b[-1]
    a, b = a / a.sum(), b / b.sum()
    result = epsilot.solve(pixel_costs((20, 20)), a, b, rtol=1e-6)
    assert result.method == "grid_flow"
    assert "neighbouring cells" in result.choice
