"""What methods work on: a problem without its empty rows and columns, and the way back."""

import numpy as np
import pytest

from epsilot.geometry import Dense, Grid
from epsilot.problems.plan import Arcs, Explicit, Gibbs, Plan
from epsilot.problems.problem import make_problem
from epsilot.problems.support import NEGLIGIBLE_MASS, Support

COST = np.arange(12.0).reshape(3, 4)
ROWS, COLS = [0.5, 0.0, 0.5], [0.25, 0.25, 0.0, 0.5]
KEPT = np.ix_([0, 2], [0, 1, 3])


def test_empty_rows_and_columns_are_left_out():
    problem = make_problem(COST, ROWS, COLS)
    support = Support.of(problem)
    assert support.problem.shape == (2, 3)
    assert support.problem.p.min() > 0 < support.problem.q.min()
    np.testing.assert_array_equal(support.problem.geometry.block(0, 2), COST[KEPT])
    f, g = support.kept(np.arange(3.0), np.arange(4.0))
    assert (list(f), list(g)) == ([0, 2], [0, 1, 3])


@pytest.mark.parametrize(
    "core",
    [
        Explicit(np.full((2, 3), 1 / 6)),
        Arcs((2, 3), np.array([0, 1]), np.array([2, 0]), np.array([0.5, 0.5])),
        Gibbs(Dense(COST[KEPT]), np.zeros(2), np.zeros(3), 2.0),
    ],
    ids=lambda core: type(core).__name__,
)
def test_what_is_found_is_lifted_to_the_whole_problem(core):
    support = Support.of(make_problem(COST, ROWS, COLS))
    lifted, f = support.lifted(core, np.array([1.0, 2.0]))
    whole = np.zeros((3, 4))
    whole[KEPT] = Plan(core).toarray()
    np.testing.assert_array_equal(Plan(lifted).toarray(), whole)
    assert list(f) == [1.0, -np.inf, 2.0]


@pytest.mark.parametrize(
    ("geometry", "a", "b"),
    [
        (Dense(COST), [0.25, 0.25, 0.5], [0.25] * 4),
        (Dense(COST), [0.25, 2 * NEGLIGIBLE_MASS, 0.75], [0.25] * 4),
        (Grid((30,), (40,), "cityblock", 1.0), np.repeat(ROWS, 10) / 10, np.repeat(COLS, 10) / 10),
    ],
    ids=["nothing empty", "nearly empty", "cannot be restricted"],
)
def test_a_problem_may_be_its_own_support(geometry, a, b):
    (n, m), problem = geometry.shape, make_problem(geometry, a, b)
    core, support, row = Explicit(np.full((n, m), 1 / (n * m))), Support.of(problem), np.arange(n)
    assert support.problem is support.whole is problem
    assert support.lifted(core, row) == (core, row)
