"""Maps and potentials of results at sources and at new points, by their definitions."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import epsilot
from epsilot import InvalidProblem

RNG = np.random.default_rng(0)
X, Y, NEW = RNG.random((30, 2)), RNG.random((35, 2)) + 1, RNG.random((7, 2))
A = RNG.random(30) + 0.1
A /= A.sum()
KINDS = {
    "exact": {"rtol": 1e-9},
    "rough": {"rtol": 0.1, "method": "sinkhorn"},
    "entropic": {"reg": 0.05},
    "relative": {"reg": 0.05, "reg_type": "kl"},
    "partial": {"mass": 0.5},
    "TV": {"unbalanced": 0.8, "unbalanced_type": "tv"},
    "KL": {"unbalanced": 0.8},
}


def rule(result, costs):
    """Return the potential and the images of points with these costs, by definition."""
    g, reg = result.potentials[1], result.reg
    if not result.is_entropic:
        g = g + (result.mass_price or 0.0)
        f = (costs - g).min(axis=1)
        f = np.minimum(f, 0.0) if result.mass_price is not None else f
        return f, Y[(costs - g).argmin(axis=1)]
    weights = np.exp((g - costs) / reg)
    weights = weights / len(Y) if "reg_type" in result.asked else weights
    total = weights.sum(axis=1)
    return -reg * np.log(total), weights @ Y / total[:, None]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
@pytest.mark.parametrize("lazy", [False, True])
def test_new_points_follow_the_potential(kind, metric, lazy):
    result = epsilot.solve_sample(X, Y, A, metric=metric, lazy=lazy, **KINDS[kind])
    f, images = rule(result, cdist(NEW, Y, metric))
    assert result.potential(NEW) == pytest.approx(f, abs=1e-9)
    found = result.map(NEW)
    assert found.points == pytest.approx(images, abs=1e-6)
    assert not found.is_seen.any()
    _, sources = rule(result, cdist(X, Y, metric))
    plan = result.plan
    if result.is_entropic:  # sources of other plans are on the borders of cells
        squares = (plan * cdist(sources, Y, "sqeuclidean")).sum() / plan.sum()
        assert found.error == pytest.approx(np.sqrt(squares), abs=1e-6)
    assert result.map().error <= found.error + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_sources_go_to_the_mean_of_their_destinations(kind):
    result = epsilot.solve_sample(X, Y, A, **KINDS[kind])
    plan = result.plan
    used = plan.sum(axis=1) > 0
    means = plan[used] @ Y / plan[used].sum(axis=1)[:, None]
    found = result.map()
    assert found.points[used] == pytest.approx(means)
    assert found.is_seen.all()
    every = np.zeros_like(X)
    every[used] = means
    squares = (plan * cdist(every, Y, "sqeuclidean")).sum() / plan.sum()
    assert found.error == pytest.approx(np.sqrt(squares), abs=1e-9)
    mixed = result.map(np.vstack([X[used][:2], NEW[:1]]))
    assert mixed.is_seen.tolist() == [True, True, False]
    assert mixed.points[:2] == pytest.approx(means[:2])


@pytest.mark.parametrize("kind", ["exact", "rough", "TV", "KL"])
def test_potentials_are_feasible_everywhere_and_extend_those_of_the_sources(kind):
    result = epsilot.solve_sample(X, Y, A, **KINDS[kind])
    f, g = result.potentials
    assert (result.potential(NEW)[:, None] + g - cdist(NEW, Y, "sqeuclidean")).max() <= 1e-12
    assert (result.potential(X) - f).min() >= -1e-12


def test_entropic_potentials_extend_those_of_the_sources():
    plain, relative = (epsilot.solve_sample(X, Y, A, **KINDS[k]) for k in ("entropic", "relative"))
    shifted = plain.potential(X) + 0.05 * np.log(A)
    assert shifted == pytest.approx(plain.potentials[0], abs=1e-9)
    assert relative.potential(X) == pytest.approx(relative.potentials[0], abs=1e-9)


def test_the_map_of_squared_distances_is_the_gradient_of_the_potential():
    result = epsilot.solve_sample(X, Y, A, reg=0.1)
    step = 1e-5
    slopes = np.stack(
        [
            (result.potential(NEW + e) - result.potential(NEW - e)) / (2 * step)
            for e in step * np.eye(2)
        ],
        axis=1,
    )
    assert result.map(NEW).points == pytest.approx(NEW - slopes / 2, abs=1e-6)


def test_results_without_points_say_so_in_one_sentence():
    stored = epsilot.solve(cdist(X, Y))
    for call in (stored.map, lambda: stored.potential(NEW)):
        with pytest.raises(InvalidProblem, match="the result has no points"):
            call()
    result = epsilot.solve_sample(X, Y)
    with pytest.raises(InvalidProblem, match="points of 3 coordinates; they must have 2"):
        result.map(np.random.default_rng(1).random((4, 3)))
    with pytest.raises(InvalidProblem, match="X_new"):
        result.potential([[np.nan, 0.0]])
    entropic = epsilot.solve_sample(X, Y, unbalanced=1.0, reg=0.1)
    with pytest.raises(InvalidProblem, match="unbalanced with reg"):
        entropic.potential(NEW)
    assert np.isfinite(entropic.map(NEW).points).all()
