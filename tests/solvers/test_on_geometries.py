"""Every method agrees on every geometry with its run on the stored cost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

import epsilot
from epsilot.geometry import Dense, Grid, PointCloud
from epsilot.problems.balanced import Transport
from epsilot.problems.problem import Entropic, make_problem
from epsilot.solvers import box_newton, make_solver, solver_class
from geometries import clouds, grids
from sample_problems import points
from tuning import tune

# What a method must be told to do the same on a stored and on a computed cost.
SAME = {
    "sinkhorn": {"domain": "log"},
    "pdasmd": {"precision": "double"},
    "pdasgd": {"precision": "double"},
}
N_EPOCHS = 5
ENTROPIC = [m.name for m in epsilot.methods() if m.solves_entropic and m.costs == "any"]
LAZY = [name for name in ENTROPIC if not solver_class(name).about.needs_dense]


def epochs(method, geometry, a, b):
    """Yield violation, potentials and certified bounds after each of N_EPOCHS epochs."""
    problem = make_problem(geometry, a, b)
    solver = make_solver(method, SAME.get(method, {})).resolved("certificate", problem)
    eta = 0.1 * (problem.cost_max or 1.0)
    target = Entropic(problem.geometry, eta, problem.p, problem.q)
    rng = np.random.default_rng(0)
    state, _ = solver.init(target, rng)
    for _ in range(N_EPOCHS):
        solver.step(target, state, rng)
        core, row = solver.candidates(target, state)[-1]
        found = Transport(problem).evaluate(core, row)
        bounds = solver.signal(target, state).violation, found.upper, found.lower
        yield np.concatenate([bounds, *solver.potentials(target, state)])


@pytest.mark.parametrize("metric", ["cityblock", "sqeuclidean"])
@pytest.mark.parametrize("method", LAZY)
def test_every_lazy_method_does_the_same_on_dense_points_and_grid(method, metric, monkeypatch):
    # With the matrix at hand box_newton factors it where sweeps take long; without, it sweeps on.
    tune(monkeypatch, box_newton, max_solve_size=0)
    rng = np.random.default_rng(3)
    shape, spacing = (4, 3), (1.0, 0.7)
    cells = np.indices(shape).reshape(2, -1).T * spacing
    a, b = rng.dirichlet(np.ones(12)), rng.dirichlet(np.ones(12))
    dense, *lazy = (
        np.array(list(epochs(method, geometry, a, b)))
        for geometry in (
            Dense(cdist(cells, cells, metric)),
            PointCloud(cells, cells, metric),
            Grid(shape, metric=metric, spacing=spacing),
        )
    )
    for trace in lazy:
        np.testing.assert_allclose(trace, dense, rtol=1e-8, atol=1e-9)


@given(st.one_of(clouds(), grids()), st.booleans())
def test_results_agree_with_dense_ones(case, some_are_empty):
    geometry, M, rng = case
    n, m = M.shape
    a, b = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    if M.max() == 0:
        return
    if some_are_empty and n > 1:
        a[::2] = 0
        a /= a.sum()
    ours, theirs = (np.array(list(epochs("sinkhorn", G, a, b))) for G in (geometry, Dense(M)))
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * M.max())
    eps = 0.05 * M.max()
    result = epsilot.solve(geometry, a, b, eps=eps, method="sinkhorn")
    exact = epsilot.exact(M, a, b).value
    assert result.gap <= eps
    assert result.lower_bound <= exact + 1e-12 * M.max()
    assert exact <= result.value + 1e-12 * M.max()


@pytest.mark.parametrize("method", sorted(set(ENTROPIC) - set(LAZY)))
def test_a_method_that_needs_the_matrix_rejects_lazy_costs(method):
    with pytest.raises(epsilot.InvalidProblem, match=rf"{method} needs an explicit cost matrix"):
        epsilot.solve(Grid((3, 3)), eps=0.1, method=method)


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


LAZY_COSTS = {
    "points": lambda rng: PointCloud(rng.random((12, 2)), rng.random((12, 2))),
    "grid": lambda rng: Grid((3, 4), spacing=0.2),  # keeps its empty cells
}


@pytest.mark.parametrize("kind", LAZY_COSTS)
@pytest.mark.parametrize("wish", [{"eps": 0.02}, {"reg": 0.05, "tol": 1e-5}])
@pytest.mark.parametrize("method", ["sinkhorn", "accelerated_sinkhorn", "aam"])
def test_lazy_costs_need_no_matrix(method, wish, kind, rng):
    geometry = LAZY_COSTS[kind](rng)
    a, b = rng.dirichlet(np.ones(12)), rng.dirichlet(np.ones(12))
    a[::3] = 0
    lazy, dense = (
        epsilot.solve(cost, a / a.sum(), b, method=method, on_limit="raise", **wish)
        for cost in (geometry, Dense(geometry.block(0, 12)))
    )
    assert abs(lazy.value - dense.value) <= wish.get("eps", wish.get("tol"))
