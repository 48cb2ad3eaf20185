"""Greenkhorn, Stochastic and Accelerated Sinkhorn, AAM: what their theory says of every step."""

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp, rel_entr

import epsilot
from epsilot.geometry import Dense
from epsilot.images import grid_cost, synthetic_pair
from epsilot.kernels import coordinate as kernels
from epsilot.plan import Explicit
from epsilot.problem import Entropic, make_problem
from epsilot.rounding import round_onto
from epsilot.solvers import make_solver
from epsilot.solvers.aam import AAM
from epsilot.solvers.base import published_parameters
from problems import exact_value, random, row, solve_exactly, trace

FAMILY = ["sinkhorn", "greenkhorn", "stochastic_sinkhorn", "accelerated_sinkhorn", "aam"]
VARIANTS = {
    "sinkhorn": ("sinkhorn", {}),
    "greenkhorn": ("greenkhorn", {}),
    "stochastic": ("stochastic_sinkhorn", {}),
    "stochastic, power 2": ("stochastic_sinkhorn", {"power": 2.0}),
    "stochastic, uniform": ("stochastic_sinkhorn", {"power": 0.0}),
    "accelerated, published": ("accelerated_sinkhorn", {"variant": "published"}),
    "accelerated, corrected": ("accelerated_sinkhorn", {}),
    "accelerated, n/4": ("accelerated_sinkhorn", {"momentum_step": 9.0}),
    "aam dual line": ("aam", {"variant": "dual", "search": "line_search"}),
    "aam dual back": ("aam", {"variant": "dual", "search": "backtracking"}),
    "aam primal line": ("aam", {"variant": "primal_dual", "search": "line_search"}),
    "aam primal back": ("aam", {"variant": "primal_dual", "search": "backtracking"}),
}


def image_problem(side=6, seed=0):
    A, B = synthetic_pair(side, seed)
    return make_problem(grid_cost((side, side)), A.ravel(), B.ravel())


def published(side=6, seed=0, epsilon=0.05) -> Entropic:
    return published_parameters(image_problem(side, seed), epsilon)[0]


def small(n=7, m=5, eta=0.1, seed=0, shift=0.0) -> Entropic:
    C, p, q = random(n, m, 1.0, seed)
    return Entropic(Dense(C + shift), eta, p, q)


def start(solver, problem, seed=0):
    solver = solver.resolved("paper", problem)
    rng = np.random.default_rng(seed)
    state, _ = solver.init(problem, rng)
    return solver, state, rng


def log_plan(problem, z):
    n = problem.shape[0]
    return (z[:n, None] + z[n:] - problem.geometry.block(0, n)) / problem.eta


def joint(problem):
    return np.concatenate([problem.p, problem.q])


def exp_dual(problem, z):
    """Return ψ."""
    return np.exp(log_plan(problem, z)).sum() - z @ joint(problem) / problem.eta


def lse_dual(problem, z):
    """Return φ."""
    return logsumexp(log_plan(problem, z)) - z @ joint(problem) / problem.eta


def gradient(problem, z):
    X = np.exp(log_plan(problem, z) - logsumexp(log_plan(problem, z)))
    return np.concatenate([X.sum(axis=1), X.sum(axis=0)]) - joint(problem)


def rho(a, b):
    return b - a + rel_entr(a, b)


# -- rounding ------------------------------------------------------------------------------


def test_rounding_is_feasible_and_moves_at_most_the_violation(rng):
    for _ in range(200):
        n, m = rng.integers(1, 9, 2)
        X = rng.random((n, m)) ** 4
        X[rng.random(n) < 0.2] = 0
        X = X / X.sum() if X.any() else X
        p, q = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
        rounded, _, error = round_onto(Explicit(X), p, q)
        plan = rounded.toarray()
        assert plan.min() >= 0
        np.testing.assert_allclose(plan.sum(axis=1), p, atol=1e-12)
        np.testing.assert_allclose(plan.sum(axis=0), q, atol=1e-12)
        if X.any():
            assert np.abs(plan - X).sum() <= error * (1 + 1e-9) + 1e-13
        again = round_onto(Explicit(plan), p, q).plan.toarray()
        np.testing.assert_allclose(again, plan, atol=1e-14)


# -- every update lowers the dual by the predicted amount ------------------------------------


@pytest.mark.parametrize("shape", [(7, 5), (5, 7), (6, 6)])
def test_coordinate_update_lowers_the_dual_by_rho(shape, rng):
    problem = small(*shape)
    n, m = shape
    C, masses = problem.geometry.block(0, n), joint(problem)
    _, state, _ = start(make_solver("greenkhorn", {}), problem)
    weights = np.empty(n + m)
    for chosen in rng.integers(0, n + m, 60):
        X = np.exp(log_plan(problem, state.z))
        sums = np.concatenate([X.sum(axis=1), X.sum(axis=0)])
        fall = rho(masses[chosen], sums[chosen])
        before = exp_dual(problem, state.z)
        kernels.update(
            C, C.T.copy(), 1 / problem.eta, masses, 1 / masses, np.log(masses), state.z,
            state.sums, state.h, state.errors, state.tops, weights, chosen,
        )  # fmt: skip
        if fall > 1e-5:
            assert before - exp_dual(problem, state.z) == pytest.approx(fall, rel=1e-9)
    X = np.exp(log_plan(problem, state.z))
    fresh = np.concatenate([X.sum(axis=1), X.sum(axis=0)])
    np.testing.assert_allclose(state.sums, fresh, atol=1e-14)
    np.testing.assert_allclose(state.h, rho(masses, fresh), rtol=1e-6, atol=1e-15)
    np.testing.assert_allclose(state.errors.sum(), np.abs(fresh - masses).sum(), rtol=1e-9)


def test_sinkhorn_block_lowers_the_dual_by_rho():
    problem = small()
    solver, state, rng = start(make_solver("sinkhorn", {}), problem)
    solver.step(problem, state, rng)
    for k in range(6):
        z = np.concatenate([state.row, state.lam])
        X = np.exp(log_plan(problem, z))
        fall = rho(problem.q, X.sum(axis=0)).sum() + rho(problem.p, X.sum(axis=1)).sum()
        before = exp_dual(problem, z)
        solver.step(problem, state, rng)
        after = exp_dual(problem, np.concatenate([state.row, state.lam]))
        assert before - after == pytest.approx(fall, rel=1e-9), k


# -- coordinate methods ----------------------------------------------------------------------


@pytest.mark.parametrize("method", ["greenkhorn", "stochastic_sinkhorn"])
def test_running_sums_stay_fresh(method):
    problem = published(epsilon=0.02)
    solver, state, rng = start(make_solver(method, {}), problem)
    n_updates = 0
    while n_updates < 100_000:
        solver.step(problem, state, rng)
        n_updates += sum(problem.shape)
        X = np.exp(log_plan(problem, state.z))
        fresh = np.concatenate([X.sum(axis=1), X.sum(axis=0)])
        assert np.isfinite(state.z).all()
        assert np.abs(state.sums - fresh).max() <= 1e-12
        assert state.violation == pytest.approx(np.abs(fresh - joint(problem)).sum(), abs=1e-11)


@pytest.mark.parametrize("power", [0.0, 1.0, 2.5])
def test_sampling_follows_the_violations(power, rng):
    h = rng.random(150) * (rng.random(150) < 0.7)
    tops = np.array([h[:70].max(), h[70:].max()])
    uniforms = (np.arange(20_000) + 0.5) / 20_000
    chosen = [kernels.choose(h, 70, tops, power, u, np.empty_like(h)) for u in uniforms]
    expected = np.where(h > 0, h, 0.0 if power else 1.0) ** power
    counts = np.bincount(chosen, minlength=h.size) / uniforms.size
    np.testing.assert_allclose(counts, expected / expected.sum(), atol=1.01 / uniforms.size)


def test_large_power_picks_the_index_of_greenkhorn(rng):
    for _ in range(300):
        h = rng.random(40) * 1e-4
        tops, scaled = np.array([h[:15].max(), h[15:].max()]), np.empty_like(h)
        h[3], tops[0] = 1.1 * h.max(), 1.1 * h.max()  # clear of ties
        chosen = kernels.choose(h, 15, tops, 200.0, rng.random(), scaled)
        assert chosen == kernels.choose(h, 15, tops, np.inf, 0.0, scaled) == 3


def test_infinite_violation_is_chosen_and_repaired():
    problem = published(epsilon=0.02)
    for method in ("greenkhorn", "stochastic_sinkhorn"):
        solver, state, rng = start(make_solver(method, {"start": "rows"}), problem)
        n = problem.shape[0]
        state.sums[n + 4] = -1e-17  # what cancellation leaves of a collapsed column
        masses = problem.q.copy()
        kernels.refresh(masses, 1 / masses, state.sums[n:], 0.0, masses, state.h[n:])
        state.tops[1] = state.h[n:].max()
        assert state.h[n + 4] == np.inf
        assert kernels.choose(state.h, n, state.tops, 1.0, 0.3, np.empty_like(state.h)) == n + 4
        for _ in range(4):
            solver.step(problem, state, rng)
        assert np.isfinite(state.h).all()


@pytest.mark.parametrize("method", ["greenkhorn", "stochastic_sinkhorn"])
def test_coordinate_methods_do_not_need_a_kernel_above_zero(method):
    near, far = small(eta=0.01, n=12, m=9), small(eta=0.01, n=12, m=9, shift=13.0)
    plans = []
    for problem in (near, far):  # min C / η is 1300 for the second
        solver, state, rng = start(make_solver(method, {"start": "rows"}), problem)
        for _ in range(40):
            solver.step(problem, state, rng)
        plans.append(np.exp(log_plan(problem, state.z)))
    np.testing.assert_allclose(plans[0], plans[1], rtol=1e-8, atol=1e-13)
    solver, state, rng = start(make_solver(method, {"start": "zero"}), far)
    for _ in range(400):  # every sum is zero at first: all coordinates must be repaired
        solver.step(far, state, rng)
    assert np.isfinite(state.z).all()
    assert state.violation < 0.1


# -- accelerated Sinkhorn --------------------------------------------------------------------


def decreases(variant, n_steps=60, **options):
    """Return φ(z) - φ(ž⁺) - E²/2 for each step after the first."""
    problem = published(epsilon=0.02)
    solver, state, rng = start(
        make_solver("accelerated_sinkhorn", {"variant": variant, **options}), problem
    )
    solver.step(problem, state, rng)
    out = []
    for _ in range(n_steps):
        solver.step(problem, state, rng)
        fall = lse_dual(problem, state.z) - lse_dual(problem, state.main)
        out.append(fall - 0.5 * state.violation**2)
        own = np.abs(gradient(problem, state.z)).sum()
        assert state.violation == pytest.approx(own, abs=1e-10)
        assert state.phi == pytest.approx(problem.eta * lse_dual(problem, state.main), abs=1e-12)
    return np.array(out)


def test_accelerated_step_credits_the_violated_block():
    assert decreases("corrected").min() >= -1e-12
    assert decreases("corrected", momentum_step=9.0).min() >= -1e-12
    assert decreases("published").min() < -1e-6  # the printed update of the same block fails


# -- AAM -------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["line_search", "backtracking"])
def test_aam_satisfies_what_its_proof_needs(search):
    problem = published(epsilon=0.05)
    solver, state, rng = start(make_solver("aam", {"search": search}), problem)
    C, eta = problem.geometry.block(0, problem.shape[0]), problem.eta
    independent = np.outer(problem.p, problem.q)
    for k in range(1, 121):
        x, w, phi, A = state.x, state.w, state.phi, state.weight_sum
        solver.step(problem, state, rng)
        a, y = state.weight_sum - A, state.z
        g, phi_y = gradient(problem, y), lse_dual(problem, y)
        norm = g @ g
        # w moved along the gradient, in units of η
        np.testing.assert_allclose(state.w, w - eta * a * g, atol=1e-9)
        predicted = phi_y - a**2 * norm / (2 * (A + a))
        if search == "line_search":
            assert phi_y <= phi + 1e-12  # S1
            assert g @ (w - y) / eta >= -1e-10  # S2
            assert state.phi == pytest.approx(predicted, abs=1e-11)
        else:
            assert state.phi <= predicted + 1e-11
            assert state.smoothness * a**2 == pytest.approx(A + a, rel=1e-9)
        assert state.phi == pytest.approx(lse_dual(problem, state.x), abs=1e-11)
        assert state.weight_sum >= k**2 / 16
        assert state.average.sum() == pytest.approx(1, abs=1e-12)
        assert -eta * state.phi <= (C * independent).sum() + eta * rel_entr(independent, 1).sum()
        assert x is not state.x


def test_aam_average_is_that_of_the_plans():
    problem = published(epsilon=0.05)
    solver, state, rng = start(make_solver("aam", {}), problem)
    average, total = np.zeros(problem.shape), 0.0
    for _ in range(30):
        before = state.weight_sum
        solver.step(problem, state, rng)
        a = state.weight_sum - before
        average += a * np.exp(log_plan(problem, state.z))
        total += a
    np.testing.assert_allclose(state.average, average / total, rtol=1e-9, atol=1e-15)


class Unaccelerated(AAM):
    """β = 0 always: alternating minimisation of the more violated block."""

    def _search(self, problem, state):
        return 0.0, self._oracle(problem, state.x), 1


def test_aam_without_momentum_is_sinkhorn():
    problem = published(epsilon=0.05)
    solver, state, rng = start(Unaccelerated(search="line_search", variant="dual"), problem)
    n, z = problem.shape[0], np.zeros(sum(problem.shape))
    g = gradient(problem, z)
    is_row = np.linalg.norm(g[:n]) >= np.linalg.norm(g[n:])
    for k in range(60):
        solver.step(problem, state, rng)
        log_X = log_plan(problem, z)
        if is_row == (k % 2 == 0):
            z[:n] += problem.eta * (problem.log_p - logsumexp(log_X, axis=1))
        else:
            z[n:] += problem.eta * (problem.log_q - logsumexp(log_X, axis=0))
    np.testing.assert_allclose(
        log_plan(problem, state.x), log_plan(problem, z), rtol=1e-13, atol=1e-11
    )


def test_aam_stops_at_a_solved_dual():
    C, p, q = random(9, 9, 5.0)
    f, g = C[:, :1], C[:1]
    result = epsilot.solve(f + g, p, q, eps=1e-3, method="aam", stop="paper", on_limit="raise")
    assert result.gap <= 1e-3


# -- both stops on every variant ---------------------------------------------------------------


def half_zero():
    M, a, b = grid_cost((6, 6)), *(x.ravel().copy() for x in synthetic_pair(6, 1))
    a[::2], b[1::2] = 0, 0
    return M, a / a.sum(), b / b.sum()


STRESS = {
    "half the masses zero": (row("zeros", half_zero()), 0.05),
    "small ε": (
        row("small", (grid_cost((4, 4)), *(x.ravel() for x in synthetic_pair(4, 0)))),
        5e-3,
    ),
    "dirichlet 0.3": (row("dirichlet", random(30, 30, 0.3, seed=3)), 0.05),
    "no zero cost": (row("shifted", (random(20, 20)[0] + 10.0, *random(20, 20)[1:])), 0.05),
    "n ≠ m": (row("rectangular", random(15, 40, 1.0, seed=4)), 0.05),
}


@pytest.mark.parametrize("stop", ["paper", "certificate"])
@pytest.mark.parametrize("case", STRESS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_hard_instances(variant, case, stop):
    method, options = VARIANTS[variant]
    instance, eps = STRESS[case]
    M, a, b = instance.M, instance.a, instance.b
    result = epsilot.solve(M, a, b, eps=eps, method=method, stop=stop, on_limit="ignore", **options)
    assert result.converged
    assert result.value - exact_value(instance) <= eps
    assert result.plan.min() >= 0


@pytest.mark.parametrize("variant", VARIANTS)
def test_scaling_leaves_the_iterations_unchanged(variant):
    method, options = VARIANTS[variant]
    M, a, b = (np.array(x) for x in random(12, 12, 1.0, seed=5))
    runs = [
        epsilot.solve(t * M, a, b, eps=0.1 * t, method=method, stop="paper", on_limit="ignore",
                      **options)
        for t in (1.0, 2.0**20, 2.0**-30)
    ]  # fmt: skip
    assert len({run.n_iter for run in runs}) == 1
    assert len({run.work.operations for run in runs}) == 1
    np.testing.assert_allclose(runs[0].plan, runs[1].plan, atol=1e-13)


@pytest.mark.parametrize(
    ("method", "options"),
    [("sinkhorn", {}), ("aam", {}), ("greenkhorn", {"start": "rows"}),
     ("stochastic_sinkhorn", {"start": "rows"})],
)  # fmt: skip
def test_constant_added_to_the_cost_leaves_plans_unchanged(method, options):
    plans = []
    for shift in (0.0, 3.0):
        problem = small(shift=shift)
        solver, state, rng = start(make_solver(method, options), problem)
        for _ in range(12):
            solver.step(problem, state, rng)
        plans.append(solver.candidates(problem, state)[0][0].block(0, problem.shape[0]))
    np.testing.assert_allclose(plans[0], plans[1], rtol=1e-9)


@pytest.mark.parametrize("target", [{"eps": 0.01}, {"eps": 0.1, "stop": "paper"}])
@pytest.mark.parametrize("variant", VARIANTS)
def test_resumed_run_repeats_the_uninterrupted_one(variant, target, tmp_path):
    method, options = VARIANTS[variant]
    M, a, b = random(14, 11, 0.5, seed=6)
    arguments = dict(M=M, a=a, b=b, method=method, **target, **options)
    whole = epsilot.solve(**arguments)
    path = tmp_path / "state.npz"
    epsilot.solve(**arguments, max_iter=whole.n_iter // 2, on_limit="ignore", checkpoint=path)
    resumed = epsilot.solve(**arguments, resume=path)
    assert trace(resumed) == trace(whole)
    assert resumed.work.operations == whole.work.operations


@pytest.mark.parametrize("method", FAMILY)
def test_warm_start_saves_work(method):
    M, a, b = random(20, 20, 1.0, seed=7)
    arguments = {"M": M, "a": a, "b": b, "reg": 0.05, "tol": 1e-5, "method": method}
    cold = epsilot.solve(**arguments)
    warm = epsilot.solve(**arguments, potentials_init=cold.potentials)
    assert cold.converged
    assert warm.converged
    assert warm.work.operations <= cold.work.operations
    assert warm.n_iter <= 2


def test_seed_matters_only_to_the_stochastic_method():
    M, a, b = random(20, 20, 1.0, seed=8)
    for method in FAMILY:
        runs = [
            epsilot.solve(M, a, b, eps=0.1, method=method, stop="paper", seed=seed)
            for seed in (0, 1)
        ]
        is_same = trace(runs[0]) == trace(runs[1])
        assert is_same == (method != "stochastic_sinkhorn")


@pytest.mark.parametrize(
    ("method", "options", "word"),
    [("stochastic_sinkhorn", {"power": -1}, "power"), ("greenkhorn", {"start": "x"}, "start"),
     ("accelerated_sinkhorn", {"variant": "x"}, "variant"),
     ("accelerated_sinkhorn", {"momentum_step": 0}, "momentum_step"),
     ("aam", {"variant": "x"}, "variant"), ("aam", {"search": "x"}, "search"),
     ("aam", {"test_every": -1}, "test_every")],
)  # fmt: skip
def test_options_are_checked(method, options, word):
    with pytest.raises(epsilot.InvalidProblem, match=word):
        epsilot.solve(np.eye(2), eps=0.1, method=method, **options)


def test_published_stop_of_aam_is_proved_by_the_certificate():
    M, a, b = random(15, 15, 1.0, seed=9)
    result = epsilot.solve(M, a, b, eps=0.05, method="aam", stop="paper")
    assert result.value - solve_exactly(M, a, b) <= 0.05
    assert result.n_iter % 10 == 1
    assert math.isclose(result.reg, 2 * 0.05 / (3 * math.log(15 * 15)))


def test_benchmark_runs(monkeypatch):
    path = Path(__file__).parents[2] / "benchmarks" / "sinkhorn_family.py"
    spec = importlib.util.spec_from_file_location("sinkhorn_family", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "sinkhorn_family", module)  # dataclasses look it up
    spec.loader.exec_module(module)
    cell = module.measure(module.ALGORITHMS[0], 36, 0.2, 5)
    assert cell.iterations == 202
    assert cell.n_failed == 0
    assert module.table([36], [0.2], 1) in (True, False)
    assert module.speed(20, 20, 1) in (True, False)
