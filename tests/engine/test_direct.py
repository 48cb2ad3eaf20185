"""Problems that are solved and proved without a run: kernels that are scaled, and lines."""

import numpy as np
import pytest

import epsilot
from epsilot import InvalidProblem
from epsilot.engine.one_line import solve_one_line
from epsilot.engine.scaled_entropic import TUNING, solve_by_scaling
from epsilot.geometry.inputs import cloud_geometry
from epsilot.kernels.sinkhorn import scale


def problem(n=30, m=40, mass=1.0):
    rng = np.random.default_rng(0)
    a, b = rng.random(n) + 0.1, rng.random(m) + 0.1
    return rng.random((n, m)), mass * a / a.sum(), mass * b / b.sum()


@pytest.mark.parametrize("mass", [1.0, 250.0])
@pytest.mark.parametrize("reg", [2.0, 0.5, 0.2])
def test_scaled_plans_are_those_of_solve(reg, mass):
    M, a, b = problem(mass=mass)
    M = 7 * M - 3
    gap = 1e-11 * mass
    found = solve_by_scaling(M, a, b, reg, gap=gap, error=1e-10, max_sweeps=np.inf)
    result = epsilot.solve(M, a, b, reg=reg, tol=gap)
    assert found.value == pytest.approx(result.value, abs=2 * gap)
    assert 0 <= found.value - found.lower <= gap
    np.testing.assert_allclose(found.plan, result.plan, atol=1e-7 * mass)
    np.testing.assert_allclose(found.plan.sum(axis=1), a, rtol=1e-12)
    audit = epsilot.certify(M, a, b, plan=found.plan, potentials=found.potentials, reg=reg)
    assert audit.is_feasible
    assert audit.upper == pytest.approx(found.value, abs=gap)
    assert audit.lower == pytest.approx(found.lower, abs=gap)


@pytest.mark.parametrize("case", ["empty point", "forbidden pair", "fine", "few sweeps", "tight"])
def test_what_scaling_leaves_to_a_run(case):
    M, a, b = problem()
    keywords = {"gap": 1e-10, "error": 1e-10, "max_sweeps": 3 if case == "few sweeps" else 500}
    if case == "empty point":
        a[0] = 0.0
        a /= a.sum()
    if case == "forbidden pair":
        M[0, 1] = np.inf
    if case == "tight":
        keywords["gap"] = 0.0
    reg = 1 / (2 * TUNING.max_exponent) if case == "fine" else 0.1
    found = solve_by_scaling(M, a, b, reg, **keywords)
    assert found is None or (case == "tight" and found.value == found.lower)


def test_scaling_refuses_what_solve_refuses():
    M, a, b = problem()
    with pytest.raises(InvalidProblem, match="reg is"):
        solve_by_scaling(M, a, b, 1e-200, gap=1e-9, error=1e-9, max_sweeps=9)


def test_sweeps_end_early_where_they_are_slow():
    M, a, b = problem()
    K, u, v = np.exp(-M / 0.005), np.empty(30), np.ones(40)
    n_sweeps, missed = scale(K, a, b, 1e-10, 200, u, v)
    assert n_sweeps < 200
    assert missed > 1e-10
    X = u[:, None] * K * v
    np.testing.assert_allclose(X.sum(axis=1), a)
    assert missed == pytest.approx(np.abs(X.sum(axis=0) - b).sum())


@pytest.mark.parametrize("metric", ["cityblock", "sqeuclidean"])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_lines_are_those_of_solve(metric, shift):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(300, 1)) + shift, rng.normal(size=(400, 1)) + shift
    a, b = rng.random(300) + 0.1, rng.random(400) + 0.1
    b *= a.sum() / b.sum()
    found = solve_one_line(cloud_geometry(x, y, metric, lazy=True), a, b, rtol=1e-9)
    result = epsilot.solve_sample(x, y, a, b, metric=metric, rtol=1e-9, method="exact")
    assert found.value == pytest.approx(result.value, rel=1e-9)
    assert found.value - found.lower <= 1e-9 * found.lower
    C = epsilot.PointCloud(x, y, metric).matrix()
    assert (found.f[:, None] + found.g <= C).all()
    assert (C[found.i, found.j] @ found.flow) == pytest.approx(found.value, rel=1e-12)
    np.testing.assert_allclose(np.bincount(found.i, found.flow), a)


def test_what_lines_leave_to_a_run():
    x = np.arange(6.0).reshape(-1, 1)
    a = np.full(6, 1 / 6)
    empty = np.array([0.0, 1, 1, 1, 1, 1]) / 5
    line = cloud_geometry(x, x + 1, "cityblock", lazy=True)
    assert solve_one_line(line, empty, a, rtol=1e-9) is None
    assert solve_one_line(line, a, a, rtol=-1.0) is None
    plane = cloud_geometry(np.hstack([x, x]), np.hstack([x, x]), "euclidean", lazy=True)
    assert solve_one_line(plane, a, a, rtol=1e-9) is None
