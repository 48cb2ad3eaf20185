"""The box QP against a dense solver."""

import numpy as np
import pytest
from scipy.optimize import minimize

from epsilot.problems.plan import Explicit
from epsilot.solvers import box_newton
from epsilot.solvers.box_newton import Quadratic, active_set, curvature, measure


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
