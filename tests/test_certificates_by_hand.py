"""What is proved of large problems, proved again from the whole matrix in plain NumPy."""

import math

import numpy as np
import pytest

import epsilot

N, SIDE, BLOCK = 20_000, 141, 50


def weights(rng, n):
    return rng.random(n) + 0.01


def clouds(metric, shape, other):
    """Return a cloud, its points and masses."""
    rng = np.random.default_rng(3)
    X, Y = shape(rng), other(rng)
    a, b = (w / w.sum() for w in (weights(rng, N), weights(rng, N)))
    return epsilot.PointCloud(X, Y, metric), X, Y, a, b


def grid(metric):
    """Return a grid, its cells and masses: noise on a slope, a third of it empty."""
    rng = np.random.default_rng(4)
    X = np.indices((SIDE, SIDE)).reshape(2, -1).T.astype(float)
    a, b = (
        (rng.random(len(X)) + x) * (rng.random(len(X)) > 1 / 3)
        for x in (X[:, 0] / SIDE, X[:, 1] / 9)
    )
    return epsilot.Grid((SIDE, SIDE), metric=metric), X, X, a / a.sum(), b / b.sum()


def uniform(rng):
    return rng.random((N, 2))


def blob(rng):
    return 0.5 + 0.3 * rng.normal(size=(N, 2))


def whole(rng):
    return rng.integers(0, 60, (N, 2)).astype(float)


#: metric, method, problem, gap that is proved (relative)
CASES = {
    "squared": ("sqeuclidean", "auction", lambda: clouds("sqeuclidean", uniform, blob), 1e-9),
    "Euclidean": ("euclidean", "auction", lambda: clouds("euclidean", uniform, uniform), 1e-9),
    "cityblock, ties": ("cityblock", "auction", lambda: clouds("cityblock", whole, whole), 1e-9),
    "grid, l1": ("cityblock", "grid_flow", lambda: grid("cityblock"), 1e-9),
    "grid, squared": ("sqeuclidean", "auction", lambda: grid("sqeuclidean"), 1e-7),
}


def costs(steps, metric):
    """Return the costs of pairs from their steps along two axes, which are overwritten."""
    for step in steps:
        (np.abs if metric == "cityblock" else np.square)(step, out=step)
    C, other = steps
    C += other
    return np.sqrt(C, out=C) if metric == "euclidean" else C


@pytest.mark.parametrize("name", CASES)
def test_a_certificate_holds_of_every_pair(name):
    metric, method, problem, gap = CASES[name]
    geometry, X, Y, a, b = problem()
    result = epsilot.solve(geometry, a, b, rtol=gap, method="auto")
    assert result.method == method
    assert result.converged
    f, g = result.potentials
    top = geometry.bounds[1]
    for start in range(0, len(X), BLOCK):
        rows = slice(start, start + BLOCK)
        C = costs([np.subtract.outer(X[rows, k], Y[:, k]) for k in (0, 1)], metric)
        C -= g
        C -= f[rows, None]
        assert C.min() >= -2e-15 * top
    used = [(w[w > 0], x[w > 0]) for w, x in ((a, f), (b, g))]
    lower = math.fsum(np.concatenate([w * x for w, x in used]))
    assert lower == pytest.approx(result.lower_bound, abs=1e-14 * top)
    plan = result.plan_operator.tosparse().tocoo()
    assert plan.nnz <= 4 * (len(X) + len(Y))
    assert plan.data.min() > 0
    for sums, masses in ((plan.sum(axis=1), a), (plan.sum(axis=0), b)):
        assert np.abs(sums - masses).sum() <= 1e-12
    upper = math.fsum(plan.data * costs(list((X[plan.row] - Y[plan.col]).T), metric))
    assert upper == pytest.approx(result.value, rel=1e-13)
    assert -1e-14 * top <= upper - lower <= 1.01 * gap * upper
