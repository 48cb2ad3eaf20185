"""Box-constrained Newton: its bounds, its steps, lazy costs, and the box QP."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

import epsilot
from epsilot.geometry import Dense
from epsilot.problems.plan import Explicit, Gibbs
from epsilot.problems.problem import Entropic, make_problem
from epsilot.solvers import box_newton
from epsilot.solvers.box_newton import (
    TUNING,
    BoxNewton,
    Quadratic,
    active_set,
    curvature,
    evaluate,
    measure,
)
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


def quadratic(rng, radius, n=5, m=5, size=1.0) -> Quadratic:
    X = rng.random((n, m)) ** 4
    X /= X.sum()
    r, c = X.sum(axis=1), X.sum(axis=0)
    p, q = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    return Quadratic(
        Explicit(X), r, c, size * (r - p), size * (c - q), radius, curvature(2 * radius)
    )


def dense_minimum(model: Quadratic) -> float:
    """Minimise the box QP with a general solver."""
    X = model.X.X
    H = np.block([[np.diag(model.d1), X], [X.T, np.diag(model.d2)]])
    g = np.concatenate([model.g_rows, model.g_cols])

    def value(x):
        return g @ x + model.factor * x @ H @ x, g + 2 * model.factor * H @ x

    found = minimize(
        value,
        np.zeros(g.size),
        jac=True,
        bounds=[(-model.radius, model.radius)] * g.size,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-12, "maxiter": 5000},
    )
    return float(found.fun)


@pytest.mark.parametrize("radius", [0.1, 0.75, 4.0])
@pytest.mark.parametrize("seed", range(5))
def test_box_qp_equals_a_dense_solver(seed, radius):
    rng = np.random.default_rng(seed)
    model = quadratic(rng, radius)
    best = dense_minimum(model)
    zeros = np.zeros(5), np.zeros(5)
    move = measure(model, *zeros, *zeros)
    for _ in range(1000):
        move = box_newton.sweep(model, move.s)
        assert move.gap >= move.value - best - 1e-12
    assert move.value == pytest.approx(best, abs=1e-9)
    for start in (move, measure(model, *zeros, *zeros)):
        solved = active_set(model, start)
        assert solved.is_good
        assert solved.value <= best + solved.gap + 1e-12
    for is_exact in (False, True):
        move = box_newton.minimise(model, is_exact)
        assert move.value - best <= 0.5 * abs(move.value)
        assert max(np.abs(move.rows).max(), np.abs(move.cols).max()) <= radius


@pytest.mark.parametrize("seed", range(5))
def test_free_solve_is_a_newton_step(seed, monkeypatch):
    monkeypatch.setattr("epsilot.kernels.products.RIDGE", 0.0)
    model = quadratic(np.random.default_rng(seed), 4.0, n=6, m=4, size=0.05)
    out = box_newton._solve_free(model, np.zeros(10))
    found = measure(model, out[:6], out[6:], model.X.rows(out[6:]), model.X.cols(out[:6]))
    assert found.gap <= 1e-10
    assert found.value == pytest.approx(dense_minimum(model), abs=1e-10)
    fixed = np.zeros(10)
    fixed[[1, 7]] = 0.5, -0.25
    out = box_newton._solve_free(model, fixed)
    assert (out[1], out[7]) == (0.5, -0.25)
    found = measure(model, out[:6], out[6:], model.X.rows(out[6:]), model.X.cols(out[:6]))
    free = box_newton._gradient(model, found)[fixed == 0]
    np.testing.assert_allclose(free, 0, atol=1e-10)
