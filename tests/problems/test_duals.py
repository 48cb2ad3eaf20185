"""Each dual is what its formula says, its gradient that of the formula, and the two agree."""

import numpy as np
import pytest
from scipy.special import logsumexp

from epsilot.geometry import Dense, Grid, PointCloud
from epsilot.problems.duals import lse_dual, lse_oracle, semi_dual, softmin_cols, softmin_rows
from epsilot.problems.problem import Entropic

RNG = np.random.default_rng(2)
GEOMETRIES = {
    "dense": Dense(RNG.random((6, 6))),
    "cloud": PointCloud(RNG.random((6, 2)), RNG.random((6, 2)), single=True),
    "grid": Grid((2, 3)),
}
TAU, LAM = RNG.normal(size=(2, 6))


@pytest.fixture(params=GEOMETRIES)
def problem(request):
    p, q = np.random.default_rng(3).dirichlet(np.ones(6), 2)
    return Entropic(GEOMETRIES[request.param], 0.2, p, q)


def log_plan(problem, row, lam):
    return (row[:, None] + lam - problem.geometry.block(0, 6)) / problem.eta


def phi(problem, row, lam):
    return problem.eta * logsumexp(log_plan(problem, row, lam)) - row @ problem.p - lam @ problem.q


def test_softmin_gives_every_row_and_column_its_mass(problem):
    rows = np.exp(log_plan(problem, softmin_rows(problem, LAM), LAM)).sum(axis=1)
    cols = np.exp(log_plan(problem, TAU, softmin_cols(problem, TAU))).sum(axis=0)
    np.testing.assert_allclose(rows, problem.p, rtol=1e-12)
    np.testing.assert_allclose(cols, problem.q, rtol=1e-12)


def test_the_lse_dual_and_its_gradient(problem):
    value, by_row, by_col = lse_oracle(problem, TAU, LAM)
    assert value == pytest.approx(phi(problem, TAU, LAM), rel=1e-13)
    for k, step in enumerate(1e-6 * np.eye(6)):
        slopes = (
            (phi(problem, TAU + step, LAM) - phi(problem, TAU - step, LAM)) / 2e-6,
            (phi(problem, TAU, LAM + step) - phi(problem, TAU, LAM - step)) / 2e-6,
        )
        np.testing.assert_allclose((by_row[k], by_col[k]), slopes, atol=1e-8)


def test_the_semi_dual_is_the_lse_dual_minimised_over_rows(problem):
    lse = problem.geometry.lse_rows(LAM, problem.eta)
    entropy = -problem.p @ np.log(problem.p)
    found = semi_dual(problem, LAM, lse) + problem.eta * entropy
    assert found == pytest.approx(lse_dual(problem, softmin_rows(problem, LAM), LAM), rel=1e-12)
