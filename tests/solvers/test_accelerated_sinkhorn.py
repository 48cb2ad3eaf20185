"""Accelerated Sinkhorn: what its theory says of every iteration."""

import numpy as np
import pytest
from by_hand import gradient, lse_dual, published, start

from epsilot.solvers import make_solver


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


def test_the_printed_step_does_nothing_once_the_accelerated_point_is_kept():
    problem = published(epsilon=0.02)
    options = {"variant": "printed"}
    solver, state, rng = start(make_solver("accelerated_sinkhorn", options), problem)
    n_kept = 0
    for step in range(60):
        before = state.phi
        solver.step(problem, state, rng)
        if step and problem.eta * lse_dual(problem, state.z) < before - 1e-9:  # ẑ was taken
            n_kept += 1
            np.testing.assert_array_equal(state.main, state.z)
    assert n_kept > 20


def test_accelerated_step_credits_the_violated_block():
    assert decreases("corrected").min() >= -1e-12
    assert decreases("corrected", momentum_step=9.0).min() >= -1e-12
    assert decreases("printed").min() < -1e-6  # the update of the same block again fails
