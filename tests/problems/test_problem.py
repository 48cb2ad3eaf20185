"""A problem in internal units says what the user's is, and knows it again."""

import numpy as np
import pytest

from epsilot.problems.problem import make_problem

M = np.random.default_rng(0).random((3, 4)) + 0.5
A, B = np.array([1.0, 2, 3]), np.array([3.0, 1, 1, 1])


@pytest.mark.parametrize(
    ("scale", "shift", "mass"), [(1.0, 0.0, 1.0), (1e-40, 0.0, 1e3), (1e60, -2.0, 1.0), (1, 9, 1)]
)
def test_units_offset_and_mass_give_back_what_was_given(scale, shift, mass):
    cost, weights = scale * (M + shift), mass * A
    problem = make_problem(cost, weights, mass * B)
    C = problem.geometry.block(0, 3)
    np.testing.assert_allclose(problem.unit * (C + problem.offset), cost, rtol=1e-14)
    np.testing.assert_allclose(problem.mass * problem.p, weights, rtol=1e-14)
    assert problem.cost_max == C.max()
    assert np.log2(problem.unit) % 1 == 0
    assert problem.p.sum() == pytest.approx(1, abs=1e-15)


def test_a_digest_knows_cost_and_weights():
    others = [(M + 0.1, A, B), (M, A[::-1], B), (M, 2 * A, 2 * B), (2.0**100 * M, A, B)]
    digests = {make_problem(*x).digest() for x in [(M, A, B), (M.copy(), A, B), *others]}
    assert len(digests) == 1 + len(others)


def test_a_detached_problem_does_not_see_later_changes():
    cost = M.copy()
    cost[0, 0] = 0.0  # such costs are not copied
    problem = make_problem(cost, A, B)
    kept = problem.detached()
    cost[1, 1] = 0.75
    assert problem.geometry.block(0, 3)[1, 1] == 0.75
    assert kept.geometry.block(0, 3)[1, 1] == M[1, 1]
