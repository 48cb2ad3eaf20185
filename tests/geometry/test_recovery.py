"""Stored costs that are distances of points: recovered, solved by them, proved as stored."""

import numpy as np
import ot
import pytest
from scipy.spatial.distance import cdist

import epsilot
from epsilot.geometry import Dense, recovery
from epsilot.metrics import METRICS
from tuning import tune


@pytest.fixture(autouse=True)
def small(monkeypatch):
    tune(monkeypatch, recovery, min_side=40)


def drawn(d, metric, n=150, m=120, seed=0):
    rng = np.random.default_rng(seed)
    return cdist(rng.normal(size=(n, d)), rng.random((m, d)) + 1, metric)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize("delta", [0.0, -0.25])
def test_points_give_the_costs(d, metric, delta):
    M = drawn(d, metric)
    found = Dense(M).shifted(delta).recovered
    assert (found.X.shape, found.Y.shape) == ((150, d), (120, d))
    assert (found.metric, found.shift) == (METRICS[metric].key, delta)
    np.testing.assert_allclose(cdist(found.X, found.Y, metric), M, atol=1e-12 * M.max())


@pytest.mark.parametrize("factor", [1e-250, 1e30])
def test_costs_of_any_size_are_recovered_in_their_own_scale(factor):
    M = drawn(2, "sqeuclidean")
    found = Dense(factor * M).rescaled(-int(np.log2(factor))).recovered
    assert found is not None


OTHERS = {
    "random": np.random.default_rng(0).random((150, 120)),
    "five dimensions": drawn(5, "sqeuclidean"),
    "one dimension": drawn(1, "euclidean"),
    "l1": drawn(3, "cityblock"),
    "cosine": drawn(4, "cosine"),
    "constant": np.ones((150, 120)),
    "zero": np.zeros((150, 120)),
    "fourth powers": drawn(2, "sqeuclidean") ** 2,
    "indefinite": np.subtract.outer(np.arange(150.0), np.arange(120.0)) ** 2
    - np.subtract.outer(np.arange(150.0) ** 0.5, np.arange(120.0) ** 0.5) ** 2,
    "few": drawn(2, "euclidean", 39, 120),
    "above the points": drawn(2, "euclidean") + 5,
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_costs_have_no_points(name):
    assert Dense(OTHERS[name]).recovered is None


def changed(M, share, seed=0):
    """Return costs a share of which are lower, where the sample of the recovery does not look."""
    rng = np.random.default_rng(seed)
    lower = rng.random(M.shape) < share
    lower[::2] = lower[:, ::3] = False
    return np.where(lower, 0.3 * M, M)


COSTS = {
    "squares": drawn(2, "sqeuclidean"),
    "distances": drawn(3, "euclidean"),
    "more rows": drawn(2, "euclidean", 200, 60),
    "more columns": drawn(2, "euclidean", 60, 200),
    "float32": drawn(2, "euclidean").astype(np.float32),
    "noise": drawn(2, "sqeuclidean") + 1e-7 * OTHERS["random"],
    "shifted": drawn(2, "euclidean") - 0.1,
    "copies": cdist(*[np.random.default_rng(1).random((120, 2))] * 2),
}


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize("has_weights", [False, True])
def test_the_stored_costs_are_what_is_solved(name, has_weights, rng):
    M = COSTS[name]
    n, m = M.shape
    a, b = (rng.dirichlet(np.ones(k)) if has_weights else np.full(k, 1 / k) for k in (n, m))
    result = epsilot.solve(M, a, b, method="auction", rtol=1e-9)
    assert result.converged
    size = np.abs(M).max()
    assert abs(result.value - ot.emd2(a, b, M.astype(float))) <= 1e-12 * size
    assert abs(result.gap) <= 1e-12 * size


def test_entries_that_are_no_distances_are_found_by_the_last_rounds(monkeypatch, rng):
    M = changed(drawn(2, "sqeuclidean"), 0.002)
    monkeypatch.setattr(recovery, "_are_distances", lambda *_: True)
    a, b = rng.dirichlet(np.ones(150)), rng.dirichlet(np.ones(120))
    assert Dense(M).recovered is not None
    result = epsilot.solve(M, a, b, method="auction", rtol=1e-9)
    assert result.gap <= 1e-12
    assert abs(result.value - ot.emd2(a, b, M)) <= 1e-12


def test_auto_takes_the_auction_for_large_distances(rng, monkeypatch):
    tune(monkeypatch, recovery, min_side=1500)
    X, Y = rng.random((2, 3500, 2))
    result = epsilot.solve(cdist(X, Y, "sqeuclidean"), rtol=1e-9)
    assert (result.method, result.converged) == ("auction", True)


def test_only_costs_of_a_minimal_size_are_looked_at():
    tuning = recovery.RecoveryTuning()
    side = tuning.min_side - 1
    assert recovery.recover_points(np.zeros((side, 10 * side)), 0.0) is None
