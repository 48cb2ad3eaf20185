"""The compiled simplex of small problems, one at a time."""

import numpy as np
import pytest

import epsilot
from batches import COSTS, WEIGHTS
from epsilot.kernels.small_simplex import MAX_NODES, is_small, padded

METHOD = {"method": "small_simplex", "rtol": 1e-9}
SHAPES = [(1, 1), (1, 7), (9, 9), (31, 8), (17, 40)]


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("cost", COSTS)
def test_its_answers_are_those_of_the_other_simplex(rng, cost, weights):
    for n, m in SHAPES:
        M, a, b = COSTS[cost](rng, n, m), WEIGHTS[weights](rng, n), WEIGHTS[weights](rng, m)
        ours, theirs = epsilot.solve(M, a, b, **METHOD), epsilot.exact(M, a, b)
        size = np.abs(M).max()
        assert ours.converged
        assert ours.gap <= 1e-12 * size
        assert abs(ours.value - theirs.value) <= 1e-12 * size
        assert np.count_nonzero(ours.plan) <= n + m - 1


@pytest.mark.parametrize("shape", [(256, 256), (500, 8), (4, 504)])
def test_as_many_nodes_as_a_set_has_bits(rng, shape):
    assert is_small(*shape)
    assert sum(padded(*shape)) <= MAX_NODES
    M, a, b = rng.random(shape), *(rng.dirichlet(np.ones(n)) for n in shape)
    result = epsilot.solve(M, a, b, **METHOD)
    assert result.gap <= 1e-13
    assert result.value == pytest.approx(epsilot.exact(M, a, b).value, rel=1e-12)


@pytest.mark.parametrize("shape", [(257, 256), (256, 257), (505, 1)])
def test_larger_problems_are_refused(shape):
    assert not is_small(*shape)
    with pytest.raises(epsilot.InvalidProblem, match="up to 512 rows and columns"):
        epsilot.solve(np.zeros(shape), **METHOD)


def test_pot_solves_problems_that_the_pivots_do_not(rng, monkeypatch):
    M, a, b = rng.random((9, 8)), rng.dirichlet(np.ones(9)), rng.dirichlet(np.ones(8))
    monkeypatch.setattr("epsilot.solvers.small_simplex.solve_one", lambda *arrays: 0)
    result = epsilot.solve(M, a, b, **METHOD)
    assert result.converged
    assert result.value == epsilot.exact(M, a, b).value
    assert (result.method, result.n_iter) == ("small_simplex", 1)
