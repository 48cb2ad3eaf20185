import json

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import epsilot
from epsilot.auto import choose, predict
from epsilot.geometry import Dense, Grid, PointCloud
from epsilot.images import grid_cost, synthetic_pair
from epsilot.kernels import pipeline, reference
from epsilot.problem import make_problem
from epsilot.solvers.restricted_simplex import staircase


def cloud(rng, n=60, m=45):
    return cdist(rng.random((n, 2)), rng.random((m, 2)), "sqeuclidean")


def test_sweep_is_a_relaxed_row_update_and_the_columns_after_it(rng):
    C = rng.random((7, 9)).astype(np.float32)
    f, g = np.zeros(7, np.float32), rng.normal(size=9).astype(np.float32)
    p, eta = rng.dirichlet(np.full(7, 30.0)), 0.3
    f += np.float32(eta) * (np.log(p) - reference.lse_rows(C, g, eta) + rng.normal(size=7) / 4)
    for omega in (1.0, 1.6):
        new, parts = f.copy(), np.zeros((2, 9), np.float32)
        pipeline.sweep(C, new, g, np.float32(1 / eta), np.log(p), omega, parts, 0, 2)
        move = np.log(p) - np.log(np.exp((f[:, None] + g - C) / eta).sum(axis=1))
        assert np.abs(move).max() < pipeline.NEAR
        np.testing.assert_allclose(new, f + omega * eta * move, atol=1e-5)
        columns = np.exp((new[:, None] + g - C) / eta).sum(axis=0)
        np.testing.assert_allclose(parts.sum(axis=0), columns, rtol=1e-4)


def test_a_row_out_of_range_is_brought_back(rng):
    C = np.full((1, 4), 500.0, np.float32)
    f, parts = np.zeros(1, np.float32), np.zeros((1, 4), np.float32)
    pipeline.sweep(C, f, np.zeros(4, np.float32), np.float32(1.0), np.zeros(1), 1.0, parts, 0, 1)
    np.testing.assert_allclose(f, 500.0 - np.log(4), rtol=1e-6)
    np.testing.assert_allclose(parts, 0.25, rtol=1e-5)


def test_steep_continuation_stays_finite():
    A, B = synthetic_pair(32, 0)
    result = epsilot.solve(
        grid_cost((32, 32)), A.ravel(), B.ravel(), rtol=0.01, method="restricted_simplex",
        etas=(0.1, 0.025, 0.006),
    )  # fmt: skip
    assert result.converged


@pytest.mark.parametrize("k", [1, 3, 9])
def test_arcs_of_least_reduced_cost(rng, k):
    C = rng.random((40, 70)).astype(np.float32)
    f, g = rng.random(40).astype(np.float32), rng.random(70).astype(np.float32)
    reduced = C - f[:, None] - g
    values, index = np.full((40, k), np.inf, np.float32), np.zeros((40, k), np.int64)
    pipeline.least_of_rows(C, f, g, values, index, 0, 40)
    np.testing.assert_array_equal(np.sort(index, axis=1), np.sort(np.argsort(reduced)[:, :k]))
    values, index = np.full((70, k), np.inf, np.float32), np.zeros((70, k), np.int64)
    bars = np.full(70, np.finfo(np.float32).max, np.float32)
    for start in (0, 15):  # block by block
        block = slice(start, 15 if start == 0 else 40)
        pipeline.least_of_cols(C[block], f[block], g, start, bars, values, index, 0, 70)
    np.testing.assert_array_equal(np.sort(index, axis=1), np.sort(np.argsort(reduced.T)[:, :k]))


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


def test_a_limit_inside_the_sweeps_or_between_rounds_leaves_a_certified_plan(rng):
    M = cloud(rng)
    exact = epsilot.exact(M).value
    for steps in (0, 3, 31):
        result = epsilot.solve(
            M, eps=1e-12, method="restricted_simplex", n_arcs=1, max_iter=steps, on_limit="ignore"
        )
        assert result.lower_bound <= exact + 1e-12
        assert exact <= result.value + 1e-12
        assert np.abs(result.plan.sum(axis=1) - 1 / 60).sum() <= 1e-12


@pytest.mark.parametrize("options", [{"n_arcs": 0}, {"sweeps": -1}, {"omega": 2.0}])
def test_bad_options(options):
    with pytest.raises(epsilot.InvalidProblem, match="n_arcs >= 1"):
        epsilot.solve(np.eye(3), method="restricted_simplex", **options)


# -- auto ------------------------------------------------------------------------------------


def test_auto_says_what_it_chose(rng):
    small, large = epsilot.solve(rng.random((8, 9))), epsilot.solve(rng.random((800, 900)))
    assert small.method == "exact"
    assert large.method == "restricted_simplex"
    assert small.choice.startswith("exact: the network simplex is fastest")
    assert "predicted" in large.choice
    assert epsilot.solve(np.eye(3), method="exact").choice is None


def test_auto_suits_the_geometry():
    grid = make_problem(Grid((5, 5)))
    lazy = make_problem(PointCloud(np.arange(6.0), np.arange(5.0)))
    assert choose(grid, None).method == "sinkhorn"
    assert choose(lazy, None).method == "restricted_simplex"
    assert choose(make_problem(np.eye(4)), 0.1).method == "sinkhorn"


def test_predictions_grow_with_the_problem():
    for method in ("exact", "restricted_simplex"):
        small, large = (predict(method, n, n, is_dense=True) for n in (500, 5000))
        assert large[0] > 10 * small[0]
        assert large[1] > 10 * small[1]


def test_cost_models_can_be_replaced(tmp_path, monkeypatch):
    models = {
        "exact": {"scale": 1e9, "power": 1.0, "bytes": 8},
        "restricted_simplex": {"dense": 0, "lazy": 0, "scale": 0, "power": 1, "overhead": 0},
    }
    path = tmp_path / "models.json"
    path.write_text(json.dumps(models))
    monkeypatch.setenv("EPSILOT_COST_MODELS", str(path))
    assert choose(make_problem(np.eye(4)), None).method == "restricted_simplex"
    monkeypatch.setenv("EPSILOT_COST_MODELS", str(tmp_path / "none.json"))
    with pytest.raises(epsilot.InvalidProblem, match="calibrate"):
        epsilot.solve(np.eye(3))
