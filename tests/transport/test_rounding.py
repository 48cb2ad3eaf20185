"""A rounded plan keeps its marginals and its value however small η is, as an operator and dense."""

import numpy as np
import pytest

import epsilot
from epsilot.geometry import Dense, Grid, PointCloud
from epsilot.transport.plan import Gibbs
from epsilot.transport.rounding import round_onto

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
