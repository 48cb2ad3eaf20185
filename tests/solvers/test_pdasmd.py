"""PDASMD: three implementations in lockstep, and what the paper claims of them."""

import threading

import numpy as np
import pytest

import epsilot
from epsilot.finite_sum import EntropicTransport, minimize
from epsilot.finite_sum.algorithm import draw
from epsilot.geometry import Dense
from epsilot.kernels import pdasmd as kernels
from epsilot.problems.problem import Entropic, make_problem
from epsilot.solvers import make_solver, stochastic_steps
from epsilot.solvers.pdasmd import PDASGD, PDASMD
from epsilot.solvers.stochastic_steps import run_inner_loop
from sample_problems import random
from tuning import tune

N_OUTER = 8


def small(n=5, m=5, eta=0.1, seed=0) -> Entropic:
    C, p, q = random(n, m, 1.0, seed)
    return Entropic(Dense(C), eta, p, q)


def softmax_rows(problem, lam):
    t = (lam - problem.geometry.block(0, problem.shape[0])) / problem.eta
    e = np.exp(t - t.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def listing(problem, norm, n_outer, seed, factor=1.0, c=9.0):
    """Algorithm 1, line by line, in the paper's weights and with all y kept."""
    n, m = problem.shape
    p, q = problem.p, problem.q
    rng = np.random.default_rng(seed)
    L = n * p * (factor if norm == "linf" else 1.0) / problem.eta
    L_bar = L.sum() / n
    probability = L / (n * L_bar)
    y = z = v_snap = np.zeros(m)
    tau2, n_inner, C_s, D_s = 1 / 2, n, 0.0, np.zeros((n, m))
    trace = []
    for s in range(n_outer):
        tau1 = 2 / (s + 4)
        alpha = 1 / (c * tau1 * L_bar)
        mu = p @ softmax_rows(problem, v_snap) - q
        kept = []
        selected, sample = draw(rng, np.cumsum(p), n_inner, 1)
        for j in range(n_inner):
            v = tau1 * z + tau2 * v_snap + (1 - tau1 - tau2) * y
            i = sample[j, 0]
            at_v = n * p[i] * (softmax_rows(problem, v)[i] - q)
            at_snap = n * p[i] * (softmax_rows(problem, v_snap)[i] - q)
            g = mu + (at_v - at_snap) / (n * probability[i])
            z = z - alpha * g
            if norm == "linf":
                y = v - np.abs(g).sum() / (c * L_bar) * np.where(g > 0, 1.0, -1.0)
            else:
                y = v - g / (c * L_bar)
            kept.append(y)
        v_snap = np.mean(kept, axis=0)
        C_s = C_s + 1 / tau1
        D_s = D_s + p[:, None] * softmax_rows(problem, kept[selected]) / tau1
        trace.append((v_snap, D_s / C_s))
    return trace


def listing_batch(problem, norm, n_outer, seed, B, c=9.0):
    """Algorithm 2, line by line, for L̄ = 1/η."""
    n, m = problem.shape
    p, q, L_bar = problem.p, problem.q, 1 / problem.eta
    rng = np.random.default_rng(seed)
    y = z = v_snap = np.zeros(m)
    tau2, n_inner, C_s, D_s = 1 / (2 * B), -(-n // B), 0.0, np.zeros((n, m))
    trace = []
    for s in range(n_outer):
        tau1 = 2 / (s + 4)
        alpha = 1 / (c * tau1 * L_bar)
        S = softmax_rows(problem, v_snap)
        mu = p @ S - q
        kept = []
        selected, sample = draw(rng, np.cumsum(p), n_inner, B)
        for j in range(n_inner):
            v = tau1 * z + tau2 * v_snap + (1 - tau1 - tau2) * y
            g = mu + np.mean([softmax_rows(problem, v)[i] - S[i] for i in sample[j]], axis=0)
            z = z - alpha * g
            step = g if norm == "l2" else np.abs(g).sum() * np.where(g > 0, 1.0, -1.0)
            y = v - step / (c * L_bar)
            kept.append(y)
        v_snap = np.mean(kept, axis=0)
        C_s = C_s + 1 / tau1
        D_s = D_s + p[:, None] * softmax_rows(problem, kept[selected]) / tau1
        trace.append((v_snap, D_s / C_s))
    return trace


def fused(problem, n_outer, seed, cls=PDASMD, **options):
    """The solver with its compiled epoch, as printed but for the options."""
    fixed = {"smoothness": "sharp", "step_constant": 9.0, "average": "sampled"}
    solver = cls(**{**fixed, "is_adaptive": False, **options})
    rng = np.random.default_rng(seed)
    state, _ = solver.init(problem, rng)
    trace = []
    for _ in range(n_outer):
        solver.step(problem, state, rng)
        trace.append((state.lam.copy(), state.plan_sum / state.weight_sum))
    return trace


def general(problem, n_outer, seed, factor=1.0, **options):
    trace = []
    minimize(
        EntropicTransport.of(problem, factor),
        n_outer=n_outer,
        seed=seed,
        **options,
        callback=lambda s, x, lam: trace.append((lam.copy(), x.copy())),
    )
    return trace


def assert_same(first, second, atol=1e-10):
    assert len(first) == len(second) == N_OUTER
    for (lam, X), (other_lam, other_X) in zip(first, second, strict=True):
        np.testing.assert_allclose(lam, other_lam, rtol=0, atol=atol)
        np.testing.assert_allclose(X, other_X, rtol=0, atol=atol)


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("shape", [(5, 5), (4, 7)])
def test_fused_general_and_transcription_are_in_lockstep(norm, batch_size, shape):
    problem = small(*shape)
    compiled = fused(problem, N_OUTER, 3, norm=norm, batch_size=batch_size)
    assert_same(compiled, general(problem, N_OUTER, 3, norm=norm, batch_size=batch_size))
    assert_same(compiled, listing_batch(problem, norm, N_OUTER, 3, batch_size))


@pytest.mark.parametrize(
    ("norm", "factor", "smoothness"),
    [
        ("linf", 5.0, "paper"),
        ("linf", 1.0, "sharp"),
        ("l2", 5.0, "paper"),
        ("l2", 1.0, "sharp"),
    ],
)
def test_batch_of_one_is_the_listing_without_batches(norm, factor, smoothness):
    problem = small()
    compiled = fused(problem, N_OUTER, 1, norm=norm, smoothness=smoothness)
    assert_same(compiled, listing(problem, norm, N_OUTER, 1, factor))
    assert_same(compiled, general(problem, N_OUTER, 1, factor, norm=norm))


@pytest.mark.parametrize("c", [3.0, 9.0])
def test_pdasgd_is_pdasmd_in_the_l2_norm(c):
    problem = small()
    gradient = fused(problem, N_OUTER, 2, cls=PDASGD, step_constant=c)
    assert_same(gradient, fused(problem, N_OUTER, 2, norm="l2", step_constant=c), atol=0)
    assert_same(gradient, listing(problem, "l2", N_OUTER, 2, c=c))


@pytest.mark.parametrize("average", ["none", "snapshot"])
def test_other_averages_leave_the_dual_alone(average):
    problem = small(6, 4)
    compiled = fused(problem, N_OUTER, 5)
    solver = PDASMD(smoothness="sharp", step_constant=9.0, average=average, is_adaptive=False)
    rng = np.random.default_rng(5)
    state, _ = solver.init(problem, rng)
    total, weights = np.zeros((6, 4)), 0.0
    for s, (lam, _) in enumerate(compiled):
        solver.step(problem, state, rng)
        np.testing.assert_allclose(state.lam, lam, rtol=0, atol=1e-12)
        total += (s + 4) / 2 * problem.p[:, None] * softmax_rows(problem, state.lam)
        weights += (s + 4) / 2
    if average == "snapshot":
        np.testing.assert_allclose(state.plan_sum / state.weight_sum, total / weights, atol=1e-13)
    columns = problem.p @ softmax_rows(problem, state.lam)
    np.testing.assert_allclose(state.mu, columns - problem.q, atol=1e-13)
    assert state.violation == pytest.approx(np.abs(columns - problem.q).sum(), abs=1e-12)


# -- the kernels -----------------------------------------------------------------------------


def snapshot(problem, lam, known_at=None, lse=None, dtype=np.float64):
    """Return the log-normalisers and the column sums at λ, with what is known elsewhere."""
    n, m = problem.shape
    lse, parts = np.full(n, np.inf) if lse is None else lse.copy(), np.empty((2, m))
    C = problem.geometry.block(0, n).astype(dtype)
    known_at = lam if known_at is None else known_at
    kernels.snapshot(C, lam, known_at, problem.p, 1 / problem.eta, lse, parts, 0, 2)
    return lse, parts.sum(axis=0)


def one_inner_step(problem, i, v_snap, z, y, batch=None, unit=None):
    """Return α g̃ of one inner step that samples row i, and the v it was taken at.

    With a unit, the step reads a float32 copy of C in that unit.
    """
    n, m = problem.shape
    C = problem.geometry.block(0, n)
    lse, columns = snapshot(problem, v_snap)
    rows = np.array([[i] if batch is None else batch])
    dtype, unit = (np.float64, 1.0) if unit is None else (np.float32, unit)
    before = (z - v_snap) / unit
    after = before.copy()
    run_inner_loop(
        (C / unit).astype(dtype),
        rows,
        rows,
        (v_snap / unit).astype(dtype),
        lse,
        (columns - problem.q).astype(dtype),
        unit / problem.eta,
        0.25,
        0.25,
        1 / unit,
        0.1 / unit,
        False,
        -1,
        after,
        (y - v_snap) / unit,
        np.zeros(m),
        np.empty(m),
    )
    return unit * (before - after), 0.25 * z + 0.5 * v_snap + 0.25 * y


def test_variance_reduced_gradient_is_unbiased(rng):
    problem = small(7, 6)
    v_snap, z, y = rng.normal(size=(3, 6)) / 5
    mean = np.zeros(6)
    for i in range(7):
        g, v = one_inner_step(problem, i, v_snap, z, y)
        mean += problem.p[i] * g
    np.testing.assert_allclose(mean, problem.p @ softmax_rows(problem, v) - problem.q, atol=1e-14)


@pytest.mark.parametrize("scale", [1.0, 100.0, 3000.0])
@pytest.mark.parametrize("batch", [None, [2, 0, 2]])
def test_gradient_survives_any_distance_from_the_snapshot(rng, scale, batch):
    problem = small(6, 5, eta=0.05)
    v_snap, z, y = scale * rng.normal(size=(3, 5))
    g, v = one_inner_step(problem, 4, v_snap, z, y, batch)
    rows = [4] if batch is None else batch
    S, S_snap = softmax_rows(problem, v), softmax_rows(problem, v_snap)
    expected = problem.p @ S_snap - problem.q + np.mean([S[i] - S_snap[i] for i in rows], axis=0)
    np.testing.assert_allclose(g, expected, atol=1e-11 * max(1.0, scale / 100))


@pytest.mark.parametrize("scale", [0.1, 3000.0])
def test_snapshot_moves_any_distance(rng, scale):
    problem = small(6, 5, eta=0.05)
    C, inv = problem.geometry.block(0, 6), 1 / problem.eta
    old, new, y = scale * rng.normal(size=(3, 5))
    (lse, _), (fresh, _) = snapshot(problem, old), snapshot(problem, new)
    moved, columns = snapshot(problem, new, old, lse)
    np.testing.assert_allclose(moved, fresh, rtol=1e-12)
    exact = problem.p @ softmax_rows(problem, new)
    np.testing.assert_allclose(columns, exact, atol=1e-12)
    parts, y_parts, plan = np.empty((2, 5)), np.empty((2, 5)), np.zeros((6, 5))
    kernels.move_and_average(C, new, y, old, problem.p, inv, 3.0, lse, parts, y_parts, plan, 0, 2)
    np.testing.assert_allclose(lse, fresh, rtol=1e-12)
    np.testing.assert_allclose(parts.sum(axis=0), exact, atol=1e-12)
    np.testing.assert_allclose(plan, 3 * problem.p[:, None] * softmax_rows(problem, y), atol=1e-12)
    np.testing.assert_allclose(3 * y_parts.sum(axis=0), plan.sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-4, 0.1, 3000.0])
def test_single_precision_snapshot_is_accurate_whatever_eta(rng, scale):
    C, p, q = random(70, 50)
    rounded = C.astype(np.float32).astype(np.float64)
    problem = Entropic(Dense(rounded), 1e-5, p, q)  # exponents of 10⁵: float32 has none of them
    old = rng.normal(size=50)
    new = old + scale * rng.normal(size=50)
    lse, _ = snapshot(problem, old, dtype=np.float32)
    lse, columns = snapshot(problem, new, old, lse, np.float32)
    exact, exact_columns = snapshot(problem, new)
    np.testing.assert_allclose(lse, exact, rtol=0, atol=1e-6 + 1e-15 * np.abs(exact).max())
    np.testing.assert_allclose(columns, exact_columns, rtol=2e-6, atol=1e-20)


@pytest.mark.parametrize("batch", [None, [2, 0, 2]])
@pytest.mark.parametrize("unit", [1.0, 1e9])
def test_single_precision_errors_vanish_with_the_gradient_and_the_distance(rng, batch, unit):
    problem = small(6, 5, eta=0.003)
    v_snap = rng.normal(size=5) / 10
    for i in range(6):
        for distance, accuracy in [(0.0, 1e-13), (1e-5, 1e-6), (1.0, 1e-3)]:
            z, y = v_snap + distance * rng.normal(size=(2, 5))
            exact, _ = one_inner_step(problem, i, v_snap, z, y, batch)
            single, _ = one_inner_step(problem, i, v_snap, z, y, batch, unit)
            np.testing.assert_allclose(single, exact, rtol=1e-7, atol=accuracy)


def test_helpers_change_nothing(rng):
    n, m, B, n_steps = 30, 40, 6, 25
    problem = small(n, m)
    C, inv_eta = problem.geometry.block(0, n), 1 / problem.eta
    lse, columns = snapshot(problem, np.zeros(m))
    mu, sample = columns - problem.q, rng.integers(0, n, (n_steps, B))
    ends = []
    for n_helpers in (0, 1, 2):
        z, y, y_sum, y_selected = np.zeros((4, m))
        work, own, counters = np.empty((3, m)), np.empty((3, m)), np.zeros(3, dtype=np.int64)
        shared = (
            C,
            sample,
            sample,
            np.zeros(m),
            lse,
            mu,
            inv_eta,
            0.3,
            0.7 - 0.5 / B,
            0.02,
            0.01,
            True,
            7,
            z,
            y,
            y_sum,
            y_selected,
            work,
            np.empty((4, m)),
            counters,
        )
        helpers = [
            threading.Thread(target=kernels.batch_inner_loop, args=(*shared, own[k], False))
            for k in range(n_helpers)
        ]
        for helper in helpers:
            helper.start()
        kernels.batch_inner_loop(*shared, own[2], True)
        for helper in helpers:
            helper.join(timeout=60)
            assert not helper.is_alive()
        assert counters.tolist() == [4 * n_steps] * 3
        ends.append(np.concatenate([z, y, y_sum, y_selected]))
    np.testing.assert_array_equal(ends[1], ends[0])
    np.testing.assert_array_equal(ends[2], ends[0])


# -- the solver ------------------------------------------------------------------------------


@pytest.mark.parametrize("average", ["none", "sampled"])
def test_safeguard_undoes_a_rise(average):
    problem = small(20, 20, eta=0.01)
    solver = make_solver("pdasmd", {"average": average, "is_adaptive": True})
    rng = np.random.default_rng(0)
    state, _ = solver.init(problem, rng)
    solver.step(problem, state, rng)
    best, lam = state.best_value, state.best_lam.copy()
    state.z += rng.normal(size=20)  # a bad turn
    solver.step(problem, state, rng)
    assert (state.best_value, state.value, state.n_outer) == (best, best, 0)
    for x in (state.lam, state.y, state.z):
        np.testing.assert_array_equal(x, lam)
    columns = problem.p @ softmax_rows(problem, lam)
    assert state.violation == pytest.approx(np.abs(columns - problem.q).sum(), abs=1e-12)
    values = []
    for _ in range(20):
        solver.step(problem, state, rng)
        values.append(state.value)
    assert (np.diff(values) <= 1e-13).all()
    assert values[-1] < best


@pytest.mark.parametrize("options", [{}, {"batch_size": 4, "average": "sampled"}])
def test_average_is_certified_beside_the_current_plan(options):
    M, a, b = random(20, 25, seed=4)
    problem = make_problem(M, a, b)
    solver = make_solver("pdasmd", options).resolved("certificate", problem)
    rng = np.random.default_rng(0)
    target = Entropic(problem.geometry, 0.05, problem.p, problem.q)
    state, _ = solver.init(target, rng)
    solver.step(target, state, rng)
    plans = [core.block(0, 20) for core, _ in solver.candidates(target, state)]
    assert len(plans) == (2 if options else 1)
    for X in plans:
        np.testing.assert_allclose(X.sum(axis=1), problem.p, rtol=1e-6)  # float32 normalisers
    violation = np.abs(plans[-1].sum(axis=0) - problem.q).sum()
    np.testing.assert_allclose(violation, state.violation, rtol=1e-6)


def test_gathered_rows_are_the_stored_ones(monkeypatch):
    rng = np.random.default_rng(1)
    cloud = epsilot.PointCloud(rng.normal(size=(7, 2)), rng.normal(size=(5, 2)), "sqeuclidean")
    p, q = rng.dirichlet(np.ones(7)), rng.dirichlet(np.ones(5))
    stored = Dense(np.array(cloud.block(0, 7)))
    tune(monkeypatch, stochastic_steps, max_gathered_entries=30)  # three steps of two rows
    lazy, dense = (fused(Entropic(C, 0.5, p, q), N_OUTER, 1, batch_size=2) for C in (cloud, stored))
    assert_same(lazy, dense)
