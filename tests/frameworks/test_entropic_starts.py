"""Potentials that entropic losses start from: their plans have the right marginals already."""

import numpy as np
import pytest

import epsilot
from epsilot.frameworks import entropic_starts as starts
from epsilot.geometry.inputs import cloud_geometry
from epsilot.problems import duals

#: points of both clouds, how far apart, regularisation, empty places, scale of the costs; as many
#: points are copies of each other
PROBLEMS = {
    "ordinary": (40, 30, 0.5, 0.1, 0, 1.0),
    "clusters that hardly touch": (50, 49, 0.5, 0.01, 0, 1.0),
    "clouds that nearly agree": (50, 50, 1e-3, 0.01, 0, 1.0),
    "much regularised": (20, 30, 0.5, 100.0, 0, 1.0),
    "empty places": (20, 30, 0.5, 0.1, 4, 1.0),
    "one point": (1, 5, 0.5, 0.1, 0, 1.0),
    "tiny costs": (20, 20, 0.5, 0.1, 0, 1e-100),
}


def plan(geometry, potentials, reg):
    f, g = potentials
    return np.exp((f[:, None] + g - geometry.block(0, len(f))) / reg)


@pytest.mark.parametrize(
    ("n", "m", "shift", "reg", "n_empty", "scale"), PROBLEMS.values(), ids=PROBLEMS
)
def test_newton_reaches_the_marginals(n, m, shift, reg, n_empty, scale, rng):
    x = rng.normal(size=(n, 2))
    y = x[:m] + shift if n == m else rng.normal(size=(m, 2)) + shift
    geometry = cloud_geometry(np.sqrt(scale) * x, np.sqrt(scale) * y)
    a, b = rng.random(n) + 0.5, rng.random(m) + 0.5
    a[:n_empty] = b[-n_empty or m :] = 0.0
    a, b = 3 * a / a.sum(), 3 * b / b.sum()
    gap = 1e-9 * 3 * geometry.bounds[1]
    found = starts.newton_potentials(geometry, a, b, scale * reg, gap)
    X = plan(geometry, found, scale * reg)[n_empty:, : m - n_empty]
    X *= 3 / X.sum()
    assert np.abs(X.sum(axis=1) - a[n_empty:]).sum() <= 3e-9
    assert np.abs(X.sum(axis=0) - b[: m - n_empty]).sum() <= 3e-9
    result = epsilot.solve(geometry, a, b, reg=scale * reg, tol=gap, potentials_init=found)
    assert result.n_iter == 1


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock", "cosine"])
@pytest.mark.parametrize("reg", [1e-3, 0.1, 100.0])
def test_a_shared_potential_takes_few_updates(metric, reg, rng, monkeypatch):
    counted = []

    def softmin_rows(*args):
        counted.append(args)
        return duals.softmin_rows(*args)

    monkeypatch.setattr(starts, "softmin_rows", softmin_rows)
    x, a = rng.normal(size=(60, 3)), rng.dirichlet(np.ones(60))
    a[5] = 0.0
    a /= a.sum()
    geometry = cloud_geometry(x, x, metric)
    f = starts.shared_potential(geometry, a, reg)
    X = plan(geometry, (f, f), reg)
    X[5] = X[:, 5] = 0.0
    np.testing.assert_allclose(X.sum(axis=1), a, rtol=0, atol=1e-11)
    assert len(counted) <= 25
