"""Methods that need no matrix give the same on lazy costs."""

import numpy as np
import pytest

import epsilot
from epsilot.geometry import Dense, Grid, PointCloud
from sample_problems import points


@pytest.mark.parametrize("name", ["apdagd", "apdamd", "hybrid_primal_dual"])
def test_lazy_clouds_keep_no_average(name, rng):
    _, a, b = points()
    cloud = PointCloud(rng.normal(size=(24, 3)), rng.normal(size=(20, 3)), "sqeuclidean")
    eps = 0.05 * cloud.bounds[1]
    lazy = epsilot.solve(cloud, a, b, eps=eps, method=name)
    assert lazy.gap <= eps
    assert lazy.options["average"] is False
    dense = epsilot.solve(cloud.block(0, 24), a, b, eps=eps, method=name, stop="paper")
    paper = epsilot.solve(cloud, a, b, eps=eps, method=name, stop="paper")
    assert paper.value == pytest.approx(dense.value, rel=1e-6)


LAZY = {
    "points": lambda rng: PointCloud(rng.random((12, 2)), rng.random((12, 2))),
    "grid": lambda rng: Grid((3, 4), spacing=0.2),  # keeps its empty cells
}


@pytest.mark.parametrize("kind", LAZY)
@pytest.mark.parametrize("wish", [{"eps": 0.02}, {"reg": 0.05, "tol": 1e-5}])
@pytest.mark.parametrize("method", ["sinkhorn", "accelerated_sinkhorn", "aam"])
def test_lazy_costs_need_no_matrix(method, wish, kind, rng):
    geometry = LAZY[kind](rng)
    a, b = rng.dirichlet(np.ones(12)), rng.dirichlet(np.ones(12))
    a[::3] = 0
    lazy, dense = (
        epsilot.solve(cost, a / a.sum(), b, method=method, on_limit="raise", **wish)
        for cost in (geometry, Dense(geometry.block(0, 12)))
    )
    assert abs(lazy.value - dense.value) <= wish.get("eps", wish.get("tol"))
