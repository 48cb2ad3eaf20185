"""Bounds between any two matrices: below all couplings, and those of a coupling."""

from itertools import permutations

import numpy as np
import pytest

import epsilot
from epsilot.gromov.matrix_bounds import make_matrix_pair


def by_definition(A, B, P, M=None):
    apart = (A[:, None, :, None] - B[None, :, None, :]) ** 2
    quadratic = (apart * P[:, :, None, None] * P).sum()
    return quadratic + (0 if M is None else (M * P).sum())


def matrices(seed, n=5, m=5):
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(n, n)), rng.normal(size=(m, m))
    if seed % 2:
        A, B = A + A.T, np.abs(B + B.T)
    M = rng.normal(size=(n, m)) if seed % 3 == 0 else None
    return A, B, M


@pytest.mark.parametrize("seed", range(8))
def test_bounds_hold_for_all_permutations(seed):
    A, B, M = matrices(seed)
    bounds = epsilot.gromov_bounds(A, B, M=M)
    for sigma in permutations(range(5)):
        P = np.eye(5)[list(sigma)] / 5
        assert by_definition(A, B, P, M) >= bounds.lower_bound
    assert bounds.value == pytest.approx(by_definition(A, B, bounds.plan, M))
    assert bounds.lower_bound <= bounds.value == min(bounds.values)
    assert bounds.gap == bounds.value - bounds.lower_bound


@pytest.mark.parametrize("seed", range(4))
def test_profiles_are_transport_of_rows(seed):
    rng = np.random.default_rng(seed)
    A, B, _ = matrices(seed, 4, 6)
    a, b = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(6))
    L = make_matrix_pair(A, B, a, b, None).profiles()
    for i in range(4):
        for j in range(6):
            cost = np.subtract.outer(A[i], B[j]) ** 2
            assert pytest.approx(epsilot.exact(cost, a, b).value) == L[i, j]
    bounds = epsilot.gromov_bounds(A, B, a, b)
    np.testing.assert_allclose(bounds.plan.sum(axis=1), a)
    np.testing.assert_allclose(bounds.plan.sum(axis=0), b)


def test_equal_matrices_have_the_bound_zero():
    A = np.abs(np.subtract.outer(np.arange(8.0) ** 1.5, np.arange(8.0) ** 1.5))
    order = np.random.default_rng(0).permutation(8)
    bounds = epsilot.gromov_bounds(A, A[np.ix_(order, order)])
    assert 0 <= bounds.lower_bound <= bounds.value <= 1e-9


def test_it_bounds_clouds_from_below_and_above():
    X, Y = np.random.default_rng(2).random((2, 20, 2))
    D, E = (((Z[:, None] - Z) ** 2).sum(-1) for Z in (X, Y))
    result, bounds = epsilot.solve_gromov(X, Y), epsilot.gromov_bounds(D, E)
    assert bounds.lower_bound <= result.value
    assert result.lower_bound <= bounds.value


def test_no_time_leaves_both_bounds():
    A, B, _ = matrices(1)
    bounds = epsilot.gromov_bounds(A, B, max_seconds=0)
    assert not bounds.is_complete
    assert bounds.lower_bound <= bounds.value


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((np.ones((2, 3)), np.eye(2)), "C1 has shape (2, 3)"),
        ((np.eye(2), np.full((2, 2), np.nan)), "C2 has shape (2, 2) and entries up to nan"),
        ((np.eye(2), np.eye(3), np.ones(2), np.ones(3)), "the totals must be equal"),
        ((np.eye(2), np.eye(3), np.ones(3)), "a has shape (3,)"),
    ],
)
def test_refusals(arguments, text):
    with pytest.raises(epsilot.InvalidProblem) as caught:
        epsilot.gromov_bounds(*arguments)
    assert text in str(caught.value)
