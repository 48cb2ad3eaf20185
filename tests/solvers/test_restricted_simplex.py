import numpy as np
import pytest
from scipy.spatial.distance import cdist

import epsilot
import numpy_kernels as reference
from epsilot.files.images import grid_cost, synthetic_pair
from epsilot.geometry import Dense, PointCloud, points
from epsilot.kernels import network, sinkhorn
from epsilot.problems.problem import Additive, make_problem
from epsilot.solvers import arc_simplex, restricted_simplex
from epsilot.solvers.arc_simplex import negative_arcs
from epsilot.solvers.restricted_simplex import (
    arcs_of_heavy,
    least_arcs,
    mixed,
    staircase,
)
from tuning import tune


def cloud(rng, n=60, m=45):
    return cdist(rng.random((n, 2)), rng.random((m, 2)), "sqeuclidean")


def test_sweep_is_a_relaxed_row_update_and_the_columns_after_it(rng):
    C = rng.random((7, 9)).astype(np.float32)
    f, g = np.zeros(7, np.float32), rng.normal(size=9).astype(np.float32)
    p, eta = rng.dirichlet(np.full(7, 30.0)), 0.3
    f += np.float32(eta) * (np.log(p) - reference.lse_rows(C, g, eta) + rng.normal(size=7) / 4)
    for omega in (1.0, 1.6):
        new, parts = f.copy(), np.zeros((2, 9), np.float32)
        sinkhorn.sweep(C, new, g, np.float32(1 / eta), np.log(p), omega, parts, 0, 2)
        move = np.log(p) - np.log(np.exp((f[:, None] + g - C) / eta).sum(axis=1))
        assert np.abs(move).max() < sinkhorn.MAX_RELAXED_MOVE
        np.testing.assert_allclose(new, f + omega * eta * move, atol=1e-5)
        columns = np.exp((new[:, None] + g - C) / eta).sum(axis=0)
        np.testing.assert_allclose(parts.sum(axis=0), columns, rtol=1e-4)


def test_a_row_out_of_range_is_brought_back(rng):
    C = np.full((1, 4), 500.0, np.float32)
    f, parts = np.zeros(1, np.float32), np.zeros((1, 4), np.float32)
    sinkhorn.sweep(C, f, np.zeros(4, np.float32), np.float32(1.0), np.zeros(1), 1.0, parts, 0, 1)
    np.testing.assert_allclose(f, 500.0 - np.log(4), rtol=1e-6)
    np.testing.assert_allclose(parts, 0.25, rtol=1e-5)


def test_steep_continuation_stays_finite():
    A, B = synthetic_pair(32, 0)
    result = epsilot.solve(
        grid_cost((32, 32)),
        A.ravel(),
        B.ravel(),
        rtol=0.01,
        method="restricted_simplex",
        etas=(0.1, 0.025, 0.006),
    )
    assert result.converged


@pytest.mark.parametrize("k", [1, 3, 9, 50, 65])
@pytest.mark.parametrize("is_lazy", [False, True])
def test_arcs_of_least_reduced_cost(rng, monkeypatch, k, is_lazy):
    X, Y = rng.random((40, 2)), rng.random((70, 2))
    C = cdist(X, Y, "sqeuclidean")
    tune(monkeypatch, restricted_simplex, max_listed_arcs=60)
    if is_lazy:
        tune(monkeypatch, points, block_entries=15 * 70)
    geometry = PointCloud(X, Y) if is_lazy else Dense(C)
    f, g = rng.random(40), rng.random(70)
    keys = least_arcs(make_problem(geometry), f, g, k)
    reduced = C - f[:, None] - g
    least = np.argsort(reduced, axis=1)[:, :k] + 70 * np.arange(40)[:, None]
    assert sorted(keys) == sorted(least.ravel())
    i, j = negative_arcs(geometry, f, g, k, -0.01)
    found = 70 * i + j
    negative = {key for key in least.ravel() if reduced.ravel()[key] < -0.01}
    assert set(found) == negative
    assert len(found) == len(negative) > 0


def test_few_of_many_columns_are_found(rng):
    C, f, g = rng.random((3, 3000)), np.zeros(3), rng.normal(size=3000) / 10
    keys = least_arcs(make_problem(Dense(C)), f, g, 5)
    least = np.argsort(C - g, axis=1)[:, :5] + 3000 * np.arange(3)[:, None]
    assert sorted(keys) == sorted(least.ravel())


def test_ties_do_not_keep_arcs_out():
    C = np.zeros((30, 40))
    C[3, 5] = 1.0
    keys = least_arcs(make_problem(Dense(C)), np.zeros(30), np.zeros(40), 4)
    assert len(set(keys)) == 4 * 30


def test_mixed_keys_are_the_same_keys():
    for size in (0, 1, 2, 10, 101):
        assert sorted(mixed(np.arange(size))) == list(range(size))
    assert np.abs(np.diff(mixed(np.arange(100)))).min() >= 9


def test_heavy_rows_and_columns_keep_all_arcs():
    p, q = np.array([0.05, 0.8, 0.1, 0.05]), np.array([0.3, 0.1, 0.6])
    i, j = np.divmod(arcs_of_heavy(p, q, 2), 3)
    assert sorted(zip(i, j, strict=True)) == sorted(
        [(1, 0), (1, 1), (1, 2), (0, 2), (1, 2), (2, 2), (3, 2)]
    )
    assert arcs_of_heavy(p, q, 3).size == 0
    assert arcs_of_heavy(np.full(8, 1 / 8), np.full(50, 0.02), 3).size == 3 * 50  # of eight


def test_a_dummy_that_serves_many_columns_needs_no_further_rounds(rng):
    M, a, b = rng.random((150, 150)), np.ones(150), np.ones(150)
    result = epsilot.solve(M, a, b, mass=75.0, rtol=1e-9, method="restricted_simplex")
    assert result.converged
    rounds_of_pivots = result.n_iter - 2 * len(result.options["etas"])
    assert rounds_of_pivots <= 3


def test_the_staircase_carries_a_feasible_plan(rng):
    for n, m in ((1, 1), (1, 5), (4, 1), (6, 6), (5, 9)):
        for p, q in (
            (rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))),
            (np.full(n, 1 / n), np.full(m, 1 / m)),  # ties
        ):
            keys = np.unique(staircase(p, q))
            assert keys.min() >= 0
            assert keys.max() < n * m
            left, right = p.copy(), q.copy()
            for i, j in zip(*np.divmod(keys, m), strict=True):
                moved = min(left[i], right[j])
                left[i] -= moved
                right[j] -= moved
            assert left.sum() <= 1e-12


@pytest.mark.parametrize("options", [{}, {"sweeps": 0, "n_arcs": 1}, {"n_arcs": 4, "omega": 1.0}])
@pytest.mark.parametrize("lazy", [False, True])
def test_it_ends_at_the_optimum_however_poor_the_arcs(rng, options, lazy):
    X, Y = rng.random((50, 3)), rng.random((64, 3))
    a, b = rng.dirichlet(np.full(50, 0.5)), rng.dirichlet(np.ones(64))
    geometry = PointCloud(X, Y) if lazy else Dense(cdist(X, Y, "sqeuclidean"))
    exact = epsilot.exact(cdist(X, Y, "sqeuclidean"), a, b).value
    result = epsilot.solve(geometry, a, b, rtol=1e-8, method="restricted_simplex", **options)
    assert result.converged
    assert result.value == pytest.approx(exact, rel=1e-7)


def test_a_limit_in_sweeps_pivots_or_between_rounds_leaves_a_certified_plan(rng, monkeypatch):
    tune(monkeypatch, arc_simplex, pivots_per_step=10)
    M = cloud(rng)
    exact = epsilot.exact(M).value
    gaps = []
    for steps in (0, 3, 8, 9, 12, 16, 60):
        result = epsilot.solve(
            M, eps=1e-12, method="restricted_simplex", n_arcs=2, max_iter=steps, on_limit="ignore"
        )
        assert result.lower_bound <= exact + 1e-12
        assert exact <= result.value + 1e-12
        assert np.abs(result.plan.sum(axis=1) - 1 / 60).sum() <= 1e-12
        gaps.append(result.gap)
    assert gaps[-1] < 1e-12 < gaps[-2] < gaps[0]


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 40), (40, 1), (3, 400), (400, 3), (40, 3000)])
def test_long_and_wide_problems(rng, n, m):
    M, a, b = rng.random((n, m)), rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    result = epsilot.solve(M, a, b, rtol=1e-9, method="restricted_simplex")
    assert result.value == pytest.approx(epsilot.exact(M, a, b).value, rel=1e-9)


def test_an_expensive_detour_raises_the_price_of_artificial_arcs(rng, monkeypatch):
    tune(monkeypatch, arc_simplex, artificial_price=1e-3)
    M, a, b = rng.random((40, 40)), rng.dirichlet(np.ones(40)), rng.dirichlet(np.ones(40))
    result = epsilot.solve(M, a, b, rtol=1e-9, method="restricted_simplex", n_arcs=1, sweeps=0)
    assert result.converged
    assert result.value == pytest.approx(epsilot.exact(M, a, b).value, rel=1e-9)


def test_it_resumes_in_the_middle_of_a_round(rng, tmp_path, monkeypatch):
    tune(monkeypatch, arc_simplex, pivots_per_step=10)
    M, path = cloud(rng), str(tmp_path / "run.npz")
    options = {"rtol": 1e-9, "method": "restricted_simplex", "n_arcs": 3}
    whole = epsilot.solve(M, **options)
    epsilot.solve(M, **options, max_iter=whole.n_iter - 2, checkpoint=path, on_limit="ignore")
    resumed = epsilot.solve(M, **options, resume=path)
    assert resumed.work == whole.work
    assert resumed.value == whole.value
    np.testing.assert_array_equal(resumed.plan, whole.plan)


@pytest.mark.parametrize("options", [{"n_arcs": 0}, {"sweeps": -1}, {"omega": 2.0}])
def test_bad_options(options):
    with pytest.raises(epsilot.InvalidProblem, match="n_arcs >= 1"):
        epsilot.solve(np.eye(3), method="restricted_simplex", **options)


@pytest.mark.parametrize("etas", [(), (0.1, 0.0), (-1.0,)])
def test_bad_regularisations(etas):
    with pytest.raises(epsilot.InvalidProblem, match="positive ones only"):
        epsilot.solve(np.eye(3), method="restricted_simplex", etas=etas)


# -- auto ------------------------------------------------------------------------------------


def test_equal_costs_and_potentials_far_from_zero(rng):
    a, b = rng.dirichlet(np.ones(33)), rng.dirichlet(np.ones(47))
    for potentials in (None, (np.full(33, 1e6), np.full(47, -1e6))):
        result = epsilot.solve(
            np.zeros((33, 47)),
            a,
            b,
            eps=1e-9,
            method="restricted_simplex",
            potentials_init=potentials,
        )
        assert result.value == 0
        assert abs(result.lower_bound) < 1e-15


@pytest.mark.parametrize("method", ["exact", "restricted_simplex"])
def test_an_optimum_of_zero_is_certified_to_round_off(rng, method):
    M = rng.integers(0, 3, (200, 200)).astype(float)
    a, b = rng.dirichlet(np.ones(200)), rng.dirichlet(np.ones(200))
    result = epsilot.solve(M, a, b, rtol=1e-6, method=method)
    assert result.converged
    assert result.gap <= 2e-13


def test_a_few_large_costs_do_not_set_the_scale(rng):
    M = np.exp(2 * rng.normal(size=(300, 300)))
    solver = restricted_simplex.RestrictedSimplex()
    for cost, usual in ((M, 16.0), (np.minimum(M, 9.0), 9.0), (np.zeros((4, 4)), 1.0)):
        state, _ = solver.init(make_problem(cost), rng)
        assert state.usual == pytest.approx(usual, rel=0.3)
    sparse = np.zeros((300, 300))
    sparse[::3] = 1.0  # the median is 0
    assert solver.init(make_problem(sparse), rng)[0].usual == 1.0


#: What somebody may have changed in a saved state whose first round is open.
ASTRAY = {
    "a row too few": lambda state: setattr(state, "row", state.row[:-1]),
    "no basis": lambda state: setattr(state, "flow", state.flow[:0]),
    "a link": lambda state: state.links.__setitem__(3, 10**6),
    "an end of an arc": lambda state: state.targets.__setitem__(3, 10**6),
    "an arc too few": lambda state: setattr(state, "reduced", state.reduced[:-1]),
}


@pytest.mark.parametrize("name", ASTRAY)
def test_an_inconsistent_saved_state_is_rejected(rng, name):
    problem = make_problem(Dense(cloud(rng)))
    target = Additive(problem.geometry, 0.0, problem.p, problem.q)
    solver = restricted_simplex.RestrictedSimplex(sweeps=0)
    state, _ = solver.init(target, rng)
    assert state.fits(target)
    solver._open(target, state)
    assert state.fits(target)
    ASTRAY[name](state)
    assert not state.fits(target)


@pytest.mark.parametrize("is_parallel", [False, True])
def test_costs_that_differ_by_rounding_alone_are_solved(is_parallel):
    # float32 sweeps see noise here: potentials were 1e8 times the costs, and pivots never ended.
    rng = np.random.default_rng(1)
    X = np.outer(rng.random(8), rng.normal(size=5))
    Y = np.tile(X[0] if is_parallel else rng.normal(size=5), (12, 1))
    result = epsilot.solve_sample(X, Y, metric="cosine", lazy=True, method="restricted_simplex")
    assert result.converged


def test_a_cycle_that_nothing_bounds_is_left_alone():
    # Node 0 gets flow from the root and node 1 sends it there: 0 -> 1 would gain for ever.
    links = np.array(
        [[2, 2, 2], [network.ARTIFICIAL] * 3, [1, 2, 0], [2, 0, 1], [0, 1, 1], [1, 1, 3]]
    )
    tree = (*links.astype(np.uint32), np.array([False, True, True]), np.ones(3), np.zeros(3))
    before = [x.copy() for x in tree]
    args = np.zeros(1, np.uint32), np.ones(1, np.uint32), np.array([-1.0])
    done, *_ = network.pivots(*args, tree, 0, 1e-12, 10)
    assert done == 0
    assert all((x == y).all() for x, y in zip(tree, before, strict=True))


def test_a_round_of_too_many_pivots_ends_the_run_with_its_true_gap(monkeypatch):
    tune(monkeypatch, arc_simplex, pivots_per_step=3)
    tune(monkeypatch, arc_simplex, max_pivots=0)
    tune(monkeypatch, arc_simplex, max_pivots_per_node=0)
    M = np.random.default_rng(0).random((40, 40))
    result = epsilot.solve(M, rtol=1e-9, method="restricted_simplex", sweeps=0, on_limit="ignore")
    assert not result.converged
    assert result.status.name == "FINISHED"
    assert result.lower_bound <= epsilot.solve(M, rtol=1e-9).value <= result.value


@pytest.mark.parametrize("price", [7e-108, 3e90])
def test_prices_out_of_the_range_of_float32_are_the_unit_where_all_costs_are_zero(price):
    result = epsilot.solve(
        np.zeros((1, 4)),
        [3.2],
        [0.05, 2.1, 0.33, 0.71],
        unbalanced=price,
        unbalanced_type="tv",
        method="restricted_simplex",
    )
    assert result.converged
    assert result.value == pytest.approx(price * 0.01, rel=1e-9)


@pytest.mark.parametrize("seed", [16, 44])
def test_round_off_of_the_masses_does_not_raise_prices_and_blur_potentials(seed, monkeypatch):
    # All masses hang from one artificial arc, which carries the round-off of their sum: 2e-15.
    monkeypatch.setattr(arc_simplex, "raise_price", pytest.fail)
    rng = np.random.default_rng(seed)
    X, Y = rng.random((6, 2)), rng.random((400, 2))
    a, b = rng.random(6) ** 4, rng.random(400) ** 4
    M = ((X[:, None] - Y) ** 2).sum(axis=2)
    result = epsilot.solve(M, a / a.sum(), b / b.sum(), rtol=1e-9, method="restricted_simplex")
    f, g = result.potentials
    assert (M - f[:, None] - g)[result.plan > 0].max() <= 1e-14
