"""Kernels of Gromov-Wasserstein beside NumPy: costs by factors, bounds of simplices, insertions."""

import numpy as np
import pytest

from epsilot.gromov.objective import cross_polytope
from epsilot.gromov.triangulation import Mesh
from epsilot.gromov.verify import check_tiling
from epsilot.kernels import moment_transport, triangulation
from epsilot.kernels.assignment import cost_row, stored


def clouds(seed, n, m, dx, dy, has_linear):
    rng = np.random.default_rng(seed)
    X, Y, width = rng.normal(size=(n, dx)), rng.normal(size=(m, dy)), -(-m // 8) * 8
    W = np.zeros((1 + dy, width))
    W[0, :m], W[1:, :m] = (Y**2).sum(1), Y.T
    M = np.zeros((0, 0))
    if has_linear:
        M = np.zeros((n, width))
        M[:, :m] = rng.random((n, m))
    c = rng.normal(size=(dx, dy))
    C = -4 * np.outer((X**2).sum(1), (Y**2).sum(1)) - 16 * X @ c @ Y.T
    return (X, (X**2).sum(1), W, M), c.ravel(), C + M[:, :m] if has_linear else C, Y


@pytest.mark.parametrize("has_linear", [False, True])
@pytest.mark.parametrize(("dx", "dy"), [(1, 1), (2, 2), (3, 2), (2, 4)])
def test_costs_of_factors(dx, dy, has_linear):
    given, c, C, _ = clouds(0, 7, 9, dx, dy, has_linear)
    found = np.empty((7, 9))
    moment_transport.fill(*given, c, found, 0, 7)
    np.testing.assert_allclose(found, C, atol=1e-12)


def test_a_stored_cost_is_read_as_it_is():
    C = np.random.default_rng(0).random((3, 8))
    assert all((cost_row(stored(C), i) == C[i]).all() for i in range(3))


@pytest.mark.parametrize("n", [1, 5, 9, 30])
def test_assignments_from_any_prices(n):
    from scipy.optimize import linear_sum_assignment

    given, c, C, Y = clouds(n, n, n, 2, 2, False)
    p, rng = np.full(n, 1 / n), np.random.default_rng(n)
    best = C[linear_sum_assignment(C)].mean()
    for scale in (0.0, 1.0, 1e4):
        v, Z, columns = scale * rng.normal(size=n), np.empty(4), np.empty(n, np.int64)
        lower, size, linear = moment_transport.match(*given, p, p, c, v, Z, columns)
        assert lower == pytest.approx(best, abs=1e-11 * size)
        assert lower <= best + 1e-13 * size
        assert sorted(columns) == list(range(n))
        np.testing.assert_allclose(Z.reshape(2, 2), given[0].T @ Y[columns] / n, atol=1e-13)
        assert linear - 16 * (c * Z).sum() == pytest.approx(best, abs=1e-11 * size)
        again, _ = moment_transport.bound_of_prices(*given, p, p, c, v)
        assert again == pytest.approx(lower, abs=1e-13 * size)


@pytest.mark.parametrize("D", [1, 2, 4, 6])
def test_the_bound_of_a_simplex_is_the_least_value_of_the_interpolation(D):
    rng = np.random.default_rng(D)
    for _ in range(40):
        points, values = rng.normal(size=(D + 1, D)), rng.normal(size=D + 1) * 10
        place = np.empty(D)
        bound = triangulation.bound(points, values, np.arange(D + 1), place)
        lam = rng.dirichlet(np.full(D + 1, 0.3), size=3000)
        sampled = 8 * ((lam @ points) ** 2).sum(1) - lam @ values
        assert bound <= sampled.min() + 1e-10
        weights = np.linalg.solve(np.vstack([points.T, np.ones(D + 1)]), np.append(place, 1.0))
        assert weights.min() > -1e-9
        assert bound == pytest.approx(8 * (place**2).sum() - weights @ values, abs=1e-7)


@pytest.mark.parametrize("D", [1, 2, 3, 4])
def test_insertions_keep_a_triangulation(D):
    rng = np.random.default_rng(D)
    mesh = Mesh(D, 1.0)
    mesh.start(5 * (mesh.first**2).sum(1))
    k = len(mesh.first)
    for c in rng.dirichlet(np.ones(D + 1), size=60)[:, :D] * rng.choice([-1, 1], (60, D)):
        value = 5 * float((c**2).sum())
        assert mesh.insert(k, c, value, mesh.locate(c))
        k += 1
    used = np.flatnonzero(mesh.is_used[: int(mesh.counts[0])])
    check_tiling(mesh.points[:k], mesh.corners[used], 1.0)
    # Of a convex function the regular triangulation is its lower hull.
    for t in used:
        corners = mesh.corners[t]
        plane = np.linalg.solve(
            np.column_stack([mesh.points[corners], np.ones(D + 1)]), mesh.values[corners]
        )
        heights = mesh.points[:k] @ plane[:D] + plane[D]
        assert (mesh.values[:k] >= heights - 1e-9).all()


def test_a_point_on_an_outer_face_is_refused():
    mesh = Mesh(2, 1.0)
    mesh.start(np.zeros(5))
    assert not mesh.insert(5, np.array([0.5, 0.5]), -1.0, mesh.locate(np.array([0.5, 0.5])))
    assert int(mesh.counts[0]) == len(cross_polytope(2, 1.0)[1])
