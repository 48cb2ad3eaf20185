"""A rounded plan keeps its marginals and its value however small η is, as an operator and dense."""

import numpy as np
import pytest

import epsilot
from epsilot.geometry import Dense, Grid, PointCloud
from epsilot.problems.plan import Arcs, Explicit, Gibbs
from epsilot.problems.rounding import round_onto

X, Y = np.random.default_rng(5).normal(size=(2, 40, 2))
GEOMETRIES = {
    "dense": Dense(np.abs(X[:, None] - Y).sum(axis=-1)),
    **{metric: PointCloud(X, Y, metric) for metric in ("sqeuclidean", "euclidean", "cosine")},
    "single": PointCloud(X, Y, "euclidean", single=True),
    "grid, cityblock": Grid((5, 6), (4, 7), "cityblock", 0.3),
    "grid, cityblock, even": Grid((3, 4, 3), metric="cityblock"),
    "grid, sqeuclidean": Grid((5, 6), metric="sqeuclidean"),
}


def potentials(geometry, p, q, eta):
    """Take a few sweeps at each of a falling sequence of η."""
    f, g, level = np.zeros_like(p), np.zeros_like(q), geometry.bounds[1]
    while level > eta:
        level = max(level / 4, eta)
        for _ in range(5):
            g = level * (np.log(q) - geometry.rough.lse_cols(f, level))
            f = level * (np.log(p) - geometry.rough.lse_rows(g, level))
    return f, g


@pytest.mark.parametrize("share", [1e-1, 1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_marginals_and_value(name, share, rng):
    geometry = GEOMETRIES[name]
    n, m = geometry.shape
    p, q, unit = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m)), geometry.bounds[1]
    f, g = potentials(geometry, p, q, share * unit)
    plan, value, _ = round_onto(Gibbs(geometry, f, g, share * unit), p, q, geometry)
    dense = plan.toarray()
    for rows, cols in ((dense.sum(axis=1), dense.sum(axis=0)), plan.marginals()):
        assert np.abs(rows - p).sum() + np.abs(cols - q).sum() <= 1e-14
    assert value == pytest.approx((geometry.block(0, n) * dense).sum(), abs=1e-14 * unit)
    v = rng.random(m)
    np.testing.assert_allclose(plan @ v, dense @ v, atol=1e-15)


@pytest.mark.parametrize("share", [0.5, 0.03])
@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
def test_an_entropic_bound_of_a_lazy_cloud_is_a_bound(metric, share):
    cloud = PointCloud(X, Y, metric)
    unit = cloud.bounds[1]
    reg, tol = share * unit, 1e-8 * unit
    lazy = epsilot.solve_sample(
        X, Y, metric=metric, lazy=True, reg=reg, tol=tol, method="sinkhorn", on_limit="ignore"
    )
    exact = epsilot.solve(cloud.block(0, 40), reg=reg, tol=1e-11 * unit, method="sinkhorn")
    assert lazy.lower_bound <= exact.value + 1e-12 * unit
    assert lazy.value >= exact.lower_bound - 1e-12 * unit


def test_rounding_is_feasible_and_moves_at_most_the_violation(rng):
    for _ in range(200):
        n, m = rng.integers(1, 9, 2)
        X = rng.random((n, m)) ** 4
        X[rng.random(n) < 0.2] = 0
        X = X / X.sum() if X.any() else X
        p, q = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
        rounded, _, error = round_onto(Explicit(X), p, q)
        plan = rounded.toarray()
        assert plan.min() >= 0
        np.testing.assert_allclose(plan.sum(axis=1), p, atol=1e-12)
        np.testing.assert_allclose(plan.sum(axis=0), q, atol=1e-12)
        if X.any():
            assert np.abs(plan - X).sum() <= error * (1 + 1e-9) + 1e-13
        again = round_onto(Explicit(plan), p, q).plan.toarray()
        np.testing.assert_allclose(again, plan, atol=1e-14)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_few_arcs_stay_few_and_feasible_at_the_same_price(rng, share):
    for _ in range(60):
        n, m = rng.integers(1, 40, 2)
        p, q, C = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m)), rng.random((n, m))
        p[0], q[0] = p[0] + p[-1] * (n > 1), q[0] + q[-1] * (m > 1)  # and others without mass
        p[-1], q[-1] = p[-1] * (n == 1), q[-1] * (m == 1)
        X = np.where(rng.random((n, m)) < share, np.outer(p, q) * rng.exponential(size=(n, m)), 0)
        X /= X.sum() or 1.0
        arcs = Arcs.of(X)
        plan, cost, error = round_onto(arcs, p, q, Dense(C))
        found = plan.tosparse()
        assert found.nnz <= arcs.flow.size + n + m - 1
        assert plan.is_nonnegative()
        np.testing.assert_array_equal(found.toarray(), plan.toarray())
        assert np.abs(found.sum(axis=1) - p).sum() + np.abs(found.sum(axis=0) - q).sum() <= 1e-14
        assert cost == pytest.approx((C * plan.toarray()).sum(), rel=1e-13)
        if X.any():
            assert cost <= (C * X).sum() + 0.5 * np.ptp(C) * error + 1e-14
            assert np.abs(plan.toarray() - X).sum() <= error * (1 + 1e-9) + 1e-14


def test_rounding_costs_at_most_half_the_violation(rng):
    worst = 0.0
    for _ in range(300):
        n, m = rng.integers(1, 6, 2)
        X = rng.dirichlet(np.full(n * m, 0.3)).reshape(n, m)
        # Costs at random, or those for which every move of mass costs most.
        C = rng.random((n, m)) if rng.random() < 0.5 else np.where(X.mean() < X, 0.0, 1.0)
        p, q = rng.dirichlet(np.full(n, 0.5)), rng.dirichlet(np.full(m, 0.5))
        violation = np.abs(X.sum(axis=1) - p).sum() + np.abs(X.sum(axis=0) - q).sum()
        rise = np.sum(C * (epsilot.round_plan(X, p, q) - X))
        assert rise <= 0.5 * np.ptp(C) * violation + 1e-12
        worst = max(worst, rise / (np.ptp(C) * violation) if np.ptp(C) * violation > 0 else 0.0)
    assert worst > 0.4


def test_the_half_is_attained():
    # All mass is at a free entry of a column without demand; it must move at the full price.
    C, X = np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]])
    rounded = epsilot.round_plan(X, np.ones(1), np.array([0.0, 1.0]))
    violation = 0.0 + 2.0
    assert np.sum(C * rounded) - np.sum(C * X) == 0.5 * violation
