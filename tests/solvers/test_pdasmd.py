"""PDASMD and PDASGD: the listings, mirror maps, kernels, whole runs."""

import copy
import dataclasses
import subprocess
import sys
import threading

import numpy as np
import pytest
from by_hand import small as example
from by_hand import start, synthetic

import epsilot
from epsilot.files.images import grid_cost, synthetic_pair
from epsilot.finite_sum import EUCLIDEAN, EntropicTransport, Mirror, euclidean, minimize, p_norm
from epsilot.finite_sum.algorithm import draw, exponent
from epsilot.geometry import Dense
from epsilot.kernels import pdasmd as kernels
from epsilot.problems.problem import Entropic, make_problem
from epsilot.problems.work import Status
from epsilot.solvers import make_solver, stochastic_steps
from epsilot.solvers.pdasmd import PDASGD, PDASMD
from epsilot.solvers.stochastic_steps import run_inner_loop
from epsilot.theory import pdasmd_loop_operations
from epsilot_lab.instances import mnist_pair
from sample_problems import random, solve_exactly
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
    L = n * p * factor / problem.eta
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


def transport(problem, norm, factor=1.0):
    """The semi-dual with L̄ = factor / η, where the sharp constant is 2^(-2/p) / η."""
    return EntropicTransport.of(problem, factor * 2 ** (2 / exponent(norm)))


def general(problem, n_outer, seed, factor=1.0, **options):
    trace = []
    minimize(
        transport(problem, options.get("norm", "l2"), factor),
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
        ("l2", 1.0, "paper"),
        ("l2", 0.5, "least"),
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
def test_single_precision_snapshot_is_accurate_for_any_eta(rng, scale):
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
            helper.join(timeout=600)
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


#: w = Σ cosh x, which is 1-strongly convex in l2 and l∞.
COSH = Mirror(np.sinh, np.arcsinh, name="cosh")
CASES = [
    ("linf", EUCLIDEAN),
    ("l2", COSH),
    ("l1", euclidean(5, "l1")),
    ("l1", p_norm(5, "l1")),
    ("l1.5", p_norm(5, "l1.5")),
    ("l4", "euclidean"),
]


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize(("norm", "mirror"), CASES)
def test_the_solver_follows_the_general_algorithm(norm, mirror, batch_size):
    problem = example()
    options = {"norm": norm, "mirror": mirror, "batch_size": batch_size}
    options["smoothness"] = "paper" if norm == "l2" else "sharp"  # 1 / η in both
    solver, state, rng = start(make_solver("pdasmd", options), problem)
    for _ in range(6):
        solver.step(problem, state, rng)
    general = minimize(
        transport(problem, norm),
        norm=norm,
        mirror=None if isinstance(mirror, str) else mirror,
        batch_size=batch_size,
        n_outer=6,
    )
    np.testing.assert_allclose(state.lam, general.lam, atol=1e-13)
    np.testing.assert_allclose(state.plan_sum / state.weight_sum, general.x, atol=1e-13)


def test_a_map_that_is_the_euclidean_one_takes_the_compiled_steps():
    M, a, b = synthetic(3, 0)
    own = Mirror(lambda x: x, lambda x: x, name="mine")
    arguments = {"eps": 0.5, "method": "pdasmd", "stop": "paper", "seed": 2}
    compiled, ours = (epsilot.solve(M, a, b, **arguments, mirror=m) for m in ("euclidean", own))
    assert ours.n_iter == compiled.n_iter
    np.testing.assert_allclose(ours.plan, compiled.plan, atol=1e-13)
    assert str(ours.options["mirror"]) == "Mirror(name='mine')"


@pytest.mark.parametrize("stop", ["paper", "certificate"])
@pytest.mark.parametrize(("norm", "mirror"), [("l1.5", p_norm(9, "l1.5")), ("linf", COSH)])
def test_other_maps_reach_eps(norm, mirror, stop):
    M, a, b = synthetic(3, 0)
    result = epsilot.solve(
        M, a, b, eps=0.5, method="pdasmd", norm=norm, mirror=mirror, stop=stop, on_limit="raise"
    )
    assert result.gap <= 0.5
    assert result.status in (Status.PUBLISHED_STOP, Status.CERTIFIED)


def test_a_run_with_a_map_can_be_resumed_and_saved(tmp_path):
    M, a, b = synthetic(3, 0)
    run = {"eps": 0.3, "method": "pdasmd", "stop": "paper", "mirror": COSH, "on_limit": "ignore"}
    whole = epsilot.solve(M, a, b, **run)
    path = tmp_path / "run.npz"
    epsilot.solve(M, a, b, **run, max_iter=whole.n_iter // 2, checkpoint=path)
    resumed = epsilot.solve(M, a, b, **run, resume=path)
    np.testing.assert_array_equal(resumed.plan, whole.plan)
    other = {**run, "mirror": Mirror(np.sinh, np.arcsinh, name="another")}
    with pytest.raises(epsilot.InvalidProblem, match="options"):
        epsilot.solve(M, a, b, **other, resume=path)
    whole.save(tmp_path / "result.npz")


def test_a_map_must_be_one():
    with pytest.raises(epsilot.InvalidProblem, match=r"mirror is 3; .* a string or a Mirror"):
        epsilot.solve(np.eye(2), eps=0.1, method="pdasmd", mirror=3)


IMAGES = {"synthetic": synthetic_pair, "mnist": mnist_pair}


@pytest.mark.parametrize("method", ["pdasmd", "pdasgd"])
@pytest.mark.parametrize("images", IMAGES)
@pytest.mark.parametrize(
    ("side", "seed", "stop", "eps"),
    [
        (6, 0, "paper", 0.2),
        (6, 1, "paper", 0.05),
        (6, 2, "paper", 0.02),
        (9, 0, "paper", 0.2),
        (6, 0, "certificate", 0.2),
        (6, 1, "certificate", 0.05),
        (10, 2, "certificate", 0.02),
        (20, 0, "certificate", 0.2),
        (20, 1, "certificate", 0.05),
        (20, 2, "certificate", 0.02),
    ],
)
def test_epsilon_solution(method, images, side, seed, stop, eps):
    A, B = IMAGES[images](side, seed)
    M, a, b = grid_cost((side, side)), A.ravel(), B.ravel()
    result = epsilot.solve(M, a, b, eps=eps, method=method, stop=stop, seed=seed)
    assert result.converged
    assert result.gap <= eps
    assert -1e-12 <= result.value - solve_exactly(M, a, b) <= eps


def test_published_stop_is_the_violation_of_the_average():
    M, a, b = random(12, 12, seed=3)
    result = epsilot.solve(M, a, b, eps=0.1, method="pdasmd", stop="paper")
    cost_max = float(np.ptp(M))
    assert result.status is epsilot.Status.PUBLISHED_STOP
    # ε'/2 against p', q', and at most ε'/4 more against p, q
    assert result.marginal_error <= 0.1 / (8 * cost_max) * 0.75
    assert result.reg == pytest.approx(0.1 / (4 * np.log(12)))
    before = epsilot.solve(
        M,
        a,
        b,
        eps=0.1,
        method="pdasmd",
        stop="paper",
        max_iter=result.n_iter - 1,
        on_limit="ignore",
    )
    assert before.status is not epsilot.Status.PUBLISHED_STOP


def test_sharp_smoothness_saves_the_square_root_of_five():
    A, B = synthetic_pair(6, 0)
    problem = grid_cost((6, 6)), A.ravel(), B.ravel()
    paper, sharp = (
        epsilot.solve(*problem, eps=0.2, method="pdasmd", stop="paper", smoothness=s).n_iter
        for s in ("paper", "sharp")
    )
    assert 2.1 <= paper / sharp <= 2.4


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": "l2"},
        {"batch_size": 3},
        {"inner_loops": 5},
        {"average": "none"},
        {"average": "snapshot"},
    ],
)
def test_work_is_the_closed_formula(options):
    M, a, b = random(8, 11, seed=1)
    result = epsilot.solve(
        M, a, b, eps=0.2, method="pdasmd", stop="paper", max_iter=4, on_limit="ignore", **options
    )
    assert result.n_iter == 4
    expected = 4 * pdasmd_loop_operations(8, 11, **options)
    assert result.work.operations == expected + 9 * 8 * 11 + 8  # the first snapshot


def test_certificate_saves_fifteen_times_the_operations():
    A, B = synthetic_pair(12, 0)
    problem = grid_cost((12, 12)), A.ravel(), B.ravel()
    paper, certified = (
        epsilot.solve(*problem, eps=0.05, method="pdasmd", stop=stop).work.operations
        for stop in ("paper", "certificate")
    )
    assert paper >= 15 * certified


@pytest.mark.parametrize("method", ["pdasmd", "pdasgd"])
@pytest.mark.parametrize("stop", ["paper", "certificate"])
@pytest.mark.parametrize("seed", [0, 1])
def test_skewed_marginals(method, stop, seed):
    M, a, b = random(40, 30, concentration=0.1, seed=seed)
    result = epsilot.solve(M, a, b, eps=0.1, method=method, stop=stop, max_iter=2000)
    assert result.converged
    assert abs(result.value - solve_exactly(M, a, b)) <= 0.1


def test_results_do_not_depend_on_threads():
    M, a, b = random(400, 400, seed=6)
    runs = [
        epsilot.solve(M, a, b, eps=0.05, method="pdasmd", batch_size=64, n_threads=k)
        for k in (1, 2, 3)
    ]
    for run in runs[1:]:
        assert run.history[-1].upper == runs[0].history[-1].upper
        np.testing.assert_array_equal(run.potentials[0], runs[0].potentials[0])


SIGNATURES = """
import numpy as np
import epsilot
from epsilot.kernels import pdasmd
M = np.random.default_rng(0).random((9, 7))
for stop in ("paper", "certificate"):
    for B in (1, 2):
        options = {"method": "pdasmd", "max_iter": 4, "on_limit": "ignore", "batch_size": B}
        epsilot.solve(M, eps=1e-3, stop=stop, **options)
loops = pdasmd.inner_loop, pdasmd.batch_inner_loop
for kernel in (pdasmd.snapshot, pdasmd.move_and_average, *loops):
    print(*(signature[0].dtype for signature in kernel.signatures))
"""


def test_kernels_are_compiled_once_for_each_precision():
    """Rounding would else depend on which of several compatible versions is there first."""
    run = subprocess.run(
        [sys.executable, "-c", SIGNATURES], capture_output=True, text=True, check=True
    )
    precisions = [sorted(line.split()) for line in run.stdout.splitlines()]
    both = ["float32", "float64"]
    assert precisions == [both, ["float64"], both, both]


def test_warm_start_needs_less_work():
    A, B = synthetic_pair(10, 3)
    problem = grid_cost((10, 10)), A.ravel(), B.ravel()
    options = {"reg": 0.02, "tol": 1e-4, "method": "pdasmd"}
    cold = epsilot.solve(*problem, **options)
    warm = epsilot.solve(*problem, **options, potentials_init=cold.potentials)
    assert warm.converged
    assert warm.n_iter < cold.n_iter / 2


@pytest.mark.parametrize("precision", ["single", "double"])
def test_precision_does_not_limit_the_accuracy(precision):
    M, a, b = random(25, 20, seed=5)
    result = epsilot.solve(
        1e6 * M, a, b, reg=3e4, tol=0.1, method="pdasmd", precision=precision, max_iter=3000
    )
    assert result.converged


def test_lazy_rows_give_the_same_run_as_stored_ones():
    rng = np.random.default_rng(0)
    cloud = epsilot.PointCloud(rng.normal(size=(30, 2)), rng.normal(size=(40, 2)), "sqeuclidean")
    stored = np.array(cloud.block(0, 30))
    options = {"eps": 0.05 * stored.max(), "method": "pdasmd", "batch_size": 3}
    lazy = epsilot.solve(cloud, **options)
    dense = epsilot.solve(stored, **options, precision="double")
    assert lazy.converged
    assert lazy.n_iter == dense.n_iter
    np.testing.assert_allclose(lazy.potentials[1], dense.potentials[1], atol=1e-9)


# -- the hybrid with Sinkhorn ----------------------------------------------------------------


def epochs(n_epochs, **options):
    """Run some outer loops on a random problem; return it, and a copy of the state after each."""
    C, p, q = random(30, 25, seed=2)
    problem = Entropic(Dense(C), 0.02, p, q)
    solver = make_solver("pdasmd", options).resolved("certificate", make_problem(C, p, q))
    rng = np.random.default_rng(0)
    state, _ = solver.init(problem, rng)
    states = [copy.deepcopy(state)]
    for _ in range(n_epochs):
        solver.step(problem, state, rng)
        states.append(copy.deepcopy(state))
    return problem, states


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"precision": "double"},
        {"batch_size": 3},
        {"norm": "l2"},
        {"average": "sampled", "is_adaptive": False},
    ],
)
def test_hybrid_snapshot_is_an_exact_column_update(options):
    problem, plain = epochs(1, **options)
    _, hybrid = epochs(1, hybrid="sinkhorn", **options)
    before, after = plain[-1], hybrid[-1]
    columns = problem.q + before.mu
    move = problem.eta * np.log(problem.q / columns)
    for name in ("lam", "y", "z"):
        moved = getattr(before, name) + move
        np.testing.assert_allclose(getattr(after, name), moved, rtol=0, atol=1e-12)
    least = problem.eta * (problem.q * np.log(problem.q / columns)).sum()
    assert least > 0
    assert after.value <= before.value - least + 1e-8 * problem.eta
    t = (after.lam - problem.geometry.block(0, 30)) / problem.eta
    lse = np.logaddexp.reduce(t, axis=1)
    np.testing.assert_allclose(after.lse, lse, atol=1e-6)
    np.testing.assert_allclose(
        after.mu, problem.p @ np.exp(t - lse[:, None]) - problem.q, atol=1e-7
    )


@pytest.mark.parametrize("precision", ["single", "double"])
def test_hybrid_never_lets_the_dual_rise(precision):
    problem, states = epochs(40, hybrid="sinkhorn", precision=precision)
    values = np.array([state.value for state in states])
    slack = 2e-8 * problem.eta if precision == "single" else 1e-13
    assert (np.diff(values) <= slack).all()
    assert values[-1] < values[0]
    assert states[-1].violation < 1e-3


def test_hybrid_column_update_is_undone_where_it_would_not_help(monkeypatch):
    problem, states = epochs(2, hybrid="sinkhorn", precision="double")
    state, solver = states[-1], make_solver("pdasmd", {"hybrid": "sinkhorn", "average": "none"})
    before = copy.deepcopy(state)
    monkeypatch.setattr(PDASMD, "_slack", lambda *_: -np.inf)
    solver._update_columns(problem, state)
    for field in dataclasses.fields(state):
        np.testing.assert_array_equal(getattr(state, field.name), getattr(before, field.name))


def test_hybrid_counts_its_pass():
    M, a, b = random(8, 11, seed=1)
    options = {"eps": 0.2, "method": "pdasmd", "stop": "paper", "on_limit": "ignore"}
    plain, hybrid = (
        epsilot.solve(M, a, b, **options, max_iter=4, hybrid=kind).work.operations
        for kind in (None, "sinkhorn")
    )
    assert hybrid - plain == 4 * (9 * 8 * 11 + 8 + 7 * 11)


@pytest.mark.parametrize("method", ["pdasmd", "pdasgd"])
@pytest.mark.parametrize("seed", [0, 1])
def test_hybrid_is_certified_and_needs_fewer_epochs(method, seed):
    M, a, b = random(100, 80, seed=seed)
    eps = 0.005 * np.ptp(M)
    plain, hybrid = (
        epsilot.solve(M, a, b, eps=eps, method=method, hybrid=kind, seed=seed)
        for kind in (None, "sinkhorn")
    )
    assert hybrid.converged
    assert abs(hybrid.value - solve_exactly(M, a, b)) <= eps
    assert hybrid.n_iter < plain.n_iter


@pytest.mark.parametrize("stop", ["paper", "certificate"])
def test_hybrid_takes_skewed_marginals(stop):
    M, a, b = random(40, 30, concentration=0.1, seed=1)
    options = {"method": "pdasmd", "stop": stop, "hybrid": "sinkhorn", "max_iter": 2000}
    result = epsilot.solve(M, a, b, eps=0.1, **options)
    assert result.converged
    assert abs(result.value - solve_exactly(M, a, b)) <= 0.1
