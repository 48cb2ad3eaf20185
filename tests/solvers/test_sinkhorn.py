"""Sinkhorn with a stored kernel, with absorption and overrelaxation, against plain log-domain."""

import numpy as np
import pytest
from by_hand import exp_dual, log_plan, rho, small, start, synthetic
from scipy.special import logsumexp

import epsilot
from epsilot.geometry import Dense
from epsilot.problems.problem import Entropic
from epsilot.solvers import make_solver, sinkhorn
from epsilot.solvers.base import published_parameters
from epsilot.solvers.sinkhorn import Sinkhorn
from sample_problems import random
from tuning import tune


def target(eta=0.02, n=9, m=13, seed=0) -> Entropic:
    C, p, q = random(n, m, 1.0, seed)
    return Entropic(Dense(C), eta, p, q)


def run(solver, problem, n_steps, potentials=None):
    rng = np.random.default_rng(0)
    state, _ = solver.init(problem, rng, potentials)
    for _ in range(n_steps):
        solver.step(problem, state, rng)
    return state


def point(state):
    return np.concatenate([state.row, state.lam])


def violation(problem, state):
    X = np.exp(log_plan(problem, point(state)))
    return np.abs(X.sum(axis=1) - problem.p).sum() + np.abs(X.sum(axis=0) - problem.q).sum()


def test_published_iterates_are_those_of_the_paper():
    M, a, b = synthetic()
    problem = epsilot.problems.problem.make_problem(M, a, b)
    entropic, tolerance = published_parameters(problem, 0.2)
    C, eta = M / entropic.eta, entropic.eta
    u, v = np.zeros(36), np.zeros(36)
    for k in range(10_000):
        if k % 2 == 0:
            u = entropic.log_p - logsumexp(v - C, axis=1)
            error = np.abs(np.exp(v + logsumexp(u - C.T, axis=1)) - entropic.q).sum()
        else:
            v = entropic.log_q - logsumexp(u - C.T, axis=1)
            error = np.abs(np.exp(u + logsumexp(v - C, axis=1)) - entropic.p).sum()
        if error <= tolerance:
            break
    result = epsilot.solve(M, a, b, eps=0.2, method="sinkhorn", stop="paper")
    assert (result.options["domain"], result.options["relaxation"]) == ("log", 1.0)
    assert result.n_iter == k + 1
    solver = Sinkhorn().resolved("paper", problem)
    state = run(solver, entropic, k + 1)
    assert state.violation == pytest.approx(error, rel=1e-9)
    np.testing.assert_allclose(state.row, eta * u, atol=1e-12)
    np.testing.assert_allclose(state.lam, eta * v, atol=1e-12)


@pytest.mark.parametrize("domain", ["kernel", "absorption"])
@pytest.mark.parametrize("omega", [1.0, 1.6])
@pytest.mark.parametrize("shape", [(9, 13), (13, 9), (1, 6), (6, 1)])
def test_domains_have_the_same_iterates(domain, omega, shape):
    """A step with a kernel is two half-steps, and absorption starts one iteration ahead."""
    problem = target(0.02, *shape)
    n_sweeps, ahead = 25, 3 if domain == "absorption" else 0
    stored = run(Sinkhorn(domain=domain, relaxation=omega), problem, n_sweeps)
    first = run(Sinkhorn(domain="log", relaxation=1.0), problem, ahead)
    log = Sinkhorn(domain="log", relaxation=omega)
    plain = run(log, problem, 2 * n_sweeps - 1, (first.row, first.lam) if ahead else None)
    np.testing.assert_allclose(
        log_plan(problem, point(stored)), log_plan(problem, point(plain)), atol=1e-7
    )
    assert stored.violation == pytest.approx(violation(problem, stored), abs=1e-12)
    assert plain.violation == pytest.approx(violation(problem, plain), abs=1e-12)


def test_large_scalings_are_absorbed(monkeypatch):
    problem = target(0.02)
    reference = run(Sinkhorn(domain="log", relaxation=1.0), problem, 3000)
    rebuilt = []
    build = sinkhorn.KernelState.build
    monkeypatch.setattr(
        sinkhorn.KernelState, "build", lambda *args: rebuilt.append(1) or build(*args)
    )
    tune(monkeypatch, sinkhorn, max_scaling=2.0)
    state = run(Sinkhorn(domain="absorption"), problem, 1000)
    assert len(rebuilt) > 2
    np.testing.assert_allclose(
        np.exp(log_plan(problem, point(state))),
        np.exp(log_plan(problem, point(reference))),
        atol=1e-7,
    )


def test_underflown_kernel_recovers():
    """A kernel whose rows have vanished falls back to the last good potentials."""
    problem = target(0.02)
    solver, rng = Sinkhorn(domain="kernel"), np.random.default_rng(0)
    state, _ = solver.init(problem, rng)
    for k in range(200):
        if k == 5:
            state.K[3] = 0.0
        if k == 9:
            state.K[:, 2] = 0.0
        solver.step(problem, state, rng)
        assert np.isfinite(state.row).all()
        assert np.isfinite(state.lam).all()
    assert violation(problem, state) < 1e-6


def test_kernel_domain_rejects_costs_that_would_underflow():
    with pytest.raises(epsilot.InvalidProblem, match="absorption"):
        epsilot.solve(*synthetic(), reg=1e-3, method="sinkhorn", domain="kernel")


@pytest.mark.parametrize("domain", ["log", "absorption"])
@pytest.mark.parametrize("omega", [1.3, 1.6, 1.9])
@pytest.mark.parametrize("seed", range(3))
def test_overrelaxed_steps_never_raise_the_dual(domain, omega, seed, monkeypatch):
    tune(monkeypatch, sinkhorn, plain_sweeps=0)
    problem = target(0.005, seed=seed)
    rng = np.random.default_rng(seed)
    solver = Sinkhorn(domain=domain, relaxation=omega)
    far = rng.normal(size=9), rng.normal(size=13)  # a hostile start: updates of e^±200
    state, _ = solver.init(problem, rng, far)
    solver.step(problem, state, rng)
    before = exp_dual(problem, point(state))
    for _ in range(60):
        solver.step(problem, state, rng)
        after = exp_dual(problem, point(state))
        assert after <= before + 1e-9 * abs(before)
        before = after


def test_overrelaxation_saves_half_the_work():
    arguments = {"reg": 0.005, "tol": 1e-6, "method": "sinkhorn"}
    work = {}
    for relaxation in (None, 1.0):
        runs = [
            epsilot.solve(*synthetic(8, k), **arguments, relaxation=relaxation) for k in range(3)
        ]
        assert all(result.converged for result in runs)
        work[relaxation] = sum(result.work.operations for result in runs)
    assert work[None] < 0.5 * work[1.0]


def test_kernel_domain_saves_half_the_work():
    log = epsilot.solve(*synthetic(8), eps=0.01, method="sinkhorn", domain="log", relaxation=1.0)
    kernel = epsilot.solve(*synthetic(8), eps=0.01, method="sinkhorn", relaxation=1.0)
    assert kernel.converged
    assert kernel.work.operations < 0.5 * log.work.operations


def test_sinkhorn_block_lowers_the_dual_by_rho():
    problem = small()
    solver, state, rng = start(make_solver("sinkhorn", {}), problem)
    solver.step(problem, state, rng)
    for k in range(6):
        z = point(state)
        X = np.exp(log_plan(problem, z))
        fall = rho(problem.q, X.sum(axis=0)).sum() + rho(problem.p, X.sum(axis=1)).sum()
        before = exp_dual(problem, z)
        solver.step(problem, state, rng)
        after = exp_dual(problem, point(state))
        assert before - after == pytest.approx(fall, rel=1e-9), k


def test_safe_limit_is_where_the_share_of_the_decrease_ends():
    assert sinkhorn.safe_limit(1.0) == np.inf
    for omega in (1.2, 1.5, 1.8, 1.95):
        limit = sinkhorn.safe_limit(omega)

        def ratio(s, omega=omega):
            return (omega * s - np.exp((omega - 1) * s) + np.exp(-s)) / (s - 1 + np.exp(-s))

        share = 0.5 * omega * (2 - omega)
        assert ratio(limit) == pytest.approx(share, rel=1e-6)
        assert (ratio(np.linspace(0.01, limit, 50)) >= share * (1 - 1e-9)).all()
        assert (ratio(-np.linspace(0.01, 40, 50)) >= share).all()
        assert ratio(1e-3) == pytest.approx(2 * share, rel=1e-2)


def test_next_omega_finds_the_best_one():
    """For a linear iteration with plain rate μ², any ω below the best leads to the best."""
    mu2 = 0.8
    best = 2 / (1 + np.sqrt(1 - mu2))
    for omega in (1.0, 1.2, best - 1e-3):
        # (λ + ω - 1)² = λ ω² μ², the larger root
        b = omega**2 * mu2 - 2 * (omega - 1)
        rate = (b + np.sqrt(b * b - 4 * (omega - 1) ** 2)) / 2
        assert sinkhorn.next_omega(omega, rate) == pytest.approx(best, rel=1e-9)
    assert sinkhorn.next_omega(1.6, 0.5) == 1.6
    assert 1 < sinkhorn.next_omega(1.6, 1.01) < 1.6
    assert sinkhorn.next_omega(1.6, np.nan) < 1.6
    assert sinkhorn.next_omega(1.0, 1 - 1e-9) == sinkhorn.TUNING.max_omega
