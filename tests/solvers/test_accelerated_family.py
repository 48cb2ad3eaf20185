"""APDAGD, APDAMD, APDRCD, APDGCD, hybrid primal-dual: listings, proofs, promises."""

import copy
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import epsilot
from epsilot import driver
from epsilot.errors import InvalidProblem
from epsilot.geometry import Dense, PointCloud
from epsilot.images import grid_cost, synthetic_pair
from epsilot.kernels import accelerated as kernels
from epsilot.kernels import reference
from epsilot.problem import Additive, Entropic, make_problem
from epsilot.result import Status
from epsilot.solvers import make_solver
from epsilot.solvers.apdgcd import APDGCD, steps_per_epoch
from epsilot.solvers.averaging import mix, moments
from problems import points, random, solve_exactly, trace

sys.path.insert(0, str(Path(__file__).parent))
import accelerated_listings as listings

FAMILY = ["apdagd", "apdamd", "apdrcd", "apdgcd", "hybrid_primal_dual"]
SHAPES = [(5, 5), (4, 6)]


def small(n=5, m=5, eta=0.05, seed=0) -> Entropic:
    C, p, q = random(n, m, 1.0, seed)
    return Entropic(Dense(C), eta, p, q)


def images(side, seed):
    A, B = synthetic_pair(side, seed)
    return grid_cost((side, side)), A.ravel(), B.ravel()


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
        assert solver.violation(problem, state) == pytest.approx(current, rel=near)


# Kernels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.1, 1.0, 40.0])
def test_moments_and_average_equal_numpy(rng, scale):
    C = rng.uniform(0, 1, (300, 280))  # enough for two threads
    f, g, eta = scale * rng.normal(size=300), scale * rng.normal(size=280), 0.01
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


# Promises ---------------------------------------------------------------------------------------

# n = 36, ε = 0.2: iterations and operations of the specification, mean of three instances.
PUBLISHED = [
    ("apdagd", {}, 136, 6.5e6),
    ("apdamd", {}, 145, 6.9e6),
    ("apdrcd", {}, 6.1e4, 3.4e7),
    ("hybrid_primal_dual", {"form": "accelerated"}, 416, 6.2e6),
    ("hybrid_primal_dual", {}, 95, 3.3e6),
]


@pytest.mark.parametrize(("name", "options", "iterations", "operations"), PUBLISHED)
def test_published_runs_cost_what_the_specification_measured(name, options, iterations, operations):
    runs = []
    for seed in range(3):
        M, a, b = images(6, seed)
        result = epsilot.solve(M, a, b, eps=0.2, method=name, stop="paper", **options)
        assert result.status is Status.PUBLISHED_STOP
        assert result.value - solve_exactly(M, a, b) <= result.gap <= 0.2
        runs.append((result.n_iter, result.work.operations))
    steps = 72 if name == "apdrcd" else 1
    found = np.mean(runs, axis=0) * [steps, 1]
    np.testing.assert_allclose(found, [iterations, operations], rtol=0.15)


@pytest.mark.parametrize("stop", ["paper", "certificate"])
@pytest.mark.parametrize("eps", [0.2, 0.05])
@pytest.mark.parametrize("name", FAMILY)
def test_gap_is_within_eps_on_images(name, eps, stop):
    side = 4 if name == "apdgcd" else 6
    M, a, b = images(side, 0)
    result = epsilot.solve(M, a, b, eps=eps, method=name, stop=stop)
    assert result.gap <= eps
    assert result.lower_bound - 1e-12 <= solve_exactly(M, a, b) <= result.value + 1e-12


def test_duality_rule_stops_earlier_and_keeps_eps():
    M, a, b = images(6, 0)
    run = {"M": M, "a": a, "b": b, "eps": 0.05, "method": "apdagd", "stop": "paper"}
    early, late = epsilot.solve(**run, rule="duality"), epsilot.solve(**run)
    assert early.status is Status.PUBLISHED_STOP
    assert early.gap <= 0.05
    assert early.n_iter < late.n_iter / 2


@pytest.mark.parametrize("shape", [(9, 9), (6, 11)])
def test_plain_form_stops_at_its_a_priori_count(shape):
    n, m = shape
    M, a, b = random(n, m, seed=4)
    M = M - M.min()
    result = epsilot.solve(
        M, a, b, eps=0.05, method="hybrid_primal_dual", form="plain", stop="paper"
    )
    assert result.n_iter == np.ceil(M.max() * np.sqrt((n + m) * np.log(n * m)) / 0.05)
    assert result.status is Status.PUBLISHED_STOP
    assert result.gap <= 0.05
    assert result.reg == 0


@pytest.mark.parametrize("name", FAMILY)
def test_scale_of_the_cost_leaves_the_count(name):
    M, a, b = images(4, 1)
    counts = [
        epsilot.solve(t * M, a, b, eps=0.1 * t, method=name, stop="paper").n_iter for t in (1, 1e6)
    ]
    assert counts[1] == pytest.approx(counts[0], rel=0.02)


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("stop", ["paper", "certificate"])
def test_zero_masses_in_both_modes(name, stop):
    M, a, b = random(8, 9, seed=5)
    a[::3], b[1::3] = 0.0, 0.0
    result = epsilot.solve(M, a / a.sum(), b / b.sum(), eps=0.1, method=name, stop=stop)
    assert result.gap <= 0.1


@pytest.mark.parametrize("name", FAMILY)
def test_entropic_problem_and_warm_start(name):
    M, a, b = random(8, 9, seed=5)
    run = {"M": M, "a": a, "b": b, "reg": 0.1, "tol": 1e-4, "method": name}
    cold = epsilot.solve(**run)
    assert cold.converged
    assert cold.value == pytest.approx(
        epsilot.solve(**{**run, "method": "sinkhorn", "tol": 1e-9}).value, abs=1e-4
    )
    warm = epsilot.solve(**run, potentials_init=cold.potentials)
    assert warm.n_iter <= max(1, cold.n_iter // 2)


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("stop", ["paper", "certificate"])
def test_resumed_run_has_the_same_trace(name, stop, tmp_path):
    M, a, b = images(4, 2)
    run = {"M": M, "a": a, "b": b, "eps": 0.01, "method": name, "stop": stop, "on_limit": "ignore"}
    whole = epsilot.solve(**run, max_iter=60)
    half = epsilot.solve(**run, max_iter=23, checkpoint=str(tmp_path / "run.npz"))
    rest = epsilot.solve(**run, max_iter=60, resume=str(tmp_path / "run.npz"))
    assert half.n_iter == min(23, whole.n_iter)
    assert rest.n_iter == whole.n_iter
    assert rest.value == whole.value
    assert trace(rest)[-1] == trace(whole)[-1]


@pytest.mark.parametrize("name", ["apdagd", "apdamd", "hybrid_primal_dual"])
def test_lazy_costs(name, rng):
    _, a, b = points()
    cloud = PointCloud(rng.normal(size=(24, 3)), rng.normal(size=(20, 3)), "sqeuclidean")
    eps = 0.05 * cloud.bounds[1]
    lazy = epsilot.solve(cloud, a, b, eps=eps, method=name)
    assert lazy.gap <= eps
    assert lazy.options["average"] is False
    dense = epsilot.solve(cloud.block(0, 24), a, b, eps=eps, method=name, stop="paper")
    paper = epsilot.solve(cloud, a, b, eps=eps, method=name, stop="paper")
    assert paper.value == pytest.approx(dense.value, rel=1e-6)


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


# Never hang -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", ["paper", "certificate"])
def test_a_run_that_does_not_move_ends_as_stalled(stop, monkeypatch):
    monkeypatch.setattr(driver, "STALL_EPOCHS", 200)
    M, a, b = images(4, 0)
    result = epsilot.solve(
        M, a, b, eps=0.01, method="apdrcd", smoothness=1e12, stop=stop, on_limit="ignore"
    )
    assert result.status is Status.STALLED
    assert not result.converged
    assert 0.01 < result.gap < np.inf
    assert np.abs(result.plan.sum(axis=1) - a).sum() <= 1e-12


@pytest.mark.parametrize("stop", ["paper", "certificate"])
def test_greedy_run_has_a_limit_of_its_own(stop, monkeypatch):
    assert APDGCD.patience < make_solver("sinkhorn", {}).patience
    monkeypatch.setattr(APDGCD, "patience", 30)
    M, a, b = images(6, 0)
    with pytest.warns(epsilot.ConvergenceWarning, match="max_iter"):
        result = epsilot.solve(M, a, b, eps=1e-3, method="apdgcd", stop=stop)
    assert result.status is Status.MAX_ITER
    assert result.n_iter == 30
    assert result.gap < 0.2
    assert np.abs(result.plan.sum(axis=1) - a).sum() <= 1e-12


@pytest.mark.parametrize("name", ["apdrcd", "apdgcd"])
def test_a_diverging_run_returns_its_best(name):
    M, a, b = images(4, 0)
    result = epsilot.solve(M, a, b, eps=1e-3, method=name, smoothness=1e-6, on_limit="ignore")
    assert result.status is Status.NOT_FINITE
    assert result.gap <= 1
    assert np.abs(result.plan.sum(axis=1) - a).sum() <= 1e-12


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("hybrid_primal_dual", {"form": "fast"}),
        ("apdamd", {"rule": "none"}),
        ("apdgcd", {"smoothness": 0.0}),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(name, options):
    with pytest.raises(InvalidProblem, match=r"must be"):
        make_solver(name, options)


def test_epoch_of_the_greedy_method_is_about_one_pass_over_a_large_cost():
    assert steps_per_epoch(1000, 1000) == 1
    assert steps_per_epoch(36, 36) == 202
    problem = replace(small(), eta=0.1)
    solver = APDGCD()
    rng = np.random.default_rng(0)
    state, _ = solver.init(problem, rng)
    work = solver.step(problem, state, rng)
    assert work.operations == steps_per_epoch(5, 5) * (9 * 25 + 12 * 5)
