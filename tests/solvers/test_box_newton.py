"""box_newton: its bounds, its steps, and lazy costs."""

import math

import numpy as np
import pytest

import epsilot
from epsilot.geometry import Dense
from epsilot.problems.plan import Gibbs
from epsilot.problems.problem import Entropic, make_problem
from epsilot.solvers.box_newton import TUNING, BoxNewton, curvature, evaluate
from sample_problems import images, points, random

NO_ARRAY = np.empty((0, 0))


def entropic(instance, eta):
    problem = make_problem(*instance)
    return Entropic(problem.geometry, eta * problem.cost_max, problem.p, problem.q)


@pytest.mark.parametrize("radius", [0.1, 0.75])
def test_the_model_bounds_the_dual(radius, rng):
    problem = entropic(random(6, 7), 0.1)
    base = evaluate(problem, rng.normal(size=6) * 0.1, rng.normal(size=7) * 0.1, NO_ARRAY)
    X = Gibbs(problem.geometry, base.row, base.lam, problem.eta).block(0, 6)
    t = 2 * radius
    below = (math.exp(-t) - 1 + t) / t**2
    for _ in range(200):
        a, b = (rng.choice([-1, 1], k) * radius * rng.random(k) ** 0.2 for k in (6, 7))
        trial = evaluate(problem, base.row + problem.eta * a, base.lam + problem.eta * b, NO_ARRAY)
        slope = (base.r - problem.p) @ a + (base.c - problem.q) @ b
        bend = np.sum(X * (a[:, None] + b) ** 2)
        change = trial.objective - base.objective - slope
        assert below * bend - 1e-9 <= change <= curvature(t) * bend + 1e-9


@pytest.mark.parametrize("constants", ["practical", "published"])
def test_steps_decrease_the_dual_and_scale_the_plan(constants, rng):
    problem = entropic(images(5), 0.01)
    solver = BoxNewton(constants=constants)
    state, _ = solver.init(problem, rng)
    for _ in range(300):
        before = state.objective
        radius = state.radius
        row, lam = state.row, state.lam
        solver.step(problem, state, rng)
        assert state.objective <= before + 1e-12 * abs(before)
        moved = max(np.abs(state.row - row).max(), np.abs(state.lam - lam).max())
        assert moved <= max(radius, TUNING.proved_radius) * problem.eta * (1 + 1e-9)
        X = Gibbs(problem.geometry, state.row, state.lam, problem.eta).block(0, 25)
        np.testing.assert_allclose(state.X, X, rtol=1e-12)
        if state.violation < 1e-10:
            break
    assert state.violation < 1e-10
    assert solver.signal(problem, state).violation == pytest.approx(
        np.abs(X.sum(axis=1) - problem.p).sum() + np.abs(X.sum(axis=0) - problem.q).sum()
    )
    assert (constants == "practical") or state.radius == TUNING.proved_radius


def test_sweeps_carry_on_where_no_factorisation_can():
    class Lazy(Dense):
        is_dense = False

    M, a, b = points()
    eps = 0.02 * M.max()
    stored = epsilot.solve(M, a, b, eps=eps, method="box_newton")
    lazy = epsilot.solve(Lazy(M), a, b, eps=eps, method="box_newton")
    assert lazy.converged
    assert lazy.value == pytest.approx(stored.value, abs=eps)


def test_reaches_a_tight_entropic_gap():
    M, a, b = images(6)
    result = epsilot.solve(M, a, b, reg=0.01, tol=1e-9, method="box_newton")
    assert result.converged
    reference = epsilot.solve(M, a, b, reg=0.01, tol=1e-8, method="sinkhorn", max_iter=100000)
    assert result.value == pytest.approx(reference.value, abs=2e-8)
