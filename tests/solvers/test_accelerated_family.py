"""APDAGD, APDAMD, APDRCD, APDGCD, hybrid primal-dual: their listings and their proofs."""

import copy
from dataclasses import replace

import accelerated_listings as listings
import numpy as np
import pytest

from epsilot.geometry import Dense
from epsilot.kernels import accelerated as kernels
from epsilot.kernels import reference
from epsilot.solvers import make_solver
from epsilot.solvers.apdgcd import APDGCD, steps_per_epoch
from epsilot.solvers.averaging import mix, moments
from epsilot.transport.problem import Additive, Entropic, make_problem
from problems import random

FAMILY = ["apdagd", "apdamd", "apdrcd", "apdgcd", "hybrid_primal_dual"]
SHAPES = [(5, 5), (4, 6)]


def small(n=5, m=5, eta=0.05, seed=0) -> Entropic:
    C, p, q = random(n, m, 1.0, seed)
    return Entropic(Dense(C), eta, p, q)


def states(problem, name, n_iter, **options):
    """Yield a solver with its state after each step."""
    solver = make_solver(name, options)
    rng = np.random.default_rng(0)
    state, _ = solver.init(problem, rng)
    for _ in range(n_iter):
        before = copy.deepcopy(state)
        solver.step(problem, state, rng)
        yield solver, before, state


# Lockstep with the listings ---------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("name", "norm", "first", "largest"),
    [("apdagd", listings.l2, 1, 2), ("apdamd", listings.linf, 2, 4)],
)
def test_gradient_methods_follow_their_listing(name, norm, first, largest, shape):
    problem = small(*shape)
    ours = states(problem, name, 40, average=True)
    theirs = listings.gradient_descent(problem, norm, first, largest, 40)
    for (_, _, state), (e, X) in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(state.e, e, rtol=0, atol=1e-9)
        np.testing.assert_allclose(state.X, X, rtol=0, atol=1e-9)


def test_apdamd_is_the_textbook_form_with_delta_n():
    problem = small()
    ours = states(problem, "apdamd", 40, average=True)
    for (_, _, state), (e, X) in zip(ours, listings.mirror_descent(problem, 40), strict=True):
        np.testing.assert_allclose(state.e, e, rtol=0, atol=1e-9)
        np.testing.assert_allclose(state.X, X, rtol=0, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_apdrcd_follows_its_listing(shape):
    problem = small(*shape)
    theirs = listings.coordinates(problem, np.random.default_rng(0), 40)
    for (_, _, state), (lam, X) in zip(states(problem, "apdrcd", 40), theirs, strict=True):
        np.testing.assert_allclose(state.lam, lam, rtol=0, atol=1e-10)
        np.testing.assert_allclose(state.X, X, rtol=0, atol=1e-10)
        np.testing.assert_allclose(state.average, listings.marginals(X), rtol=0, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
def test_apdgcd_follows_its_listing(shape, monkeypatch):
    monkeypatch.setattr("epsilot.solvers.apdgcd._EPOCH_ENTRIES", 1)
    problem = small(*shape)
    theirs = listings.coordinates(problem, None, 300, lambda g: np.argmax(np.abs(g)))
    for (_, _, state), (lam, X) in zip(states(problem, "apdgcd", 300), theirs, strict=True):
        np.testing.assert_allclose(state.lam, lam, rtol=0, atol=1e-10)
        np.testing.assert_allclose(state.X, X, rtol=0, atol=1e-10)
        np.testing.assert_allclose(state.average, listings.marginals(X), rtol=0, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", ["line_search", "accelerated", "plain"])
def test_hybrid_follows_its_listing(form, shape):
    problem = small(*shape)
    eta = problem.eta
    if form == "plain":
        eta, problem = 0.0, Additive(problem.geometry, 0.1, problem.p, problem.q)
    ours = states(problem, "hybrid_primal_dual", 40, form=form, average=True)
    for (_, _, state), (w, X) in zip(ours, listings.hybrid(problem, form, 40, eta), strict=True):
        np.testing.assert_allclose(state.mean, w, rtol=0, atol=1e-10)
        np.testing.assert_allclose(state.X, X, rtol=0, atol=1e-10)


# What the proofs rely on ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "norm"), [("apdagd", listings.l2), ("apdamd", listings.linf)])
def test_line_search_and_estimate_sequence(name, norm, seed):
    problem = small(12, 9, eta=0.02, seed=seed)
    C, eta, b, _ = listings.parts(problem)
    for solver, old, new in states(problem, name, 150, average=True):
        t = 1 - old.beta / new.beta
        w = t * old.zeta + (1 - t) * old.e
        F, g, _ = listings.lse_dual(problem, w)
        d = new.e - w
        value = listings.lse_dual(problem, new.e)[0]
        assert value <= F + g @ d + new.smooth / 2 * norm(d) + 1e-12
        assert new.smooth <= solver.smoothness[1] / eta
        np.testing.assert_allclose(t**2 * new.beta, 1 / new.smooth, rtol=1e-10)
        # φ(e) + f(X̂) ≤ min_w <w, A X̂ - b> + ‖w‖²/(2β)
        residual = listings.marginals(new.X) - b
        f = (C * new.X).sum() + eta * (new.X * np.log(new.X)).sum()
        assert value + f <= -new.beta / 2 * residual @ residual + 1e-12
        assert new.value == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("is_greedy", [False, True])
def test_coordinate_steps_decrease_the_dual(is_greedy, seed):
    problem = small(12, 9, eta=0.05, seed=seed)
    C, eta, b, n = listings.parts(problem)
    rng = np.random.default_rng(seed)
    lam = np.repeat([-eta, 0.0], [n, b.size - n])
    z, theta, L = lam.copy(), 1.0, 4 / eta
    X, average = np.zeros_like(C), np.zeros(b.size)
    for _ in range(400):
        y = (1 - theta) * lam + theta * z
        value, gradient, _ = listings.exp_dual(problem, y)
        scratch = np.empty(b.size)
        if is_greedy:
            i = int(np.argmax(np.abs(gradient)))
            args = theta, 1.0, 1, lam, z, X, average, scratch
            theta, _ = kernels.greedy_coordinates(C, b, 1 / eta, 1 / L, *args)
        else:
            i = int(rng.integers(b.size))
            args = theta, rng.random(), np.array([i]), lam, z, scratch
            theta, _ = kernels.random_coordinates(C, b, 1 / eta, 1 / L, *args)
        np.testing.assert_allclose(np.delete(lam, i), np.delete(y, i), rtol=1e-14)
        decrease = value - listings.exp_dual(problem, lam)[0]
        assert decrease >= gradient[i] ** 2 / (2 * L) - 1e-13


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("form", ["line_search", "accelerated", "plain"])
def test_hybrid_energy_inequalities(form, seed):
    problem = small(12, 9, eta=0.02, seed=seed)
    if form == "plain":
        problem = Additive(problem.geometry, 0.1, problem.p, problem.q)
    C, eta, b, n = listings.parts(problem)
    rng = np.random.default_rng(seed)
    X_any = rng.dirichlet(np.ones(C.size)).reshape(C.shape)
    w_any = rng.normal(size=b.size)

    def lagrangian(X, w):
        return (C * X).sum() + eta * (X * np.log(X)).sum() - w @ (listings.marginals(X) - b)

    X_old = np.full_like(C, 1 / C.size)
    first = (X_any * np.log(X_any / X_old)).sum()
    bound, total = None, 0.0
    for _, old, new in states(problem, "hybrid_primal_dual", 150, form=form):
        X = np.exp(listings.log_softmax(C, n, new.inv, new.fg)[0])
        ratio = new.sigma / new.step
        if bound is None:
            bound = first / ratio + w_any @ w_any / 2
        move = listings.marginals(X) - listings.marginals(X_old)
        kl = (X * np.log(X / X_old)).sum()
        assert new.step**2 / 2 * move @ move <= kl / ratio + 1e-12 * (1 + new.step**2)
        w_bar = old.w + new.step / old.step * (old.w - old.w_old)
        total += new.step * (lagrangian(X, w_any) - lagrangian(X_any, w_bar))
        assert total <= bound + 1e-9
        X_old = X


@pytest.mark.parametrize(
    ("name", "dual", "weight"),
    [("apdagd", "zeta", "beta"), ("apdamd", "zeta", "beta"), ("hybrid_primal_dual", "w", "weight")],
)
def test_marginals_of_the_average_are_the_dual_step(name, dual, weight):
    problem = small(9, 7, eta=0.02)
    _, _, b, _ = listings.parts(problem)
    for _, _, state in states(problem, name, 60, average=True):
        residual = listings.marginals(state.X) - b
        expected = -getattr(state, dual) / getattr(state, weight)
        np.testing.assert_allclose(residual, expected, rtol=0, atol=1e-11)
        assert state.mean_violation == pytest.approx(np.abs(residual).sum(), abs=1e-11)
        assert state.X.sum() == pytest.approx(1, abs=1e-11)


@pytest.mark.parametrize("name", FAMILY)
def test_violation_is_that_of_the_current_plan(name, monkeypatch):
    monkeypatch.setattr("epsilot.solvers.apdgcd._EPOCH_ENTRIES", 1)
    problem = small(9, 7)
    b = np.concatenate([problem.p, problem.q])
    for solver, _, state in states(problem, name, 25):
        core, _ = solver.candidates(problem, state)[-1]
        current = np.abs(np.concatenate(core.marginals()) - b).sum()
        # The coordinate methods know it for a point of the same epoch.
        near = 0.5 if name in ("apdrcd", "apdgcd") else 1e-9
        assert solver.signal(problem, state).violation == pytest.approx(current, rel=near)


# Kernels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.1, 1.0, 40.0])
@pytest.mark.parametrize("is_misleading", [False, True])
def test_moments_and_average_equal_numpy(rng, scale, is_misleading):
    C = rng.uniform(0, 1, (300, 280))  # enough for two threads
    f, g, eta = scale * rng.normal(size=300), scale * rng.normal(size=280), 0.01
    if is_misleading:
        f[7] = f.max() + 1.0
        C[7] = 1e3  # the row of largest f holds none of the mass
    log_r, log_c, log_mass = reference.log_marginals(C, f, g, eta)
    X = reference.gibbs(C, f - eta * log_mass, g, eta)
    AX, cost, found = moments(Dense(C), f, g, eta)
    np.testing.assert_allclose(AX, np.exp(np.concatenate([log_r, log_c]) - log_mass), atol=1e-12)
    assert (cost, found) == pytest.approx(((C * X).sum(), log_mass), rel=1e-11)
    average = rng.uniform(0, 1, C.shape)
    expected = 0.75 * average + 0.25 * X
    mix(Dense(C), average, f - eta * log_mass, g, eta, 0.25)
    np.testing.assert_allclose(average, expected, rtol=1e-11)


@pytest.mark.parametrize("case", ["good guess", "high entry elsewhere", "low rows", "empty row"])
def test_log_marginals_survive_a_wrong_guess_of_their_level(rng, case):
    C, f, g = rng.uniform(0, 1, (6, 7)), rng.normal(size=6), rng.normal(size=7)
    if case == "high entry elsewhere":
        f[0] = f.max() + 1.0
        C[0] = 90.0  # the row of largest f holds none of the mass
    elif case == "low rows":
        f[2] -= 80.0
    elif case == "empty row":
        f[3] = -np.inf
    for found, expected in zip(
        Dense(C).log_marginals(f, g, 0.05), reference.log_marginals(C, f, g, 0.05), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_candidates_are_not_changed_by_later_steps():
    for name in FAMILY:
        problem = small(9, 7)
        solver = make_solver(name, {}).resolved("certificate", make_problem(np.eye(3)))
        rng = np.random.default_rng(0)
        state, _ = solver.init(problem, rng)
        solver.step(problem, state, rng)
        found = solver.candidates(problem, state)
        assert len(found) == 2
        kept = copy.deepcopy([(core.block(0, 9), row) for core, row in found])
        solver.step(problem, state, rng)
        for (core, row), (X, old) in zip(found, kept, strict=True):
            np.testing.assert_array_equal(core.block(0, 9), X)
            np.testing.assert_array_equal(row, old)


@pytest.mark.parametrize("name", ["apdrcd", "apdgcd"])
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_an_average_that_overflowed_shows_in_the_potentials(name, value):
    problem, solver = small(), make_solver(name, {})
    state, _ = solver.init(problem, np.random.default_rng(0))
    assert np.isfinite(solver.potentials(problem, state)).all()
    state.average[3] = value
    assert np.isnan(solver.potentials(problem, state)).all()


def test_epoch_of_the_greedy_method_is_about_one_pass_over_a_large_cost():
    assert steps_per_epoch(1000, 1000) == 1
    assert steps_per_epoch(36, 36) == 202
    problem = replace(small(), eta=0.1)
    solver = APDGCD()
    rng = np.random.default_rng(0)
    state, _ = solver.init(problem, rng)
    work = solver.step(problem, state, rng)
    assert work.operations == steps_per_epoch(5, 5) * (9 * 25 + 12 * 5)
