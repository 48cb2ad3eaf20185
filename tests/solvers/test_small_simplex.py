"""The compiled simplex of small problems, one at a time."""

import numpy as np
import pytest

import epsilot
from batches import COSTS, WEIGHTS
from epsilot.kernels.small import prove_vertex
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
    monkeypatch.setattr("epsilot.solvers.small_simplex.answer_one", lambda *_: (0, *3 * [np.nan]))
    monkeypatch.setattr("epsilot.solvers.small_simplex.solve_one", lambda *arrays: 0)
    result = epsilot.solve(M, a, b, **METHOD)
    assert result.converged
    assert result.value == epsilot.exact(M, a, b).value
    assert (result.method, result.n_iter) == ("small_simplex", 1)


def answer(result):
    """Return everything in a result but its times."""
    arcs = result.plan_operator.core
    history = [record._replace(seconds=0.0) for record in result.history]
    fields = {"seconds", "compile_seconds", "plan_operator", "potentials", "problem", "history"}
    rest = {name: x for name, x in vars(result).items() if name not in fields}
    arrays = [x.tobytes() for x in (arcs.i, arcs.j, arcs.flow, *result.potentials)]
    return rest, arrays, history, result.problem_hash


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("cost", COSTS)
def test_one_call_has_the_bits_of_a_run_of_steps(rng, cost, weights):
    for n, m in SHAPES:
        M, a, b = COSTS[cost](rng, n, m), WEIGHTS[weights](rng, n), WEIGHTS[weights](rng, m)
        for keywords in ({}, {"rtol": 1e-9, "seed": 3, "max_seconds": 9}):
            at_once = epsilot.solve(M, a, b, **keywords)
            watched = epsilot.solve(M, a, b, callback=lambda record: False, **keywords)
            assert answer(at_once) == answer(watched)


def test_a_run_of_steps_is_not_needed(rng, monkeypatch):
    monkeypatch.delattr("epsilot.engine.execute.drive")
    assert epsilot.solve(rng.random((9, 8))).converged
    assert epsilot.solve(rng.random((9, 9))).converged


M, P, Q = np.array([[1.0, 2.0], [4.0, 3.0]]), np.array([0.5, 0.5]), np.array([0.25, 0.75])
ARCS = np.array([0, 0, 1]), np.array([0, 1, 1])  # with the flow that P and Q determine
DUAL = np.array([0.0, 1.0]), np.array([1.0, 2.0])


@pytest.mark.parametrize(
    ("arcs", "dual", "is_proved"),
    [
        (ARCS, DUAL, True),
        (ARCS, (DUAL[0] + [1e-9, 0.0], DUAL[1]), False),
        (ARCS, (DUAL[0] + [np.nan, 0.0], DUAL[1]), False),
        (([0, 1], [0, 1]), DUAL, False),  # the masses do not fit
        (([0, 0, 1, 1], [0, 1, 0, 1]), DUAL, False),  # a cycle
    ],
)
def test_vertices_are_proved_or_refused(arcs, dual, is_proved):
    i, j = (np.array(x) for x in arcs)
    size, upper, lower, _ = prove_vertex(M, P, Q, i.size, i, j, np.zeros(i.size), *dual)
    assert (size > 0) == is_proved
    if is_proved:
        assert (upper, lower) == (2.25, 2.25)
