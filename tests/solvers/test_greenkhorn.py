"""Greenkhorn and stochastic Sinkhorn: the statements of their theory about every update."""

import numpy as np
import pytest
from by_hand import exp_dual, joint, log_plan, published, rho, small, start

import epsilot
from epsilot.geometry import PointCloud
from epsilot.kernels import coordinate as kernels
from epsilot.solvers import make_solver
from sample_problems import random, trace


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
            C,
            C.T.copy(),
            1 / problem.eta,
            masses,
            1 / masses,
            np.log(masses),
            state.z,
            state.sums,
            state.h,
            state.errors,
            state.tops,
            weights,
            chosen,
        )
        if fall > 1e-5:
            assert before - exp_dual(problem, state.z) == pytest.approx(fall, rel=1e-9)
    X = np.exp(log_plan(problem, state.z))
    fresh = np.concatenate([X.sum(axis=1), X.sum(axis=0)])
    np.testing.assert_allclose(state.sums, fresh, atol=1e-14)
    np.testing.assert_allclose(state.h, rho(masses, fresh), rtol=1e-6, atol=1e-15)
    np.testing.assert_allclose(state.errors.sum(), np.abs(fresh - masses).sum(), rtol=1e-9)


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
        solver, state, rng = start(
            make_solver(method, {"start": "rows", "tested": "epoch"}), problem
        )
        for _ in range(40):
            solver.step(problem, state, rng)
        plans.append(np.exp(log_plan(problem, state.z)))
    np.testing.assert_allclose(plans[0], plans[1], rtol=1e-8, atol=1e-13)
    solver, state, rng = start(make_solver(method, {"start": "zero", "tested": "epoch"}), far)
    for _ in range(400):  # every sum is zero at first: all coordinates must be repaired
        solver.step(far, state, rng)
    assert np.isfinite(state.z).all()
    assert state.violation < 0.1


@pytest.mark.parametrize("method", ["greenkhorn", "stochastic_sinkhorn"])
def test_coordinate_methods_ask_for_a_matrix(method, rng):
    with pytest.raises(epsilot.InvalidProblem, match="explicit cost"):
        epsilot.solve(PointCloud(rng.random((5, 2)), rng.random((5, 2))), eps=0.1, method=method)


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


FAMILY = ["sinkhorn", "greenkhorn", "stochastic_sinkhorn", "accelerated_sinkhorn", "aam"]


def test_seed_matters_only_to_the_stochastic_method():
    M, a, b = random(20, 20, 1.0, seed=8)
    for method in FAMILY:
        runs = [
            epsilot.solve(M, a, b, eps=0.1, method=method, stop="paper", seed=seed)
            for seed in (0, 1)
        ]
        is_same = trace(runs[0]) == trace(runs[1])
        assert is_same == (method != "stochastic_sinkhorn")


@pytest.mark.parametrize("method", FAMILY)
def test_the_published_rule_ends_with_costs_of_zero(method):
    result = epsilot.solve(np.zeros((4, 5)), eps=0.1, method=method, stop="paper")
    assert result.converged
    assert result.value == 0


@pytest.mark.parametrize("method", ["greenkhorn", "stochastic_sinkhorn"])
def test_the_published_rule_is_tested_after_every_update(method):
    M, a, b = random(9, 9, seed=3)
    runs = {
        tested: epsilot.solve(M, a, b, eps=0.1, method=method, stop="paper", tested=tested)
        for tested in ("update", "epoch")
    }
    default = epsilot.solve(M, a, b, eps=0.1, method=method, stop="paper")
    assert default.work.operations == runs["update"].work.operations
    assert runs["update"].n_iter == runs["epoch"].n_iter
    update, epoch = (runs[tested].work.units["coordinate"] // 9 for tested in ("update", "epoch"))
    assert epoch % 18 == 0
    assert 0 < epoch - update < 18
    assert runs["update"].status == runs["epoch"].status
    assert runs["update"].gap <= 0.1
