"""Assignments on sparse arcs: optima against SciPy, feasible prices, fallback and resumed runs."""

from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import epsilot
from epsilot.problems.problem import Additive
from epsilot.solvers import arc_matching, network_simplex
from epsilot.solvers.network_simplex import NetworkSimplex
from tuning import tuned


@contextmanager
def small_steps(**parameters):
    """Let every step make few bids, or one search."""
    with (
        tuned(network_simplex, phases_per_step=1),
        tuned(arc_matching, bids_per_step=7, arcs_per_step=5, **parameters),
    ):
        yield


def arcs(seed, n, degree, draw):
    """Return a matrix with random arcs and those of a permutation; the others are inf."""
    rng = np.random.default_rng([33, seed])
    C = np.full((n, n), np.inf)
    i, j = np.repeat(np.arange(n), degree), rng.integers(0, n, n * degree)
    C[i, j] = draw(rng, i.size)
    C[np.arange(n), rng.permutation(n)] = draw(rng, n) * rng.choice([1, 50])
    return C


DRAWS = {
    "random": lambda rng, size: rng.random(size),
    "ties": lambda rng, size: rng.integers(-2, 3, size) * 1.0,
    "equal": lambda rng, size: np.ones(size),
    "spread": lambda rng, size: 10.0 ** rng.uniform(-6, 6, size),
}


def optimum(C):
    """Return the least mean cost of a permutation."""
    large = np.where(np.isfinite(C), C, 1e9)
    return C[linear_sum_assignment(large)].mean()


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize(("n", "degree"), [(1, 1), (2, 1), (9, 2), (60, 3), (200, 6)])
def test_assignments_are_optimal(n, degree, draw):
    for seed in range(4):
        C = arcs(seed, n, degree, DRAWS[draw])
        result = epsilot.solve(C, rtol=1e-9)
        expected = optimum(C)
        assert result.value == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert result.plan_operator.tosparse().nnz == n
        assert result.gap <= 1e-12 * np.abs(C[np.isfinite(C)]).max()


def test_matched_arcs_are_tight_after_every_search():
    C = arcs(5, 60, 3, DRAWS["random"])
    geometry = epsilot.geometry.as_geometry(C)
    problem = Additive(geometry, 1.0, np.full(60, 1 / 60), np.full(60, 1 / 60))
    solver = NetworkSimplex()
    left = []
    with small_steps(last_eps=10.0, evictions_per_row=0):
        state, _ = solver.init(problem, np.random.default_rng(0))
        while not state.is_done:
            solver.step(problem, state, np.random.default_rng(0))
            if state.stage == arc_matching.PATHS:
                left.append(state.n_waiting)
                rows = np.flatnonzero(state.matched >= 0)
                slack = (C - state.lam).min(axis=1)
                assert np.abs(slack - arc_matching.matching_row(problem, state))[rows].max() < 1e-12
                assert (state.matched >= 0).sum() == 60 - state.n_waiting
    assert left[0] > 2
    assert left[-1] == 0
    assert all(before > after for before, after in pairwise(left))


@pytest.mark.parametrize("parameters", [{"max_searches": 0}, {"max_searches": 0, "left_rows": 0.5}])
def test_long_searches_are_left_to_the_simplex(parameters):
    C = arcs(7, 80, 3, DRAWS["random"])
    with small_steps(evictions_per_row=0, **parameters):
        result = epsilot.solve(C, rtol=1e-9)
    assert result.value == pytest.approx(optimum(C), rel=1e-9)
    assert result.n_iter > 3


def test_two_rows_with_one_column_are_a_cut():
    with pytest.raises(epsilot.Infeasible) as caught:
        epsilot.solve(np.array([[1.0, np.inf, np.inf], [2.0, np.inf, np.inf], [1.0, 1.0, 1.0]]))
    assert list(caught.value.sources) == [0, 1]
    assert list(caught.value.targets) == [0]


def test_potentials_of_the_user_are_the_first_prices():
    C = arcs(8, 60, 3, DRAWS["random"])
    exact = epsilot.solve(C, rtol=1e-9)
    again = epsilot.solve(C, rtol=1e-9, potentials_init=exact.potentials)
    assert again.value == pytest.approx(exact.value, rel=1e-12)


@pytest.mark.parametrize("stop", [1, 3, 9])
def test_resumed_matchings_equal_whole_ones(tmp_path, stop):
    C = arcs(9, 40, 3, DRAWS["random"])
    with small_steps():
        whole = epsilot.solve(C, rtol=1e-9)
        assert whole.n_iter > 9
        file = tmp_path / "run.npz"
        part = epsilot.solve(C, rtol=1e-9, max_iter=stop, on_limit="ignore", checkpoint=file)
        assert part.lower_bound <= whole.value <= part.value
        result = epsilot.solve(C, rtol=1e-9, resume=file)
    assert result.value == whole.value
    assert result.n_iter == whole.n_iter
    assert np.array_equal(result.potentials[1], whole.potentials[1])
